/// What the broker said when it accepted a connection.
public struct Connack: Hashable, Sendable {
    /// This client's connections are numbered from 1.
    public var number: Int
    /// How many publishes of QoS 1 and 2 may be unanswered at once, by the broker's word and our options.
    public var sendMaximum: Int
    /// The largest packet that may be sent, by the broker's word and our options.
    public var maximumPacketSize: Int
}
