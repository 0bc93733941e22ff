import FleetController
import FleetProtocol

/// The controller's process: its real core over a real store in memory.
final class Controller: BusClient {
    unowned let world: World
    let user = User.controller
    let name = "controller"
    private(set) var store: FleetStore
    private var running: Running?
    private var connection: Connection?
    private var inbox: [ControllerCore.Message] = []
    private var isWorkDue = false
    /// Effects that are still performed before the process dies.
    var effectsLeft: Int?
    var downFor: Int64 = 0
    private var clockOffset: Int64 = 0
    private var backUp: FleetStore?
    /// A backup was put back, and the controller has not noticed yet.
    private(set) var isFromBackUp = false
    private(set) var wasPutBack = false
    /// The incarnations that the home has given out.
    var enrolments: [DeviceID: Int64] = [:]
    /// What operators were answered to have been done: the lowest revision that each address must have.
    private(set) var promises: [Address: Int64] = [:]

    /// One run of the process.
    private final class Running {
        var core: ControllerCore
        init(_ core: consuming ControllerCore) { self.core = core }
    }

    init(_ store: FleetStore, _ world: World) {
        self.store = store
        self.world = world
    }

    var clock: Timestamp {
        Timestamp(milliseconds: SimulatedFleet.begin.milliseconds + world.now + clockOffset)
    }

    var isUp: Bool { running != nil }

    // MARK: The process

    func start(isRestoring: Bool) {
        guard running == nil else { return }
        do {
            let core = try ControllerCore(
                store: store, identity: world.fleet.identity, instance: .random(using: &world.noise),
                isRestoring: isRestoring, startedAt: clock)
            running = Running(core)
            world.say(name, isRestoring ? "starts as restored" : "starts")
            connect()
        } catch {
            world.fail(.total, "the controller does not start: \(error)")
        }
    }

    private func crash(thenStart isRestoring: Bool = false) {
        guard running != nil else { return }
        world.say(name, "is killed")
        running = nil
        effectsLeft = nil
        inbox = []
        if let connection {
            self.connection = nil
            world.broker.cut(connection, noticedAfter: 0)
        }
        forgetSome()
        world.after(downFor) { [unowned self] in start(isRestoring: isRestoring) }
    }

    func kill() { crash() }

    /// A process that starts again knows only what stands in the tables.
    private func forgetSome() {
        do {
            if world.fault == .eventsForgotten { try store.forgetEverySecondEvent() }
            if world.noise.chance(25) { store = try FleetStore(copying: store) }
        } catch {
            world.fail(.total, "\(error)")
        }
    }

    func takeBackUp() { backUp = try? FleetStore(copying: store) }

    func putBack() {
        guard let backUp, let copy = try? FleetStore(copying: backUp) else { return }
        world.say(name, "is put back from its backup")
        running = nil
        inbox = []
        if let connection {
            self.connection = nil
            world.broker.cut(connection, noticedAfter: 0)
        }
        let lost = (try? store.events()) ?? [:]
        for machine in world.machines { machine.forgive(lost.keys) }
        let latest = (try? copy.latest().number) ?? 0
        promises = promises.filter { $0.value <= latest }
        store = copy
        isFromBackUp = true
        wasPutBack = true
        world.after(1_000) { [unowned self] in start(isRestoring: false) }
    }

    func setClock(by seconds: Int64) { clockOffset += seconds * 1_000 }

    func calm() {
        effectsLeft = nil
        clockOffset = max(clockOffset, 0)
        start(isRestoring: false)
    }

    func promised(_ change: ChangeResponse) {
        for result in change.results where result.isChanged {
            let address = Address.desired(result.layer, result.app, result.aspect)
            promises[address] = max(promises[address] ?? 0, result.revision)
        }
    }

    // MARK: The bus

    private func connect() {
        guard let running, connection == nil else { return }
        let will = running.core.will
        guard let made = world.broker.connect(self, will: (will.topic, will.payload)) else { return retry() }
        connection = made
        world.after(world.delay()) { [unowned self] in
            guard made.isClientThere, connection === made else { return }
            world.say(name, "is connected")
            handle(.connected)
        }
    }

    private func retry() {
        world.after(world.noise.milliseconds(50...1_000)) { [unowned self] in connect() }
    }

    func cut(noticedAfter delay: Int64) {
        guard let connection else { return }
        world.broker.cut(connection, noticedAfter: delay)
        lost(connection)
    }

    func connected(_ connection: Connection) {}
    func subscribed(_ token: Int64, on connection: Connection) {}

    func lost(_ connection: Connection) {
        guard connection === self.connection else { return }
        self.connection = nil
        inbox = []
        handle(.disconnected)
        retry()
    }

