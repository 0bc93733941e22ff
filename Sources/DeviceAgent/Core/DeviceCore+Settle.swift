import FleetProtocol

extension DeviceCore {
    /// What should be in force for one policy of an app.
    struct Decision {
        var value: PolicyValue
        var source: DocumentSource?
        var revision: Int64 = 0
        var problem: String?
        /// For what the agent applies itself.
        var outcome: Outcome = .applied
        var message: String?
        var namesAuthorized = false

        init(_ value: PolicyValue, by document: KeptDocument? = nil, problem: String? = nil) {
            self.value = value
            source = document?.source
            revision = document?.revision.number ?? 0
            self.problem = problem
        }

        /// What is in force.
        init(keeping record: PolicyRecord) {
            value = record.value
            (source, revision, problem) = (record.decidedBy, record.received, record.problem)
            (outcome, message) = (record.attempt.outcome, record.attempt.message)
            namesAuthorized = record.namesAuthorized
        }

        /// The time of the level that is in force is over.
        init(expired level: PolicyRecord) {
            value = .default(of: .logLevel)
            (source, revision) = (level.decidedBy, level.received)
            outcome = .expired
        }

        /// How it is reported where the agent itself applies it.
        var report: (outcome: Outcome, message: String?) {
            guard let problem else { return (outcome, message) }
            return (.rejected, problem)
        }
    }

    /// Brings the state of apps in line with what their layers say; the apps are told at the end of the moment. What would
    /// loosen anything waits until the broker has shown all of it and the controller has confirmed it.
    ///
    /// - Parameters:
    ///   - ids: In their order.
    ///   - aspect: The only one whose documents have changed; nil when anything may have.
    ///   - isWiping: Whether apps that are out of contact for too long are wiped: as time passes, and not because something
    ///     has come, since what comes next may be contact, or withdraw the limit.
    mutating func settle(
        _ ids: [AppID], _ aspect: Aspect? = nil, isWiping: Bool = false, at now: Now
    ) {
        var isAuthorizationChanged = false
        for id in ids where settleAlone(id, aspect, isWiping: isWiping, at: now) {
            isAuthorizationChanged = true
        }
        // The whitelist of "all authorized apps" follows from every app's authorization, which follows from no other's: but
        // with it an app may have got the offline limits by which it is blocked at once.
        while isAuthorizationChanged {
            isAuthorizationChanged = false
            for id in state.apps.keys where settleAlone(id, nil, isWiping: isWiping, at: now) {
                isAuthorizationChanged = true
            }
        }
    }

    /// Returns whether the app's authorization is another one now.
    private mutating func settleAlone(_ id: AppID, _ aspect: Aspect?, isWiping: Bool, at now: Now) -> Bool {
        // Taken out, so that this is the only copy.
        guard var app = state.apps.take(id) else { return false }
        app.beginSettling()
        let (authState, latch, wasLocked) = (app.authState, app.latch?.reason, app.isLocked)
        let wishes = layers.wishes(for: id)
        let isCertain = isCertain(of: id)
        releasePasscodeLock(&app, by: wishes[.secureServices].first, isCertain)
        settleAuth(&app, wishes, isCertain, isWiping: isWiping, at: now)
        settleManaged(&app, wishes, isCertain)
        // What the app has done itself needs nobody's confirmation.
        let mayLoosen = isCertain || app.isSelfRetired
        // A self-retirement speaks to every policy.
        let aspect = latch == app.latch?.reason ? aspect : nil
        for policy in Policy.allCases where policy != .auth && policy != .logLevel {
            guard aspect == nil || policy.aspect == aspect else { continue }
            let isTaken = take(
                decision(on: policy, of: app, wishes), for: policy, &app, mayLoosen: mayLoosen, at: now)
            if !isTaken { takeKept(policy, &app, at: now) }
        }
        if aspect == nil || aspect == .logLevel {
            settleLogLevel(&app, wishes[.logLevel], mayLoosen: mayLoosen, at: now)
        }
        releaseUnaskedPasscodeLock(&app, isCertain)
        noteAutoLock(of: app)
        settlePasscode(&app)
        let isLocked = app.isLocked
        if isLocked != wasLocked { keep(isLocked ? .locked : .unlocked, of: id, at: now) }
        deadlines[id] = earlier(
            earlier(levelDeadline(of: app), offlineDeadline(of: app)),
            earlier(autoLockDeadline(of: app), app.isWipeDue ? state.running.total : nil))
        let isChanged = app.authState != authState
        batch.settledApps.insert(id)
        if app.isTouched { changed(id) }
        state.apps[id] = app
        return isChanged
    }

