import FleetProtocol

extension ControllerCore {
    /// Takes in messages in their order, and commits what they change at once: requests that come together share one
    /// wait for the disk. Should that fail, each is tried by itself, so that one is answered for what it cannot have.
    mutating func receive(_ messages: [Message], _ turn: inout Turn) throws {
        switch phase {
        case .offline: return
        case .looking: if messages.contains(where: \.isRetained) { phase.readBack?.silence = 0 }
        case .serving: break
        }
        let messages = messages.map { ($0, Address(topic: $0.topic, in: identity.fleetID)) }
        let hasRequest = messages.contains { if case .request? = $0.1 { true } else { false } }
        guard messages.count > 1, hasRequest else { return try take(messages, &turn) }
        let before = (phase, answers, schedule, rivals, isRestoring, areSignaturesTrusted, turn.effects)
        do {
            try store.together { try take(messages, &turn) }
        } catch {
            // Nothing of it has happened, whatever has failed.
            (phase, answers, schedule, rivals, isRestoring, areSignaturesTrusted, turn.effects) = before
            guard error is FleetStore.NotTogether else { throw error }
            try take(messages, &turn)
        }
    }

    /// Reports are committed together, before anything that follows them.
    private mutating func take(_ messages: [(Message, Address?)], _ turn: inout Turn) throws {
        var reports: [Report] = []
        var cleared: [Address] = []
        var refused = Refused()
        for (message, address) in messages {
            switch address {
            case .reply, .presence(.device):
                guard let address else { continue }
                if message.payload.isEmpty {
                    cleared.append(address)
                    continue
                }
                do {
                    if let report = try Report(message, address, &knownReports) { reports.append(report) }
                } catch {
                    refused.add(message.topic, "\(error)")
                }
            case .presence(.controller): readOwnPresence(message, &turn)
            case .desired, .groupMeta, .membership, .trust: try receiveDesired(message, address, &turn)
            case .barrier(.controller):
                if message.payload == phase.serving?.barrier { markerCame() }
                guard message.payload == phase.readBack?.barrier else { continue }
                try collect(&reports, &turn)
                guard case .looking(let complete) = phase else { continue }
                try finish(complete, &turn)
            case .request:
                try collect(&reports, &turn)
                phase.readBack?.note(deferred: message)
                if case .serving = phase { try request(message, &turn) }
            case nil:
                if message.topic.hasPrefix(Address.prefix(of: identity.fleetID) + "desired/") {
                    try receiveDesired(message, nil, &turn)
                } else if case .serving = phase {
                    refuseUnknown(message, &turn)
                }
            case .heartbeat, .hello, .received, .barrier, .response: break
            }
        }
        try collect(&reports, &turn)
        // Behind the reports of this turn: one of them may be what was cleared.
        for address in cleared { noteCleared(address) }
        refused.log(&turn)
    }

    /// Empty is what clearing a topic looks like. It may have cleared what is newer: what a removed incarnation has left
    /// goes while the next one begins to speak. A device that is there says it again.
    private mutating func noteCleared(_ address: Address) {
        let (device, lost): (DeviceID, Set<Hello.Lost>)
        switch address {
        case .presence(.device(let name)): (device, lost) = (name, [])
        case .reply(let name, _, .status): (device, lost) = (name, [.statuses])
        default: return
        }
        phase.readBack?.note(cleared: device, lost: lost)
        phase.serving?.ask(device, lost: lost)
    }

    static let needsLook: StaticString = "a device needs a look"

    /// Commits reports, and keeps what follows from them.
    private mutating func collect(_ reports: inout [Report], _ turn: inout Turn) throws {
        guard !reports.isEmpty else { return }
        let collector = try store.transaction { transaction in
            var collector = try Collector(
                transaction, identity, enrolments, isRestoring: isRestoring, disregarded: disregarded, now: turn.now)
            for report in reports { try collector.collect(report) }
            return collector
        }
        reports.removeAll(keepingCapacity: true)
        if let newer = collector.newer { return stop(seeing: newer.text, by: newer.device, &turn) }
        if collector.needsEnrolments { schedule.needsEnrolments = true }
        note(former: collector.former, &turn)
        for address in collector.leftovers { turn.publish(identity.topic(address), [], retain: true) }
        for notice in collector.notices.prefix(10) {
            turn.log(.warning, Self.needsLook, ["device": "\(notice.device)", "what": "\(notice.text)"])
        }
        phase.readBack?.note(collector)
        if let devices = phase.serving?.note(collector) { try warn(of: devices, &turn) }
    }

