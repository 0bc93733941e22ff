package import FleetProtocol

/// Everything that a device's agent decides: events go in, effects come out. No clock, no I/O, no randomness of its own.
///
/// Call ``handle(_:at:)`` for each event and then ``takeEffects(at:)``, once for as many events as happened at one moment:
/// their changes are one transaction, and each app's status is said once. Perform the effects in their order.
package struct DeviceCore: Sendable {
    package let enrollment: Enrollment
    package let agentVersion: String
    let signatures: SignatureCheck
    /// What nobody else knows: the nonces of this run are made from it.
    let secret: RandomID
    var nonces: Int64 = 0
    /// That of the start before this one; 0 before the first.
    package let previousBoot: Int64
    /// How many events are kept until the controller has them.
    package let maximumEvents: Int
    /// All that survives a restart, but for the ``signedDocuments``.
    package internal(set) var state: DeviceState
    /// The signing keys that count now.
    package internal(set) var trust: TrustDocument
    /// What the layers say, without tombstones.
    var layers: Layers
    /// Topics whose newest document on this run was a tombstone.
    var tombstones: Set<Address> = []
    var session: Session?
    var links: [LinkID: AppID] = [:]
    /// The processes that are connected as apps.
    var processes = AppTable<AppProcess>()
    var passcodeEntry = PasscodeEntry()
    /// Of each app that asks for the passcode, and locks when no app is used.
    var autoLocks = AppTable<AutoLock>()
    var pasteboard: Pasteboard?
    var refusals: [Status.Refusal] = []
    var sequence: Int64 = 0
    var eventNumber: Int64 = 0
    /// Of all connections: an answer to an earlier one's subscription is none to this one's.
    var nextBarrier: Int64 = 0
    /// How long the broker may leave something unanswered on a connection, in milliseconds of running time.
    var patience = DeviceCore.firstPatience
    /// The agent is taking leave.
    var isEnding = false
    /// The running time of each app's last refused registration that was reported.
    var refusedAt = AppTable<Int64>()
    /// Who is refused comes again for as long as it runs.
    var refusalLog = SeldomLog()
    /// Without a controller each event drives out another.
    var dropLog = SeldomLog()
    /// When an app is to be looked at although nothing happens, by the running time.
    var deadlines = AppTable<Int64>()
    var batch = Batch()
    /// The running time at which the clock was saved last.
    var clockSavedAt: Int64 = 0

    /// What has to be done once the events of this moment are handled.
    struct Batch {
        var keyEffects: [DeviceEffect] = []
        var changes: [StoreChange] = []
        var effects: [DeviceEffect] = []
        var logs: [DeviceEffect] = []
        var settledApps = AppList()
        var changedApps = AppList()
        var reportedApps = AppList()
        /// Apps whose wipe is stored with this moment as due, and carried out in the next one.
        var wipeDueApps = AppList()
        /// Apps whose code has been typed, and was right.
        var typedApps = AppList()
        var isPresenceDue = false
        var isClockDue = false
    }

    struct AppProcess {
        enum Phase { case registered, readySent, ready }

        let link: LinkID
        var phase: Phase
        /// It has retired itself, and waits for the agent's word of it.
        var awaitsRetirement = false
        /// Deliveries under way that it reads, with nobody to be called: each gives way to what comes next of its kind.
        var taken: Set<Int64> = []
        /// The process has the app's keys; nil where that is not known, or others have been made since.
        var hasKeys: Bool?
        /// It knows of this time without use after which secure services of apps end, and whether its own do.
        var autoLock: (after: Int64?, isOwn: Bool) = (nil, true)
    }

    /// Uncovered events are sent again after this time without an answer, in milliseconds of running time.
    static let eventRetry: Int64 = 30_000
    /// The running time and contact are saved this often at most, in milliseconds.
    static let clockInterval: Int64 = 60_000
    /// Anybody on the device can try to be an app: more refusals than one in this time would drive events out.
    static let refusalInterval: Int64 = 59_000

    /// Takes up what an earlier run has stored, as the next boot. Of the events that the controller does not have
    /// yet, so many are kept.
    ///
    /// - Parameter secret: Another one at each start: nobody is to know a nonce before the device has said it.
    package init(
        enrollment: Enrollment, agentVersion: String, state: DeviceState, secret: RandomID,
        signatures: SignatureCheck = .ed25519, keepingEvents maximumEvents: Int = 1_000, at now: Now
    ) throws {
        self.enrollment = enrollment
        self.agentVersion = agentVersion
        self.maximumEvents = maximumEvents
        self.signatures = signatures
        self.secret = secret
        previousBoot = state.boot
        self.state = state
        layers = Layers(enrollment.device)
        let owner = DeviceState.Owner(fleet: enrollment.fleetUUID, device: enrollment.device)
        if let known = state.owner, known != owner {
            throw DeviceAgentError(
                .store,
                "this state is that of device \(known.device) of the fleet \(known.fleet), and the agent is"
                    + " \(owner.device) of the fleet \(owner.fleet): give it a state folder of its own")
        }
        self.state.owner = owner
        do {
            trust = try Self.trust(enrollment.trust, enrollment, signatures)
        } catch {
            throw DeviceAgentError(
                .configuration, "trust: the enrolment does not fit together: enroll the device again", cause: error)
        }
        try readDocuments()
        raiseMarks()
        self.state.boot = Self.boot(after: previousBoot, secret, at: now)
        if state.disk == 0 { self.state.disk = Self.diskName(secret) }
        self.state.running.observe(now)
        clockSavedAt = self.state.running.total
        delayPasscode()
        batch.changes.append(.started(boot: self.state.boot, disk: self.state.disk, owner))
        batch.isClockDue = true
        // A crash may have come between making or destroying an app's keys and storing it.
        // Made first: what all apps share goes with the last of them.
        for app in self.state.apps.values where app.hasKeys { batch.keyEffects.append(.createKeys(app.id)) }
        for app in self.state.apps.values where !app.hasKeys { batch.keyEffects.append(.destroyKeys(app.id)) }
        settle(self.state.apps.keys, isWiping: true, at: now)
    }

    /// Later than the boot before, and one that no other start has that follows it: an image of a disk can be put back, also
    /// on a machine whose clock begins anew with each power-on.
    private static func boot(after previous: Int64, _ secret: RandomID, at now: Now) -> Int64 {
        let digest = Digest(of: Array("\(secret) boot".utf8)).bytes
        let step = 1 + Int64(digest[0]) << 2 + Int64(digest[1] & 0b11)
        return max(previous + step, now.wall.milliseconds)
    }

    /// From 1 to 2⁵³ - 1.
    private static func diskName(_ secret: RandomID) -> Int64 {
        let number = Digest(of: Array("\(secret) disk".utf8)).bytes.prefix(7).reduce(Int64(0)) { $0 << 8 | Int64($1) }
        return max(1, number & JSONValue.largestInteger)
    }

    /// Takes up the documents that an earlier run has found good.
    private mutating func readDocuments() throws {
        do {
            if let wire = state.trust {
                let newer = try Self.trust(try SignedDocument(wire: wire), enrollment, signatures)
                if newer.version > trust.version { trust = newer }
            }
            for (address, wire) in state.documents {
                let signed = try SignedDocument(wire: wire)
                let document = try DesiredDocument(payload: signed.payload, in: enrollment.fleet)
                layers.set(KeptDocument(document, wire), at: address)
            }
            state.documents = [:]
        } catch {
            throw DeviceAgentError(
                .store, "the agent's store holds a document that cannot be read: enroll the device again", cause: error)
        }
        layers.count(state.groups)
    }

    /// The floors of the enrolment count as if documents of those revisions had been here.
    private mutating func raiseMarks() {
        for (address, floor) in enrollment.floors where state.marks[address].map({ $0.revision < floor }) ?? true {
            state.marks[address] = DocumentMark(revision: floor, digest: nil)
        }
        // It is saved less often than documents are; of the epoch that an enrolment tells of there may be none yet.
        let enrolled = Revision(epoch: enrollment.epoch, number: 0)
        state.highest = state.marks.values.reduce(max(state.highest, enrolled)) { max($0, $1.revision) }
    }

    package var device: DeviceID { enrollment.device }
    /// The name of the connection that the effects for the broker are meant for; nil while there is none.
    package var connection: RandomID? { session?.connection }
    /// The signed forms of the documents that are kept.
    package var signedDocuments: [Address: [UInt8]] { layers.wires }
    /// The groups that the newest membership document names, whether or not their documents are here yet.
    package var membership: [GroupID] { layers.membership }

    package mutating func handle(_ event: DeviceEvent, at now: Now) {
        state.running.observe(now)
        switch event {
        case .connected(let connection): connected(connection, at: now)
        case .disconnected: endSession()
        case .subscribed(let barrier): subscribed(barrier)
        case .message(let topic, let payload): received(topic, payload, at: now)
        case .registered(let link, let registration): register(link, registration, at: now)
        case .frame(let link, let frame): received(frame, on: link, at: now)
        case .linkClosed(let link): closed(link)
        case .registrationRefused(let app, let reason): registrationRefused(app, reason, at: now)
        case .codeChecked(let check, let isRight): codeChecked(check, isRight, at: now)
        case .passcodeChecked(let check, let verdict): passcodeChecked(check, verdict, at: now)
        case .displayed(let link, let id, let isShown): batch.effects.append(.send(link, .displayed(id: id, isShown)))
        case .tick: tick(at: now)
        case .stopping: announceEnd()
        }
    }

    /// What is to be done for all that was handled since the last call, in this order: keys, one transaction, the rest.
    ///
    /// - Parameter isOver: Whether nothing more happens at this moment. Statuses wait until then.
    package mutating func takeEffects(at now: Now, isOver: Bool = true) -> [DeviceEffect] {
        forgetPasscode()
        for app in batch.settledApps { deliver(to: app) }
        if batch.isPresenceDue { publishPresence(.online) }
        let waiting = isOver ? AppList() : batch.reportedApps
        if isOver { report(at: now) }
        if batch.isClockDue {
            batch.changes.append(.clock(state.running, state.contact, highest: state.highest))
            clockSavedAt = state.running.total
        }
        for id in batch.changedApps {
            if let app = state.apps[id] { batch.changes.append(.app(app)) }
        }
        var effects = batch.keyEffects
        if !batch.changes.isEmpty { effects.append(.store(batch.changes)) }
        effects += batch.effects
        effects += batch.logs
        batch = Batch()
        batch.reportedApps = waiting
        return effects
    }

    private mutating func report(at now: Now) {
        if let due = session?.reportsDueAt, state.running.total >= due {
            session?.reportsDueAt = nil
            session?.areReportsLive = true
            batch.reportedApps = AppList(state.apps.keys)
        }
        guard session?.areReportsLive == true else { return }
        for app in batch.reportedApps { publishStatus(of: app, at: now) }
    }

    /// The running time, in milliseconds, at which ``DeviceEvent/tick`` has something to do.
    package var nextTick: Int64 {
        var next = clockSavedAt + Self.clockInterval
        if let due = session?.reportsDueAt { next = min(next, due) }
        if let due = session?.eventsDueAt, !state.events.isEmpty { next = min(next, due) }
        if let due = session?.greetingDueAt { next = min(next, due) }
        if let due = session?.retryDueAt { next = min(next, due) }
        if let due = session?.freshness.askAt { next = min(next, due) }
        if let due = givingUpAt { next = min(next, due) }
        if let due = deadlines.values.min() { next = min(next, due) }
        return max(next, state.running.total + 1)
    }

    private mutating func tick(at now: Now) {
        settle(state.apps.keys, isWiping: true, at: now)
        if let due = session?.eventsDueAt, state.running.total >= due { sendEvents() }
        answerLateGreeting()
        sayNonce()
        retryUnanswered()
        giveUpUnanswered()
        if state.running.total - clockSavedAt >= Self.clockInterval { batch.isClockDue = true }
    }

    private mutating func registrationRefused(_ app: AppID, _ reason: String, at now: Now) {
        let isDue = refusedAt[app].map { state.running.total - $0 >= Self.refusalInterval } ?? true
        guard state.apps[app] != nil, isDue else { return }
        refusedAt[app] = state.running.total
        keep(.refused, of: app, message: reason, at: now)
    }

    mutating func log(
        _ level: DeviceEffect.LogEntry.Level, _ message: String, _ detail: String? = nil, app: AppID? = nil
    ) {
        batch.logs.append(.log(DeviceEffect.LogEntry(level: level, message: message, app: app, detail: detail)))
    }

    private static func trust(
        _ signed: SignedDocument, _ enrollment: Enrollment, _ signatures: SignatureCheck
    ) throws -> TrustDocument {
        guard signed.kind == .trust, signatures.isValid(signed, enrollment.rootKey) else {
            throw FleetProtocolError(.signature, "the trust document is not signed by the fleet's root key")
        }
        let document = try TrustDocument(json: signed.payload, limit: SignedDocument.maximumSize)
        guard document.fleet == enrollment.fleetUUID,
            document.topic == Address.trust.topic(in: enrollment.fleet)
        else { throw FleetProtocolError(.mismatch, "the trust document is another fleet's") }
        return document
    }

    /// A trust document that arrived: the newest version counts, and one version has one content.
    mutating func receivedTrust(_ wire: [UInt8], at now: Now) throws {
        // The very one that counts comes on every connection.
        if wire == state.trust { return }
        let signed = try SignedDocument(wire: wire)
        if state.trust == nil, signed == enrollment.trust { return }
        let document = try Self.trust(signed, enrollment, signatures)
        if document.version == trust.version, document == trust { return }
        guard document.version > trust.version else {
            throw FleetProtocolError(
                .mismatch, "trust version \(document.version), where \(trust.version) is known already")
        }
        trust = document
        state.trust = wire
        batch.changes.append(.trust(wire))
        log(.notice, "new trust document", "version \(document.version)")
        retryHeld(at: now)
    }
}
