import AppConnect
import DeviceAgent
import FleetController
import FleetProtocol

/// What must hold once the faults have stopped and everything has come to rest.
extension World {
    func checkAtRest() {
        do {
            let store = controller.store
            guard controller.isUp else { return fail(.restored, "the controller does not run") }
            let wishes = try store.wishes()
            let statuses = try store.statuses(in: SimulatedFleet.id)
            let online = try store.onlineDevices()
            let events = try store.events()
            checkPromises(wishes)
            controller.checkBases()
            if isForgotten(wishes) { return }
            for machine in machines where machine.isRemovalUnfinished || machine.enrolment != nil {
                fail(.ends, "an operator waits for the controller's word about \(machine.name)")
            }
            for machine in machines where machine.isRemoved { try checkGone(machine, statuses, online) }
            for machine in members {
                guard let core = machine.core, machine.isConnected else {
                    return fail(.total, "\(machine.name) is not there")
                }
                if !online.contains(machine.id) { fail(.presence, "\(machine.name) is connected and not shown so") }
                let layers = Layers(wishes, of: machine.id)
                for app in machine.apps { check(app, on: machine, core, layers, statuses) }
                check(machine, events)
                checkQuiet(machine, core)
                if let difference = try machine.disk.difference() { fail(.sameStore, "\(machine.name): \(difference)") }
            }
            try checkSummary(store)
        } catch {
            fail(.total, "\(error)")
        }
    }

    private var members: [Machine] { machines.filter { !$0.isRemoved } }

    /// Nothing of a device that was taken out is left.
    private func checkGone(_ machine: Machine, _ statuses: [Status], _ online: Set<DeviceID>) throws {
        if online.contains(machine.id) || statuses.contains(where: { $0.device == machine.id }) {
            fail(.gone, "\(machine.name) was taken out of the fleet, and is shown")
        }
        // What was dropped on its way to the controller is found when that reads all again, at its next connection.
        guard schedule.broker != .lossy else { return }
        let own = ["presence/\(machine.id)", "reply/\(machine.id)/"].map { Address.prefix(of: SimulatedFleet.id) + $0 }
        for topic in broker.retained.keys.sorted() where own.contains(where: topic.hasPrefix) {
            fail(.gone, "\(machine.name) was taken out of the fleet, and the broker has \(topic)")
        }
    }

    /// A known gap: the broker has forgotten all, the backup that was put back too, and the operators have made as many
    /// changes since, before a device spoke, as were lost. So the controller did not notice that it was put back.
    private func isForgotten(_ wishes: [FleetStore.Wish]) -> Bool {
        guard controller.isFromBackUp else { return false }
        let known = Dictionary(wishes.map { ($0.address, $0.revision) }) { $1 }
        return members.contains { machine in
            (machine.core?.state.marks ?? [:]).contains { address, mark in (known[address] ?? .zero) < mark.revision }
        }
    }

    private func checkPromises(_ wishes: [FleetStore.Wish]) {
        for (address, revision) in controller.promises.sorted(by: { $0.key.path < $1.key.path }) {
            let stored = wishes.first { $0.address == address }?.revision.number ?? 0
            if stored < revision {
                fail(.answered, "\(address.path) is at \(stored), and an operator was answered \(revision)")
            }
        }
    }

    private func check(
        _ app: AppProcess, on machine: Machine, _ core: DeviceCore, _ layers: Layers, _ statuses: [Status]
    ) {
        guard let record = core.state.apps[app.id], let session = app.session else {
            return fail(.convergence, "\(app.name) is not known to its agent")
        }
        let authorized = core.state.apps.values.filter { $0.authState == .authorized }.map(\.id).sorted()
        for policy in Policy.allCases {
            let report = record[policy]
            let (value, source, revision) = layers.wish(policy, of: record, authorized)
            guard report.source == source, report.received == revision else {
                return fail(
                    .convergence,
                    "\(app.name): \(policy.rawValue) follows \(report.source?.path ?? "default") at \(report.received),"
                        + " not \(source?.path ?? "default") at \(revision)")
            }
            if let value, report.value != value {
                return fail(.convergence, "\(app.name): \(policy.rawValue) is \(report.value), not \(value)")
            }
            if policy != .secureServices, session.properties[policy] != report.value {
                return fail(
                    .convergence,
                    "\(app.name): the app has \(session.properties[policy]), not \(report.value)")
            }
            checkAnswer(policy, of: app, session, report)
        }
        if record.authState == .retired, machine.disk.keys[app.id] != nil {
            fail(.erased, "\(app.name) is retired and has keys")
        }
        if record.hasKeys != (machine.disk.keys[app.id] != nil) {
            fail(.erased, "\(app.name): its record says keys \(record.hasKeys), and that is not so")
        }
        guard let told = core.status(of: app.id, at: machine.clock),
            let known = statuses.first(where: { $0.device == machine.id && $0.app == app.id })
        else { return fail(.summary, "\(app.name) has no status at the controller") }
        for policy in Policy.allCases where known[policy] != told[policy] {
            fail(
                .summary,
                "\(app.name): \(policy.rawValue) at the controller \(known[policy]) of \(known.order), at the device"
                    + " \(told[policy]) of \(told.order)")
        }
        if known.authState != told.authState || known.keys != told.keys
            || known.isRunning != told.isRunning || known.isReady != told.isReady
        {
            fail(.summary, "\(app.name): the controller has other words than the device")
        }
    }

