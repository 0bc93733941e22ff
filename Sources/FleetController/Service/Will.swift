import FleetProtocol
import Mosquitto
import Synchronization

/// What the broker is to say when a connection of this run is gone, each by a name of its own.
final class Will: Sendable {
    private let identity: FleetIdentity
    private let startedAt: Timestamp
    private let newest = Mutex(RandomID.random())

    init(_ identity: FleetIdentity, _ startedAt: Timestamp) {
        self.identity = identity
        self.startedAt = startedAt
    }

    /// The newest connection's.
    var name: RandomID { newest.withLock { $0 } }

    var message: ControllerCore.Message { ControllerCore.will(name, of: identity, startedAt: startedAt) }

    /// On any thread: another connection is about to be made.
    func makeNext() -> ClientOptions.Will {
        newest.withLock { $0 = .random() }
        let message = message
        return ClientOptions.Will(topic: message.topic, payload: message.payload, retain: message.isRetained)
    }
}
