import AppConnect
import DeviceAgent
import FleetController
import FleetProtocol

extension Machine {
    /// The laws of one moment: what the core has decided just now.
    func checkStep(_ events: [DeviceEvent], _ effects: [DeviceEffect]) {
        guard let core else { return }
        if core.state.events.count > world.eventLimit { world.fail(.bounded, "\(name) keeps too many events") }
        if wakes.areInVain(events, effects, at: world.now) {
            world.fail(.bounded, "\(name) is woken again and again, and has nothing to do")
        }
        if core.trust.version < watch.trust {
            world.fail(.forward, "\(name): the trust document went from \(watch.trust) to \(core.trust.version)")
        }
        if !world.fleet.identities.contains(where: { $0.trust == core.trust }) {
            world.fail(.unforged, "\(name) trusts by a document \(core.trust.version) that its fleet never had")
        }
        let retiring = Set(
            events.compactMap { if case .frame(let link, .retire) = $0 { watch.links[link.number] } else { nil } })
        watch.answering = Set(
            events.compactMap { event in
                switch event {
                case .frame(let link, .acknowledge): watch.links[link.number]
                case .registered(_, let registration): registration.app
                default: nil
                }
            })
        watch.noteAnswers(events)
        // By a new trust document much may count that was held back.
        watch.isAlone = events.count == 1 && !isTrust(events[0])
        watch.codesTyped = Set(
            events.compactMap { if case .codeChecked(let check, true) = $0 { check.app } else { nil } })
        let limited = events.compactMap { event -> AppID? in
            guard case .message(let topic, _) = event,
                case .desired(_, let app, .secureServices)? = Address(topic: topic, in: SimulatedFleet.id)
            else { return nil }
            return app
        }
        watch.limitsReplaced = Set(limited.filter { app in limited.count { $0 == app } > 1 })
        checkTimes(effects)
        checkLevelTimes(core, events)
        checkPasscodes(events, effects, core)
        for case .store(let changes) in effects {
            for case .document(let address, let wire?) in changes { watch.noteAuthorization(address, wire) }
            for case .app(let app) in changes {
                checkTold(app, in: changes)
                check(app, in: changes, isRetiring: retiring.contains(app.id))
            }
            if changes.contains(where: { if case .app = $0 { true } else { false } }) { checkWhitelists(core) }
        }
        watch.isMakingKeys = []
        for case .createKeys(let app) in effects { watch.isMakingKeys.insert(app) }
        let noted = watch.noted
        checkContact(core, events)
        checkSaved(core, effects, isNew: core.state.contact != noted)
        checkTightened(core, effects)
        checkForeign(events, effects, core)
        checkRequests(events, effects)
        checkRetirements(events, core)
        checkCodes(events, effects, core)
        checkRegistrations(events, effects)
        checkRefusals(events, effects, core)
        checkFollows(events, core)
        checkListens(events, effects, core)
        for event in events { watch.looked(at: event) }
        if !wasPutBack, !watch.isInContact, let contact = watch.contact {
            checkLimits(core, contact, isTick: events.contains { if case .tick = $0 { true } else { false } })
        }
    }

    /// What takes an app's authorization away needs nobody's confirmation.
    private func checkTightened(_ core: DeviceCore, _ effects: [DeviceEffect]) {
        for case .store(let changes) in effects {
            for case .document(.desired(_, let app, .auth), .some) in changes
            where core.state.apps[app]?.authState == .authorized {
                let said = core.signedDocuments.filter {
                    if case .desired(_, app, .auth) = $0.key { true } else { false }
                }
                guard said.count == 1, let (address, wire) = said.first, older == nil,
                    let document = try? DesiredDocument(wire: wire),
                    case .aspect(let value) = document.content, case .auth(let state, _) = value.content,
                    state != .authorized
                else { continue }
                if case .desired(.group(let group), _, _) = address, !core.state.groups.contains(group) { continue }
                world.fail(
                    .barrier, "\(name)/\(app): all it is told is that it is \(state), and it is authorized")
            }
        }
    }

    /// What is refused is told.
    private func checkForeign(_ events: [DeviceEvent], _ effects: [DeviceEffect], _ core: DeviceCore) {
        guard events.count == 1, case .message(let topic, let wire) = events[0], watch.foreign.contains(wire),
            core.connection != nil, core.trust.key(world.fleet.signingKey.publicKey.id) != nil,
            case .desired(_, let app, _)? = Address(topic: topic, in: SimulatedFleet.id), disk.state.apps[app] != nil
        else { return }
        let isTold = effects.contains {
            if case .log(let entry) = $0 { entry.detail?.hasPrefix(topic) == true } else { false }
        }
        if !isTold { world.fail(.unforged, "\(name) was shown another fleet's document, and tells nobody") }
    }

