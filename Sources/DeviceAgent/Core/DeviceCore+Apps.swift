import FleetProtocol

extension DeviceCore {
    mutating func register(_ link: LinkID, _ registration: Registration, at now: Now) {
        let id = registration.app
        guard links[link] == nil else { return refuse(link, .invalid, "this connection is registered already") }
        if let process = processes[id] {
            guard state.apps[id]?.launch == registration.launch else {
                return refuse(link, .inUse, "another process is connected as \(id)")
            }
            // The same process has come back before its old connection was seen to close.
            links[process.link] = nil
            processes[id] = nil
            batch.effects.append(.close(process.link))
        }
        guard state.apps[id] != nil || state.apps.count < Presence.maximumApps else {
            return refuse(link, .tooMany, "this device has \(Presence.maximumApps) apps already")
        }
        links[link] = id
        processes[id] = AppProcess(link: link, phase: .registered)
        batch.effects.append(.send(link, .welcome(agent: agentVersion, device: device)))
        log(.info, "app registered", registration.sdk, app: id)
        if state.apps[id] == nil { add(registration, at: now) }
        resume(registration, at: now)
        if session?.isPastFirst == true, session?.fetched.contains(id) == false { fetch([id], at: now) }
        settle([id], at: now)
    }

    private mutating func refuse(_ link: LinkID, _ reason: AgentFrame.Refusal, _ message: String) {
        log(.warning, "refused a connection", message, app: links[link])
        batch.effects.append(.send(link, .refused(reason, message: message)))
        batch.effects.append(.close(link))
    }

    private mutating func add(_ registration: Registration, at now: Now) {
        var app = AppRecord(registration, at: now.wall)
        app.hasKeys = true
        batch.keyEffects.append(.createKeys(app.id))
        state.apps[app.id] = app
        batch.changedApps.insert(app.id)
        announceApps()
    }

    /// The apps of the device have changed: whoever has read its presence learns it.
    private mutating func announceApps() {
        if session?.isPresent == true { batch.isPresenceDue = true }
    }

    /// Takes up what a process did while no agent listened, or begins its launch.
    private mutating func resume(_ registration: Registration, at now: Now) {
        guard var app = state.apps[registration.app] else { return }
        let isPresenceChanged = app.sdk != registration.sdk || app.implements != registration.implements
        if app.install != registration.install { app.beginInstallation(registration.install) }
        app.sdk = registration.sdk
        app.learn(registration.implements)
        if let resume = registration.resume {
            processes[app.id]?.phase = .ready
            app.wasReady = true
            let newest = (resume.delivered + resume.begun).max() ?? 0
            if app.launch != registration.launch || newest > app.nextDelivery {
                // This agent has lost its memory of this process, or some of it.
                app.forgetTold()
                app.launch = registration.launch
                app.nextDelivery = max(app.nextDelivery, newest)
            }
            for number in resume.delivered { returned(number, &app, at: now) }
            for acknowledgement in resume.acknowledgements { answered(acknowledgement, &app, at: now) }
            app.keepUnderWay(resume.begun)
        } else {
            app.launch = registration.launch
            app.beginLaunch()
        }
        for index in app.policies.indices where Policy.allCases[index].isAcknowledgedByApp {
            app.policies[index].refreshAttempt(at: now.wall)
        }
        state.apps[app.id] = app
        batch.changedApps.insert(app.id)
        batch.reportedApps.insert(app.id)
        if isPresenceChanged { announceApps() }
    }

    mutating func closed(_ link: LinkID, at now: Now) {
        guard let id = links.removeValue(forKey: link), processes[id]?.link == link else { return }
        processes[id] = nil
        batch.reportedApps.insert(id)
        log(.info, "app disconnected", app: id)
    }

    mutating func received(_ frame: AppFrame, on link: LinkID, at now: Now) {
        if case .code(let id, let text) = frame { return receivedCode(id, text, on: link, at: now) }
        guard let id = links[link], var app = state.apps[id] else {
            return refuse(link, .invalid, "the first line must be a registration")
        }
        let before = app
        switch frame {
        case .register: return refuse(link, .invalid, "this connection is registered already")
        case .code: return
        case .ready:
            guard processes[id]?.phase == .readySent else { return }
            processes[id]?.phase = .ready
            app.wasReady = true
            keep(.ready, of: id, at: now)
        case .delivered(let number): returned(number, &app, at: now)
        case .acknowledge(let acknowledgement): answered(acknowledgement, &app, at: now)
        case .blocked(let action, let target): keep(.blocked, of: id, action: action, target: target, at: now)
        case .retire:
            guard app.latch?.reason != .selfRetired else { return }
            latch(&app, change: state.highest, reason: .selfRetired, message: Self.selfRetired, at: now)
            app.takeRetirement(at: now.wall)
            processes[id]?.awaitsRetirement = true
        case .display(let number, let text):
            return batch.effects.append(.display(link, id: number, text: text))
        case .stop: return
        }
        store(app, insteadOf: before)
        settle([id], at: now)
    }

