extension LoopClient {
    /// What happens to a client, told to its handler in the order it happened.
    public enum Event: Sendable {
        /// An attempt to connect begins.
        case connecting
        /// The broker has accepted; subscriptions must be made anew.
        case connected(Connack)
        /// A message has come.
        case message(Message)
        /// The broker's answer to a publish; for QoS 0: it has been written to the socket.
        case published(PacketID, ReasonCode)
        /// The broker's answer to a subscription, a code for each filter: the QoS granted, or an error.
        case subscribed(PacketID, [ReasonCode])
        /// The broker has ended a subscription.
        case unsubscribed(PacketID)
        /// There is no connection: it went down, an attempt failed, or the client was closed. Requests without an answer
        /// get none any more, and their packet ids may come again. Without `retryIn` this is the last event of the
        /// client, and without an error it was closed on purpose.
        case disconnected(MosquittoError?, retryIn: Duration?)
    }

    /// How a client leaves.
    public enum Farewell: Hashable, Sendable {
        /// With a DISCONNECT: the broker drops the will.
        case graceful
        /// With a DISCONNECT that asks the broker to publish the will (reason code 4).
        case publishingWill
        /// By closing the socket, as a process that dies would.
        case abrupt
    }

    enum Phase {
        case idle
        case resolving
        case connecting(deadline: UInt64)
        case connected(since: UInt64)
        case waiting(LoopTimer)
        case closing(LoopTimer)
        case closed
    }
}
