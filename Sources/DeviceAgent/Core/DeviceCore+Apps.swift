import FleetProtocol

extension DeviceCore {
    mutating func register(_ link: LinkID, _ registration: Registration, at now: Now) {
        let id = registration.app
        if let app = links[link] {
            return refuse(link, as: app, .invalid, "this connection is registered already")
        }
        guard !isAhead(registration) else {
            let app = state.apps.contains(id) ? id : nil
            return refuse(link, as: app, .invalid, "resume names a delivery that no agent can have made")
        }
        if let process = processes[id] {
            guard state.apps[id]?.launch == registration.launch else {
                return refuse(link, as: id, .inUse, "another process is connected as \(id)")
            }
            // The same process has come back before its old connection was seen to close.
            links[process.link] = nil
            processes[id] = nil
            batch.effects.append(.close(process.link))
        }
        guard state.apps[id] != nil || state.apps.count < Presence.maximumApps else {
            return refuse(link, as: nil, .tooMany, "this device has \(Presence.maximumApps) apps already")
        }
        links[link] = id
        // One that was here before may have what the app must not have any more.
        processes[id] = AppProcess(
            link: link, phase: .registered, hasKeys: registration.resume == nil ? false : nil)
        let kept = state.apps[id].map { $0.launch == registration.launch ? $0.kept : 0 } ?? 0
        batch.effects.append(
            .send(link, .welcome(agent: agentVersion, device: device, kept: kept, hasPasteboard: true)))
        log(.info, "app registered", registration.sdk, app: id)
        if state.apps[id] == nil { add(registration, at: now) }
        resume(registration, at: now)
        if session?.isPastFirst == true, session?.fetched.contains(id) == false { fetch([id], at: now) }
        settle([id], at: now)
    }

    /// Whether a process names a delivery from which an agent could not count on for long: beyond
    /// ``Registration/Resume/largestDelivery`` no app reads what it is sent. What this agent has made itself is well.
    private func isAhead(_ registration: Registration) -> Bool {
        guard let newest = registration.resume?.newest else { return false }
        return newest > max(state.apps[registration.app]?.nextDelivery ?? 0, Registration.Resume.largestDelivery / 2)
    }

