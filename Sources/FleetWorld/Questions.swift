import FleetController
import FleetProtocol

/// What a controller has still to ask of devices that are there, for each of its connections: what somebody has cleared may
/// have been newer than what was meant.
struct Questions {
    private struct Question {
        var lost: Set<Hello.Lost> = []
        /// How many heartbeats have gone without it.
        var beats = 0
        let since: Int64
    }

    /// The connections of devices that have said themselves that they are there.
    private var present: [DeviceID: RandomID] = [:]
    private var open: [DeviceID: Question] = [:]
    /// When this connection's first heartbeat went behind which somebody could be greeted: before it nobody is asked.
    private var servesFrom: Int64?
    /// With the next heartbeat at the latest, and one more for a device that is still to have its first hello.
    private static let patience = 2

    /// What the controller has taken in at one moment: what is cleared counts behind the rest.
    ///
    /// - Parameter isKnown: Whether it can know that a device is one of the fleet: nobody else is asked anything.
    mutating func handled(
        _ messages: [ControllerCore.Message], at now: Int64, where isKnown: (DeviceID) -> Bool
    ) {
        for message in messages where !message.payload.isEmpty {
            guard case .presence(.device(let device))? = Address(topic: message.topic, in: SimulatedFleet.id),
                let said = try? Presence(json: message.payload, limit: Presence.maximumSize)
            else { continue }
            // By what a broker has kept, nobody knows who is there.
            let isThere = said.state == .online && !message.isRetained && isKnown(device)
            let connection = isThere ? said.connection : nil
            if present[device] != connection { open[device] = nil }
            present[device] = connection
        }
        for message in messages where message.payload.isEmpty {
            switch Address(topic: message.topic, in: SimulatedFleet.id) {
            case .presence(.device(let device)): note(device, [], at: now)
            case .reply(let device, _, .status): note(device, [.statuses], at: now)
            default: continue
            }
        }
    }

    private mutating func note(_ device: DeviceID, _ lost: Set<Hello.Lost>, at now: Int64) {
        if present[device] != nil { open[device, default: Question(since: now)].lost.formUnion(lost) }
    }

    mutating func asked(_ hello: Hello) {
        if let question = open[hello.device], question.lost.isSubset(of: hello.lost) { open[hello.device] = nil }
    }

    mutating func forget(_ device: DeviceID) { present[device] = nil }

    /// Devices that have waited for longer than any heartbeat.
    func waiting(at now: Int64) -> [DeviceID] {
        guard let servesFrom else { return [] }
        return open.filter { max($0.value.since, servesFrom) + 65_000 < now }.keys.sorted()
    }

    /// A heartbeat goes, and nobody is greeted where that is held back. Returns a device that should have been asked before it,
    /// if it is still one of the fleet.
    mutating func late(of fleet: [DeviceID: Int64], isHeld: Bool, at now: Int64) -> DeviceID? {
        guard !isHeld else { return nil }
        servesFrom = servesFrom ?? now
        for device in open.keys where present[device] == nil || fleet[device] == nil { open[device] = nil }
        for device in open.keys { open[device]?.beats += 1 }
        return open.filter { $0.value.beats > Self.patience }.keys.min()
    }
}