    /// Whether this device listens there, and no key that it knows has signed it.
    private func isUnsigned(_ wire: [UInt8], at address: Address) -> Bool {
        guard watch.unsigned.contains(wire), case .desired(let layer, let app, _) = address,
            disk.state.apps[app] != nil
        else { return false }
        return layer == .all || layer == .device(id)
    }

    private static let trust = Address.trust.topic(in: SimulatedFleet.id)

    func isTrust(_ event: DeviceEvent) -> Bool {
        if case .message(Self.trust, _) = event { true } else { false }
    }

    /// That somebody wanted to be an app and may not is told once a minute.
    private func checkRefusals(_ events: [DeviceEvent], _ effects: [DeviceEffect], _ core: DeviceCore) {
        let now = core.state.running.total
        var told: Set<AppID> = []
        for case .store(let changes) in effects {
            for case .event(let event) in changes {
                if case .event(let said) = event.body, said.kind == .refused { told.insert(said.header.app) }
            }
        }
        for case .registrationRefused(let app, _) in events where disk.state.apps[app] != nil && !told.contains(app) {
            if let last = watch.refusedAt[app], now - last < 60_000 { continue }
            world.fail(.kept, "\(name)/\(app): no event says that a process was refused")
        }
        for app in told { watch.refusedAt[app] = now }
    }

    /// What is said, and not what the core wanted to say, must be said in time.
    func checkDues(_ events: [DeviceEvent], _ effects: [DeviceEffect]) {
        guard let core else { return }
        let late = dues.handled(
            events, effects, of: core, on: watch.bus.connection, hearing: watch.words.count, late: watch.lag,
            isUnsigned: { address, wire in isUnsigned(wire, at: address) })
        if let topic = dues.untold {
            world.fail(
                .unforged, "\(name) was shown at \(topic) what no key has signed that it knows, and tells nobody")
        }
        guard let late else { return }
        world.fail(.ends, "\(name): \(late)")
    }

    /// What an app asks for is taken once, however often it is said: each attempt is kept as it was, and each retirement takes
    /// effect.
    private func checkRequests(_ events: [DeviceEvent], _ effects: [DeviceEffect]) {
        struct Blocked: Hashable {
            let action: AppEvent.Action?
            let target: String?
        }
        var reported: [Blocked] = []
        var retired: [AppID: Int] = [:]
        for case .frame(let link, let frame) in events {
            switch frame {
            case .blocked(let action, let target, let number):
                if isTaken(number, on: link) { reported.append(Blocked(action: action, target: target)) }
            case .retire(let number):
                if let app = watch.links[link.number], isTaken(number, on: link) { retired[app, default: 0] += 1 }
            default: break
            }
        }
        var kept: [Blocked] = []
        for case .store(let changes) in effects {
            for case .event(let event) in changes {
                guard case .event(let event) = event.body else { continue }
                if event.kind == .blocked { kept.append(Blocked(action: event.action, target: event.target)) }
                if event.kind == .wiped, event.message == "\(AuthReason.selfRetired)" {
                    retired[event.header.app, default: 0] -= 1
                }
            }
        }
        if kept != reported { world.fail(.kept, "\(name): \(reported) were blocked, and \(kept) are kept") }
        // Of one that is retired already there is nothing to tell.
        for (app, count) in retired where count < 0 {
            world.fail(.latched, "\(name)/\(app) is retired once more for what it asked once")
        }
    }

    /// Whether that has not been taken before; it is now.
    private func isTaken(_ number: Int64?, on link: LinkID) -> Bool {
        guard let number, let launch = watch.launches[link.number] else { return true }
        let request = Watch.Request(launch: launch, number: number)
        return !watch.requests.contains(request) && watch.taking.insert(request).inserted
    }

    /// What becomes of an app, and is worth an event, has one in the same transaction.
    private func checkTold(_ app: AppRecord, in changes: [StoreChange]) {
        var told: Set<AppEvent.Kind> = []
        for case .event(let event) in changes where event.header.app == app.id {
            if case .event(let event) = event.body { told.insert(event.kind) }
        }
        let old = watch.records[app.id]
        func expect(_ kind: AppEvent.Kind, if isDue: Bool) {
            if isDue, !told.contains(kind) { world.fail(.kept, "\(name)/\(app.id): no event says \(kind)") }
        }
        expect(.ready, if: app.wasReady && old?.wasReady == false)
        expect(.wiped, if: app.latch != nil && old?.latch == nil)
        let wasLocked = old?.isLocked ?? app.isLocked
        expect(.locked, if: app.isLocked && !wasLocked)
        expect(.unlocked, if: !app.isLocked && wasLocked)
    }

