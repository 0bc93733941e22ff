import FleetProtocol

/// What a change request does, within its transaction.
struct ChangeOutcome {
    private(set) var answer = Answer(JSONValue.object([]))
    private(set) var warnings: [String] = []
    /// Documents to be published.
    private(set) var issued: [StoredDocument] = []
    /// Devices that are no more, and what is to be cleared for them.
    private(set) var removed: [DeviceID] = []
    private var cleared: [Address] = []
    /// What somebody is about to enrol, as what.
    private(set) var enrolling: (device: DeviceID, incarnation: Int64)?

    init(
        _ verb: Verb, body: [UInt8], by user: User, identity: FleetIdentity, transaction: FleetStore.Transaction,
        enrolments: [DeviceID: Int64], schedule: Schedule, now: Timestamp
    ) throws {
        let limit = Request.maximumSize
        func change(_ why: String?) -> DesiredChange {
            DesiredChange(transaction, identity, by: user.text, why: why, now: now)
        }
        switch verb {
        case .apply:
            let request = try ApplyRequest(json: body, limit: limit)
            try desired(change(request.why)) { try $0.apply(request) }
        case .delete:
            let request = try SelectionRequest(json: body, limit: limit)
            try desired(change(request.why)) { try $0.delete(request) }
        case .groupSet:
            let request = try GroupRequest(json: body, limit: limit)
            try desired(change(request.why)) { change in
                try change.set(request)
                return []
            }
        case .groupDelete:
            let request = try GroupRequest(json: body, limit: limit)
            try desired(change(request.why)) { change in
                try change.delete(request.group)
                return []
            }
        case .enroll:
            let request = try DeviceRequest(json: body, limit: limit)
            let given = max(enrolments[request.device] ?? 0, schedule.enrolling[request.device] ?? 0)
            try enroll(request, identity, transaction, given)
        case .deviceRemove:
            let request = try DeviceRequest(json: body, limit: limit)
            try remove(request, change(request.why), enrolments[request.device], schedule, identity)
        case .groups, .devices, .apps, .policies, .status, .progress, .history, .events, .plan: break
        }
    }

    private mutating func desired(
        _ change: DesiredChange, _ body: (inout DesiredChange) throws -> [ChangeResult]
    ) throws {
        var change = change
        let results = try body(&change)
        try change.finish()
        warnings = change.warnings
        let epoch = try change.transaction.latest().epoch
        answer = Answer(ChangeResponse(results: results, warnings: warnings, epoch: epoch))
        issued = change.issued
    }

    /// What a new device must know, so that nobody can show it yesterday's documents, and as what it is to be enrolled: a home
    /// that was put back would give out what somebody has been.
    ///
    /// - Parameter given: The last incarnation that the home has given out, or is about to.
    private mutating func enroll(
        _ request: DeviceRequest, _ identity: FleetIdentity, _ transaction: FleetStore.Transaction, _ given: Int64
    ) throws {
        let name = request.device
        let last = max(try transaction.lastIncarnation(of: name), given)
        let next = max(request.incarnation ?? 1, last + 1)
        // What comes late, or once more, puts nobody back who was removed since.
        if try !transaction.wasRemoved(name, incarnation: request.incarnation ?? next) {
            try transaction.readmit(name)
            if try transaction.device(name) == nil { _ = try transaction.addDevice(name, incarnation: 0, boot: 0) }
        }
        enrolling = (name, next)
        let floors = try transaction.floors(for: name).map { floor in
            JSONValue.Member(
                identity.topic(floor.address), [.integer(floor.revision.epoch), .integer(floor.revision.number)])
        }
        answer = Answer(
            JSONValue.object([
                "epoch": .integer(try transaction.latest().epoch), "floors": .object(floors),
                "incarnation": .integer(next),
                "trust": .string(String(decoding: identity.trustWire, as: UTF8.self)),
            ]))
    }

    /// What it was told is withdrawn by tombstones, as for a device that stays: one that is enrolled again under this name
    /// may have it on its disk, or be shown it by a broker.
    private mutating func remove(
        _ request: DeviceRequest, _ change: DesiredChange, _ enrolled: Int64?, _ schedule: Schedule,
        _ identity: FleetIdentity
    ) throws {
        let name = request.device
        let transaction = change.transaction
        var change = change
        let device = try transaction.device(name)
        if let incarnation = request.incarnation {
            let newest = max(enrolled ?? 0, device?.enrolled ?? 0)
            guard newest <= incarnation else {
                throw Response.Failure(
                    .conflict, "\(name) was enrolled again since (incarnation \(newest))", at: "incarnation")
            }
            let spoken = device?.incarnation ?? 0
            guard
                spoken <= incarnation || !schedule.isHomeUnread,
                schedule.enrolling[name] ?? 0 <= incarnation
            else {
                throw Response.Failure(
                    .unavailable,
                    "\(name) may have been enrolled again just now: the home is read first, try again soon",
                    at: "incarnation")
            }
        }
        let documents = try transaction.documents(on: .device(name)).filter { !$0.isTombstone }
        // One that the home knows may have said nothing that came; its removal is remembered all the same.
        guard
            try request.incarnation != nil || device != nil || !documents.isEmpty || transaction.isRemoved(name)
        else { throw Response.Failure(.notFound, "there is no device \(name)", at: "device") }
        let last = max(enrolled ?? 0, request.incarnation ?? 0)
        // Nothing more is told by who removes it once more.
        let said =
            try device == nil && transaction.isRemoved(name)
            ? nil
            : LastWords(of: name, as: max(last, device?.lastIncarnation ?? 0), transaction, in: identity.fleetID)
        let holding =
            try device.map { try transaction.noteKeysOfRemoved($0, in: identity.fleetID, at: change.now) } ?? []
        if !holding.isEmpty {
            change.warn(
                "\(name) had the keys of \(DeviceWarning.named(holding.map(\.text))), and is told nothing any more: what must be"
                    + " known to be gone is retired before its device is removed")
        }
        for document in documents { try change.issue(.tombstone, at: document.address) }
        for group in try transaction.groups(of: name) { try transaction.setMember(name, of: group, false) }
        cleared += try transaction.removeDevice(name, enrolled: last, at: change.now).map { .reply(name, $0, .status) }
        cleared.append(.presence(.device(name)))
        if let said { try change.rememberRemoval(of: name, saying: said) }
        try change.finish()
        issued = change.issued
        removed = [name]
        answer = Answer(
            JSONValue.object([
                "device": .string(name.text), "warnings": .array(change.warnings.map(JSONValue.string)),
            ]))
    }

    /// What is to be cleared on the broker.
    func effects(_ identity: FleetIdentity) -> [ControllerCore.Effect] {
        cleared.map { .publish(topic: identity.topic($0), payload: [], retain: true) }
    }
}
