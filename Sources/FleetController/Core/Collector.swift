import FleetProtocol

/// What devices say, decoded.
enum Report {
    case presence(DeviceID, Presence, isRetained: Bool)
    case status(Status, isRetained: Bool)
    case event(EventRecord, isRetained: Bool)
}

/// Takes the reports of one batch into the store, within its transaction, and says what follows from them.
struct Collector {
    let transaction: FleetStore.Transaction
    let identity: FleetIdentity
    let enrolments: [DeviceID: Int64]
    let session: Int64
    /// The highest revision that was ever given out.
    let latest: Revision
    /// Whether a report of something newer is taken as it is: only while a restored controller looks around.
    let isRestoring: Bool
    /// Devices whose word on what they know counts for nothing.
    let disregarded: Set<DeviceID>
    let now: Timestamp

    /// Online presences that a hello has to answer, the newest of each device.
    private(set) var arrived: [DeviceID: Presence] = [:]
    private(set) var gone: Set<DeviceID> = []
    /// What presences have shown to be lost on the way.
    private(set) var lost: [DeviceID: Loss] = [:]
    /// Devices that have shown to have the documents that they should.
    private(set) var intact: Set<DeviceID> = []
    /// Devices that are shown with ``DeviceWarning/hasOthers`` and may have what they lacked by now: they have a new
    /// connection, or do not tell yet.
    private(set) var doubted: Set<DeviceID> = []
    /// Through which number the events are stored of each boot that sent some.
    private(set) var marks: [MarkedBoot: Int64] = [:]
    /// Topics of removed devices, to be cleared.
    private(set) var leftovers: [Address] = []
    private(set) var notices: [Notice] = []
    /// The highest epoch and the highest revision that a device has spoken of.
    private(set) var highest = Revision.zero
    /// Documents that statuses follow, while a restored controller looks around: the broker may have lost them too.
    private(set) var followed: Set<Address> = []
    /// Why the controller must not go on.
    private(set) var newer: Newer?
    /// Whether the home should be asked which incarnations it gave out.
    private(set) var needsEnrolments = false
    /// Devices that speak now as what was removed, or enrolled anew since: the home may have been put back.
    private(set) var former: Set<DeviceID> = []

    struct MarkedBoot: Hashable {
        let device: DeviceID
        let incarnation: Int64
        let boot: Int64
    }

    struct Loss {
        let presence: Presence
        var lost: Set<Hello.Lost> = []
    }

    /// A device's claim to know of what the store does not.
    struct Newer {
        let device: DeviceID
        let text: String
    }

    /// Something that an operator should read in the log.
    struct Notice: Hashable {
        let device: DeviceID
        let text: String
    }

    /// Beyond this, and what was given out, an epoch or a revision is a lie: no controller gets so far.
    static let largestRevision: Int64 = 1 << 50
    /// How long a new document may be under way, in seconds, before a device without it has lost it.
    static let settling: Int64 = 30

    init(
        _ transaction: FleetStore.Transaction, _ identity: FleetIdentity, _ enrolments: [DeviceID: Int64],
        isRestoring: Bool, disregarded: Set<DeviceID>, now: Timestamp
    ) throws {
        self.transaction = transaction
        self.identity = identity
        self.enrolments = enrolments
        session = try transaction.session()
        latest = try transaction.latest()
        self.isRestoring = isRestoring
        self.disregarded = disregarded
        self.now = now
    }

    mutating func collect(_ report: Report) throws {
        switch report {
        case .presence(let device, let presence, let isRetained):
            try collect(presence, of: device, isRetained: isRetained)
        case .status(let status, let isRetained): try collect(status, isRetained: isRetained)
        case .event(let event, let isRetained): try collect(event, isRetained: isRetained)
        }
    }

