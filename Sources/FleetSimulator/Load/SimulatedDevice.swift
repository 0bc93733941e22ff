import DeviceAgent
import FleetProtocol
import FleetWorld
import Mosquitto

/// A device of a load: the real core, the real client, and apps in the same moment. It belongs to its ``LoadLoop``.
///
/// The store's changes are not applied: the core holds the state itself, and a device of a load starts once. Its boots
/// are numbered by the time of the run, so that another run is younger to the controller.
final class SimulatedDevice {
    /// What an app says later.
    struct Delayed {
        let delay: Duration
        let link: LinkID
        let frames: [AppFrame]
    }

    private var core: DeviceCore
    var will: DeviceWill { core.will }
    var client: LoopClient?
    /// Whether its loop knows that it has something to publish.
    var isToPublish = false
    /// The running time that a timer is set for.
    private var wakesAt: Int64?
    private(set) var delayed: [Delayed] = []
    private let fleet: FleetID
    private let meter: LoadMeter
    private var apps: [SimulatedApp] = []
    private var outbox = Outbox()
    private var subscriptions: [(packet: PacketID, filters: [TopicFilter], barrier: Int64)] = []
    /// Statuses that the broker has not answered, and what they answer.
    private var underWay: [(packet: PacketID, app: Int, answered: SimulatedApp.Answered?)] = []
    private var isConnected = false
    private var isReady = false
    private var isReported = false
    /// The revision of the newest news of this connection.
    private var newest: Int64 = 0
    /// When the event that is handled now arrived.
    private var arrival: UInt64 = 0

    init(
        _ configuration: AgentConfiguration, boot: Int64, signatures: SignatureCheck, meter: LoadMeter
    )
        throws
    {
        var state = DeviceState()
        state.boot = boot
        core = try DeviceCore(
            enrollment: configuration.enrollment, agentVersion: LoadPlan.agentVersion, state: state,
            secret: .random(), signatures: signatures, at: .system)
        fleet = configuration.enrollment.fleet
        self.meter = meter
    }

    func launch(_ ids: [AppID]) {
        let now = Now.system
        for (index, id) in ids.enumerated() {
            let habit = meter.answers.habit(using: &meter.generator)
            let app = SimulatedApp(id, LinkID(Int64(index)), habit)
            apps.append(app)
            core.handle(.registered(app.link, app.registration), at: now)
        }
        settle(at: now)
    }

    // MARK: Events

    func handle(_ event: LoopClient.Event, connection: () -> RandomID) {
        switch event {
        case .connecting: break
        case .connected:
            isConnected = true
            newest = 0
            meter.counters.connected += 1
            handle(.connected(connection: connection()))
        case .message(let message):
            arrival = Clock.now()
            if let revision = DesiredRevision.find(in: message) { count(revision, isNews: !message.retained) }
            handle(.message(topic: message.topic, payload: message.payload))
        case .published(let packet, let code): published(packet, code)
        case .subscribed(let packet, let codes): subscribed(packet, codes)
        case .unsubscribed: break
        case .disconnected(let error, _):
            if isConnected { meter.counters.connected -= 1 }
            if isReported { meter.counters.reported -= 1 }
            isReported = false
            for index in apps.indices { apps[index].isReported = false }
            if let error { meter.fail(error.message) }
            isConnected = false
            outbox = Outbox()
            subscriptions = []
            underWay = []
            handle(.disconnected)
        }
    }

    func handle(_ event: DeviceEvent) {
        let now = Now.system
        core.handle(event, at: now)
        settle(at: now)
    }

    /// Whether something is to be published, and may be now.
    var canPublish: Bool { !outbox.isEmpty && client?.hasRoom == true }

    /// The time for what apps say later, and for a tick, is set by whoever calls this.
    func takeDelayed() -> [Delayed] {
        guard !delayed.isEmpty else { return [] }
        defer { delayed = [] }
        return delayed
    }

    /// After how long the core's next tick is due, where no timer is set for it or an earlier one yet.
    func takeWake() -> Duration? {
        let total = core.state.running.total
        let next = Self.nextTick(of: &core)
        guard wakesAt.map({ next < $0 || $0 <= total }) ?? true else { return nil }
        wakesAt = next
        return .milliseconds(next - total + 1)
    }

    /// In its place: to be asked where it is stored, all of the core would be copied first.
    private static func nextTick(of core: inout DeviceCore) -> Int64 { core.nextTick }

    private func count(_ revision: Int64, isNews: Bool) {
        meter.counters.received += 1
        guard isNews else { return }
        if revision == newest { meter.counters.duplicated += 1 }
        if revision < newest { meter.counters.reordered += 1 }
        newest = max(newest, revision)
    }

    // MARK: Effects

