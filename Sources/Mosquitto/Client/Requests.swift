/// A publish that waits for its turn, or its answer.
struct Publish: Sendable {
    let payload: [UInt8]
    let topic: String
    let qos: QoS
    let retain: Bool
    let answer: Pending<ReasonCode>
}

/// A subscription that waits for its answer.
struct Subscription: Sendable {
    let filters: [String]
    let qos: QoS
    let options: SubscribeOptions
    let answer: Pending<Void>
}
