/// Ties an answer of the broker to a request, within one connection.
public struct PacketID: RawRepresentable, Hashable, Sendable {
    /// The packet identifier.
    public let rawValue: UInt16

    /// Makes an id from its number.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }
}
