import DeviceAgent
import FleetProtocol

/// What somebody beside the agent knows of its passcode.
struct PasscodeWatch {
    /// The passcode that was entered last on this run, and when an app was used last since, by the running time.
    private(set) var entered: (text: String, usedAt: Int64)?
    /// The same, of what is certain: between the events of one moment, nobody knows whether an app was open.
    private(set) var usedSurelyAt: Int64 = 0
    /// Since when each app locks by itself, by the running time, and whether that is certain.
    private(set) var locksSince: [AppID: (at: Int64, isCertain: Bool)] = [:]
    /// The same of those that have retired themselves, or are locked and asked nothing, and go on with it when they come back.
    private var lockedSince: [AppID: (at: Int64, isCertain: Bool)] = [:]
    /// No entry is looked at before.
    private(set) var waitsUntil: Int64 = 0
    private(set) var isEnteredNow = false
    private(set) var wrongNow: Int64 = 0
    private var isNew = true
    private var isLockedSince = false
    /// The entry that is looked at.
    private var open: PasscodeCheck?
    /// Entries since the last right one, each from when it is looked at: with those of this moment, and those that are stored.
    private(set) var wrong: Int64
    private(set) var storedWrong: Int64

    init(wrong: Int64) {
        self.wrong = wrong
        storedWrong = wrong
    }

    /// Seconds by the number of wrong entries.
    private static let delays: [Int64] = [0, 0, 0, 5, 10, 20, 40, 80, 160, 320, 640]

    private mutating func wait(from running: Int64) {
        let delay = wrong < 11 ? Self.delays[Int(max(0, wrong))] : 900
        waitsUntil = running + delay * 1_000
    }

    mutating func begins(at running: Int64) {
        (isEnteredNow, wrongNow) = (false, 0)
        if isNew { wait(from: running) }
        isNew = false
    }

    mutating func locked() { (entered, isLockedSince) = (nil, true) }

    /// An entry is looked at: what is locked from now on stays so, however that ends. Where none is set, none can be wrong.
    mutating func isCompared(_ check: PasscodeCheck, isSet: Bool) {
        (open, isLockedSince) = (check, false)
        if isSet { wrong += 1 }
    }

    /// What has become of it. One for a passcode that was forgotten meanwhile says nothing of the next.
    mutating func wasCompared(_ check: PasscodeCheck, _ verdict: PasscodeCheck.Verdict) {
        guard check == open else { return }
        open = nil
        switch verdict {
        case .wrong: break
        case .unknown: wrong = max(0, wrong - 1)
        case .right: wrong = 0
        }
    }

    mutating func stored() { storedWrong = wrong }

    mutating func wasRight(_ text: String, at running: Int64) {
        entered = isLockedSince ? nil : (text, running)
        usedSurelyAt = running
        (isEnteredNow, waitsUntil) = (true, 0)
    }

    mutating func wasWrong(at running: Int64) {
        wrongNow += 1
        wait(from: running)
    }

    mutating func used(at running: Int64, isCertain: Bool) {
        entered?.usedAt = running
        if isCertain { usedSurelyAt = running }
    }

    /// Apps that lock by themselves, and those whose policy may have said so anew in this moment.
    mutating func lock(
        _ apps: [(id: AppID, isNew: Bool)], paused: Set<AppID>, at running: Int64, isCertain: Bool
    ) {
        let before = locksSince
        locksSince = Dictionary(
            uniqueKeysWithValues: apps.map { app in
                let known = lockedSince[app.id].map { ($0.isCertain ? $0.at : running, $0.isCertain) }
                return (app.id, known ?? (app.isNew ? nil : before[app.id]) ?? (running, isCertain))
            })
        // In a moment in which more happens it may have been asked for something else in between.
        lockedSince = lockedSince.merging(before) { $1 }.filter { paused.contains($0.key) }
            .mapValues { ($0.at, $0.isCertain && isCertain) }
    }

