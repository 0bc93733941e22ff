import FleetProtocol

/// What device and controller say to each other about being there.
extension DeviceCore {
    // MARK: Presence

    var presence: Presence? {
        guard let session else { return nil }
        return Presence(
            state: .online, incarnation: enrollment.incarnation, boot: state.boot, previousBoot: previousBoot,
            disk: state.disk, connection: session.connection, since: session.since, agent: agentVersion,
            apps: state.apps.values.sorted { $0.id < $1.id }.map {
                Presence.App(
                    id: $0.id, sdk: $0.sdk, implements: $0.implements.sorted().map(\.rawValue),
                    reported: session.reported[$0.id])
            }, highest: state.highest > Revision(epoch: 1, number: 0) ? state.highest : nil, documents: documents,
            nonce: session.freshness.nonce)
    }

    /// What the device has of what it has asked for; nil while it waits for some of it.
    private var documents: Presence.Documents? {
        guard let session, session.isPastFirst, session.hasAllShown, session.wantedGroups == nil else {
            return nil
        }
        return layers.revisions(of: Set(session.fetched)).values.reduce(
            into: Presence.Documents(trust: trust.version)
        ) { $0.add($1.number) }
    }

    mutating func publishPresence(_ presenceState: Presence.State) {
        // What comes while the agent takes leave does not take that back.
        guard let presence, presenceState == .offline || !isEnding else { return }
        let said = presenceState == .online ? presence : presence.will
        batch.effects.append(.publish(.presence(.device(device)), said.json, retain: true))
    }

    /// An old will may arrive after this connection's presence, and so may the clearing of what an earlier incarnation has left:
    /// whoever is connected says so again, but not each time at once to who clears it.
    mutating func receivedOwnPresence(_ payload: [UInt8]) {
        guard !isEnding, let session, !session.barriers.values.contains(where: \.isFirst) else { return }
        if payload.isEmpty { return answerGreeting() }
        guard let said = try? Presence(json: payload, limit: Presence.maximumSize), said.state == .offline else {
            return
        }
        batch.isPresenceDue = true
    }

    mutating func announceEnd() {
        for id in processes.keys { batch.reportedApps.insert(id) }
        processes = AppTable()
        links = [:]
        isEnding = true
        publishPresence(.offline)
        batch.isPresenceDue = false
        batch.isClockDue = true
    }

    // MARK: Contact

    mutating func receivedHello(_ payload: [UInt8], at now: Now) throws {
        let hello: Hello = try verified(payload, .hello)
        try check(hello.clock.fleet, hello.clock.topic, at: .hello(device))
        guard hello.device == device, hello.connection == session?.connection else { return }
        // The controller has come back, or only now, and does not know who is here until they speak: whoever was
        // greeted already, or has nothing to report any more, says so. Also when the controller's clock was set back.
        if session?.isGreeted == true || session?.areReportsLive == true || state.apps.isEmpty { answerGreeting() }
        // A hello can be replayed on its connection: only ever later ones are contact. What another one asks for is said all
        // the same: the clock of a controller that was put back may have gone back, too, which the next nonce will tell.
        guard isLater(hello.clock) || session?.freshness.isLater(hello) == true else {
            if hello.nonce != nil { noteLateness(true) }
            return sayAgain(hello)
        }
        contact(hello.clock, signedAt: session?.freshness.hello(hello, heardAt: state.running.total), at: now)
        session?.isGreeted = true
        session?.answered(running: state.running.total)
        let epoch = max(session?.epoch ?? 0, hello.clock.epoch)
        session?.epoch = epoch
        showEarlierEpochs()
        followMembership(at: now)
        if let mark = hello.received { drop(through: mark) }
        sayAgain(hello)
        sendEvents()
        settle(state.apps.keys, at: now)
    }

    /// Says, or reads, again what was lost on the way.
    private mutating func sayAgain(_ hello: Hello) {
        if hello.lost.contains(.statuses), session?.areReportsLive == true {
            let due = state.running.total + jitter
            session?.reportsDueAt = due
        }
        if hello.lost.contains(.documents) { fetchAgain(by: hello) }
    }

    mutating func receivedHeartbeat(_ payload: [UInt8], at now: Now) throws {
        let heartbeat: Heartbeat = try verified(payload, .heartbeat)
        try check(heartbeat.clock.fleet, heartbeat.clock.topic, at: .heartbeat)
        // Only after a hello that answered this connection: its time alone says nothing of when it was sent.
        guard session?.isGreeted == true, isLater(heartbeat.clock) else { return }
        guard let signed = session?.freshness.word(heartbeat.clock, heardAt: state.running.total) else {
            return noteLateness(true)
        }
        contact(heartbeat.clock, signedAt: signed, at: now)
        settle(state.apps.keys, at: now)
    }

    mutating func receivedMark(_ payload: [UInt8]) throws {
        let received: Received = try verified(payload, .received)
        try check(received.fleet, received.topic, at: .received(device))
        drop(through: received.mark)
    }

    /// Not again at once: a controller that greets every presence would never come to an end with this device.
    mutating func answerGreeting() {
        if let answered = session?.greetingAnsweredAt, state.running.total - answered < Self.greetingInterval {
            session?.greetingDueAt = answered + Self.greetingInterval
            return
        }
        session?.greetingAnsweredAt = state.running.total
        session?.greetingDueAt = nil
        batch.isPresenceDue = true
    }

    /// Answers a greeting that had to wait.
    mutating func answerLateGreeting() {
        if let due = session?.greetingDueAt, state.running.total >= due { answerGreeting() }
    }

    /// A controller that was put back from a backup may not know which times it had signed: its new epoch comes later
    /// than all of them.
    private func isLater(_ clock: ControllerClock) -> Bool {
        session?.controllerTime.map { (clock.epoch, clock.at) > $0 } ?? true
    }

    /// - Parameter signed: The earliest running time at which it can have been signed.
    private mutating func contact(_ clock: ControllerClock, signedAt signed: Int64?, at now: Now) {
        let heard = state.running.total
        session?.controllerTime = (clock.epoch, clock.at)
        session?.freshness.counted(at: heard)
        let counts = min(heard, (signed ?? heard) + Freshness.tolerance)
        if state.contact.map({ $0.running <= counts }) ?? true {
            state.contact = Contact(
                running: counts, wall: Timestamp(milliseconds: now.wall.milliseconds - (heard - counts)))
        }
        noteLateness(counts < heard)
        state.highest = max(state.highest, Revision(epoch: clock.epoch, number: clock.revision))
        batch.isClockDue = true
    }

    private mutating func noteLateness(_ isLate: Bool) {
        let spread = 20 * jitter
        session?.freshness.note(isLate: isLate, at: state.running.total, jitter: spread)
    }

    /// Asks for a fresh word when it is time to.
    mutating func sayNonce() {
        guard let due = session?.freshness.askAt, state.running.total >= due else { return }
        nonces += 1
        session?.freshness.ask(RandomID(secret, number: nonces), at: state.running.total)
        batch.isPresenceDue = true
    }

    /// What was signed for another fleet or topic is not meant for this one.
    private func check(_ fleet: RandomID, _ topic: String, at address: Address) throws {
        guard fleet == enrollment.fleetUUID, topic == address.topic(in: enrollment.fleet) else {
            throw FleetProtocolError(.mismatch, "another fleet's or device's")
        }
    }

    private func verified<Content: JSONReadable>(_ wire: [UInt8], _ kind: SignedDocument.Kind) throws -> Content {
        try Content(json: signatures.payload(of: wire, kind, trust), limit: SignedDocument.maximumSize)
    }
}