    /// What an app answered last to what it has is what its agent reports.
    private func checkAnswer(_ policy: Policy, of app: AppProcess, _ session: AppSession, _ report: PolicyRecord) {
        guard policy.isAcknowledgedByApp else { return }
        let outcome = report.attempt.outcome
        if outcome == .pending { return fail(.ends, "\(app.name): \(policy.rawValue) is pending") }
        if outcome == .delivered, app.answersAlways, session.answers[policy] == nil {
            return  // What an earlier launch was told, and nobody asked this one.
        }
        guard outcome != .rejected, let answer = session.answers[policy],
            session.answerable[policy].map({ $0.number == answer.delivery }) ?? true
        else { return }
        if outcome != answer.state.outcome || report.attempt.message != answer.message {
            fail(
                .kept,
                "\(app.name): it answered \(answer.state) for \(policy.rawValue), and its agent says \(outcome)")
        }
    }

    /// Nothing is left to be done, and nobody waits.
    private func checkQuiet(_ machine: Machine, _ core: DeviceCore) {
        if let event = (core.state.events + machine.disk.state.events).first {
            fail(
                .bounded,
                "\(machine.name) still keeps event \(event.header.number) of boot \(event.header.boot)")
        }
        let trust = fleet.identities[controller.renewals].trust.version
        if core.trust.version != trust {
            fail(.convergence, "\(machine.name) has the trust document \(core.trust.version), not \(trust)")
        }
        if !machine.codeLinks.isEmpty { fail(.ends, "\(machine.name): somebody waits whether a code is right") }
        for app in machine.apps where !app.displays.isEmpty {
            fail(.ends, "\(app.name) waits whether its text was shown")
        }
    }

    private func check(_ machine: Machine, _ events: [FleetStore.StoredEvent: [UInt8]]) {
        guard !machine.wasPutBack else { return }
        for (key, kept) in machine.watch.promised {
            guard let stored = events[key] else {
                fail(.kept, "\(machine.name): event \(key.number) of boot \(key.boot) is missing")
                continue
            }
            let isEqual = (1...max(1, key.number)).contains { kept.wire(oldest: $0) == stored }
            if !isEqual { fail(.once, "\(machine.name): event \(key.number) of boot \(key.boot) is stored otherwise") }
        }
        for key in events.keys where key.device == machine.id && !machine.watch.kept.contains(key) {
            fail(.once, "\(machine.name): event \(key.number) of boot \(key.boot) is stored, and there is none")
        }
    }

    /// What operators read is what the devices have, counted.
    private func checkSummary(_ store: FleetStore) throws {
        for number in 0..<schedule.apps {
            let app = AppID(unchecked: "a\(number)")
            for row in try store.summary(of: app, at: controller.clock) {
                var real = OutcomeCounts()
                for machine in members {
                    if let report = machine.core?.state.apps[app]?[row.policy] { real.count(report.attempt.outcome) }
                }
                var told = row.counts
                told.overdue = 0
                if told != real {
                    fail(.summary, "\(app) \(row.policy.rawValue): \(told), and really \(real)")
                }
            }
        }
    }
}

/// What the layers say to one device, worked out from the controller's documents alone.
private struct Layers {
    private let device: DeviceID
    private var documents: [Address: (value: DesiredDocument.Content, revision: Revision, change: Revision)] = [:]
    private var groups: [GroupID] = []