    /// How long an app that locks by itself has had nobody who uses it, in milliseconds: at least, or at most.
    func idleTime(of app: AppID, at running: Int64) -> Int64? {
        entered.map { running - max($0.usedAt, locksSince[app]?.at ?? 0) }
    }

    func longestIdleTime(of app: AppID, at running: Int64) -> Int64 {
        let since = locksSince[app]
        return running - max(usedSurelyAt, since?.isCertain == true ? since?.at ?? 0 : 0)
    }

    mutating func forgotten() { (entered, waitsUntil, wrong) = (nil, 0, 0) }
}

/// The passcode: what the person does, and the laws of what comes of it.
extension Machine {
    /// Where something asks for a passcode, somebody will enter one.
    func wakePerson() {
        guard !person.isBusy, !world.isCalm, let core, core.state.apps.values.contains(where: \.asksForPasscode) else {
            return
        }
        person.isBusy = true
        let isInHurry = world.now < person.guessesUntil || !person.asked.isEmpty
        let pause = Int64(person.chance.below(25_000))
        world.after(isInHurry ? 100 + pause % 2_000 : 500 + pause) { [unowned self] in
            person.isBusy = false
            act()
        }
    }

    private func act() {
        guard core != nil, !world.isCalm, !apps.isEmpty else { return }
        guard !isStalled else {
            // What its agent hears of late.
            if !isAsleep { apps[Int(world.now % Int64(apps.count))].use() }
            return
        }
        let app = apps[person.chance.below(apps.count)]
        if person.chance.chance(50) { app.use() }
        if person.chance.chance(40) { return wakePerson() }
        let request = person.nextRequest(at: world.now)
        lastLink += 1
        world.say(name, "the person asks: \(request)")
        person.asks(request, on: lastLink)
        post(.frame(LinkID(lastLink), .passcode(request)))
    }

    /// Whether it has what all apps ask for. Policies may have changed since, in the same moment: then more may have been asked
    /// for.
    private func isStrong(_ passcode: String) -> Bool {
        guard watch.isAlone, let core else {
            return passcode.count >= Person.longPasscode && Person.isMixed(passcode)
        }
        return core.state.apps.values.allSatisfy { !$0.asksForPasscode || $0.takes(passcode) }
    }

    /// The agent has answered.
    func told(_ result: PasscodeResult, on link: LinkID) {
        guard let request = person.hears(result, on: link.number) else { return }
        world.say(name, "the person is told: \(result)")
        post(.linkClosed(link))
        let hash = disk.state.passcode.hash
        switch (request, result.kind) {
        case (.enter(let text), .done), (.set(let text, _), .done):
            // Unless it was forgotten in the same moment.
            if let hash, hash != Person.hash(text) {
                world.fail(.passcodes, "\(name): '\(text)' was taken for the passcode")
            }
        case (.enter(let text), .wrong), (.set(_, let text?), .wrong):
            if hash == Person.hash(text) { world.fail(.passcodes, "\(name): the right passcode was refused") }
        case (.set(let new, _), .tooWeak):
            if isStrong(new) { world.fail(.passcodes, "\(name): '\(new)' is said to be too weak") }
        case (_, .tooEarly):
            if (result.wait ?? 0) <= 0 { world.fail(.ends, "\(name): nobody says when a passcode is looked at again") }
        default: break
        }
    }

    /// An entry counts before it is looked at.
    func checkCounted(_ hash: CodeHash?) {
        // Unless it was forgotten in the same moment.
        if hash != nil, disk.state.passcode.hash != nil { checkWrong() }
    }

    /// All that were looked at since the last right one count: by their number the next one is put off.
    func checkWrong() {
        let (stored, wrong) = (disk.state.passcode.wrong, watch.passcode.wrong)
        if stored != wrong {
            world.fail(.passcodes, "\(name): \(wrong) passcodes were looked at in a row, and \(stored) are counted")
        }
    }

