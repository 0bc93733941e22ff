/// A message as the broker delivered it.
public struct Message: Hashable, Sendable {
    /// Where it was published.
    public var topic: String
    /// Its content.
    public var payload: [UInt8]
    /// The QoS it was delivered with.
    public var qos: QoS
    /// Whether the broker had kept it: true for the state found by a new subscription, false for news.
    public var retained: Bool
    /// The number of the connection it came on, as in `ConnectionState.connected`.
    public var connection: Int

    /// Makes a message, as tests do.
    public init(topic: String, payload: [UInt8], qos: QoS = .atLeastOnce, retained: Bool = false, connection: Int = 1) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retained = retained
        self.connection = connection
    }

    /// The payload as text, with invalid UTF-8 replaced.
    public var text: String { String(decoding: payload, as: UTF8.self) }
}
