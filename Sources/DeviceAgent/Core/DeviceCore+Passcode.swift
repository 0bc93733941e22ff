package import FleetProtocol

/// What survives a restart of the device's passcode, which a person enters at the agent for all apps that ask for it.
package struct PasscodeRecord: Hashable, Sendable {
    /// nil: none has been set.
    package var hash: CodeHash?
    /// Entries since the last right one. One counts from when it is looked at: to end the agent meanwhile saves none.
    package var wrong: Int64 = 0

    package init(hash: CodeHash? = nil, wrong: Int64 = 0) {
        self.hash = hash
        self.wrong = wrong
    }
}

/// An entry that is being compared, and who waits for the answer.
package struct PasscodeCheck: Hashable, Sendable {
    package enum Verdict: Hashable, Sendable {
        case wrong
        /// It could not be compared, for want of memory: nobody knows.
        case unknown
        /// `new`: what is set.
        case right(new: CodeHash?)
    }

    package let link: LinkID
    let number: Int64
    /// Of the passcode that counts if the entry is right.
    let strength: PasscodeStrength
}

/// When an app locks that nobody uses.
struct AutoLock {
    /// Seconds without use.
    let after: Int64
    /// The running time at which its policy came to lock it so: nobody may have been asked before to say that one is used.
    let since: Int64
}

/// What nobody but this run of the agent knows: when it starts, the passcode has to be entered.
struct PasscodeEntry: Sendable {
    /// Of the passcode that was entered; nil while it has to be.
    var strength: PasscodeStrength?
    /// The running time at which a person last used an app, or entered the passcode.
    var usedAt: Int64 = 0
    /// Apps that have locked because nobody used one: for them the passcode has to be entered again.
    var idle: Set<AppID> = []
    /// Since when apps lock by themselves, by the running time, that have retired themselves or are locked, and are asked nothing
    /// meanwhile.
    var sinceBefore: [AppID: Int64] = [:]
    /// The running time before which no entry is looked at.
    var waitsUntil: Int64 = 0
    var check: PasscodeCheck?
    /// Somebody has asked for a lock since that was typed.
    var isLockedSince = false
    var lastCheck: Int64 = 0
}

extension DeviceCore {
    static let wipedByPasscode = "The passcode was entered wrongly too often."

    mutating func received(_ request: PasscodeRequest, on link: LinkID, at now: Now) {
        switch request {
        case .lock:
            passcodeEntry.strength = nil
            passcodeEntry.isLockedSince = true
            settle(state.apps.keys, at: now)
            answer(link, PasscodeResult(requirements.isEmpty ? .notAsked : .done))
        case .enter(let text):
            guard state.passcode.hash != nil else {
                return answer(link, PasscodeResult(requirements.isEmpty ? .notAsked : .notSet))
            }
            check(text, new: nil, on: link)
        case .set(let new, let current):
            guard !requirements.isEmpty else { return answer(link, PasscodeResult(.notAsked)) }
            let strength = PasscodeStrength(of: new)
            if let problems = problems(of: strength) {
                return answer(link, PasscodeResult(.tooWeak, message: problems))
            }
            if state.passcode.hash != nil, current == nil { return answer(link, PasscodeResult(.alreadySet)) }
            check(current, new: new, on: link)
        }
    }

    /// Looks at an entry unless another one is being looked at, or it comes too early behind a wrong one.
    private mutating func check(_ text: String?, new: String?, on link: LinkID) {
        let wait = passcodeEntry.waitsUntil - state.running.total
        guard passcodeEntry.check == nil, wait <= 0 else {
            return answer(link, PasscodeResult(.tooEarly, wait: max(1, (wait + 999) / 1_000)))
        }
        passcodeEntry.lastCheck += 1
        let check = PasscodeCheck(
            link: link, number: passcodeEntry.lastCheck, strength: PasscodeStrength(of: new ?? text ?? ""))
        passcodeEntry.check = check
        passcodeEntry.isLockedSince = false
        if state.passcode.hash != nil {
            state.passcode.wrong += 1
            batch.changes.append(.passcode(state.passcode))
        }
        batch.effects.append(.checkPasscode(check, text: text, state.passcode.hash, new: new))
    }