    /// It goes when nothing asks for it any more.
    ///
    /// - Parameter known: What was stored before.
    func checkForgotten(_ passcode: PasscodeRecord, was known: PasscodeRecord) {
        guard known.hash != nil, passcode.hash == nil, let core else { return }
        watch.passcode.forgotten()
        if let app = core.state.apps.values.first(where: \.asksForPasscode) {
            world.fail(.passcodes, "\(name): the passcode is forgotten, and \(app.id) asks for it")
        }
        if !core.state.apps.values.contains(where: { $0.secureServices.passcode?.isRequired == false }) {
            world.fail(.passcodes, "\(name): the passcode is forgotten, and no document says so")
        }
        let said = SaidLayers(held: core.signedDocuments, by: id, in: core.state.groups)
        if let app = core.state.apps.keys.first(where: said.requirePasscode) {
            world.fail(.passcodes, "\(name): the passcode is forgotten, and the layers of \(app) ask for it")
        }
        if let app = core.state.apps.keys.first(where: { !watch.bus.isCertain($0) }) {
            world.fail(.barrier, "\(name): the passcode is forgotten, and what is said of \(app) is not certain")
        }
    }

    /// The laws of one moment. The records of before are still those that are watched.
    func checkPasscodes(_ events: [DeviceEvent], _ effects: [DeviceEffect], _ core: DeviceCore) {
        let running = core.state.running.total
        watch.passcode.begins(at: running)
        // Of more that has happened in this moment nobody knows.
        let locking = core.state.apps.values.filter(\.locksItself).map { app in
            let isNew = watch.records[app.id]?.locksItself != true
            return (id: app.id, isNew: isNew || events.count > 1 && wasDocumentTaken(app.id, core))
        }
        let paused = core.state.apps.values.filter {
            !$0.locksItself && ($0.latch?.reason == .selfRetired || $0.isLocked)
        }
        watch.passcode.lock(locking, paused: Set(paused.map(\.id)), at: running, isCertain: events.count == 1)
        let idle = watch.passcode.locksSince.filter { app, _ in
            let after = core.state.apps[app]?.secureServices.autoLock ?? 0
            return watch.passcode.longestIdleTime(of: app, at: running) >= after * 1_000
        }
        checkEntries(events, effects, core, at: running)
        for event in events {
            switch event {
            case .frame(_, .passcode(.lock)): watch.passcode.locked()
            case .frame(let link, .used):
                guard let app = watch.links[link.number] else { continue }
                // More may have happened in this moment: before it, and behind it.
                let keeping = [watch.records[app], core.state.apps[app]].map { $0.map(keepsOpen) ?? false }
                if keeping.contains(true) {
                    watch.passcode.used(at: running, isCertain: events.count == 1 && !keeping.contains(false))
                }
            case .passcodeChecked(let check, let verdict):
                watch.passcode.wasCompared(check, verdict)
                switch (verdict, person.asked[check.link.number]) {
                case (.right, .enter(let text)), (.right, .set(let text, _)):
                    watch.passcode.wasRight(text, at: running)
                case (.wrong, _): watch.passcode.wasWrong(at: running)
                case (.right, .lock), (.right, nil), (.unknown, _): break
                }
            default: break
            }
        }
        for case .checkPasscode(let check, _, let hash, _) in effects {
            watch.passcode.isCompared(check, isSet: hash != nil)
            guard hash != nil, running < watch.passcode.waitsUntil else { continue }
            world.fail(
                .passcodes, "\(name): a passcode is looked at \(watch.passcode.waitsUntil - running) ms too early")
        }
        let isTick = events.contains { if case .tick = $0 { true } else { false } }
        let isAsked = events.contains { if case .frame(_, .passcode(.lock)) = $0 { true } else { false } }
        for app in core.state.apps.values {
            if !isAsked, idle[app.id] == nil, let old = watch.records[app.id] { checkClosing(app, was: old) }
            if app.isWipeDue, app.availability == .available {
                world.fail(.erased, "\(name)/\(app.id) is to be wiped, and has secure services")
            }
            if app.asksForPasscode, app.availability == .available { checkMayBeOpen(app, isTick: isTick, at: running) }
            if let old = watch.records[app.id] {
                checkAttempts(app, was: old)
                checkWipe(app, was: old)
                checkOpening(app, was: old)
                checkRelease(app, was: old, core)
                checkNewLock(app, was: old)
            }
        }
    }

