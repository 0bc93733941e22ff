/// An enumeration of the app API: raw values are the API's integers, names stand on the wire.
public protocol WireNamed: RawRepresentable<Int>, CaseIterable, Hashable, Sendable, CustomStringConvertible {
    /// The names on the wire, by raw value.
    static var wireNames: [String] { get }
}

extension WireNamed {
    /// The name on the wire, such as `secureCopy`.
    public var description: String { Self.wireNames[rawValue] }

    /// The value of that name, or nil for a name that this build does not know.
    public init?(wireName: String) {
        guard let index = Self.wireNames.firstIndex(of: wireName) else { return nil }
        self.init(rawValue: index)
    }

    package init(from reader: inout JSONReader) throws {
        self = try reader.word { word in
            guard let index = Self.wireNames.firstIndex(where: { word.isEqual($0) }), let value = Self(rawValue: index)
            else { throw word.unknown(among: Self.wireNames) }
            return value
        }
    }

    package func write(to writer: inout JSONWriter) { writer.value(description) }
}