    mutating func passcodeChecked(_ check: PasscodeCheck, _ verdict: PasscodeCheck.Verdict, at now: Now) {
        // Nothing asks for a passcode any more since it was typed.
        guard passcodeEntry.check == check else { return answer(check.link, PasscodeResult(.notAsked)) }
        passcodeEntry.check = nil
        switch verdict {
        case .wrong: refuseEntry(on: check.link, at: now)
        case .unknown:
            state.passcode.wrong = max(0, state.passcode.wrong - 1)
            batch.changes.append(.passcode(state.passcode))
            answer(check.link, PasscodeResult(.tooEarly, wait: 5))
        case .right(let new):
            state.passcode.wrong = 0
            if let new { state.passcode.hash = new }
            batch.changes.append(.passcode(state.passcode))
            passcodeEntry.strength = passcodeEntry.isLockedSince ? nil : check.strength
            passcodeEntry.usedAt = state.running.total
            passcodeEntry.idle = []
            for id in state.apps.keys where state.apps[id]?.wrongPasscodes != 0 {
                state.apps[id]?.wrongPasscodes = 0
                batch.changedApps.insert(id)
            }
            settle(state.apps.keys, at: now)
            answer(check.link, PasscodeResult(.done, message: stillLocked(by: check.strength)))
        }
    }

    /// What keeps apps locked though the passcode was right.
    private func stillLocked(by strength: PasscodeStrength) -> String? {
        if let problems = problems(of: strength) { return "apps ask for more: \(problems)" }
        let locked = state.apps.values.filter { $0.passcodeLock != nil }.map(\.id.text)
        return locked.isEmpty
            ? nil : "wrong ones have locked \(locked.joined(separator: ", ")), which an operator unlocks"
    }

    private mutating func refuseEntry(on link: LinkID, at now: Now) {
        delayPasscode()
        log(.warning, "a wrong passcode", "\(state.passcode.wrong) in a row")
        var left: Int64?
        for id in state.apps.keys {
            guard var app = state.apps[id], app.asksForPasscode, app.latch == nil, app.passcodeLock == nil,
                !app.isWipeDue,
                let passcode = app.secureServices.passcode
            else { continue }
            app.wrongPasscodes += 1
            if let most = passcode.maxAttempts {
                left = min(left ?? .max, max(0, most - app.wrongPasscodes))
                if app.wrongPasscodes >= most { punish(&app, passcode.then ?? .lock, at: now) }
            }
            state.apps[id] = app
            batch.changedApps.insert(id)
        }
        settle(state.apps.keys, at: now)
        answer(link, PasscodeResult(.wrong, wait: Self.passcodeDelay(after: state.passcode.wrong), left: left))
    }

    private mutating func punish(
        _ app: inout AppRecord, _ consequence: SecureServicesValue.Passcode.Consequence, at now: Now
    ) {
        app.wrongPasscodes = 0
        switch consequence {
        case .wipe:
            // In a moment, when that is stored: keys that go before would be lost to a power cut, and nobody told of it.
            app.isWipeDue = true
            batch.wipeDueApps.insert(app.id)
        case .lock:
            app.passcodeLock = state.highest
            keep(.locked, of: app.id, message: "\(AuthReason.passcodeAttempts)", at: now)
            log(.notice, "locked an app", Self.wipedByPasscode, app: app.id)
        }
    }

    /// Seconds in which no entry is looked at: none behind the first two wrong ones, then 5, doubled each time, and a
    /// quarter of an hour at most.
    static func passcodeDelay(after wrong: Int64) -> Int64? {
        wrong < 3 ? nil : min(900, 5 << min(8, wrong - 3))
    }

    /// Also at a start: to end the agent makes no entry earlier.
    mutating func delayPasscode() {
        passcodeEntry.waitsUntil = state.running.total + (Self.passcodeDelay(after: state.passcode.wrong) ?? 0) * 1_000
    }

    private mutating func answer(_ link: LinkID, _ result: PasscodeResult) {
        batch.effects.append(.send(link, .passcodeResult(result)))
    }

    private var requirements: [SecureServicesValue.Passcode] {
        state.apps.values.compactMap { $0.asksForPasscode ? $0.secureServices.passcode : nil }
    }

    /// Whether the first document that speaks of a passcode requires one, also where the app asks for none now: it may have
    /// retired itself, or another document may only lock it.
    private func isPasscodeRequired(by documents: [KeptDocument]) -> Bool {
        for document in documents {
            guard case .secureServices(let value)? = document.value?.content else { return true }
            if let passcode = value.passcode { return passcode.isRequired }
        }
        return false
    }

    /// What a passcode lacks of all that apps ask of it.
    private func problems(of strength: PasscodeStrength) -> String? {
        let problems = Set(requirements.compactMap(strength.problem)).sorted()
        return problems.isEmpty ? nil : problems.joined(separator: ", ")
    }

    // MARK: Apps

    /// Opens or locks an app by what was entered, and by when one was used last.
    mutating func settlePasscode(_ app: inout AppRecord) {
        let isEntered = isPasscodeEntered(for: app)
        if app.isPasscodeEntered != isEntered { app.isPasscodeEntered = isEntered }
    }