    private func earlier(_ one: Int64?, _ other: Int64?) -> Int64? {
        guard let one, let other else { return one ?? other }
        return min(one, other)
    }

    /// Puts a decision in force if it may be, and returns whether it is.
    @discardableResult
    private func take(
        _ decision: Decision, for policy: Policy, _ app: inout AppRecord, mayLoosen: Bool, at now: Now
    ) -> Bool {
        // Most settling finds all as it was: then nothing is touched, so that nothing is copied either.
        if isSettled(app, policy, decision) { return true }
        guard
            mayLoosen || isSame(decision, as: app[policy]) || decision.value.isTightening(of: app[policy].value)
        else { return false }
        enforce(decision, for: policy, &app, at: now)
        return true
    }

    /// Whether it changes nothing, now and later: a list that is spelled out follows nobody's authorization any more.
    private func isSame(_ decision: Decision, as current: PolicyRecord) -> Bool {
        decision.value == current.value && decision.source == current.decidedBy
            && (decision.namesAuthorized || !current.namesAuthorized)
    }

    /// What stays in force until it is certain what replaces it says less as well when an app that it names loses its
    /// authorization. Its document may be gone.
    private func takeKept(_ policy: Policy, _ app: inout AppRecord, at now: Now) {
        guard app[policy].namesAuthorized else { return }
        var decision = Decision(keeping: app[policy])
        let authorized = authorizedApps(with: app)
        decision.value.named = decision.value.named.filter(authorized.contains)
        take(decision, for: policy, &app, mayLoosen: false, at: now)
    }

    /// Puts a decision in force, and reports it.
    func enforce(_ decision: Decision, for policy: Policy, _ app: inout AppRecord, at now: Now) {
        app[policy].decide(
            decision.value, by: decision.source, revision: decision.revision, problem: decision.problem,
            namesAuthorized: decision.namesAuthorized)
        if policy.isAcknowledgedByApp {
            app[policy].refreshAttempt(at: now.wall)
        } else {
            let (outcome, message) = decision.report
            app[policy].report(outcome, message, at: now.wall)
        }
    }

    /// Whether this decision is in force, and reported. What the app answers is reported as it comes.
    func isSettled(_ app: AppRecord, _ policy: Policy, _ decision: Decision) -> Bool {
        guard app[policy].received == decision.revision, app[policy].decidedBy == decision.source,
            app[policy].problem == decision.problem, app[policy].value == decision.value,
            app[policy].namesAuthorized == decision.namesAuthorized
        else { return false }
        if policy.isAcknowledgedByApp { return true }
        let (outcome, message) = decision.report
        return app[policy].attempt.revision == decision.revision && app[policy].attempt.outcome == outcome
            && app[policy].attempt.message == message
    }

    private func settleManaged(_ app: inout AppRecord, _ wishes: Layers.Wishes, _ isCertain: Bool) {
        let managed: ManagedPolicy =
            app.isSelfRetired ? .unknown : !wishes.isEmpty ? .managed : isCertain ? .unmanaged : app.managed
        if app.managed != managed { app.managed = managed }
    }

    // MARK: Authorization

    private static let outOfContact = "This device has been out of contact for too long."

    private mutating func settleAuth(
        _ app: inout AppRecord, _ wishes: Layers.Wishes, _ isCertain: Bool, isWiping: Bool, at now: Now
    ) {
        let documents = wishes[.auth]
        let deciding = documents.first(where: \.isRetirement) ?? documents.first
        let retired = documents.filter(\.isRetirement).map(\.change).max()
        let offline = offlineLimits(of: app, wishes, isCertain)
        releaseLatch(&app, by: deciding, retired, isCertain)
        if app.latch == nil {
            if let deciding, let retired {
                latch(&app, change: retired, reason: .policy, message: deciding.authMessage, at: now)
            } else if isWiping, let limit = offline?.wipeAfter, let gone = runningSinceContact,
                gone >= limit
            {
                latch(&app, change: state.highest, reason: .outOfContact, message: Self.outOfContact, at: now)
            } else if app.isWipeDue, !batch.wipeDueApps.contains(app.id) {
                latch(&app, change: state.highest, reason: .passcodeAttempts, message: Self.wipedByPasscode, at: now)
            }
        }
        let (decision, reason) = authDecision(app, deciding, offline, at: now)
        // What the device itself has found needs nobody's confirmation.
        let isOwn = app.latch != nil || reason == .outOfContact
        let isTaken = take(decision, for: .auth, &app, mayLoosen: isCertain || isOwn, at: now)
        if isTaken, app.authReason != reason { app.authReason = reason }
    }