    /// - Parameter app: What it wants to be, where that is an app of the device.
    private mutating func refuse(_ link: LinkID, as app: AppID?, _ reason: AgentFrame.Refusal, _ message: String) {
        if refusalLog.isDue(app, at: state.running.total) { log(.warning, "refused a connection", message, app: app) }
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
            // It has said so to an agent that has lost its memory of that, or to nobody.
            if !app.wasReady || app.owesReady || app.launch != registration.launch { keep(.ready, of: app.id, at: now) }
            app.wasReady = true
            app.owesReady = false
            if app.launch != registration.launch || resume.newest > app.nextDelivery {
                // This agent has lost its memory of this process, or some of it.
                app.forgetTold()
                app.nextDelivery = max(app.nextDelivery, resume.newest)
            }
            for number in resume.delivered { _ = app.returned(number, at: now.wall) }
            for acknowledgement in resume.acknowledgements { _ = app.answered(acknowledgement, at: now.wall) }
            app.keepUnderWay(resume.begun)
        } else {
            app.beginLaunch()
        }
        if app.launch != registration.launch { app.kept = 0 }
        app.launch = registration.launch
        for policy in Policy.allCases where policy.isAcknowledgedByApp { app[policy].refreshAttempt(at: now.wall) }
        state.apps[app.id] = app
        batch.changedApps.insert(app.id)
        batch.reportedApps.insert(app.id)
        if isPresenceChanged { announceApps() }
    }

    mutating func closed(_ link: LinkID) {
        guard let id = links.removeValue(forKey: link), processes[id]?.link == link else { return }
        processes[id] = nil
        batch.reportedApps.insert(id)
        log(.info, "app disconnected", app: id)
    }

    mutating func received(_ frame: AppFrame, on link: LinkID, at now: Now) {
        switch frame {
        case .code(let id, let text): return receivedCode(id, text, on: link, at: now)
        case .passcode(let request): return received(request, on: link, at: now)
        default: break
        }
        guard let id = links[link], state.apps.contains(id) else {
            return refuse(link, as: nil, .invalid, "the first line must be a registration")
        }
        switch frame {
        case .register: refuse(link, as: id, .invalid, "this connection is registered already")
        case .ready:
            guard processes[id]?.phase == .readySent else { return }
            processes[id]?.phase = .ready
            state.apps[id]?.wasReady = true
            state.apps[id]?.owesReady = false
            keep(.ready, of: id, at: now)
            changed(id)
        // What the app says of its deliveries changes nothing of what should be in force.
        case .delivered(let number):
            if state.apps[id]?.returned(number, at: now.wall) == true { changed(id) }
        case .taken(let number):
            guard state.apps[id]?.isUnderWay(number) == true else { return }
            processes[id]?.taken.insert(number)
            batch.settledApps.insert(id)
        case .acknowledge(let acknowledgement):
            if state.apps[id]?.answered(acknowledgement, at: now.wall) == true { changed(id) }
        case .blocked(let action, let target, let number):
            guard isNew(number, of: id, on: link) else { return }
            keep(.blocked, of: id, action: action, target: target, at: now)
        case .retire(let number): retire(id, isNew: isNew(number, of: id, on: link), at: now)
        case .display(let number, let text): batch.effects.append(.display(link, id: number, text: text))
        case .used: used(id, at: now)
        case .copy(let number, let item): copy(item, from: id, number, on: link)
        case .paste(let number): paste(into: id, number, on: link)
        case .code, .passcode, .stop: break
        }
    }

    /// The record of an app has changed beside what is in force: it is saved and reported, and the app told what is next.
    mutating func changed(_ id: AppID) {
        batch.settledApps.insert(id)
        batch.changedApps.insert(id)
        batch.reportedApps.insert(id)
    }

    /// Whether this launch's request has not been stored yet. It is with this moment's transaction, and the app told so.
    private mutating func isNew(_ number: Int64?, of id: AppID, on link: LinkID) -> Bool {
        guard let number else { return true }
        batch.effects.append(.send(link, .kept(number)))
        guard let kept = state.apps[id]?.kept, number > kept else { return false }
        state.apps[id]?.kept = number
        batch.changedApps.insert(id)
        return true
    }

    /// An app that asks again has retired already. If that has ended since, it has the defaults all the same, and is told of
    /// its retirement before it is told of the rest.
    private mutating func retire(_ id: AppID, isNew: Bool, at now: Now) {
        guard var app = state.apps[id], !app.isSelfRetired else { return }
        if isNew {
            latch(
                &app, change: state.highest, reason: .selfRetired, message: PolicyValue.selfRetiredMessage, at: now)
        }
        app.takeRetirement(at: now.wall)
        processes[id]?.awaitsRetirement = true
        state.apps[id] = app
        changed(id)
        settle([id], at: now)
    }

    // MARK: Telling the app

    /// Tells the app what it has to be told now.
    mutating func deliver(to id: AppID) {
        // Taken out, so that this is the only copy.
        guard processes.contains(id), var app = state.apps.take(id) else { return }
        let isChanged = deliver(to: &app)
        state.apps[id] = app
        if isChanged { batch.changedApps.insert(id) }
    }

    /// Sends what the app has to be told: its ready first, then a loss of authorization, a gain last. One delivery of a
    /// kind is under way at a time; a newer value follows when it has returned. Returns whether the record has changed.
    private mutating func deliver(to app: inout AppRecord) -> Bool {
        guard let process = processes[app.id] else { return false }
        tellAutoLock(app, process)
        if process.phase != .registered { tellKeys(app, process) }
        switch process.phase {
        case .registered:
            // The first ready of an installation waits until it is certain; later ones need no contact.
            guard app.wasReady || isCertain(of: app.id) else { return false }
            processes[app.id]?.phase = .readySent
            tellKeys(app, process)
            batch.effects.append(.send(process.link, .ready(app.takeReady())))
            return true
        case .readySent: return false
        case .ready:
            let before = app.nextDelivery
            deliverChanges(to: &app, process.link)
            return app.nextDelivery != before
        }
    }

    /// Gives the process the app's keys before it is told that they can be used, and takes them away whatever it is called
    /// for at that moment.
    private mutating func tellKeys(_ app: AppRecord, _ process: AppProcess) {
        let isAvailable = app.availability == .available
        guard process.hasKeys != isAvailable else { return }
        processes[app.id]?.hasKeys = isAvailable
        batch.effects.append(isAvailable ? .sendKeys(process.link, app.id) : .send(process.link, .keys(nil)))
    }

    private mutating func tellAutoLock(_ app: AppRecord, _ process: AppProcess) {
        let after = shortestAutoLock
        // What is not said of an app is that others lock, and it does not.
        let autoLock = (after: after, isOwn: after == nil || autoLocks[app.id] != nil)
        guard process.autoLock != autoLock else { return }
        processes[app.id]?.autoLock = autoLock
        batch.effects.append(.send(process.link, .autoLock(autoLock.after, isOwn: autoLock.isOwn)))
    }

    private mutating func deliverChanges(to app: inout AppRecord, _ link: LinkID) {
        confirmRetirement(of: &app, link)
        if let owed = app.owed {
            tell(owed, &app, link)
            return tellAvailability(&app, link)
        }
        let isGain = app.authState == .authorized
        if !isGain {
            tell(.auth, &app, link)
            tellAvailability(&app, link)
            // A loss comes first: also when it waits for an older value to return.
            if app[.auth].isBehind { return }
        }
        tellManaged(&app, link)
        for policy in Self.otherPolicies where app.mayBeUntold(policy) { tell(policy, &app, link) }
        guard isGain else { return }
        tellAvailability(&app, link)
        // A gain comes last: also behind a newer value that waits for an older one to return.
        let isWaiting =
            app.availabilityTold.sent.map { $0.value != app.availability } ?? false
            || Self.otherPolicies.contains { app.mayBeUntold($0) && app[$0].isBehind }
        if !isWaiting, app.mayBeUntold(.auth) { tell(.auth, &app, link) }
    }

    /// All but auth, and secure services, of which an app sees the availability alone.
    private static let otherPolicies = Policy.allCases.filter { $0 != .auth && $0 != .secureServices }

    /// An app that has retired itself believes nothing more before it has the agent's word of it: that comes first, also
    /// when the retirement has ended meanwhile.
    private mutating func confirmRetirement(of app: inout AppRecord, _ link: LinkID) {
        guard processes[app.id]?.awaitsRetirement == true else { return }
        processes[app.id]?.awaitsRetirement = false
        sendRetirement(PolicyValue.selfRetiredMessage, .selfRetired, to: &app, link)
    }

    /// Tells an app of a retirement that has ended: nothing else comes before it has heard of that.
    private mutating func tell(_ owed: AppRecord.Latch, _ app: inout AppRecord, _ link: LinkID) {
        if let sent = app[.auth].sent {
            guard !sent.value.isRetirement, givesWay(sent.number, of: app.id) else { return }
            app[.auth].told = nil
        }
        sendRetirement(owed.message, owed.reason, to: &app, link)
    }

    /// Tells of a retirement whatever is in force by now.
    private mutating func sendRetirement(
        _ message: String, _ reason: AuthReason, to app: inout AppRecord, _ link: LinkID
    ) {
        let value = PolicyValue.auth(.retired, message: message)
        let number = send(.policy(value, reason: reason), to: &app, link)
        app[.auth].sent = PolicyRecord.Told(
            number: number, revision: app[.auth].received, value: value, isSubstitute: true, reason: reason)
    }

    private mutating func tell(_ policy: Policy, _ app: inout AppRecord, _ link: LinkID) {
        let value = app[policy].value
        let reason = policy == .auth ? app.authReason : nil
        if let sent = app[policy].sent {
            guard sent.value != value || sent.reason != reason, givesWay(sent.number, of: app.id) else { return }
            // It reads that, and not what it was called for last, unless only the reason is another.
            if sent.value == value, app[policy].told?.value == value {
                app[policy].told?.reason = sent.reason
            } else {
                app[policy].told = nil
            }
        } else if !app.mustTell(policy) {
            return app.isTold(policy)
        }
        let number = send(.policy(value, reason: reason ?? .none), to: &app, link)
        app[policy].sent = PolicyRecord.Told(
            number: number, revision: app[policy].received, value: value, isSubstitute: app[policy].problem != nil,
            reason: reason)
    }

    private mutating func tellManaged(_ app: inout AppRecord, _ link: LinkID) {
        guard isDue(app.managed, &app.managedTold, of: app.id) else { return }
        let number = send(.managed(app.managed), to: &app, link)
        app.managedTold.sent = .init(number: number, value: app.managed)
    }

    private mutating func tellAvailability(_ app: inout AppRecord, _ link: LinkID) {
        guard isDue(app.availability, &app.availabilityTold, of: app.id) else { return }
        let number = send(.availability(app.availability), to: &app, link)
        app.availabilityTold.sent = .init(number: number, value: app.availability)
    }

    private mutating func isDue<Value>(_ value: Value, _ known: inout ToldValue<Value>, of id: AppID) -> Bool {
        guard let sent = known.sent else { return known.told != value }
        guard sent.value != value, givesWay(sent.number, of: id) else { return false }
        known.told = nil
        return true
    }

    /// Whether a delivery that is under way gives way to the next one: nobody can be called for it.
    private mutating func givesWay(_ number: Int64, of id: AppID) -> Bool {
        processes[id]?.taken.remove(number) != nil
    }

    /// Sends a delivery under the app's next number, which it returns.
    private mutating func send(_ delivery: Delivery, to app: inout AppRecord, _ link: LinkID) -> Int64 {
        app.nextDelivery += 1
        batch.effects.append(.send(link, .deliver(number: app.nextDelivery, delivery)))
        return app.nextDelivery
    }
}