    /// An app that has retired itself is retired at once, with nobody's leave.
    private func checkRetirements(_ events: [DeviceEvent], _ core: DeviceCore) {
        // A document, or the end of its connection, may have come behind it in the same moment.
        guard !events.contains(where: { if case .frame = $0 { false } else { true } }) else { return }
        for case .frame(let link, .retire(let number)) in events {
            guard let app = watch.links[link.number], watch.isTaking(number, on: link),
                let record = core.state.apps[app]
            else { continue }
            if record.latch?.reason != .selfRetired {
                world.fail(.latched, "\(name)/\(app): it retired itself, and is not retired")
            }
        }
    }

    /// Who types the right code has it taken; who types a wrong one is told of.
    private func checkCodes(_ events: [DeviceEvent], _ effects: [DeviceEffect], _ core: DeviceCore) {
        for case .checkCode(let check, _, _) in effects where events.count == 1 {
            guard let record = core.state.apps[check.app], record[.logLevel].attempt.outcome == .awaitingCode,
                record[.logLevel].source != check.address, watch.bus.isStillCertain(check.app), !mayHaveNobodys(core)
            else { continue }
            world.fail(.codes, "\(name)/\(check.app): its code is compared with that of \(check.address.path)")
        }
        guard events.count == 1, case .codeChecked(let check, let isRight)? = events.first else { return }
        guard let app = core.state.apps[check.app], app.levelClocks[check.address]?.change == check.change else {
            let isTaken = effects.contains { effect in
                if case .send(_, .codeResult(true)) = effect { true } else { false }
            }
            if isTaken {
                world.fail(.codes, "\(name)/\(check.app): a code is taken for what has replaced what it was typed for")
            }
            return
        }
        if isRight {
            guard app[.logLevel].source == check.address, app[.logLevel].attempt.outcome == .awaitingCode else {
                return
            }
            // Another one may decide by now, which has still to wait until it is certain.
            let layers = SaidLayers(held: core.signedDocuments, by: id, in: core.state.groups)
            guard layers.deciding(.logLevel, of: app.id)?.source == check.address else { return }
            world.fail(.codes, "\(name)/\(app.id): its code was typed, and it still waits for it")
        } else {
            let isTold = effects.contains { effect in
                guard case .store(let changes) = effect else { return false }
                return changes.contains { change in
                    if case .event(let event) = change, case .logLevel(let change) = event.body {
                        change.why == .codeRefused
                    } else {
                        false
                    }
                }
            }
            if !isTold { world.fail(.kept, "\(name)/\(app.id): no event says that its code was wrong") }
        }
    }

    /// A revision that could not be applied is not said to be in force, whatever an app answers to what stands in for it. What it
    /// says late of a delivery that was followed by another one is true of that, and so is what it says of an equal value that it
    /// had when the revision could still be applied. Nor is one that an app has been told of, and of which it has not said that it
    /// is applied.
    private func checkApplied(_ app: AppRecord, was old: AppRecord) {
        for policy in Policy.allCases where app[policy].attempt.outcome != .rejected {
            watch.applicable[app.id, default: Policy.allCases.map { _ in -1 }][policy.index] =
                app[policy].attempt.revision
        }
        for policy in Policy.allCases where app[policy].applied != old[policy].applied {
            let attempt = app[policy].attempt
            guard app[policy].applied == attempt.revision else { continue }
            // What was answered in this moment may have been another value of the same revision.
            let isWrong =
                switch attempt.outcome {
                case .delivered: watch.answers.all[app.id]?.contains(policy) != true
                case .error, .unsupported: watch.isAlone && watch.answers.applied[app.id]?.contains(policy) != true
                default: false
                }
            guard isWrong else { continue }
            world.fail(
                .summary,
                "\(name)/\(app.id): \(policy.rawValue) of \(attempt.revision) is \(attempt.outcome), and applied")
        }
        guard app.authReason != .outOfContact else { return }
        for policy in Policy.allCases where watch.answers.newest[app.id]?.contains(policy) ?? false {
            let now = app[policy]
            // It may have been told before that was so: then it has applied what it answers.
            guard now.applied != old[policy].applied, now.attempt.outcome == .rejected,
                now.applied == now.attempt.revision,
                watch.applicable[app.id]?[policy.index] != now.attempt.revision,
                watch.conversations[app.id]?.isNewest(now.value, of: policy) ?? false
            else { continue }
            world.fail(
                .summary, "\(name)/\(app.id): \(policy.rawValue) of \(now.attempt.revision) is rejected, and applied")
        }
    }

