import AppConnect
import DeviceAgent
import FleetController
import FleetProtocol

/// What somebody beside a device has seen of it: what the laws are about.
struct Watch {
    /// Events that a transaction has kept: the controller will have them.
    var promised: [FleetStore.StoredEvent: KeptEvent] = [:]
    private(set) var connection: RandomID?
    private var asked: [Int64: Set<AppID>] = [:]
    private var fetched: Set<AppID> = []
    private var isGreeted = false
    /// What was certain on the connection that has just ended: its last messages may still wait for the core.
    var before: Set<AppID> = []
    var newest: [Followed: Int64] = [:]
    /// Each app's record as its core last wanted it stored.
    var records: [AppID: AppRecord] = [:]
    var orders: [AppID: ReportOrder] = [:]
    var isPresenceSaid = false
    /// What a deliberate fault keeps from the store: it was promised all the same.
    var unstored: [StoreChange] = []
    var sentEvents: Set<FleetStore.StoredEvent> = []

    mutating func stored(_ changes: [StoreChange]) {
        for case .event(let event) in changes + unstored { promised[Self.key(event)] = event }
        unstored = []
    }

    /// A policy keeps the stricter value of an older document until a newer one is certain, and another one moves on.
    struct Followed: Hashable {
        let source: Address
        let policy: Policy
    }

    static func key(_ event: KeptEvent) -> FleetStore.StoredEvent {
        let header = event.header
        return FleetStore.StoredEvent(
            device: header.device, incarnation: header.incarnation, boot: header.boot, number: header.number)
    }

    mutating func connected(_ name: RandomID) {
        disconnected()
        connection = name
    }

    mutating func disconnected() {
        if isGreeted { before = fetched }
        connection = nil
        asked = [:]
        fetched = []
        isGreeted = false
        isPresenceSaid = false
    }

    mutating func asked(_ filters: [TopicFilter], _ barrier: Int64, of device: DeviceID) {
        asked[barrier] = Set(
            filters.compactMap { filter in
                if case .aspects(.device(device), let app) = filter { app } else { nil }
            })
    }

    mutating func received(_ address: Address?, _ payload: [UInt8]) {
        switch address {
        case .barrier?:
            guard let marker = try? BarrierMarker(json: payload, limit: 1_024), marker.connection == connection else {
                return
            }
            fetched.formUnion(asked.removeValue(forKey: marker.counter) ?? [])
        case .hello?:
            guard let connection, let signed = try? SignedDocument(wire: payload),
                let hello = try? Hello(json: signed.payload, limit: SignedDocument.maximumSize)
            else { return }
            if hello.connection == connection { isGreeted = true }
        default: break
        }
    }

    func isCertain(_ app: AppID) -> Bool { isGreeted && fetched.contains(app) || before.contains(app) }
}

extension Machine {
    /// The laws of one moment: what the core has decided just now.
    func checkStep(_ effects: [DeviceEffect]) {
        guard let core else { return }
        if core.state.events.count > DeviceCore.maximumEvents { world.fail(.bounded, "\(name) keeps too many events") }
        for case .store(let changes) in effects { for case .app(let app) in changes { check(app) } }
    }

    private func check(_ app: AppRecord) {
        let id = app.id
        guard let old = watch.records.updateValue(app, forKey: id) else { return }
        for policy in Policy.allCases {
            let (was, now) = (old[policy], app[policy])
            if was.value != now.value, policy != .logLevel, !now.value.isTightening(of: was.value),
                !isOwn(now.value), app.latch?.reason != .selfRetired, !watch.isCertain(id)
            {
                world.fail(
                    .barrier, "\(name)/\(id): \(policy.rawValue) went from \(was.value) to \(now.value)")
            }
            guard let source = now.source, was.received != now.received || was.source != source else { continue }
            let followed = Watch.Followed(source: source, policy: policy)
            if let newest = watch.newest[followed], now.received < newest, policy.aspect == sourceAspect(source) {
                world.fail(.forward, "\(name)/\(id): \(source.path) went from \(newest) back to \(now.received)")
            }
            watch.newest[followed] = max(watch.newest[followed] ?? 0, now.received)
        }
    }

