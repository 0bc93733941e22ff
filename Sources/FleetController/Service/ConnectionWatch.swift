import Logging
import Mosquitto

/// Tells the core when the connection comes and goes, and notices that somebody else uses its name.
struct ConnectionWatch {
    private let logger: Logger
    /// Thrown off by another client of the same id so often within a minute means that there is one.
    private static let patience = 3

    init(_ logger: Logger) { self.logger = logger }

    /// Ends by throwing, when this controller is not the only one of its fleet.
    func run(_ client: MQTTClient, _ engine: ControllerEngine) async throws {
        var takeovers: [ContinuousClock.Instant] = []
        for await state in client.states {
            switch state {
            case .connecting: break
            case .connected(let number): await engine.connected(number: number)
            case .waiting(_, let cause):
                await engine.disconnected()
                logger.warning("no connection to the broker", metadata: ["reason": "\(cause.message)"])
                guard cause.reason == .sessionTakenOver else { continue }
                let now = ContinuousClock.now
                takeovers = takeovers.filter { $0.duration(to: now) < .seconds(60) } + [now]
                if takeovers.count >= Self.patience {
                    throw FleetControllerError(
                        .stopped,
                        "another client has connected as @controller \(takeovers.count) times within a minute: a fleet"
                            + " has one controller. Is a copy of its home in use elsewhere?")
                }
            case .closed: return
            }
        }
    }
}
