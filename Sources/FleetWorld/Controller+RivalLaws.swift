import FleetController
import FleetProtocol

/// A fleet has one controller: of two on one home, the one that has run longer gives up.
extension Controller {
    private static let presence = Address.presence(.controller).topic(in: SimulatedFleet.id)

    /// What it is about to read tells of another controller's connections.
    ///
    /// - Parameter isFull: What its disk does not take it may not have counted.
    func noteRivals(in event: ControllerCore.Event, isFull: Bool) {
        guard case .messages(let messages) = event, phase != .offline, let running, !world.rival.connections.isEmpty
        else { return }
        for message in messages where message.topic == Self.presence {
            guard let said = try? Presence(json: message.payload, limit: Presence.maximumSize),
                world.rival.connections.contains(said.connection)
            else { continue }
            // One that is older may be an earlier run of its own.
            let counts = !isFull && said.since > running.startedAt.advanced(bySeconds: 1)
            let first = rivals[said.connection]?.first ?? (counts ? world.now : nil)
            rivals[said.connection] = (first, world.now)
        }
    }

    /// Three of them may have come within a minute. By a clock that was set the minute is longer, and what an earlier run has
    /// left may be one of them.
    var isThrownOff: Bool {
        isPunctual ? rivals.values.count { world.now - $0.last <= 60_000 } >= 3 : !rivals.isEmpty
    }

    func checkRivals(_ effects: [ControllerCore.Effect]) {
        guard isPunctual, rivals.count >= 3 else { return }
        let recent = rivals.values.compactMap { $0.first }.count { world.now - $0 < 59_000 }
        let isStopping = effects.contains { if case .stop = $0 { true } else { false } }
        if recent >= 3, !isStopping {
            world.fail(.alone, "another controller has taken its connection \(recent) times, and it goes on")
        }
    }
}
