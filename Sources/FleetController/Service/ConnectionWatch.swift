import Logging
import Mosquitto

/// Tells the core when the connection comes and goes.
struct ConnectionWatch {
    private let logger: Logger

    init(_ logger: Logger) { self.logger = logger }

    /// Returns when the client is closed.
    func run(_ client: MQTTClient, _ engine: ControllerEngine) async {
        for await state in client.states {
            switch state {
            case .connecting: break
            case .connected(let number): await engine.connected(number: number)
            case .waiting(_, let cause):
                await engine.disconnected()
                logger.warning("no connection to the broker", metadata: ["reason": "\(cause.message)"])
            case .closed: return
            }
        }
    }
}