    /// Says once of each who speaks as what was removed or enrolled anew, and has the home read: whose passwords it has given out
    /// decides whether that is so.
    private mutating func note(former: Set<DeviceID>, _ turn: inout Turn) {
        guard !former.isEmpty else { return }
        schedule.noteFormer(at: turn.now)
        for device in former.subtracting(formerSpeakers).sorted().prefix(1_000 - formerSpeakers.count) {
            formerSpeakers.insert(device)
            turn.log(.warning, Self.needsLook, ["device": "\(device)", "what": "\(DeviceWarning.isFormer)"])
        }
    }

    private func warn(of devices: [DeviceID], _ turn: inout Turn) throws {
        guard !devices.isEmpty else { return }
        let warned = try store.transaction { transaction in
            try devices.filter { name in
                guard let device = try transaction.device(name), device.warning == nil else { return false }
                return try transaction.warn(device, DeviceWarning.hasOthers)
            }
        }
        for device in warned {
            turn.log(.warning, Self.needsLook, ["device": "\(device)", "what": "\(DeviceWarning.hasOthers)"])
        }
    }

    /// The own presence as the broker tells it: an earlier connection's will may come late, and another controller may
    /// run on a copy of this home. Of two the one that has run longer gives up.
    private mutating func readOwnPresence(_ message: Message, _ turn: inout Turn) {
        if let other = try? Presence(json: message.payload, limit: Presence.maximumSize),
            !mayBeOfEarlierRun(other, at: turn.now),
            rivals.count(other.connection, at: turn.now) >= Rivals.patience
        {
            return stop(
                "another controller of this fleet has taken over this one's connection \(Rivals.patience) times within a"
                    + " minute: a fleet has one controller. Is a copy of its home in use elsewhere?", &turn)
        }
        guard case .serving = phase, let said = presence?.json, message.payload != said else { return }
        turn.publish(message.topic, said, retain: true)
    }
}

/// The connections that another controller was seen to have had within a minute. What a broker has kept of an earlier run, whose
/// clock was ahead, is one and stays one.
struct Rivals {
    static let patience = 3
    private var seen: [RandomID: Timestamp] = [:]

    mutating func count(_ connection: RandomID, at now: Timestamp) -> Int {
        seen = seen.filter { $0.value <= now && now < $0.value.advanced(bySeconds: 60) }
        if seen[connection] == nil { seen[connection] = now }
        return seen.count
    }
}

extension Report {
    /// Decodes what a device has published; nil for an address where it publishes nothing.
    fileprivate init?(_ message: ControllerCore.Message, _ address: Address, _ known: inout KnownReports) throws {
        let payload = message.payload
        switch address {
        case .presence(.device(let device)):
            self = .presence(
                device, try Presence(json: payload, limit: Presence.maximumSize), isRetained: message.isRetained)
        case .reply(let device, let app, .status):
            self = .status(
                try Status(wire: payload, device: device, app: app, known: &known), isRetained: message.isRetained)
        case .reply(let device, let app, .event):
            // Refused for what only a newer controller knows, all that is numbered behind it would wait for it.
            let event = try? AppEvent(wire: payload, device: device, app: app)
            let header = try event?.header ?? EventHeader(wire: payload, device: device, app: app)
            self = .event(
                EventRecord(header: header, kind: event.map { EventKind($0.kind) } ?? .unknown, body: payload),
                isRetained: message.isRetained)
        case .reply(let device, let app, .logLevel):
            let header = try EventHeader(wire: payload, device: device, app: app)
            self = .event(EventRecord(header: header, kind: .logLevel, body: payload), isRetained: message.isRetained)
        default: return nil
        }
    }
}

/// Reports that could not be read: one line in the log for all of a batch.
private struct Refused {
    var count = 0
    var example: (topic: String, reason: String)?

    mutating func add(_ topic: String, _ reason: String) {
        count += 1
        if example == nil { example = (topic, reason) }
    }

    func log(_ turn: inout Turn) {
        guard let example else { return }
        turn.log(
            .warning, "a report cannot be read",
            [
                "count": "\(count)", "topic": "\(Text.printable(example.topic, limit: 200))",
                "reason": "\(Text.printable(example.reason, limit: 300))",
            ])
    }
}
