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
            let gaps = try store.gaps()
            checkPromises(wishes)
            checkOwnPresence()
            checkHeartbeats()
            controller.checkBases()
            controller.checkDesired()
            let latest = try store.latest()
            if controller.noted?.latest != latest {
                let noted = controller.noted.map { "\($0.latest)" } ?? "nothing"
                fail(.restored, "the store is at revision \(latest), and the home has noted \(noted)")
            }
            try controller.checkLists(statuses, online)
            if isForgotten(wishes) { return }
            checkLosses()
            checkBroker(wishes)
            for machine in machines where machine.isRemovalUnfinished || machine.enrolment != nil {
                fail(.ends, "an operator waits for the controller's word about \(machine.name)")
            }
            for machine in machines where machine.isRemoved { try checkGone(machine, statuses, online) }
            for machine in members {
                guard let core = machine.core, machine.isConnected else {
                    return fail(.total, "\(machine.name) is not there")
                }
                if !online.contains(machine.id) { fail(.presence, "\(machine.name) is connected and not shown so") }
                let layers = SaidLayers(wishes, of: machine.id, readBy: machine.older)
                let groups = try store.groups(of: machine.id)
                if groups != layers.groups.sorted() {
                    fail(.summary, "\(machine.name) is shown in \(groups), and is told to be in \(layers.groups)")
                }
                for app in machine.apps { check(app, on: machine, core, layers, statuses) }
                for status in statuses where status.device == machine.id {
                    checkRetained(status)
                    if status.order.incarnation < machine.enrollment.incarnation {
                        fail(
                            .summary,
                            "\(machine.name)/\(status.app) is shown as incarnation \(status.order.incarnation) had it, and"
                                + " \(machine.enrollment.incarnation) is there")
                    }
                }
                checkEventCount(of: machine, core, statuses)
                checkPresence(of: machine)
                check(try store.device(machine.id), machine, core)
                check(machine, events, gaps)
                checkQuiet(machine, core)
                if let difference = try machine.disk.difference() { fail(.sameStore, "\(machine.name): \(difference)") }
                var state = core.state
                // What the enrolment says is read from there at each start, and counts where the store has less.
                for (address, mark) in state.marks where mark.digest == nil {
                    state.marks[address] = machine.disk.state.marks[address]
                }
                if let difference = machine.disk.difference(from: state) {
                    fail(.stored, "\(machine.name): its agent has other \(difference) than its store")
                }
            }
            try checkSummary(store)
        } catch {
            fail(.total, "\(error)")
        }
    }

    /// The broker shows a device that comes what is wanted, byte for byte, and nothing else.
    private func checkBroker(_ wishes: [FleetStore.Wish]) {
        // One that drops may have dropped what tells of it.
        guard schedule.broker != .lossy else { return }
        let prefix = Address.prefix(of: SimulatedFleet.id) + "desired/"
        var kept = broker.retained.filter { $0.key.hasPrefix(prefix) }.mapValues(\.payload)
        for wish in wishes where kept.removeValue(forKey: wish.address.topic(in: SimulatedFleet.id)) != wish.wire {
            fail(.convergence, "the broker does not hold what is wanted at \(wish.address.path)")
        }
        let trust = fleet.identities[controller.renewals].trustWire
        if kept.removeValue(forKey: Address.trust.topic(in: SimulatedFleet.id)) != trust {
            fail(.convergence, "the broker does not hold the trust document")
        }
        if let topic = kept.keys.min() { fail(.convergence, "the broker holds \(topic), which nobody wants") }
    }

    private var members: [Machine] { machines.filter { !$0.isRemoved } }

    /// Where the controller has seen a device last, and what it knows of it from the home.
    private func check(_ known: FleetStore.KnownDevice?, _ machine: Machine, _ core: DeviceCore) {
        guard let known, known.incarnation == core.enrollment.incarnation, known.boot == core.state.boot else {
            return fail(.summary, "\(machine.name) is shown as \(known.map { "\($0)" } ?? "unknown"), and is elsewhere")
        }
        if known.enrolled != controller.enrolments[machine.id] {
            fail(.summary, "\(machine.name) is known as enrolled for \(known.enrolled ?? 0), and is otherwise")
        }
        if known.agent != SimulatedFleet.agent || known.since == nil {
            fail(.summary, "\(machine.name) is shown with \(known)")
        }
        // A copy, or a disk that was put back, is worth one.
        if let warning = known.warning, !machine.wasPutBack, !clones.contains(where: { $0.id == machine.id }),
            !mayBeUnderWay(warning), !areReportsReplayed
        {
            fail(.summary, "\(machine.name) is shown with the warning that it \(warning)")
        }
    }

    /// Whether a device is shown to have other documents than it should, and the newest have not had the time to arrive: it
    /// is asked with the heartbeat after that.
    private func mayBeUnderWay(_ warning: String) -> Bool {
        guard warning.hasPrefix("has other documents"), let wishes = try? controller.store.wishes() else {
            return false
        }
        return wishes.contains { wish in
            guard let signed = try? SignedDocument(wire: wish.wire),
                let document = try? DesiredDocument(payload: signed.payload, in: SimulatedFleet.id)
            else { return false }
            return document.issuedAt.advanced(bySeconds: 30 + 60) > controller.clock
        }
    }

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

    /// A known gap: the broker has forgotten all, the whole folder was put back, and the operators have made as many changes
    /// since, before a device spoke, as were lost. So the controller did not notice that it was put back.
    private func isForgotten(_ wishes: [FleetStore.Wish]) -> Bool {
        guard controller.isFromBackUp else { return false }
        let known = Dictionary(wishes.map { ($0.address, $0) }) { $1 }
        return members.contains { machine in
            (machine.core?.state.marks ?? [:]).contains { address, mark in
                guard let wish = known[address], wish.revision >= mark.revision else { return true }
                return wish.revision == mark.revision && mark.digest.map { $0 != Digest(of: wish.wire) } ?? false
            }
        }
    }

    /// The fleet is told of this run of the controller, whatever wills of earlier ones came late.
    private func checkOwnPresence() {
        // A will that was dropped on its way back to the controller is found when that connects again.
        guard schedule.broker != .lossy else { return }
        let said = broker.retained[Address.presence(.controller).topic(in: SimulatedFleet.id)]
            .flatMap { try? Presence(json: $0.payload, limit: Presence.maximumSize) }
        if said?.state != .online || said?.connection != controller.instance {
            fail(.presence, "the controller runs, and is said to be \(said.map { "\($0)" } ?? "nowhere")")
        }
    }

    /// It is heard every minute.
    private func checkHeartbeats() {
        let silence = now - controller.beatAt
        if silence > 61_000 + controller.beatDelay {
            fail(.limits, "the controller has not been heard for \(silence) ms")
        }
    }

    /// Only a world that was lossy has the time: half a round, after the quarter of an hour and more after which a device
    /// speaks up that nobody has greeted.
    private func checkLosses() {
        if schedule.broker == .lossy, now - controller.lossSaidAt < 300_000 {
            fail(.ends, "after all this time a device is told that something was lost")
        }
    }

    private func checkPromises(_ wishes: [FleetStore.Wish]) {
        for (address, revision) in controller.promises.sorted(by: { $0.key.path < $1.key.path }) {
            let stored = wishes.first { $0.address == address }?.revision.number
            // What was deleted: that the value is gone is the model's business.
            if stored == nil, schedule.forgetsTombstones { continue }
            if stored ?? 0 < revision {
                fail(.answered, "\(address.path) is at \(stored ?? 0), and an operator was answered \(revision)")
            }
        }
    }

    private func check(
        _ app: AppProcess, on machine: Machine, _ core: DeviceCore, _ layers: SaidLayers, _ statuses: [Status]
    ) {
        guard let record = core.state.apps[app.id], app.session != nil || app.isClosed else {
            if app.isClosed { return }
            return fail(.convergence, "\(app.name) is not known to its agent")
        }
        // Put back from before its clock was set back, a controller signs earlier times than standing connections have had;
        // and by a clock that was set back by less than a heartbeat takes, the next one comes so much later.
        if record.authReason == .outOfContact, !controller.isPunctual, controller.wasPutBack || record.latch == nil {
            return
        }
        let authorized = core.state.apps.values.filter { $0.authState == .authorized }.map(\.id).sorted()
        for policy in Policy.allCases {
            let report = record[policy]
            let (value, source, revision) = layers.wish(policy, of: record, authorized, at: machine.clock.wall)
            guard report.source == source, report.received == revision else {
                return fail(
                    .convergence,
                    "\(app.name): \(policy.rawValue) follows \(report.source?.path ?? "default") at \(report.received),"
                        + " not \(source?.path ?? "default") at \(revision)")
            }
            let isOther = value.map { $0 != report.value } ?? false
            if let value, isOther, policy != .logLevel || !isNumberUsedTwice {
                return fail(.convergence, "\(app.name): \(policy.rawValue) is \(report.value), not \(value)")
            }
            guard let session = app.session else { continue }
            if policy != .secureServices, session.properties[policy] != report.value {
                return fail(
                    .convergence,
                    "\(app.name): the app has \(session.properties[policy]), not \(report.value)")
            }
            if app.isAttended { checkAnswer(policy, of: app, session, report) }
            if layers.isUnknown(policy, of: app.id), record.latch?.reason != .selfRetired,
                report.attempt.outcome != .rejected
            {
                fail(.summary, "\(app.name): \(policy.rawValue) cannot be read, and is \(report.attempt.outcome)")
            }
            let outcome = layers.outcome(policy, of: record, at: machine.clock.wall) ?? report.attempt.outcome
            if report.attempt.outcome != outcome {
                fail(.summary, "\(app.name): \(policy.rawValue) is \(report.attempt.outcome), and should be \(outcome)")
            }
        }
        if let session = app.session { checkProperties(of: app, session, record, layers) }
        if app.session != nil, app.isAttended, !machine.wasPutBack, machine.oneSince == 1,
            machine.watch.readies[app.id] ?? 0 <= app.readiesBefore
        {
            fail(.kept, "\(app.name): no event says that this launch was ready")
        }
        if record.latch?.reason == .selfRetired { checkSelfRetired(record, app) }
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
        if app.isClosed ? told.isRunning : !told.isRunning || !told.isReady || told.sdk != app.sdk {
            fail(
                .summary,
                "\(app.name) \(app.isClosed ? "is closed" : "runs, is ready and has \(app.sdk)"), and its agent says"
                    + " otherwise: \(told)")
        }
        if told.refusals.map({ "\($0.topic): \($0.reason)" }) != machine.watch.refusals {
            fail(.summary, "\(app.name): its agent has refused \(machine.watch.refusals), and tells \(told.refusals)")
        }
        var same = told
        // Of this moment, and of the device.
        (same.at, same.order, same.events) = (known.at, known.order, known.events)
        if known != same { fail(.summary, "\(app.name): the controller has \(known), the device \(same)") }
    }

    /// What an app can read beside its policies.
    private func checkProperties(of app: AppProcess, _ session: AppSession, _ record: AppRecord, _ layers: SaidLayers) {
        guard case .connected = session.connectionState, session.phase == .ready else {
            return fail(.total, "\(app.name) is \(session.phase), \(session.connectionState)")
        }
        if app.isAttended, !app.machine.wasPutBack { app.checkCalled() }
        if app.isAttended, !session.inbox.isEmpty {
            fail(.ends, "\(app.name) is still to be called: \(session.inbox)")
        }
        if app.isAttended, app.callbacks.contains(.attempts), app.watch.attemptsCalled != app.watch.attempts {
            fail(.quiet, "\(app.name) was called for \(app.watch.attemptsCalled) of \(app.watch.attempts) attempts")
        }
        // A disk that was put back may be older than what this launch was told of it.
        if let launch = session.registration?.launch, !app.machine.wasPutBack, app.machine.oneSince == 1 {
            for number in 0..<session.lastRequest
            where !app.machine.watch.requests.contains(Watch.Request(launch: launch, number: number + 1)) {
                fail(.kept, "\(app.name): its request \(number + 1) is not stored")
            }
        }
        if let request = session.requests.first {
            fail(.ends, "\(app.name) still repeats its request \(request.number)")
        }
        let properties = session.properties
        let isSelfRetired = record.latch?.reason == .selfRetired
        let managed: ManagedPolicy = isSelfRetired ? .unknown : layers.speak(of: app.id) ? .managed : .unmanaged
        if properties.managed != managed {
            fail(.convergence, "\(app.name): managed is \(properties.managed), not \(managed)")
        }
        var isAvailable = record.authState == .authorized
        if case .secureServices(let value) = record[.secureServices].value {
            isAvailable = isAvailable && !value.isLocked && value.passcode?.isRequired != true
        }
        if (properties.availability == .available) != isAvailable {
            fail(.convergence, "\(app.name): its secure services are \(properties.availability)")
        }
        if properties.authReason != record.authReason {
            fail(.convergence, "\(app.name): the reason is \(properties.authReason), not \(record.authReason)")
        }
    }

    /// Nothing of what the layers say is in force in an app that has retired itself, and it does not look as if it were.
    private func checkSelfRetired(_ record: AppRecord, _ app: AppProcess) {
        for policy in Policy.allCases where record[policy].source != nil {
            if policy == .auth, record[.auth].problem == nil { continue }  // A layer says retired as well.
            if record[policy].attempt.outcome != .rejected {
                fail(
                    .summary, "\(app.name) has retired itself: \(policy.rawValue) is \(record[policy].attempt.outcome)")
            }
        }
    }

    /// What a broker keeps of a device is what the store has: the controller's next connection reads it.
    private func checkRetained(_ status: Status) {
        guard schedule.broker == .honest else { return }
        let topic = Address.reply(status.device, status.app, .status).topic(in: SimulatedFleet.id)
        let kept = broker.retained[topic].flatMap {
            try? Status(wire: $0.payload, fleet: SimulatedFleet.id, device: status.device, app: status.app)
        }
        if kept?.order != status.order {
            let order = kept.map { "\($0.order)" } ?? "nothing"
            fail(.summary, "\(topic) keeps \(order), and the store has \(status.order)")
        }
    }

    /// How many events a device has numbered in this boot the status of the app tells that the last of them is about.
    private func checkEventCount(of machine: Machine, _ core: DeviceCore, _ statuses: [Status]) {
        guard let app = machine.apps.first?.id, let count = core.status(of: app, at: machine.clock)?.events else {
            return
        }
        let told = statuses.filter { $0.device == machine.id && $0.order.boot == core.state.boot }.map(\.events).max()
        if told != count { fail(.summary, "\(machine.name) has numbered \(count) events, and tells of \(told ?? -1)") }
    }

    /// The device's own word at the broker names its apps as they have introduced themselves.
    private func checkPresence(of machine: Machine) {
        let topic = Address.presence(.device(machine.id)).topic(in: SimulatedFleet.id)
        guard let said = broker.retained[topic]?.payload,
            let presence = try? Presence(json: said, limit: Presence.maximumSize), presence.state == .online
        else { return fail(.presence, "\(machine.name) does not say that it is online") }
        // One that is closed may be another version than the agent has seen.
        let closed = Set(machine.apps.filter(\.isClosed).map(\.id))
        let told = Dictionary(presence.apps.map { ($0.id, Set($0.implements)) }) { $1 }.filter {
            !closed.contains($0.key)
        }
        let real = Dictionary(machine.apps.map { ($0.id, Set($0.callbacks.map(\.rawValue))) }) { $1 }.filter {
            !closed.contains($0.key)
        }
        if told != real { fail(.presence, "\(machine.name) says that it has \(told), and has \(real)") }
    }

    /// What an app answered last to what it has is what its agent reports.
    private func checkAnswer(_ policy: Policy, of app: AppProcess, _ session: AppSession, _ report: PolicyRecord) {
        guard policy.isAcknowledgedByApp else { return }
        let outcome = report.attempt.outcome
        if outcome == .unsupported, Callback(of: policy).map(app.callbacks.contains) ?? true {
            fail(.ends, "\(app.name): it can be told of \(policy.rawValue), and its agent says that it cannot")
        }
        if outcome == .applied, report.applied != report.received {
            fail(
                .summary, "\(app.name): \(policy.rawValue) is applied, and \(report.applied ?? -1) said to be in force")
        }
        if outcome == .pending { return fail(.ends, "\(app.name): \(policy.rawValue) is pending") }
        if outcome == .rejected { return }
        if outcome == .delivered, !app.watch.mayAnswer(policy) {
            fail(.ends, "\(app.name): \(policy.rawValue) is delivered, and this launch was not told of it")
        }
        if let callback = Callback(of: policy), !app.callbacks.contains(callback), session.answerable[policy] == nil,
            let answer = session.answers[policy], answer.state != .unsupported
        {
            fail(.kept, "\(app.name): its library answers \(answer.state) for \(policy.rawValue), which it has not")
        }
        if outcome == .applied || outcome == .error, !app.answered.contains(policy), !app.machine.wasPutBack {
            fail(.kept, "\(app.name): \(policy.rawValue) is \(outcome), and this installation has not said so")
        }
        // The app's own word, or that of the library for it; none where only an earlier launch was told.
        let own = app.watch.answer(to: policy).map { ($0.state, $0.message) }
        let library = session.answers[policy].flatMap { answer in
            session.answerable[policy].map { $0.number == answer.delivery } ?? true ? answer : nil
        }
        guard let (state, message) = own ?? library.map({ ($0.state, $0.message) }) else {
            // Of an authorization an app is told as well when nothing but the reason has changed.
            if policy != .auth, app.watch.mayAnswer(policy), [.applied, .error].contains(outcome),
                !app.machine.wasPutBack
            {
                fail(.kept, "\(app.name): \(policy.rawValue) is \(outcome), and its newest callback was not answered")
            }
            return
        }
        if outcome != state.outcome || report.attempt.message != message {
            fail(.kept, "\(app.name): it answered \(state) for \(policy.rawValue), and its agent says \(outcome)")
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
        if !machine.intruders.isEmpty { fail(.ends, "\(machine.name): a second process of an app is still connected") }
        if !machine.codeLinks.isEmpty { fail(.ends, "\(machine.name): somebody waits whether a code is right") }
        for app in machine.apps where !app.displays.isEmpty {
            fail(.ends, "\(app.name) waits whether its text was shown")
        }
    }
}
