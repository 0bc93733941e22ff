internal import CMosquitto

/// How the broker should treat the filters of one subscription.
public struct SubscribeOptions: Hashable, Sendable {
    /// Which retained messages a subscription brings.
    public enum Retained: Int32, Hashable, Sendable {
        /// All that match.
        case send = 0x00
        /// All that match, if the subscription is new on this connection.
        case sendIfNew = 0x10
        /// None: news only.
        case skip = 0x20
    }

    /// Which retained messages come first.
    public var retained: Retained
    /// Whether own messages are left out.
    public var noLocal: Bool
    /// Whether messages keep the retain flag they were published with.
    public var retainAsPublished: Bool

    /// The protocol's defaults.
    public init(retained: Retained = .send, noLocal: Bool = false, retainAsPublished: Bool = false) {
        self.retained = retained
        self.noLocal = noLocal
        self.retainAsPublished = retainAsPublished
    }

    var bits: Int32 {
        retained.rawValue | (noLocal ? Int32(MQTT_SUB_OPT_NO_LOCAL.rawValue) : 0)
            | (retainAsPublished ? Int32(MQTT_SUB_OPT_RETAIN_AS_PUBLISHED.rawValue) : 0)
    }
}