    private func settle(at now: Now) {
        while true {
            // They end before the core goes on: while they have the records of apps, it would have to copy them.
            for effect in core.takeEffects(at: now, isOver: false) { perform(effect) }
            guard !meter.replies.isEmpty else { break }
            for reply in meter.replies { core.handle(reply, at: now) }
            meter.replies.removeAll(keepingCapacity: true)
        }
        for effect in core.takeEffects(at: now) { perform(effect) }
    }

    private func perform(_ effect: DeviceEffect) {
        switch effect {
        case .destroyKeys, .createKeys, .store, .sendKeys, .close: break
        case .subscribe(let filters, let barrier):
            guard let packet = try? client?.subscribe(to: filters.map { $0.text(in: fleet) }, qos: filters.qos) else {
                return
            }
            subscriptions.append((packet, filters, barrier))
        case .unsubscribe(let filters): _ = try? client?.unsubscribe(from: filters.map { $0.text(in: fleet) })
        case .publish(let address, let payload, let retain): outbox.add(address, payload, retain: retain)
        case .report(let status): outbox.add(status)
        case .reconnect: client?.reconnect()
        case .send(let link, let frame): tell(link, frame)
        case .display(let link, let id, _): meter.replies.append(.displayed(link, id: id, true))
        case .checkPasscode(let check, _, _, _): meter.replies.append(.passcodeChecked(check, .wrong))
        case .checkCode(let check, _, _): meter.replies.append(.codeChecked(check, isRight: false))
        case .log(let entry):
            if entry.level == .warning || entry.level == .error {
                meter.fail("\(core.device): \(entry.message): \(entry.detail ?? "")")
            }
        }
    }

    private func tell(_ link: LinkID, _ frame: AgentFrame) {
        let index = Int(link.number)
        guard apps.indices.contains(index) else { return }
        let wasReady = apps[index].isReady
        let frames = apps[index].reply(to: frame, since: arrival, using: &meter.generator)
        if !wasReady, apps[index].isReady {
            meter.counters.ready += 1
            isReady = apps.allSatisfy(\.isReady)
            if isReady { meter.deviceIsReady() }
        }
        guard !frames.isEmpty else { return }
        if let delay = meter.answers.delay(using: &meter.generator) {
            delayed.append(Delayed(delay: delay, link: link, frames: frames))
        } else {
            for frame in frames { meter.replies.append(.frame(link, frame)) }
        }
    }

    /// Publishes what has come together.
    func publish() {
        isToPublish = false
        guard let client else { return }
        while client.hasRoom, let next = outbox.next() {
            do {
                let packet = try client.publish(
                    next.content.payload, to: next.address.topic(in: fleet), qos: next.qos, retain: next.isRetained)
                if case .reply(_, let app, .status) = next.address, let index = apps.firstIndex(where: { $0.id == app })
                {
                    underWay.append((packet, index, apps[index].takeAnswered()))
                }
            } catch {
                if client.isConnected { meter.fail(error.message) }
                return  // When the connection is gone, the next one says it again.
            }
        }
    }

    private func published(_ packet: PacketID, _ code: ReasonCode) {
        if code.isError { meter.fail("the broker refused a publish: \(code)") }
        if let index = underWay.firstIndex(where: { $0.packet == packet }) {
            let (_, app, answered) = underWay.remove(at: index)
            meter.counters.statuses += 1
            if !code.isError { reported(app, answered) }
        }
    }

    private func reported(_ app: Int, _ answered: SimulatedApp.Answered?) {
        apps[app].isReported = true
        if !isReported, isReady, apps.allSatisfy(\.isReported) {
            isReported = true
            meter.counters.reported += 1
        }
        guard let answered else { return }
        meter.counters.acknowledged += 1
        meter.counters.answered += answered.changes
        meter.counters.latency.add(Clock.now() - answered.since)
    }

    private func subscribed(_ packet: PacketID, _ codes: [ReasonCode]) {
        guard let index = subscriptions.firstIndex(where: { $0.packet == packet }) else { return }
        let (_, _, barrier) = subscriptions.remove(at: index)
        guard codes.allSatisfy({ !$0.isError }) else {
            return meter.fail("the broker refused a subscription of \(core.device)")
        }
        handle(.subscribed(barrier: barrier))
    }
}

/// What the devices of one loop have in common.
final class LoadMeter {
    var counters = LoadCounters()
    var generator: SplitMix64
    /// What the apps of the device that is being served answer at once; one place for all, since one is served at a time.
    var replies: [DeviceEvent] = []

    let answers: AppAnswers

    init(_ answers: AppAnswers, seed: UInt64) {
        self.answers = answers
        generator = SplitMix64(seed: seed)
    }

    func deviceIsReady() {
        counters.readyDevices += 1
        // What it took to get there is not needed again.
        if counters.readyDevices == counters.devices { ProcessUsage.trim() }
    }

    func fail(_ reason: String) {
        counters.errors += 1
        counters.lastError = reason
    }
}