    private mutating func collect(_ presence: Presence, of name: DeviceID, isRetained: Bool) throws {
        let address = Address.presence(.device(name))
        if try isLeftover(of: name, presence.incarnation, address, isRetained: isRetained) { return }
        if let told = presence.highest, presence.state == .online, !disregarded.contains(name) {
            guard isPossible(max(told.epoch, told.number), by: name) else { return }
            highest.rise(to: told)
            if told > latest, !isRestoring {
                note(newer: "\(name) knows of revision \(told)", by: name)
                return
            }
        }
        guard
            var device = try device(name, incarnation: presence.incarnation, boot: presence.boot, address: address)
        else { return }
        let before = device
        switch presence.state {
        case .online: try noteOnline(presence, &device, isRetained: isRetained)
        case .offline: noteOffline(presence, &device, isRetained: isRetained)
        }
        // Also in what the broker has kept: of the disk that it was, whatever start it is.
        if device.judged > 0, presence.boot > device.judged, presence.incarnation == device.incarnation,
            presence.disk != nil, presence.disk == device.disk
        {
            device.judged = presence.boot
            try transaction.withdrawLeftKeys(on: device)
        }
        if device != before { try transaction.update(device) }
    }

    private mutating func noteOnline(_ presence: Presence, _ device: inout DeviceRow, isRetained: Bool) throws {
        let name = device.name
        let goesBack = isBefore(presence.incarnation, presence.boot, device)
        if goesBack, isRetained { return }  // A broker that was restored; the device itself will speak.
        // A copy's, where the later start has announced itself. Its status alone may have overtaken what waited at the
        // broker to be acknowledged.
        if goesBack, device.agent != nil {
            warnOfCopy(&device, DeviceWarning.backwards(presence.incarnation, presence.boot, device))
        }
        // What was enrolled anew can connect no more, unless the home was put back.
        let isReplaced = presence.incarnation < device.enrolled ?? 0
        if isReplaced, !isRetained { former.insert(name) }
        if isReplaced, goesBack { return }
        try checkBranch(presence, &device)
        advance(&device, presence.incarnation, presence.boot)
        if presence.incarnation == device.incarnation { device.announced = max(device.announced, presence.boot) }
        let isNewConnection = device.connection != presence.connection
        if !isRetained, !isReplaced {
            if isNewConnection || !device.wasOnline { device.since = now }
            device.state = session
        } else if isNewConnection || device.isOffline {
            device.becomeUnknown()
        }
        if isNewConnection, device.warning == DeviceWarning.hasOthers { doubted.insert(name) }
        device.connection = presence.connection
        if !goesBack { device.agent = presence.agent }
        arrived[name] = presence
        gone.remove(name)
        guard !isRetained, !goesBack else { return }
        let left = try transaction.noteLeftKeys(by: presence, &device, in: identity.fleetID, at: now)
        if !left.isEmpty { notices.append(Notice(device: name, text: DeviceWarning.leftKeys(of: left))) }
        leftovers += try transaction.dropApps(missingIn: presence, device)
        try compare(presence, &device)
    }

    /// A start that follows an earlier one than the last that was heard of, on a disk of before it.
    private mutating func checkBranch(_ presence: Presence, _ device: inout DeviceRow) throws {
        let isFirst = device.agent == nil || device.boot < presence.boot
        guard let previous = presence.previousBoot, isFirst, presence.incarnation == device.incarnation else { return }
        // Behind this start's own reports, what is left of the one before is that it was there, and its events.
        let heard = [device.boot, device.announced].filter { $0 < presence.boot }.max() ?? 0
        let last = max(try transaction.lastBoot(of: device, before: presence.boot), heard)
        guard previous < last else { return }
        warnOfCopy(&device, DeviceWarning.wentOn(from: previous, past: last))
    }

    private mutating func noteOffline(_ presence: Presence, _ device: inout DeviceRow, isRetained: Bool) {
        // The will of an earlier connection says nothing about the present one. But what a broker has kept of a device
        // that nobody has heard since is its last word: it came and went while the controller was away.
        if let connection = device.connection, connection != presence.connection {
            guard isRetained, device.connectivity(in: session) == .unknown,
                !isBefore(presence.incarnation, presence.boot, device)
            else { return }
        }
        let name = device.name
        if !device.isOffline {
            device.state = Connectivity.offlineState
            device.since = now
        }
        device.connection = presence.connection
        // It came and went while the controller was away: that it comes on another disk must be seen all the same.
        if device.disk == nil, [0, presence.incarnation].contains(device.incarnation) { device.disk = presence.disk }
        // Of one that was never heard it is all that is known.
        if device.incarnation == 0 { advance(&device, presence.incarnation, presence.boot) }
        arrived[name] = nil
        doubted.remove(name)
        lost[name] = nil
        gone.insert(name)
    }