    private mutating func isPasscodeEntered(for app: AppRecord) -> Bool {
        guard app.asksForPasscode, app.passcodeLock == nil, let passcode = app.secureServices.passcode,
            let strength = passcodeEntry.strength
        else { return false }
        if let end = idleTime(of: app), state.running.total >= end { passcodeEntry.idle.insert(app.id) }
        return strength.problem(for: passcode) == nil && !passcodeEntry.idle.contains(app.id)
    }

    /// The running time at which the app is locked if nobody uses an app.
    private func idleTime(of app: AppRecord) -> Int64? {
        guard let after = app.secureServices.autoLock else { return nil }
        return max(passcodeEntry.usedAt, autoLocks[app.id]?.since ?? 0) + after * 1_000
    }

    /// Seconds; nil where no app locks by itself.
    var shortestAutoLock: Int64? { autoLocks.values.lazy.map(\.after).min() }

    /// Notes after what time an app locks. All apps are told the shortest: whoever is used keeps all of them open.
    mutating func noteAutoLock(of app: AppRecord) {
        let after = app.asksForPasscode ? app.secureServices.autoLock : nil
        let known = autoLocks[app.id]
        guard known?.after != after || passcodeEntry.sinceBefore[app.id] != nil else { return }
        let since = known?.since ?? passcodeEntry.sinceBefore[app.id]
        passcodeEntry.sinceBefore[app.id] = after == nil && (app.isSelfRetired || app.isLocked) ? since : nil
        guard known?.after != after else { return }
        autoLocks[app.id] = after.map { AutoLock(after: $0, since: since ?? state.running.total) }
        for id in processes.keys { batch.settledApps.insert(id) }
    }

    func autoLockDeadline(of app: AppRecord) -> Int64? { app.isPasscodeEntered ? idleTime(of: app) : nil }

    /// A later document of secure services ends what wrong passcodes have locked.
    func releasePasscodeLock(_ app: inout AppRecord, by deciding: KeptDocument?, _ isCertain: Bool) {
        guard isCertain, let lock = app.passcodeLock, let deciding, deciding.change > lock,
            deciding.value?.problems.isEmpty == true
        else { return }
        app.passcodeLock = nil
    }

    /// So does one that asks for none, once it is in force. In an app that has retired itself none is: that ends nothing.
    func releaseUnaskedPasscodeLock(_ app: inout AppRecord, _ isCertain: Bool) {
        guard isCertain, app.passcodeLock != nil, !app.asksForPasscode, !app.isSelfRetired else { return }
        app.passcodeLock = nil
    }

    /// A passcode is forgotten when a document says that none is required, and none says that one is: then the person may set
    /// a new one. Where nothing is said any more, it stays: a policy may be gone by mistake, and come back. So it does until all
    /// that is said is certain: who may set a new one, may do so for good.
    mutating func forgetPasscode() {
        guard state.passcode.hash != nil, requirements.isEmpty,
            state.apps.values.contains(where: { $0.secureServices.passcode?.isRequired == false }),
            state.apps.keys.allSatisfy(isCertain),
            !state.apps.keys.contains(where: { isPasscodeRequired(by: layers.wishes(for: $0)[.secureServices]) })
        else { return }
        state.passcode = PasscodeRecord()
        batch.changes.append(.passcode(state.passcode))
        passcodeEntry = PasscodeEntry(lastCheck: passcodeEntry.lastCheck)
        log(.notice, "no passcode is required any more: it is forgotten")
    }

    /// A person uses the app. The time of an app that was locked meanwhile does not go on.
    mutating func used(_ id: AppID, at now: Now) {
        let idle = state.apps.values.filter {
            $0.isPasscodeEntered && idleTime(of: $0).map { $0 <= state.running.total } ?? false
        }
        settle(idle.map(\.id), at: now)
        guard let app = state.apps[id], app.authState == .authorized, !app.asksForPasscode || app.isPasscodeEntered
        else {
            return
        }
        passcodeEntry.usedAt = state.running.total
    }

    /// What is to be reported of a policy that asks for a passcode.
    func passcodeNote(of app: AppRecord, _ passcode: SecureServicesValue.Passcode) -> String? {
        if app.passcodeLock != nil {
            return "locked by wrong passcodes: only a later secure-services document ends that"
        }
        guard state.passcode.hash != nil else { return "no passcode has been set on this device yet" }
        return passcodeEntry.strength?.problem(for: passcode).map { "the device's passcode lacks \($0)" }
    }
}
