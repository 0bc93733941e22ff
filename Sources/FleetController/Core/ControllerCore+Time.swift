import FleetProtocol

extension ControllerCore {
    static let heartbeatInterval: Int64 = 60
    static let marksInterval: Int64 = 1
    static let barrierRetry: Int64 = 30
    static let (firstPatience, longestPatience) = (5, 60)
    static let housekeepingInterval: Int64 = 3_600
    /// How often at most the home is asked which incarnations it gave out.
    static let enrolmentsInterval: Int64 = 10
    /// How long after its answer somebody who enrols a device may take to write it down in the home.
    static let enrolmentPatience: Int64 = 10
    /// How long what was answered is kept.
    static let answerLife: Int64 = 86_400
    /// How long the clock must have gone evenly before anything is forgotten by it.
    static let evenTime: Int64 = 6 * 3_600

    private func isHomeDue(_ turn: Turn) -> Bool {
        schedule.isHomeUnread
            && Schedule.hasPassed(Self.enrolmentsInterval, since: schedule.lastEnrolments, at: turn.now)
            || schedule.formerSince != nil
                && Schedule.hasPassed(schedule.formerPause, since: schedule.formerSince, at: turn.now)
    }

    /// Does what is due at this time, and asks to be woken for what comes next.
    mutating func advance(_ turn: inout Turn) throws {
        if isHomeDue(turn) {
            schedule.noteReading(at: turn.now)
            turn.effects.append(.readEnrolments)
        }
        if Schedule.hasPassed(Self.housekeepingInterval, since: schedule.lastHousekeeping, at: turn.now) {
            schedule.noteHousekeeping(every: Self.housekeepingInterval, at: turn.now)
            try keepHouse(&turn)
        }
        if schedule.refusedAt != nil, Schedule.hasPassed(schedule.refusalPause, since: schedule.refusedAt, at: turn.now)
        {
            turn.log(.notice, "connects anew to say again what the broker has refused")
            return leaveConnection(&turn)
        }
        switch phase {
        case .offline: break
        case .looking(var readBack):
            phase = .offline  // so that `readBack` is the only copy
            if Schedule.hasPassed(Self.barrierRetry, since: readBack.askedAt, at: turn.now) {
                readBack.askedAt = turn.now
                readBack.silence += 1
                say(readBack.barrier, &turn)
            }
            // It is said twice as often as behind heartbeats.
            if readBack.silence > 2 * patience { return giveUp(&turn) }
            phase = .looking(readBack)
        case .serving(var serving):
            phase = .offline  // so that `serving` is the only copy
            if Schedule.hasPassed(Self.heartbeatInterval, since: serving.lastHeartbeat, at: turn.now) {
                // Behind the first all are greeted anyway.
                if serving.lastHeartbeat != nil {
                    serving.askNext()
                    try publishAgain(&serving, &turn)
                }
                serving.lastHeartbeat = turn.now
                try beat(&turn)
                say(serving.barrier, &turn)
                if let time = schedule.oldEventsBefore { try dropEvents(before: time, &turn) }
            }
            if serving.silence > patience { return giveUp(&turn) }
            try greet(&serving, &turn)
            if !serving.unsaid.isEmpty, Schedule.hasPassed(Self.marksInterval, since: serving.lastMarks, at: turn.now) {
                serving.lastMarks = turn.now
                try sayMarks(&serving, &turn)
            }
            phase = .serving(serving)
        }
        wakeLater(&turn)
    }

    /// The broker sends nothing of what is to be acknowledged any more: it waits for answers to what it has dropped itself. On
    /// another connection it does not. One that has just too much to do is not given more by who comes again and again.
    private mutating func giveUp(_ turn: inout Turn) {
        patience = min(2 * patience, Self.longestPatience)
        turn.log(.warning, "the broker shows nothing of what this controller says: connects anew")
        leaveConnection(&turn)
    }

    private mutating func leaveConnection(_ turn: inout Turn) {
        phase = .offline
        schedule.refusedAt = nil
        turn.effects.append(.reconnect)
    }

    mutating func markerCame() {
        phase.serving?.markerCame()
        patience = Self.firstPatience
    }

    private mutating func wakeLater(_ turn: inout Turn) {
        var next = (schedule.lastHousekeeping ?? turn.now).advanced(bySeconds: Self.housekeepingInterval)
        switch phase {
        case .offline: break
        case .looking(let readBack): next = min(next, readBack.askedAt.advanced(bySeconds: Self.barrierRetry))
        case .serving(let serving):
            next = min(next, (serving.lastHeartbeat ?? turn.now).advanced(bySeconds: Self.heartbeatInterval))
            if !serving.unsaid.isEmpty {
                next = min(next, (serving.lastMarks ?? turn.now).advanced(bySeconds: Self.marksInterval))
            }
            if serving.canGreet { next = turn.now }
        }
        if let refused = schedule.refusedAt { next = min(next, refused.advanced(bySeconds: schedule.refusalPause)) }
        // Also when a reading has failed, of which nothing is heard.
        if schedule.isHomeUnread {
            next = min(next, (schedule.lastEnrolments ?? turn.now).advanced(bySeconds: Self.enrolmentsInterval))
        }
        if let former = schedule.formerSince { next = min(next, former.advanced(bySeconds: schedule.formerPause)) }
        guard next != schedule.wake || next <= turn.now else { return }
        schedule.wake = next
        turn.effects.append(.wake(at: next))
    }

