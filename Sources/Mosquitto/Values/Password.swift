/// A password that no description, debugger print or reflection shows.
public struct Password: Sendable {
    let bytes: [UInt8]

    /// Keeps the bytes; libmosquitto cannot send one that holds a zero byte.
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }
}

extension Password: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Always the same word.
    public var description: String { "[redacted]" }
    /// Always the same word.
    public var debugDescription: String { description }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