    private func authDecision(
        _ app: AppRecord, _ deciding: KeptDocument?, _ offline: SecureServicesValue.Offline?, at now: Now
    ) -> (Decision, AuthReason) {
        if let latch = app.latch {
            let isMet = deciding?.isRetirement == true
            // Where layers say retired, the deciding one gives the message, whichever of them came first.
            if isMet, let deciding, !app.isSelfRetired {
                return (Decision(.auth(.retired, message: deciding.authMessage), by: deciding), .policy)
            }
            let value = PolicyValue.auth(.retired, message: latch.message)
            return (
                Decision(
                    value, by: deciding,
                    problem: isMet || deciding == nil
                        ? nil : "retired (\(latch.reason)): only a later auth document ends that"),
                latch.reason
            )
        }
        if let limit = offline?.blockAfter, let gone = sinceContact(now), gone >= limit {
            let value = PolicyValue.auth(.unauthorized, message: Self.outOfContact)
            return (
                Decision(value, by: deciding, problem: "out of contact for longer than blockAfter"), .outOfContact
            )
        }
        guard let desired = deciding?.value, case .auth(let state, let message) = desired.content else {
            return (Decision(.default(of: .auth)), .none)
        }
        let problem = desired.problems[.auth]
        return (
            Decision(.auth(state, message: message), by: deciding, problem: problem),
            problem == nil ? .policy : .unknownValue
        )
    }

    /// Ends a retirement when an auth document that was changed after it decides. Keys begin anew. A later retirement takes
    /// its place at once, as it takes effect: what was changed before that one releases nothing any more.
    ///
    /// - Parameter retired: The latest change that says retired, at whatever layer: which of them came first does not matter.
    private mutating func releaseLatch(
        _ app: inout AppRecord, by deciding: KeptDocument?, _ retired: Revision?, _ isCertain: Bool
    ) {
        guard let latch = app.latch, let deciding else { return }
        if let retired {
            // By policy it says what the deciding document does, also when it is another one's change that is the latest.
            guard retired > latch.change || latch.reason == .policy else { return }
            let next = AppRecord.Latch(
                change: max(retired, latch.change), reason: .policy, message: deciding.authMessage)
            if next != latch { app.latch = next }
        } else if deciding.change > latch.change, isCertain, deciding.value?.problems.isEmpty == true {
            app.endRetirement(isReadySent: processes[app.id].map { $0.phase != .registered } ?? false)
            app.hasKeys = true
            batch.keyEffects.append(.createKeys(app.id))
        }
    }

    /// Makes a retirement take effect: the keys go first, before anything is stored or said.
    mutating func latch(
        _ app: inout AppRecord, change: Revision, reason: AuthReason, message: String, at now: Now
    ) {
        app.latch = AppRecord.Latch(change: change, reason: reason, message: message)
        if app.isWipeDue { app.isWipeDue = false }
        batch.keyEffects.append(.destroyKeys(app.id))
        app.hasKeys = false
        if pasteboard?.source == app.id { pasteboard = nil }
        processes[app.id]?.hasKeys = nil
        // Of others that take their place in the same moment it is told, too.
        if app.availabilityTold.told == .available { app.availabilityTold.told = nil }
        keep(.wiped, of: app.id, message: "\(reason)", at: now)
        log(.notice, "retired an app and destroyed its keys", "\(reason)", app: app.id)
    }