    func received(_ topic: String, _ payload: [UInt8], isRetained: Bool, on connection: Connection) {
        guard connection === self.connection else { return }
        guard let message = altered(ControllerCore.Message(topic: topic, payload: payload, isRetained: isRetained))
        else { return }
        inbox.append(message)
        guard !isWorkDue else { return }
        isWorkDue = true
        world.after(world.isCalm ? 5 : world.noise.milliseconds(0...20)) { [unowned self] in
            isWorkDue = false
            let messages = inbox
            inbox = []
            if !messages.isEmpty { handle(.messages(messages)) }
        }
    }

    private func handle(_ event: ControllerCore.Event) {
        guard let running else { return }
        let isRequest: Bool
        if world.fault == .answersBeforeCommit, case .messages(let messages) = event {
            isRequest = messages.contains { $0.topic.contains("/request/") }
        } else {
            isRequest = false
        }
        let before = isRequest ? try? FleetStore(copying: store) : nil
        var effects = running.core.handle(event, at: clock)
        if world.fault != nil { effects = altered(effects) }
        perform(effects, running)
        if let before, world.noise.chance(25) {
            store = before
            crash()
        }
    }

    private func perform(_ effects: [ControllerCore.Effect], _ running: Running) {
        for effect in effects {
            if let left = effectsLeft {
                guard left > 0 else { return crash() }
                effectsLeft = left - 1
            }
            switch effect {
            case .subscribe(let filters):
                guard let connection else { continue }
                world.broker.subscribe(filters.map { $0.text(in: SimulatedFleet.id) }, token: 0, on: connection)
            case .publish(let topic, let payload, let retain):
                guard let connection else { continue }
                world.say(name, "publishes \(topic)\(payload.isEmpty ? ", empty" : "")")
                world.broker.send(topic, payload, retain: retain, on: connection)
            case .readEnrolments:
                world.after(world.delay()) { [unowned self] in
                    if self.running === running { handle(.enrolments(enrolments)) }
                }
            case .wake(let time):
                world.after(time.milliseconds - clock.milliseconds) { [unowned self] in
                    if self.running === running { handle(.tick) }
                }
            case .log(let line):
                if line.message.hasPrefix("began a new epoch") { isFromBackUp = false }
                if line.level == .error { world.fail(.total, "the controller logs: \(line.message) \(line.details)") }
                world.say(
                    name,
                    "logs: \(line.message) \(line.details.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " "))"
                )
            case .stop(let reason):
                world.say(name, "stops: \(reason)")
                // A broker that gives back an old presence at each of its crashes looks like a second controller.
                if reason.hasPrefix("another controller"), world.broker.crashes > 1 { return crash() }
                guard isFromBackUp else { return world.fail(.restored, reason) }
                downFor = 500
                return crash(thenStart: true)
            }
        }
    }

    // MARK: Deliberate faults

    private func altered(_ message: ControllerCore.Message) -> ControllerCore.Message? {
        guard let fault = world.fault else { return message }
        let address = Address(topic: message.topic, in: SimulatedFleet.id)
        switch (fault, address) {
        case (.statusesNotTaken, .reply(_, _, .status)?): return world.noise.chance(20) ? nil : message
        case (.presenceNotTaken, .presence(.device)?): return world.noise.chance(20) ? nil : message
        case (.newerIgnored, _):
            if message.topic.contains("/desired/") {
                guard let signed = try? SignedDocument(wire: message.payload),
                    let document = try? DesiredDocument(payload: signed.payload, in: SimulatedFleet.id),
                    let latest = try? store.latest()
                else { return message }
                return document.revision > latest ? nil : message
            }
            if case .presence(.device)? = address,
                var presence = try? Presence(json: message.payload, limit: Presence.maximumSize)
            {
                presence.highest = nil
                return ControllerCore.Message(
                    topic: message.topic, payload: presence.json, isRetained: message.isRetained)
            }
            return message.topic.hasSuffix("/status") && isFromBackUp ? nil : message
        default: return message
        }
    }

    private func altered(_ effects: [ControllerCore.Effect]) -> [ControllerCore.Effect] {
        let isRepair = effects.contains { if case .log(let line) = $0 { line.message == "repaired" } else { false } }
        return effects.compactMap { effect in
            guard case .publish(let topic, let payload, let retain) = effect else { return effect }
            switch world.fault {
            case .noRepair: return isRepair && topic.contains("/desired/") ? nil : effect
            case .noHello: return topic.contains("/hello/") && world.noise.chance(20) ? nil : effect
            case .changesNotPublished: return topic.contains("/desired/") && world.noise.chance(10) ? nil : effect
            case .marksTooEarly:
                guard topic.contains("/received/"), let signed = try? SignedDocument(wire: payload),
                    let received = try? Received(json: signed.payload, limit: 10_000)
                else { return effect }
                var mark = received.mark
                mark.number += 2
                let changed = Received(fleet: received.fleet, topic: topic, mark: mark)
                guard
                    let wire = try? SignedDocument(
                        signing: changed.json, as: .received, with: world.fleet.signingKey
                    ).wire
                else { return effect }
                return .publish(topic: topic, payload: wire, retain: retain)
            default: return effect
            }
        }
    }
}
