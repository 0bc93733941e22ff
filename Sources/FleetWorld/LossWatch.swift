import FleetController
import FleetProtocol

/// Devices that are told again and again, on one connection of the controller, that their documents are not those that they
/// should have, and go on saying the same.
struct LossWatch {
    /// What a device says of itself. While that and all documents stay, it is right or wrong as it was.
    private struct Word: Hashable {
        let connection: RandomID
        let incarnation: Int64
        let apps: [AppID]
        var documents: Presence.Documents?
    }

    private var words: [DeviceID: Word] = [:]
    /// Behind how many heartbeats each was told first since it says that.
    private var told: [DeviceID: Int] = [:]
    /// Devices that have had a hello, and have said nothing since: what the next one tells of is a loss that their next word has
    /// shown.
    private var silent: Set<DeviceID> = []
    private var beats = 0
    /// Behind how many heartbeats each was told first, and last, without a pause in which it may have had all again.
    private var tellings: [DeviceID: (first: Int, last: Int)] = [:]
    /// Of whom somebody is warned; nil before anybody was looked at.
    private var warned: Set<DeviceID>?
    /// In heartbeats: in each a device that lacks something is told so, some way into it.
    private static let round = 10
    private static let pause = 15
    /// In heartbeats: after so many somebody has to look.
    private static let patience = 20

    /// The controller has looked at some messages, or woken, and says something.
    ///
    /// - Parameter areDocumentsNew: Whether it changes what devices are to have.
    /// - Returns: Devices that it has told just now, and whose incarnations it has told so for too long.
    mutating func handled(
        _ event: ControllerCore.Event, _ effects: [ControllerCore.Effect], areDocumentsNew: Bool
    ) -> [DeviceID: Int64] {
        var spoken: [DeviceID: Int] = [:]
        if case .messages(let messages) = event {
            for message in messages {
                guard case .presence(.device(let device))? = Address(topic: message.topic, in: SimulatedFleet.id) else {
                    continue
                }
                spoken[device, default: 0] += 1
                var word = Self.word(in: message)
                // While it fetches, it does not say what it has.
                if word?.documents == nil { word?.documents = words[device]?.documents }
                if word == nil || word != words[device] { told[device] = nil }
                words[device] = word
            }
        }
        var late: [DeviceID: Int64] = [:]
        for hello in Self.hellos(in: effects) {
            let device = hello.device
            if hello.lost.contains(.documents) { noteTelling(device) }
            // What was to be said since longer may have been held back.
            if hello.lost.contains(.documents), spoken[device] == 1, silent.contains(device), let word = words[device],
                word.connection == hello.connection
            {
                let first = told[device] ?? beats
                told[device] = first
                if beats - first >= Self.patience { late[device] = word.incarnation }
            }
        }
        silent.subtract(spoken.keys)
        silent.formUnion(Self.hellos(in: effects).map(\.device))
        for case .publish(Controller.heartbeats, _, _) in effects { beats += 1 }
        guard !areDocumentsNew else {
            told = [:]
            return [:]
        }
        return late
    }

    private mutating func noteTelling(_ device: DeviceID) {
        let first = tellings[device].flatMap { beats - $0.last <= Self.pause ? $0.first : nil }
        tellings[device] = (first ?? beats, beats)
    }

    /// Of whom somebody is warned now, and was not before, though they have not been told for so long that they lack something.
    mutating func early(of devices: Set<DeviceID>) -> Set<DeviceID> {
        defer { warned = devices }
        // Who is told since before anybody looked is told in the first round again.
        guard beats >= Self.patience + Self.round else { return [] }
        return devices.subtracting(warned ?? devices).filter { device in
            // It is told with the next heartbeat.
            let told = tellings[device].map { beats - $0.last <= Self.pause ? beats - $0.first + 1 : 0 } ?? 0
            return told < Self.patience
        }
    }

    /// Nil for what somebody else may have said of it, or long ago.
    private static func word(in message: ControllerCore.Message) -> Word? {
        guard !message.isRetained, let said = try? Presence(json: message.payload, limit: Presence.maximumSize),
            said.state == .online
        else { return nil }
        return Word(
            connection: said.connection, incarnation: said.incarnation, apps: said.apps.map(\.id),
            documents: said.documents)
    }

    private static func hellos(in effects: [ControllerCore.Effect]) -> [Hello] {
        effects.compactMap { effect in
            guard case .publish(let topic, let payload, _) = effect, topic.contains("/hello/") else { return nil }
            return try? Hello(wire: payload)
        }
    }
}

extension Controller {
    /// Whoever is told in vain for twenty heartbeats is warned of. So long documents alone stay away in worlds in which somebody
    /// hides them: elsewhere nobody looks.
    func checkTold(_ event: ControllerCore.Event, _ effects: [ControllerCore.Effect], isFull: Bool) {
        let isAnew =
            switch event {
            case .connected, .disconnected: true
            // What a full disk did not take, the controller has not heard.
            case .messages, .tick, .refused, .enrolments: isFull
            }
        guard !isAnew else {
            losses = LossWatch()
            return
        }
        guard world.broker.hasHidden else { return }
        let areDocumentsNew = effects.contains { effect in
            guard case .publish(let topic, let payload, _) = effect, topic.hasPrefix(Self.documents) else {
                return false
            }
            return documentsSaid[topic]?.contains(payload) != true
        }
        let late = losses.handled(event, effects, areDocumentsNew: areDocumentsNew)
        for (device, incarnation) in late.sorted(by: { $0.key < $1.key }) {
            guard let known = try? store.device(device), known.incarnation == incarnation, known.warning == nil
            else { continue }
            world.fail(.ends, "\(device) is told in vain that its documents are others, and nobody is warned")
        }
        let warned = world.machines.map(\.id).filter { device in
            (try? store.device(device))?.warning?.hasPrefix("has other documents") == true
        }
        for device in losses.early(of: Set(warned)).sorted() {
            world.fail(.ends, "\(device) is warned of as told in vain, and was not told for so long")
        }
    }
}