    private func returned(_ number: Int64, _ app: inout AppRecord, at now: Now) {
        if app.managedTold.returned(number) || app.availabilityTold.returned(number) { return }
        guard let policy = Policy.allCases.first(where: { app[$0].sent?.number == number }) else { return }
        _ = app[policy].returned(number)
        if policy.isAcknowledgedByApp { app[policy].refreshAttempt(at: now.wall) }
    }

    private func answered(_ acknowledgement: Acknowledgement, _ app: inout AppRecord, at now: Now) {
        let policy = acknowledgement.policy
        guard policy.isAcknowledgedByApp,
            app[policy].answer(acknowledgement.delivery, acknowledgement.state.outcome, acknowledgement.message)
        else { return }
        app[policy].refreshAttempt(at: now.wall)
    }

    // MARK: Telling the app

    /// Tells the app what it has to be told now.
    mutating func deliver(to id: AppID) {
        guard processes[id] != nil, var app = state.apps[id] else { return }
        let before = app
        deliver(to: &app)
        guard app != before else { return }
        state.apps[id] = app
        batch.changedApps.insert(id)
    }

    /// Sends what the app has to be told: its ready first, then a loss of authorization, a gain last. One delivery of a
    /// kind is under way at a time; a newer value follows when it has returned.
    private mutating func deliver(to app: inout AppRecord) {
        guard let process = processes[app.id] else { return }
        switch process.phase {
        case .registered:
            // The first ready of an installation waits until it is certain; later ones need no contact.
            guard app.wasReady || isCertain(of: app.id) else { return }
            processes[app.id]?.phase = .readySent
            app.takeReady()
            batch.effects.append(.send(process.link, .ready(app.properties)))
        case .readySent: return
        case .ready: deliverChanges(to: &app, process.link)
        }
    }

    private static let selfRetired = "This app has retired itself."

    private mutating func deliverChanges(to app: inout AppRecord, _ link: LinkID) {
        confirmRetirement(of: &app, link)
        let isGain = app.authState == .authorized
        if !isGain {
            tell(.auth, &app, link)
            tellAvailability(&app, link)
            // A loss comes first: also when it waits for an older value to return.
            if app[.auth].isBehind { return }
        }
        if app.managedTold.told != app.managed, app.managedTold.sent == nil {
            let number = nextNumber(&app)
            app.managedTold.sent = .init(number: number, value: app.managed)
            batch.effects.append(.send(link, .deliver(number: number, .managed(app.managed))))
        }
        for policy in Policy.allCases where policy != .auth && policy != .secureServices { tell(policy, &app, link) }
        guard isGain else { return }
        tellAvailability(&app, link)
        // A gain comes last: also behind a newer value that waits for an older one to return.
        let isWaiting = Policy.allCases.contains { policy in
            policy != .auth && policy != .secureServices && app[policy].isBehind
        }
        if !isWaiting { tell(.auth, &app, link) }
    }

    /// An app that has retired itself believes nothing more before it has the agent's word of it: that comes first, also
    /// when the retirement has ended meanwhile.
    private mutating func confirmRetirement(of app: inout AppRecord, _ link: LinkID) {
        guard processes[app.id]?.awaitsRetirement == true else { return }
        processes[app.id]?.awaitsRetirement = false
        let number = nextNumber(&app)
        let value = PolicyValue.auth(.retired, message: Self.selfRetired)
        app[.auth].sent = PolicyRecord.Told(number: number, revision: app[.auth].received, value: value)
        batch.effects.append(.send(link, .deliver(number: number, .policy(value, reason: .selfRetired))))
    }

    private mutating func tell(_ policy: Policy, _ app: inout AppRecord, _ link: LinkID) {
        guard app[policy].mustTell, app[policy].sent == nil else { return }
        let number = nextNumber(&app)
        let value = app[policy].value
        app[policy].sent = PolicyRecord.Told(
            number: number, revision: app[policy].received, value: value, isSubstitute: app[policy].problem != nil)
        let reason = policy == .auth ? app.authReason : .none
        batch.effects.append(.send(link, .deliver(number: number, .policy(value, reason: reason))))
    }

    private mutating func tellAvailability(_ app: inout AppRecord, _ link: LinkID) {
        guard app.availabilityTold.told != app.availability, app.availabilityTold.sent == nil else { return }
        let number = nextNumber(&app)
        app.availabilityTold.sent = .init(number: number, value: app.availability)
        batch.effects.append(.send(link, .deliver(number: number, .availability(app.availability))))
    }

    private func nextNumber(_ app: inout AppRecord) -> Int64 {
        app.nextDelivery += 1
        return app.nextDelivery
    }
}