    /// The offline limits in force, or what replaces them in this moment: what is withdrawn blocks nobody any more.
    private func offlineLimits(
        of app: AppRecord, _ wishes: Layers.Wishes, _ isCertain: Bool
    ) -> SecureServicesValue.Offline? {
        guard isCertain, case .secureServices(let next) = decision(on: .secureServices, of: app, wishes).value else {
            return app.secureServices.offline
        }
        return next.offline
    }

    /// Seconds of running time since the last contact; nil before the first.
    private var runningSinceContact: Int64? {
        state.contact.map { (state.running.total - $0.running) / 1_000 }
    }

    /// Seconds since the last contact by the larger of running time and wall clock.
    private func sinceContact(_ now: Now) -> Int64? {
        state.contact.map { contact in
            max(state.running.total - contact.running, now.wall.milliseconds - contact.wall.milliseconds) / 1_000
        }
    }

    /// The running time at which an offline limit of the app is next to be looked at.
    func offlineDeadline(of app: AppRecord) -> Int64? {
        guard let contact = state.contact, let offline = app.secureServices.offline, app.latch == nil else {
            return nil
        }
        return [offline.blockAfter, offline.wipeAfter].compactMap { $0 }
            .map { contact.running + $0 * 1_000 }.filter { $0 > state.running.total }.min()
    }

    // MARK: The other policies

    /// Why an app that has retired itself has nothing of what its layers say.
    static let selfRetired = "the app has retired itself"

    private func decision(on policy: Policy, of app: AppRecord, _ wishes: Layers.Wishes) -> Decision {
        guard let aspect = policy.aspect, let document = wishes[aspect].first else {
            return Decision(.default(of: policy))
        }
        return decision(on: policy, of: app, by: document)
    }

    private func decision(on policy: Policy, of app: AppRecord, by document: KeptDocument) -> Decision {
        guard let desired = document.value else { return Decision(.default(of: policy)) }
        if app.isSelfRetired {
            return Decision(.default(of: policy), by: document, problem: Self.selfRetired)
        }
        let problem = desired.problems[policy]
        switch desired.content {
        case .config(let values): return Decision(.config(values), by: document, problem: problem)
        case .dlp(let dlp):
            var decision = Decision(value(of: policy, in: dlp), by: document, problem: problem)
            decision.namesAuthorized = dlp.namesAuthorized(policy)
            if decision.namesAuthorized { decision.value.named = authorizedApps(with: app) }
            return decision
        case .secureServices(let value):
            var decision = Decision(.secureServices(value), by: document, problem: problem)
            if let passcode = value.passcode, passcode.isRequired { decision.message = passcodeNote(of: app, passcode) }
            return decision
        case .unreadable:
            var value = app[policy].value
            // What asks for something that this agent does not know is not open.
            if case .secureServices(var services) = value {
                services.isLocked = true
                value = .secureServices(services)
            }
            return Decision(value, by: document, problem: problem)
        case .auth, .logLevel: return Decision(app[policy].value)
        }
    }

    private func value(of policy: Policy, in dlp: DLP) -> PolicyValue {
        switch policy {
        case .openIn:
            switch dlp.openIn {
            case .unauthorized: .openIn(.unauthorized, whitelist: [])
            case .authorized: .openIn(.authorized, whitelist: [])
            case .whitelist(let apps): .openIn(.whitelist, whitelist: apps)
            case .appConnectApps: .openIn(.whitelist, whitelist: [])
            }
        case .openFrom:
            switch dlp.openFrom {
            case .unauthorized: .openFrom(.unauthorized, whitelist: [])
            case .authorized: .openFrom(.authorized, whitelist: [])
            case .whitelist(let apps): .openFrom(.whitelist, whitelist: apps)
            case .appConnectApps: .openFrom(.whitelist, whitelist: [])
            }
        case .pasteboard: .pasteboard(dlp.pasteboard)
        case .print: .print(dlp.print)
        case .dragAndDrop: .dragAndDrop(dlp.dragAndDrop, apps: [])
        case .auth, .config, .secureFileIO, .secureServices, .logLevel: .default(of: policy)
        }
    }

    /// The apps of this device that are authorized now; `app` is the one that is being settled.
    private func authorizedApps(with app: AppRecord) -> [AppID] {
        let others = state.apps.values.filter { $0.authState == .authorized }.map(\.id)
        return app.authState == .authorized ? (others + [app.id]).sorted() : others
    }
}
