/// How often MQTT hands a message over.
public enum QoS: UInt8, Hashable, Sendable, CaseIterable, Comparable {
    /// Written once, never confirmed.
    case atMostOnce = 0
    /// Sent until the peer confirms; it may arrive twice.
    case atLeastOnce = 1
    /// Handed over by a four-step exchange; it arrives once on each connection.
    case exactlyOnce = 2

    /// By the strength of the promise.
    public static func < (left: QoS, right: QoS) -> Bool { left.rawValue < right.rawValue }
}