    init(_ wishes: [FleetStore.Wish], of device: DeviceID) {
        self.device = device
        var priorities: [GroupID: Int64] = [:]
        for wish in wishes {
            guard let signed = try? SignedDocument(wire: wish.wire),
                let document = try? DesiredDocument(payload: signed.payload, in: SimulatedFleet.id),
                !document.isTombstone
            else { continue }
            documents[wish.address] = (document.content, wish.revision, wish.change)
            switch (wish.address, document.content) {
            case (.membership(device), .membership(let groups)): self.groups = groups
            case (.groupMeta(let group), .groupMeta(let meta)): priorities[group] = meta.priority
            default: break
            }
        }
        groups.sort { left, right in
            let (first, second) = (priorities[left] ?? 0, priorities[right] ?? 0)
            return first != second ? first > second : left < right
        }
    }

    /// The value that a policy must have (nil where time decides it), the deciding document and its revision.
    func wish(_ policy: Policy, of record: AppRecord, _ authorized: [AppID]) -> (PolicyValue?, Address?, Int64) {
        guard let aspect = policy.aspect else { return (.default(of: policy), nil, 0) }
        let chain: [Layer] = [.device(device)] + groups.map { .group($0) } + [.all]
        let found = chain.compactMap { layer in
            let address = Address.desired(layer, record.id, aspect)
            return documents[address].map { (address, $0) }
        }
        guard let (address, document) = found.first(where: { isRetired($0.1.value) }) ?? found.first else {
            return (record.latch == nil ? .default(of: policy) : nil, nil, 0)
        }
        let source: (Address?, Int64) = (address, document.revision.number)
        if policy == .logLevel { return (level(found.map(\.1.value), of: record), source.0, source.1) }
        guard case .aspect(let desired) = document.value else { return (nil, source.0, source.1) }
        if let latch = record.latch, policy == .auth {
            // A layer that says retired gives the message, also when another cause came first; but not the app's own.
            let isToldByLayers =
                isRetired(document.value)
                ? latch.reason != .selfRetired || document.change > latch.change : document.change > latch.change
            return (
                isToldByLayers ? value(policy, desired, authorized) : .auth(.retired, message: latch.message),
                source.0, source.1
            )
        }
        if record.latch?.reason == .selfRetired { return (nil, source.0, source.1) }
        return (value(policy, desired, authorized), source.0, source.1)
    }

    /// Those that last only for a time have passed: the world rests longer. nil where a person's code decides.
    private func level(_ documents: [DesiredDocument.Content], of record: AppRecord) -> PolicyValue? {
        if record.latch?.reason == .selfRetired { return .default(of: .logLevel) }
        for case .aspect(let value) in documents {
            guard case .logLevel(let wish) = value.content else { return nil }
            if wish.duration != nil { continue }
            return wish.code == nil ? .logLevel(wish.level) : nil
        }
        return .default(of: .logLevel)
    }

    private func isRetired(_ content: DesiredDocument.Content) -> Bool {
        guard case .aspect(let value) = content, case .auth(.retired, _) = value.content else { return false }
        return true
    }

    private func value(_ policy: Policy, _ desired: DesiredValue, _ authorized: [AppID]) -> PolicyValue? {
        switch desired.content {
        case .auth(let state, let message): return .auth(state, message: message)
        case .config(let values): return .config(values)
        case .secureServices(let value): return .secureServices(value)
        case .logLevel, .unreadable: return nil
        case .dlp(let dlp):
            switch policy {
            case .pasteboard: return .pasteboard(dlp.pasteboard)
            case .print: return .print(dlp.print)
            case .dragAndDrop: return .dragAndDrop(dlp.dragAndDrop)
            case .openIn:
                switch dlp.openIn {
                case .unauthorized: return .openIn(.unauthorized, whitelist: [])
                case .authorized: return .openIn(.authorized, whitelist: [])
                case .whitelist(let apps): return .openIn(.whitelist, whitelist: apps)
                case .appConnectApps: return .openIn(.whitelist, whitelist: authorized)
                }
            case .openFrom:
                switch dlp.openFrom {
                case .unauthorized: return .openFrom(.unauthorized, whitelist: [])
                case .authorized: return .openFrom(.authorized, whitelist: [])
                case .whitelist(let apps): return .openFrom(.whitelist, whitelist: apps)
                case .appConnectApps: return .openFrom(.whitelist, whitelist: authorized)
                }
            case .auth, .config, .secureFileIO, .secureServices, .logLevel: return nil
            }
        }
    }
}