    /// Whether another document counts of an app than before, for its secure services.
    private func wasDocumentTaken(_ app: AppID, _ core: DeviceCore) -> Bool {
        watch.records[app]?[.secureServices].received != core.state.apps[app]?[.secureServices].received
    }

    /// Whether the use of an app keeps others open. One that its policy locks beside is open by the passcode, or not; one that
    /// wrong passcodes have locked is not.
    private func keepsOpen(_ app: AppRecord) -> Bool {
        let isLockedBeside = app.isLocked && app.passcodeLock == nil
        return app.authState == .authorized
            && (!app.asksForPasscode || isLockedBeside || app.availability == .available)
    }

    /// An app that asks for the passcode has secure services only when that was entered, and not too long ago.
    private func checkMayBeOpen(_ app: AppRecord, isTick: Bool, at running: Int64) {
        guard let text = watch.passcode.entered?.text, let time = watch.passcode.idleTime(of: app.id, at: running)
        else {
            return world.fail(
                .passcodes, "\(name)/\(app.id): it has secure services, and nobody has entered the passcode")
        }
        if !app.takes(text) || app.passcodeLock != nil {
            world.fail(.passcodes, "\(name)/\(app.id): it has secure services by '\(text)'")
        }
        if isTick, let autoLock = app.secureServices.autoLock, time >= autoLock * 1_000 {
            world.fail(.passcodes, "\(name)/\(app.id): nobody has used an app for \(time) ms, and it is not locked")
        }
    }

    /// What the passcode has opened stays open until its time without use is over, or somebody asks for a lock.
    private func checkClosing(_ app: AppRecord, was old: AppRecord) {
        guard watch.isAlone, old.availability == .available, app.availability != .available,
            old.asksForPasscode, app.asksForPasscode, app.isOpenButForPasscode,
            let text = watch.passcode.entered?.text, app.takes(text)
        else { return }
        world.fail(.passcodes, "\(name)/\(app.id): an app was used in time, and it is locked")
    }

    /// Wrong entries are counted, and have their consequence, no sooner and no later than the policy says.
    private func checkAttempts(_ app: AppRecord, was old: AppRecord) {
        guard watch.isAlone, let passcode = old.secureServices.passcode, passcode.isRequired else { return }
        let counts = old.latch == nil && old.passcodeLock == nil && !old.isWipeDue
        let expected = watch.passcode.isEnteredNow ? 0 : old.wrongPasscodes + (counts ? watch.passcode.wrongNow : 0)
        let isDue = counts && watch.passcode.wrongNow > 0 && passcode.maxAttempts.map { expected >= $0 } ?? false
        let isWiped = app.isWipeDue && !old.isWipeDue
        let isLocked = app.passcodeLock != nil && old.passcodeLock == nil
        if isWiped != (isDue && passcode.then == .wipe) || isLocked != (isDue && passcode.then != .wipe) {
            world.fail(
                .passcodes,
                "\(name)/\(app.id): \(expected) wrong passcodes of \(passcode.maxAttempts ?? 0), and it is"
                    + " \(isWiped ? "wiped" : isLocked ? "locked" : "neither wiped nor locked")")
        }
        if app.wrongPasscodes != (isDue ? 0 : expected) {
            world.fail(
                .passcodes, "\(name)/\(app.id): \(expected) wrong passcodes, and \(app.wrongPasscodes) are counted")
        }
    }