    /// Notes what was lost on the way between the store and a device that is there, by what it says that it has.
    private mutating func compare(_ presence: Presence, _ device: inout DeviceRow) throws {
        let name = device.name
        let isIntact = try hasItsDocuments(presence, device)
        if isIntact == true {
            intact.insert(name)
            if device.warning == DeviceWarning.hasOthers { device.warning = nil }
        } else if isIntact == nil, device.warning == DeviceWarning.hasOthers {
            doubted.insert(name)
        }
        var loss = Loss(presence: presence)
        if isIntact == false { loss.lost.insert(.documents) }
        if try hasReportedMore(presence, device) { loss.lost.insert(.statuses) }
        lost[name] = loss.lost.isEmpty ? nil : loss
    }

    /// Whether a device has reported what the store does not have. A presence comes behind the statuses that it speaks of.
    private func hasReportedMore(_ presence: Presence, _ device: DeviceRow) throws -> Bool {
        try presence.apps.contains { app in
            guard let sequence = app.reported else { return false }
            let told = ReportOrder(incarnation: presence.incarnation, boot: presence.boot, sequence: sequence)
            return try transaction.order(of: app.id, on: device).map { $0 < told } ?? true
        }
    }

    /// Whether a device has the documents that it should; nil where it does not say, or they may still be under way.
    private func hasItsDocuments(_ presence: Presence, _ device: DeviceRow) throws -> Bool? {
        guard let has = presence.documents else { return nil }
        return try transaction.documents(
            for: device.name, apps: presence.apps.map(\.id), trust: identity.trust.version, settling: Self.settling,
            at: now
        ).map { has == $0 }
    }

    private mutating func collect(_ status: Status, isRetained: Bool) throws {
        let name = status.device
        let address = Address.reply(name, status.app, .status)
        if try isLeftover(of: name, status.order.incarnation, address, isRetained: isRetained) { return }
        let received = status.policies.reduce(0) { max($0, $1.received) }
        guard isPossible(received, by: name) else { return }
        let isBelieved = !disregarded.contains(name)
        if isBelieved { highest.number = max(highest.number, received) }
        if isRestoring, isBelieved, followed.count < ReadBack.limit {
            for case .desired(let layer, status.app, let aspect)? in status.policies.map(\.source) {
                if case .device(let other) = layer, other != name { continue }
                followed.insert(.desired(layer, status.app, aspect))
            }
        }
        if received > latest.number, !isRestoring, isBelieved {
            note(newer: "the status of \(status.app) on \(name) has received revision \(received)", by: name)
            return
        }
        guard
            var device = try device(
                name, incarnation: status.order.incarnation, boot: status.order.boot, address: address)
        else { return }
        // Dropped with the disk that it was on, and given back by a broker.
        if isRetained, status.order.incarnation < device.incarnation,
            try transaction.order(of: status.app, on: device) == nil
        {
            leftovers.append(address)
            return
        }
        let before = device
        if !isRetained {
            if isBefore(status.order.incarnation, status.order.boot, device) {
                // A copy's: it says nothing of who is there, but may be all that is known of this app.
                warnOfCopy(&device, DeviceWarning.backwards(status.order.incarnation, status.order.boot, device))
            } else {
                heard(&device)
            }
        }
        advance(&device, status.order.incarnation, status.order.boot)
        if device != before { try transaction.update(device) }
        // Its topic has this now, and not any more what was to be cleared there.
        if !leftovers.isEmpty { leftovers.removeAll { $0 == address } }
        try transaction.noteLeftKeys(by: status, device, at: now)
        try transaction.withdrawLeftKeys(by: status, of: device)
        if try !transaction.store(status, of: device, at: now) {
            notices.append(
                Notice(device: name, text: "reports more than \(Presence.maximumApps) apps: \(status.app) is left out"))
        }
    }

