import AppConnect
import DeviceAgent
import FleetController
import FleetProtocol

/// What must hold of each app once everything has come to rest: it has what the layers say, and the controller knows.
extension World {
    func check(
        _ app: AppProcess, on machine: Machine, _ core: DeviceCore, _ layers: SaidLayers, _ statuses: [Status]
    ) {
        guard let record = core.state.apps[app.id], app.session != nil || app.isClosed else {
            if app.isClosed { return }
            return fail(.convergence, "\(app.name) is not known to its agent")
        }
        // By a controller's clock that was set back by less than a heartbeat takes, the next one comes so much later.
        if record.authReason == .outOfContact, record.latch == nil, !controller.isPunctual { return }
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
            let isOther = value.map { !$0.isWritten(as: report.value) } ?? false
            if let value, isOther, policy != .logLevel || !isNumberUsedTwice {
                return fail(.convergence, "\(app.name): \(policy.rawValue) is \(report.value), not \(value)")
            }
            guard let session = app.session, !isOwed(app, record) else { continue }
            if policy != .secureServices, !session.properties[policy].isWritten(as: report.value) {
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
        if app.session != nil, app.isAttended, !machine.wasPutBack, machine.oneSince == 1, app.retirement.isUntold {
            fail(.latched, "\(app.name): it was retired, and was never called for that")
        }
        if app.session != nil, app.isAttended, !machine.wasPutBack, machine.oneSince == 1,
            machine.watch.events.readies[app.id] ?? 0 <= app.readiesBefore
        {
            fail(.kept, "\(app.name): no event says that this launch was ready")
        }
        if record.latch?.reason == .selfRetired { checkSelfRetired(record, app, layers) }
        let reason = layers.reason(of: record)
        if record.authReason != reason {
            fail(.summary, "\(app.name): its authorization is for the reason \(record.authReason), not \(reason)")
        }
        if record.authState == .retired, machine.disk.keys[app.id] != nil {
            fail(.erased, "\(app.name) is retired and has keys")
        }
        if record.isWipeDue { fail(.ends, "\(app.name) is still to be wiped") }
        if record.hasKeys != (machine.disk.keys[app.id] != nil) {
            fail(.erased, "\(app.name): its record says keys \(record.hasKeys), and that is not so")
        }
        guard let told = core.status(of: app.id, at: machine.clock),
            let known = statuses.first(where: { $0.device == machine.id && $0.app == app.id })
        else { return fail(.summary, "\(app.name) has no status at the controller") }
        if (told.secureServices == .available) != hasServices(app, record) {
            fail(.summary, "\(app.name): its agent says that its secure services are \(told.secureServices)")
        }
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
        if app.isResigned { fail(.ends, "\(app.name) was told that the screen is taken, and never that it is back") }
        if app.isAttended, !session.inbox.isEmpty {
            fail(.ends, "\(app.name) is still to be called: \(session.inbox)")
        }
        if app.isAttended, app.callbacks.contains(.attempts), app.watch.attemptsCalled != app.watch.attempts {
            fail(.quiet, "\(app.name) was called for \(app.watch.attemptsCalled) of \(app.watch.attempts) attempts")
        }
        // A disk that was put back may be older than what this launch was told of it.
        if let launch = session.registration?.launch, !app.machine.wasPutBack, app.machine.oneSince == 1 {
            for number in 0..<session.lastRequest
            where !app.machine.watch.requests.contains(Watch.Request(launch: launch, number: number + 1))
                && !app.watch.dropped.contains(number + 1)
            {
                fail(.kept, "\(app.name): its request \(number + 1) is not stored")
            }
        }
        if let request = session.requests.first {
            fail(.ends, "\(app.name) still repeats its request \(request.number)")
        }
        // Whose use of any app keeps it open says so as often as the strictest one asks.
        let autoLock = app.machine.core?.state.apps.values.filter(\.asksForPasscode)
            .compactMap(\.secureServices.autoLock).min()
        if session.autoLock != autoLock {
            fail(
                .passcodes,
                "\(app.name): it says that it is used for a lock after \(session.autoLock ?? 0) s, not \(autoLock ?? 0)"
            )
        }
        if session.locksItself != (record.asksForPasscode && record.secureServices.autoLock != nil) {
            let what = session.locksItself ? "locks by itself" : "stays open"
            fail(.passcodes, "\(app.name): it takes itself for an app that \(what)")
        }
        let properties = session.properties
        let hasServices = hasServices(app, record)
        if (properties.availability == .available) != hasServices {
            fail(.convergence, "\(app.name): its secure services are \(properties.availability)")
        }
        let keys = hasServices ? app.machine.keys(of: app.id) : nil
        if session.keys != keys {
            fail(keys == nil ? .erased : .keys, "\(app.name): its process has other keys than it may")
        }
        if (try? session.usableKeys()) != keys {
            fail(.keys, "\(app.name): it can use \(keys == nil ? "keys" : "no keys"), and its agent says otherwise")
        }
        if isOwed(app, record) { return }
        let isSelfRetired = record.latch?.reason == .selfRetired
        let managed: ManagedPolicy = isSelfRetired ? .unknown : layers.speak(of: app.id) ? .managed : .unmanaged
        if properties.managed != managed {
            fail(.convergence, "\(app.name): managed is \(properties.managed), not \(managed)")
        }
        if properties.authReason != record.authReason {
            fail(.convergence, "\(app.name): the reason is \(properties.authReason), not \(record.authReason)")
        }
    }

    private func hasServices(_ app: AppProcess, _ record: AppRecord) -> Bool {
        guard record.authState == .authorized, !isOwed(app, record) else { return false }
        guard case .secureServices(let value) = record[.secureServices].value else { return true }
        return !value.isLocked && (value.passcode?.isRequired != true || app.machine.isOpen(record))
    }

    /// It has still to be told of a retirement that is over, and nobody is there to hear of it.
    private func isOwed(_ app: AppProcess, _ record: AppRecord) -> Bool {
        guard app.isClosed || !app.isAttended, record.authState != .retired else { return false }
        if case .auth(.retired, _) = record.properties[.auth] { return true }
        return false
    }

    /// Nothing of what the layers say is in force in an app that has retired itself, and it does not look as if it were.
    private func checkSelfRetired(_ record: AppRecord, _ app: AppProcess, _ layers: SaidLayers) {
        for policy in Policy.allCases where record[policy].source != nil {
            if policy == .auth, layers.retire(app.id) { continue }
            if record[policy].attempt.outcome != .rejected {
                fail(
                    .summary, "\(app.name) has retired itself: \(policy.rawValue) is \(record[policy].attempt.outcome)")
            }
        }
    }

    /// What an app answered last to what it has is what its agent reports.
    private func checkAnswer(_ policy: Policy, of app: AppProcess, _ session: AppSession, _ report: PolicyRecord) {
        guard policy.isAcknowledgedByApp else { return }
        let outcome = report.attempt.outcome
        if outcome == .unsupported, Callback(of: policy).map(app.callbacks.contains) ?? true,
            !app.saidUnsupported.contains(policy)
        {
            fail(.ends, "\(app.name): it can be told of \(policy.rawValue), and its agent says that it cannot")
        }
        if outcome == .applied, report.applied != report.received {
            fail(
                .summary, "\(app.name): \(policy.rawValue) is applied, and \(report.applied ?? -1) said to be in force")
        }
        if outcome == .pending { return fail(.ends, "\(app.name): \(policy.rawValue) is pending") }
        if outcome == .rejected {
            // What it says of what it has instead is not lost.
            if let own = app.watch.answer(to: policy) {
                let said = own.message.map { "\(own.state.outcome.rawValue): \($0)" } ?? own.state.outcome.rawValue
                if report.attempt.message?.hasSuffix("; the app: \(said)") != true {
                    fail(
                        .kept, "\(app.name): \(policy.rawValue) is rejected, and that its app answered \(said) is lost")
                }
            }
            return
        }
        // Another launch may do better.
        if outcome == .delivered || outcome == .error, !app.watch.mayAnswer(policy) {
            fail(.ends, "\(app.name): \(policy.rawValue) is \(outcome), and this launch was not told of it")
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
}

extension PolicyValue {
    /// By what is written, and not by the comparison that decides whether an app is called.
    func isWritten(as other: PolicyValue) -> Bool { json == other.json }
}