    /// A wipe is carried out when it is stored that it is due, and by then the app has nothing.
    private func checkWipe(_ app: AppRecord, was old: AppRecord) {
        if app.isWipeDue, app.availability == .available {
            world.fail(.erased, "\(name)/\(app.id): it is to be wiped, and has secure services")
        }
        if old.isWipeDue, !app.isWipeDue, app.latch == nil {
            world.fail(.erased, "\(name)/\(app.id): it was to be wiped, and is not")
        }
        let isWiped = app.latch?.reason == .passcodeAttempts && old.latch?.reason != .passcodeAttempts
        if isWiped, disk.state.apps[app.id]?.isWipeDue != true {
            world.fail(.passcodes, "\(name)/\(app.id): it is wiped for wrong passcodes, and that was not due")
        }
    }

    /// What the passcode opens is open when it was right, and not before.
    private func checkOpening(_ app: AppRecord, was old: AppRecord) {
        guard app.asksForPasscode, app.isOpenButForPasscode else { return }
        let isOpen = app.availability == .available
        if watch.isAlone, watch.passcode.isEnteredNow, !isOpen,
            watch.passcode.entered.map({ app.takes($0.text) }) ?? false
        {
            world.fail(.passcodes, "\(name)/\(app.id): the passcode was entered, and it has no secure services")
        }
        if isOpen, old.availability == .unavailable, old.asksForPasscode, old.isOpenButForPasscode,
            !watch.passcode.isEnteredNow, old[.secureServices].value == app[.secureServices].value
        {
            world.fail(.passcodes, "\(name)/\(app.id): it was locked, and opens by itself")
        }
    }

    /// What wrong passcodes have locked is opened by an operator's later word alone. Of much that comes in one moment, something
    /// may have asked for no passcode in between.
    private func checkRelease(_ app: AppRecord, was old: AppRecord, _ core: DeviceCore) {
        guard watch.isAlone, let lock = old.passcodeLock, app.passcodeLock == nil, !wasPutBack, app.asksForPasscode
        else { return }
        let signed = app[.secureServices].source.flatMap { core.signedDocuments[$0] }.flatMap {
            try? SignedDocument(wire: $0)
        }
        let document = signed.flatMap { try? DesiredDocument(payload: $0.payload, in: SimulatedFleet.id) }
        let isUnreadable = signed.map { OlderReader.isUnreadable($0, .secureServices) } ?? false
        if !watch.bus.isCertain(app.id) || isUnreadable || document.map({ $0.change <= lock }) ?? true {
            world.fail(.passcodes, "\(name)/\(app.id): wrong passcodes have locked it, and nothing later has opened it")
        }
    }

    /// At rest: whether an app that asks for the passcode has its secure services. Where nobody can say, as its record does.
    func isOpen(_ record: AppRecord) -> Bool {
        guard let core, let text = watch.passcode.entered?.text, record.passcodeLock == nil,
            record.takes(text)
        else { return false }
        let time = watch.passcode.idleTime(of: record.id, at: core.state.running.total) ?? 0
        if let autoLock = record.secureServices.autoLock, time >= autoLock * 1_000 { return false }
        return record.availability == .available
    }
}

extension AppRecord {
    /// Whether the passcode alone decides about its secure services.
    fileprivate var isOpenButForPasscode: Bool {
        authState == .authorized && hasKeys && !isLocked && !isWipeDue && owed == nil
    }
    /// When no app is used.
    fileprivate var locksItself: Bool { asksForPasscode && secureServices.autoLock != nil }
    /// Whether a passcode has what its policy asks for.
    func takes(_ passcode: String) -> Bool {
        guard let asked = secureServices.passcode else { return true }
        return passcode.count >= asked.minLength ?? 0 && (asked.classes == nil || Person.isMixed(passcode))
    }
}