    private mutating func collect(_ event: EventRecord, isRetained: Bool) throws {
        let header = event.header
        guard
            var device = try device(
                header.device, incarnation: header.incarnation, boot: header.boot, address: nil)
        else { return }
        let before = device
        // That of a removed incarnation was under way, or is kept by the next one: it says nothing of who is there.
        if try !wasRemoved(header.device, header.incarnation) {
            if !isRetained { heard(&device) }
            advance(&device, header.incarnation, header.boot)
        }
        if device != before { try transaction.update(device) }
        let (through, lost) = try transaction.store(event, of: device, at: now)
        marks[MarkedBoot(device: header.device, incarnation: header.incarnation, boot: header.boot)] = through
        for range in lost {
            notices.append(
                Notice(
                    device: header.device,
                    text: "lost events \(range.lowerBound) to \(range.upperBound) of boot \(header.boot)"))
        }
    }

    private mutating func note(newer text: String, by device: DeviceID) {
        if newer == nil { newer = Newer(device: device, text: text) }
    }

    private mutating func isPossible(_ revision: Int64, by device: DeviceID) -> Bool {
        if revision <= max(latest.epoch, latest.number, Self.largestRevision) { return true }
        notices.append(Notice(device: device, text: "claims a revision that cannot be"))
        return false
    }

    // MARK: The device that speaks

    /// Whether an incarnation that was removed says this, or has left it at a broker: its `address` is to be cleared,
    /// and what it claims to know counts for nothing.
    private mutating func isLeftover(
        of name: DeviceID, _ incarnation: Int64, _ address: Address, isRetained: Bool
    ) throws -> Bool {
        let isLeftover = try wasRemoved(name, incarnation)
        if isLeftover { leftovers.append(address) }
        if isLeftover, !isRetained { former.insert(name) }
        return isLeftover
    }

    private func wasRemoved(_ name: DeviceID, _ incarnation: Int64) throws -> Bool {
        try incarnation != transaction.device(name)?.enrolled
            && transaction.wasRemoved(name, incarnation: incarnation)
    }

    /// The device's row, made when it is new; nil for one that is removed: its `address` is to be cleared. Events have
    /// none: a device keeps those of its earlier incarnations.
    private mutating func device(
        _ name: DeviceID, incarnation: Int64, boot: Int64, address: Address?
    ) throws -> DeviceRow? {
        if let known = try transaction.device(name) { return known }
        if let removed = try transaction.removedIncarnation(of: name) {
            guard incarnation > removed, let enrolled = enrolments[name], enrolled > removed else {
                if let address { leftovers.append(address) }
                needsEnrolments = needsEnrolments || incarnation > removed
                return nil
            }
            // Enrolled since, and this store has no memory of it: it was put back from a backup.
            try transaction.readmit(name)
        }
        needsEnrolments = true
        return try transaction.addDevice(name, incarnation: incarnation, boot: boot)
    }

    /// A device that speaks is there, unless its last word was that it leaves.
    private func heard(_ device: inout DeviceRow) {
        guard device.state != session, !device.isOffline, !device.isReplaced else { return }
        if !device.wasOnline { device.since = now }
        device.state = session
    }

    private func isBefore(_ incarnation: Int64, _ boot: Int64, _ device: DeviceRow) -> Bool {
        (incarnation, boot) < (device.incarnation, device.boot)
    }

    private mutating func advance(_ device: inout DeviceRow, _ incarnation: Int64, _ boot: Int64) {
        guard !isBefore(incarnation, boot, device) else { return }
        if incarnation > device.incarnation {
            device.warning = nil
            device.isCopied = false
            device.announced = 0
            device.judged = 0
        }
        if (incarnation, boot) > (device.incarnation, device.boot) { device.agent = nil }
        device.incarnation = incarnation
        device.boot = boot
        // Unknown as well: it asks for its floors before the home gives it an incarnation.
        if device.enrolled.map({ incarnation > $0 }) ?? true { needsEnrolments = true }
    }

    private mutating func warnOfCopy(_ device: inout DeviceRow, _ text: String) {
        device.isCopied = true
        guard device.warning != text else { return }
        device.warning = text
        notices.append(Notice(device: device.name, text: text))
    }
}
