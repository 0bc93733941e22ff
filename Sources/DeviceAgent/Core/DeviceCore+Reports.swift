package import FleetProtocol

extension DeviceCore {
    mutating func publishStatus(of id: AppID, at now: Now) {
        guard state.apps.contains(id) else { return }
        sequence += 1
        session?.reported[id] = sequence
        if let status = status(of: id, at: now) { batch.effects.append(.report(status)) }
    }

    /// What would be reported of an app now.
    package func status(of id: AppID, at now: Now) -> Status? {
        state.apps[id].map { status(of: $0, at: now) }
    }

    private func status(of app: AppRecord, at now: Now) -> Status {
        let phase = processes[app.id]?.phase
        return Status(
            fleet: enrollment.fleet, device: device, app: app.id,
            order: ReportOrder(incarnation: enrollment.incarnation, boot: state.boot, sequence: sequence),
            at: now.wall, agent: agentVersion, sdk: app.sdk, isRunning: phase != nil, isReady: phase == .ready,
            managed: app.managed, authState: app.authState, authReason: app.authReason, authMessage: app.authMessage,
            keys: app.hasKeys ? .present : .destroyed, secureServices: app.availability, logLevel: app.logLevel,
            events: eventNumber, policies: app.policies.map(\.report), refusals: refusals)
    }

    // MARK: Events

    /// Numbers an event and keeps it until the controller has it.
    mutating func keep(
        _ kind: AppEvent.Kind, of app: AppID, action: AppEvent.Action? = nil, target: String? = nil,
        message: String? = nil, at now: Now
    ) {
        let event = AppEvent(
            header: nextHeader(app, at: now), kind: kind, action: action, target: target,
            message: message.map { Text.printable($0, limit: 500) })
        keep(KeptEvent(body: .event(event)))
    }

    mutating func keepLevelChange(
        of app: AppID, from old: LogLevel, to new: LogLevel, _ why: LogLevelChange.Why, until: Timestamp?, at now: Now
    ) {
        let change = LogLevelChange(header: nextHeader(app, at: now), old: old, new: new, why: why, until: until)
        keep(KeptEvent(body: .logLevel(change)))
    }

    private mutating func nextHeader(_ app: AppID, at now: Now) -> EventHeader {
        eventNumber += 1
        return EventHeader(
            device: device, app: app, incarnation: enrollment.incarnation, boot: state.boot, number: eventNumber,
            oldest: eventNumber, at: now.wall)
    }

    private mutating func keep(_ event: KeptEvent) {
        state.events.append(event)
        batch.changes.append(.event(event))
        if state.events.count > maximumEvents { dropOne() }
        batch.reportedApps.insert(event.header.app)
        if session?.isPastFirst == true {
            let oldest = state.events.first { $0.header.boot == event.header.boot }?.header.number
            send(event, oldest: oldest ?? event.header.number)
        }
        if session != nil, session?.eventsDueAt == nil { session?.eventsDueAt = state.running.total + Self.eventRetry }
    }

    /// What can be caused at will goes first, the oldest of the app that has the most of it: no app drives out what others
    /// have to say, or what became of it. Of each boot the last event stays as long as others can go: it tells the controller
    /// what is missing before it.
    private mutating func dropOne() {
        let events = state.events
        let mayGo = events.indices.dropLast().filter { events[$0].header.boot == events[$0 + 1].header.boot }
        let atWill = mayGo.filter { events[$0].isAtWill }
        let counts = atWill.reduce(into: [AppID: Int]()) { $0[events[$1].header.app, default: 0] += 1 }
        let most = counts.values.max()
        let index = atWill.first { counts[events[$0].header.app] == most } ?? mayGo.first ?? 0
        let header = state.events.remove(at: index).header
        batch.changes.append(.dropEvent(boot: header.boot, number: header.number))
        // The controller is told which are missing.
        guard dropLog.isDue(header.app, at: state.running.total) else { return }
        log(.warning, "events are dropped: the controller has not confirmed any for long", app: header.app)
    }

    /// Sends all that the controller has not confirmed, the oldest first.
    mutating func sendEvents() {
        session?.eventsDueAt = state.events.isEmpty ? nil : state.running.total + Self.eventRetry
        guard session?.isPastFirst == true else { return }
        var oldest: [Int64: Int64] = [:]
        for event in state.events {
            let header = event.header
            send(event, oldest: oldest[header.boot, default: header.number])
            oldest[header.boot] = oldest[header.boot] ?? header.number
        }
    }

    private mutating func send(_ event: KeptEvent, oldest: Int64) {
        batch.effects.append(.publish(event.address, event.wire(oldest: oldest), retain: false))
    }

    /// The controller has stored everything up to this mark.
    mutating func drop(through mark: EventMark) {
        let before = state.events.count
        state.events.removeAll {
            $0.header.incarnation == mark.incarnation && $0.header.boot == mark.boot
                && $0.header.number <= mark.number
        }
        guard state.events.count < before else { return }
        batch.changes.append(.dropEvents(boot: mark.boot, through: mark.number))
        if state.events.isEmpty { session?.eventsDueAt = nil }
        // The mark has come to what was dropped: the next event tells of it.
        if let next = state.events.first(where: { $0.header.boot == mark.boot }), next.header.number > mark.number + 1 {
            send(next, oldest: next.header.number)
            if session?.eventsDueAt == nil { session?.eventsDueAt = state.running.total + Self.eventRetry }
        }
    }
}