    /// While the documents of new groups are on their way, those of the groups before go on deciding.
    private func checkMove(_ app: AppRecord, was old: AppRecord) {
        // What is deleted and comes again in one moment waits for certainty.
        guard watch.isAlone, let core, core.membership != core.state.groups else { return }
        for policy in Policy.allCases {
            guard case .desired(.group(let group), _, _)? = old[policy].source, core.state.groups.contains(group),
                let source = old[policy].source, core.signedDocuments[source] != nil, app.latch == nil
            else { continue }
            switch app[policy].source {
            case nil, .desired(.all, _, _)?:
                world.fail(
                    .continues,
                    "\(name)/\(app.id): \(policy.rawValue) of \(group) ends before the documents of other groups are here"
                )
            default: break
            }
        }
    }

    /// `isRetiring`: it has just retired itself; a later retirement may have taken the place of its own in this moment.
    private func check(_ app: AppRecord, in changes: [StoreChange], isRetiring: Bool) {
        let id = app.id
        if app.managed == .unmanaged, watch.records[id]?.managed != .unmanaged, !watch.bus.isCertain(id), !wasPutBack {
            world.fail(.barrier, "\(name)/\(id): unmanaged before barrier and hello")
        }
        let known = watch.records[id]
        watch.records[id] = app
        checkAttemptTimes(app, was: known)
        guard let old = known else { return }
        checkOwnLatch(app, was: old)
        checkAnswers(app, was: old)
        checkRejections(app)
        if !isRetiring { checkApplied(app, was: old) }
        visit(old, app)
        checkOutOfContact(app, was: old)
        if watch.isAlone { checkUnreadable(app, was: old, in: changes) }
        checkSelfRetired(app)
        checkMove(app, was: old)
        checkGoesOn(app, was: old, in: changes)
        checkLockStays(app, was: old, in: changes)
        checkUntold(app, was: old, in: changes)
        checkWipedTold(app, was: old, in: changes)
        checkBeginning(app, was: old, in: changes)
        checkLatch(app, was: old)
        checkIsLatched(app)
        if old.secureServices.offline != app.secureServices.offline || (old.latch != nil && app.latch == nil) {
            watch.limitsSince[id] = world.now
        }
        if app.logLevel.isExpectedToAsk, app.logLevel > old.logLevel, World.needsCode(id), !watch.codes.contains(id),
            !wasPutBack
        {
            world.fail(.codes, "\(name)/\(id): it logs at \(app.logLevel), and nobody has typed its code")
        }
        for policy in Policy.allCases {
            let (was, now) = (old[policy], app[policy])
            if was.value != now.value, !Self.isStricter(now.value, than: was.value), !isOwn(now.value),
                !isOwnLevel(now, was: was, of: id), app.latch?.reason != .selfRetired,
                !isRetiring, !watch.bus.isCertain(id) || hasOfEarlierEpoch(id)
            {
                world.fail(
                    .barrier, "\(name)/\(id): \(policy.rawValue) went from \(was.value) to \(now.value)")
            }
        }
    }

    /// What the layers say is in force again with what ends an app's own retirement.
    private func checkSelfRetired(_ app: AppRecord) {
        guard app.latch?.reason != .selfRetired, watch.bus.isCertain(app.id), let core,
            core.membership == core.state.groups
        else { return }
        for policy in Policy.allCases
        where app[policy].attempt.message?.hasPrefix("the app has retired itself") == true && !mayHaveNobodys(core) {
            world.fail(.latched, "\(name)/\(app.id): \(policy.rawValue) does not follow the end of its retirement")
        }
    }

    /// What a device decides without anybody: out of contact.
    private func isOwn(_ value: PolicyValue) -> Bool {
        if case .auth(let state, _) = value { state != .authorized } else { false }
    }

    func checkKeys(of record: AppRecord) {
        if record.authState == .retired, record.latch != nil, disk.keys[record.id] != nil {
            world.fail(.erased, "\(name)/\(record.id): said to be retired while its keys are there")
        }
    }
}