    private func sourceAspect(_ address: Address) -> Aspect? {
        if case .desired(_, _, let aspect) = address { aspect } else { nil }
    }

    /// What a device decides without anybody: out of contact.
    private func isOwn(_ value: PolicyValue) -> Bool {
        if case .auth(let state, _) = value { state != .authorized } else { false }
    }

    /// The laws of a status that is said to the bus.
    func checkTold(_ status: Status) {
        let app = status.app
        guard let record = core?.state.apps[app] else { return }
        if disk.state.apps[app] != record {
            world.fail(.stored, "\(name)/\(app): a status was said before its store")
        }
        checkKeys(of: record)
        if let last = watch.orders[app], status.order <= last {
            world.fail(.order, "\(name)/\(app): status \(status.order) after \(last)")
        }
        watch.orders[app] = status.order
    }

    /// The laws of an event that is said to the bus.
    func checkTold(_ address: Address, _ payload: [UInt8]) {
        guard core != nil else { return }
        switch address {
        case .reply(_, _, .event), .reply(_, _, .logLevel):
            guard let number = number("number", in: payload), let boot = self.number("boot", in: payload) else {
                return
            }
            let event = FleetStore.StoredEvent(
                device: id, incarnation: self.number("incarnation", in: payload) ?? 0, boot: boot, number: number)
            if !wasPutBack, watch.promised[event] == nil, !isKept(event) {
                world.fail(.stored, "\(name): event \(number) was said before its store")
            }
        default: break
        }
    }

    private func isKept(_ event: FleetStore.StoredEvent) -> Bool {
        disk.state.events.contains { Watch.key($0) == event }
    }

    /// The laws of what an app is told.
    func checkSent(_ frame: AgentFrame, to app: AppProcess?) {
        guard let app, let record = core?.state.apps[app.id] else { return }
        switch frame {
        case .ready(let properties):
            checkKeys(of: record)
            for value in properties.values { checkUnforged(value, app.id) }
        case .deliver(_, .policy(let value, _)):
            if case .auth(.retired, _) = value, disk.keys[app.id] != nil, record.hasKeys == false {
                world.fail(.erased, "\(name)/\(app.id): told that it is retired while its keys are there")
            }
            checkUnforged(value, app.id)
        default: break
        }
        if disk.state.apps[app.id] != record, case .deliver = frame {
            world.fail(.stored, "\(name)/\(app.id): told before its store")
        }
    }

    func checkProperties(of app: AppProcess) {
        guard let values = app.session?.properties.values else { return }
        for value in values { checkUnforged(value, app.id) }
    }

    private func checkKeys(of record: AppRecord) {
        if record.authState == .retired, record.latch != nil, disk.keys[record.id] != nil {
            world.fail(.erased, "\(name)/\(record.id): said to be retired while its keys are there")
        }
    }

    private func checkUnforged(_ value: PolicyValue, _ app: AppID) {
        let isForged =
            switch value {
            case .config(let values): values["forged"] != nil
            case .auth(_, let message): message == "forged"
            default: false
            }
        if isForged { world.fail(.unforged, "\(name)/\(app) has \(value)") }
    }

    /// The number behind a member's name; the first of that name.
    private func number(_ member: String, in json: [UInt8]) -> Int64? {
        let needle = Array("\"\(member)\":".utf8)
        var index = 0
        while index + needle.count < json.count {
            if json[index] == needle[0], json[index..<(index + needle.count)].elementsEqual(needle) {
                var value: Int64 = 0
                index += needle.count
                while index < json.count, (48...57).contains(json[index]) {
                    value = value * 10 + Int64(json[index] - 48)
                    index += 1
                }
                return value
            }
            index += 1
        }
        return nil
    }
}
