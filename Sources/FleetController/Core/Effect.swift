package import FleetProtocol

extension ControllerCore {
    /// What happens to the controller. The time of it comes with it.
    package enum Event: Sendable {
        /// A connection to the broker is up, with the will of this name.
        case connected(RandomID)
        case disconnected
        /// What has arrived, in order. Statuses and events of one batch are committed together.
        case messages([Message])
        /// The time that ``Effect/wake(at:)`` asked for, or any other.
        case tick
        /// The broker has refused something that this connection has said.
        case refused
        /// The incarnations that the home has given out, as it is at this moment: a device that was removed by an earlier event
        /// and stands there has been let in again.
        case enrolments([DeviceID: Int64])
    }

    /// What is to be done about it, in this order. Everything that an effect tells others has been committed before.
    package enum Effect: Hashable, Sendable {
        /// Subscribe to all of these; what follows waits for the broker's yes.
        case subscribe([TopicFilter])
        /// At QoS 1. An empty retained message clears a topic.
        case publish(topic: String, payload: [UInt8], retain: Bool)
        /// Leave this connection, as if it had been lost, for another one.
        case reconnect
        /// Read the home's enrolments and answer with ``Event/enrolments(_:)``.
        case readEnrolments
        /// Send ``Event/tick`` at this time; replaces the one before.
        case wake(at: Timestamp)
        /// Remember, beside the database, how far it has come.
        case note(StorePosition)
        case log(LogLine)
        /// Going on would do harm: end with this message.
        case stop(reason: String)
    }

    /// A line for the log: a constant message, and what it is about.
    package struct LogLine: Hashable, Sendable {
        package enum Level: Sendable { case info, notice, warning, error }

        package let level: Level
        package let message: String
        package let details: [String: String]
    }

    package struct Message: Hashable, Sendable {
        package let topic: String
        package let payload: [UInt8]
        /// Whether the broker had kept it from before the subscription.
        package let isRetained: Bool

        package init(topic: String, payload: [UInt8], isRetained: Bool) {
            self.topic = topic
            self.payload = payload
            self.isRetained = isRetained
        }
    }
}
