import Logging
import Mosquitto

/// Tells the core when the connection comes and goes.
struct ConnectionWatch {
    private let logger: Logger

    init(_ logger: Logger) { self.logger = logger }

    /// Returns when the client is closed.
    func run(_ client: MQTTClient, _ engine: ControllerEngine) async {
        var isConnected = false
        for await state in client.states {
            switch state {
            case .connecting:
                // Of states that follow each other soon the last alone may be seen.
                if isConnected { await engine.disconnected() }
                isConnected = false
            case .connected(let number):
                await engine.connected(number: number)
                isConnected = true
            case .waiting(_, let cause):
                await engine.disconnected()
                isConnected = false
                logger.warning("no connection to the broker", metadata: ["reason": "\(cause.message)"])
            case .closed: return
            }
        }
    }
}
