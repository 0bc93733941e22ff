/// An id as it stands in topics: `[A-Za-z0-9][A-Za-z0-9._-]{0,47}`, case-sensitive.
package protocol Identifier: Hashable, Sendable, Comparable, CustomStringConvertible, JSONCodable {
    /// What the id names, for messages: `device id`.
    static var noun: String { get }
    var text: String { get }
    /// Takes what is known to be a valid id.
    init(unchecked text: String)
}

extension Identifier {
    package init?(_ text: some StringProtocol) {
        guard Self.isValid(text.utf8) else { return nil }
        self.init(unchecked: String(text))
    }

    /// The id, or an error that says what an id looks like.
    package init(checking text: some StringProtocol) throws {
        guard let id = Self(text) else {
            throw FleetProtocolError(
                .value,
                "'\(Text.printable(String(text), limit: 60))' is no \(Self.noun): expected 1 to 48 of A–Z a–z 0–9 . _ -,"
                    + " beginning with a letter or digit")
        }
        self = id
    }

    package init(from reader: inout JSONReader) throws { try self.init(checking: try reader.string()) }
    package func write(to writer: inout JSONWriter) { writer.value(text) }
    package var description: String { text }
    package static func < (left: Self, right: Self) -> Bool { left.text < right.text }

    static func isValid(_ bytes: some Collection<UInt8>) -> Bool {
        guard let first = bytes.first, bytes.count <= 48, isAlphanumeric(first) else { return false }
        return bytes.dropFirst().allSatisfy {
            isAlphanumeric($0) || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
        }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}

/// The name of a fleet, as it stands in topics.
package struct FleetID: Identifier {
    package static let noun = "fleet id"
    package let text: String
    package init(unchecked text: String) { self.text = text }
}

/// A device; also its user name at the broker.
package struct DeviceID: Identifier {
    package static let noun = "device id"
    package let text: String
    package init(unchecked text: String) { self.text = text }
}

/// An app, such as `com.example.mail`: 1 to 48 of A–Z a–z 0–9 . _ -, beginning with a letter or digit, case-sensitive.
public struct AppID: Identifier {
    package static let noun = "app id"
    /// The id as it is written.
    public let text: String
    package init(unchecked text: String) { self.text = text }

    /// The id, or nil where `text` is none.
    public init?(_ text: String) {
        guard Self.isValid(text.utf8) else { return nil }
        self.text = text
    }

    /// The id as it is written.
    public var description: String { text }

    /// The order of the ids' characters.
    public static func < (left: AppID, right: AppID) -> Bool { left.text < right.text }
}

extension DeviceID {
    /// Whether bytes are an id, of whatever kind: all are written alike.
    package static func isID(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool { isValid(bytes) }
}

/// A group of devices.
package struct GroupID: Identifier {
    package static let noun = "group id"
    package let text: String
    package init(unchecked text: String) { self.text = text }
}

/// The name of a person or service behind `@operator.`, `@viewer.` and `@bridge.`; and of one answer's address.
package struct Name: Identifier {
    package static let noun = "name"
    package let text: String
    package init(unchecked text: String) { self.text = text }
}