    private mutating func beat(_ turn: inout Turn) throws {
        let latest = try store.transaction { try $0.latest() }
        let heartbeat = Heartbeat(clock: clock(at: .heartbeat, latest, try timeToSign(turn)))
        turn.publish(identity.topic(.heartbeat), try identity.sign(heartbeat, as: .heartbeat), retain: false)
    }

    /// Whether the broker has a document is known when it comes back.
    private func publishAgain(_ serving: inout Serving, _ turn: inout Turn) throws {
        let overdue = serving.overdueEchoes(batches.echoes)
        if let (first, count) = serving.unshown(of: overdue) {
            turn.log(
                .warning,
                "the broker takes documents and does not show them here, nor perhaps to devices: look at its ACL",
                ["topic": "\(identity.topic(first))", "documents": "\(count)"])
        }
        for address in overdue {
            let wire =
                try address == .trust
                ? identity.trustWire : store.transaction { try $0.document(at: address) }?.wire
            guard let wire else {
                serving.came(back: address)
                continue
            }
            serving.published(address)
            turn.publish(identity.topic(address), wire, retain: true)
        }
    }

    private mutating func greet(_ serving: inout Serving, _ turn: inout Turn) throws {
        guard serving.canGreet else { return }
        let taken = serving.takeWaiting(batches.hellos)
        // Which documents a device is to have is told as of the latest revision that the hello names.
        let (latest, stored) = try store.transaction { transaction in
            let stored = try taken.map { device, greeting in
                let through = try transaction.device(device).flatMap {
                    try transaction.through($0, incarnation: greeting.incarnation, boot: greeting.boot)
                }
                let documents =
                    greeting.lost.contains(.documents)
                    ? Digest(of: try transaction.revisions(for: device, apps: greeting.apps)) : nil
                return (through, documents)
            }
            return (try transaction.latest(), stored)
        }
        // Later than what any of them has heard; each hears of it once.
        let time = try timeToSign(turn)
        for ((device, greeting), (through, documents)) in zip(taken, stored) {
            let hello = Hello(
                clock: clock(at: .hello(device), latest, time), device: device, connection: greeting.connection,
                nonce: greeting.nonce ?? greeting.connection,
                received: through.map {
                    EventMark(incarnation: greeting.incarnation, boot: greeting.boot, number: $0)
                }, lost: greeting.lost, documents: documents)
            turn.publish(identity.topic(.hello(device)), try identity.sign(hello, as: .hello), retain: false)
        }
    }

    private mutating func sayMarks(_ serving: inout Serving, _ turn: inout Turn) throws {
        let marks = serving.unsaid.sorted {
            ($0.key.device, $0.key.incarnation, $0.key.boot) < ($1.key.device, $1.key.incarnation, $1.key.boot)
        }
        serving.unsaid.removeAll()
        for (boot, number) in marks {
            let topic = identity.topic(.received(boot.device))
            let received = Received(
                fleet: identity.fleet, topic: topic,
                mark: EventMark(incarnation: boot.incarnation, boot: boot.boot, number: number))
            turn.publish(topic, try identity.sign(received, as: .received), retain: false)
        }
    }

    private mutating func keepHouse(_ turn: inout Turn) throws {
        let isServing = phase.serving != nil
        // Not by a clock that somebody has just set to another year.
        let isEven = schedule.isEven(for: Self.evenTime, at: turn.now)
        let forgotten = try store.transaction { transaction in
            try transaction.dropUnused(at: turn.now)
            guard isEven else { return [] as [Address] }
            try transaction.dropResponses(before: turn.now.advanced(bySeconds: -Self.answerLife))
            // With its topic: left there alone, a tombstone is found at the next connection, and issued anew.
            guard isServing else { return [] as [Address] }
            let old = try transaction.tombstones(issuedBefore: turn.now.advanced(bySeconds: -tombstoneLife))
            for address in old { try transaction.removeDocument(at: address) }
            return old
        }
        for address in forgotten { turn.publish(identity.topic(address), [], retain: true) }
        if isEven, let eventLife { try dropEvents(before: turn.now.advanced(bySeconds: -eventLife), &turn) }
    }

    private mutating func dropEvents(before time: Timestamp, _ turn: inout Turn) throws {
        let count = try store.transaction { try $0.dropEvents(before: time, atMost: batches.oldEvents) }
        schedule.oldEventsBefore = count == batches.oldEvents ? time : nil
        if count > 0 { turn.log(.info, "dropped old events", ["before": "\(time)", "events": "\(count)"]) }
    }
}
