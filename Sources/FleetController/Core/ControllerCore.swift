package import FleetProtocol

/// All that the controller decides: what has happened goes in, what is to be done comes out.
///
/// No network, no clock, no randomness: the same events at the same times give the same effects over the same store.
/// What an effect tells anybody stands in a committed transaction before the effect is handed out.
package struct ControllerCore: ~Copyable {
    let store: FleetStore
    let identity: FleetIdentity
    /// Names the newest connection in its presence and barriers.
    private var connection: RandomID?
    let startedAt: Timestamp
    /// Up to when earlier runs of this store have signed at least: by a clock that was set back since, that is later than the
    /// start.
    private let signedBefore: Timestamp
    var phase = Phase.offline
    /// Whether the store was put back from a backup, and the next connection is to find out what it has missed.
    var isRestoring: Bool
    let disregarded: Set<DeviceID>
    /// Whether all that is stored is known to be signed with keys that count.
    var areSignaturesTrusted = false
    /// How far the store is known to have come, as it was noted beside it.
    private(set) var noted: StorePosition?
    /// The incarnations that the home has given out, as far as it was asked.
    var enrolments: [DeviceID: Int64]
    /// Of whom this run has said that they speak as what was removed, or enrolled anew since: at most 1,000.
    var formerSpeakers: Set<DeviceID> = []
    /// Answers that have changed nothing, for those who ask again: memory is enough.
    var answers = AnswerCache()
    var schedule = Schedule()
    /// What devices repeat.
    var knownReports: KnownReports
    /// Connections of a controller that runs elsewhere too.
    var rivals = Rivals()
    var signingClock: SigningClock
    /// Up to which time the store knows that times may have been signed.
    var reservedTime: Timestamp
    /// Behind how many heartbeats the own marker may stay away on a connection.
    var patience = ControllerCore.firstPatience
    /// For how many seconds it is remembered that a document is gone.
    let tombstoneLife: Int64
    /// For how many seconds events are kept; for ever if nil.
    let eventLife: Int64?
    let batches: Batches
    /// In seconds: by so much the times may run ahead after each restart, and the store is written to once in so many.
    private static let reservedAhead: Int64 = 1
    /// In seconds: what earlier runs have left, the broker has said by then.
    private static let willsCome: Int64 = 300

    /// How much is done at once, so that a large fleet does not stop everything else.
    package struct Batches: Sendable {
        /// Hellos signed in one turn.
        package var hellos = 500
        /// Documents that are published once more with one heartbeat.
        package var echoes = 500
        /// Documents read in one transaction, where all are looked at.
        package var documents = 500
        /// Events that are dropped for their age in one turn.
        package var oldEvents = 10_000

        package init() {}
    }

    enum Phase {
        case offline
        /// Looking at what the broker holds, until the own barrier comes back.
        case looking(ReadBack)
        case serving(Serving)

        /// What it holds, in its place: whoever changes it has the only copy.
        var readBack: ReadBack? {
            get { if case .looking(let readBack) = self { readBack } else { nil } }
            _modify {
                var readBack = self.readBack
                if readBack != nil { self = .offline }
                defer { if let readBack { self = .looking(readBack) } }
                yield &readBack
            }
        }

        /// The same.
        var serving: Serving? {
            get { if case .serving(let serving) = self { serving } else { nil } }
            _modify {
                var serving = self.serving
                if serving != nil { self = .offline }
                defer { if let serving { self = .serving(serving) } }
                yield &serving
            }
        }
    }

    /// - Parameters:
    ///   - noted: The last ``Effect/note(_:)`` of earlier runs.
    ///   - enrolments: What the home has given out: it decides whether a device that the store has as removed is.
    ///   - disregarded: Devices whose word that they know of what the store does not counts for nothing.
    ///   - tombstoneLife: For how many seconds it is remembered that a document is gone.
    ///   - eventLife: For how many seconds events are kept, but those of destroyed keys, which stay; for ever if nil.
    /// - Throws: ``FleetControllerError`` when the store is another fleet's, or was put back from a copy and `isRestoring`
    ///   does not say so.
    package init(
        store: FleetStore, identity: FleetIdentity, noted: StorePosition? = nil,
        enrolments: [DeviceID: Int64] = [:], isRestoring: Bool, disregarded: Set<DeviceID> = [], startedAt: Timestamp,
        tombstoneLife: Int64 = 91 * 86_400, eventLife: Int64? = nil, batches: Batches = Batches()
    ) throws {
        let (position, signedTime) = try store.transaction { transaction in
            try transaction.adopt(identity.fleet)
            return (try transaction.position(), try transaction.signedTime())
        }
        if !isRestoring, let noted, position.isBehind(noted) {
            throw FleetControllerError(
                .stopped,
                "the database is at revision \(position.latest) and session \(position.session), and has been at revision"
                    + " \(noted.latest) and session \(noted.session): it was put back from a backup. Put the newest"
                    + " one back, or go on without what was changed since: fleet-controller run --restored")
        }
        self.noted = noted
        signingClock = SigningClock(latest: signedTime)
        reservedTime = signedTime
        signedBefore = signedTime.advanced(bySeconds: -Self.reservedAhead)
        self.store = store
        self.identity = identity
        knownReports = KnownReports(in: identity.fleetID)
        self.enrolments = enrolments
        self.isRestoring = isRestoring
        self.disregarded = disregarded
        self.startedAt = startedAt
        self.tombstoneLife = tombstoneLife
        self.eventLife = eventLife
        self.batches = batches
    }

    /// Whether a presence in this controller's name may be an earlier run's, whose will has come late.
    func mayBeOfEarlierRun(_ other: Presence, at now: Timestamp) -> Bool {
        other.since <= startedAt || other.since <= signedBefore && now < startedAt.advanced(bySeconds: Self.willsCome)
    }

    /// Serves nobody any more: nobody would be sent an answer that comes behind this.
    mutating func stop(_ reason: String, _ turn: inout Turn) {
        phase = .offline
        turn.effects.append(.stop(reason: reason))
    }

    /// Stops since the fleet has seen what the store has not.
    mutating func stop(seeing what: String, by device: DeviceID? = nil, _ turn: inout Turn) {
        let doubt = device.map {
            ". Should \($0) not be trusted, it stops nothing with: fleet-controller run --disregard \($0)"
        }
        stop(
            "\(what), which this controller has no memory of: its database was put back from a backup, or another"
                + " controller has run. If this one is to be the fleet's controller, start it with:"
                + " fleet-controller run --restored\(doubt ?? "")", &turn)
    }

    /// What the broker tells the fleet when a connection is gone.
    package static func will(_ connection: RandomID, of identity: FleetIdentity, startedAt: Timestamp) -> Message {
        let presence = Self.presence(connection, startedAt).will
        return Message(topic: identity.topic(.presence(.controller)), payload: presence.json, isRetained: true)
    }

    /// On the connection that stands.
    var presence: Presence? { connection.map { Self.presence($0, startedAt) } }

    private static func presence(_ connection: RandomID, _ startedAt: Timestamp) -> Presence {
        Presence(
            state: .online, incarnation: 1, boot: 1, connection: connection, since: startedAt,
            agent: "fleet-controller", apps: [])
    }

    /// Takes in what has happened at `now`, and says what is to be done.
    ///
    /// - Parameter uptime: Milliseconds since any moment, by a clock that nobody sets.
    package mutating func handle(_ event: Event, at now: Timestamp, uptime: Int64) -> [Effect] {
        var turn = Turn(now: now, uptime: uptime)
        do {
            switch event {
            case .connected(let name): try connected(name, &turn)
            case .disconnected: (phase, schedule.refusedAt) = (.offline, nil)
            case .messages(let messages): try receive(messages, &turn)
            // It has been woken, perhaps early, since the clock was set back meanwhile: the next wake is asked for anew.
            case .tick: schedule.wake = nil
            case .refused: schedule.noteRefusal(at: turn.now)
            case .enrolments(let enrolments): try learn(enrolments, &turn)
            }
            try advance(&turn)
        } catch let error as FleetControllerError {
            stop(error.message, &turn)
        } catch {
            stop("\(error)", &turn)
        }
        // A restore is none before it is done: until then the next start must ask for it again.
        if !isRestoring, let position = try? store.position(), position != noted {
            noted = position
            turn.effects.insert(.note(position), at: 0)
        }
        return turn.effects
    }

    private mutating func connected(_ name: RandomID, _ turn: inout Turn) throws {
        let session = try store.transaction { try $0.beginSession() }
        connection = name
        let marker = BarrierMarker(connection: name, counter: session)
        let readBack = ReadBack(barrier: marker.json, askedAt: turn.now)
        phase = .looking(readBack)
        turn.effects.append(
            .subscribe([.allDesired, .allReplies, .allPresence, .requests(nil), .one(.barrier(.controller))]))
        say(readBack.barrier, &turn)
        turn.log(.info, "connected", ["session": "\(session)"])
    }

    func say(_ barrier: [UInt8], _ turn: inout Turn) {
        turn.publish(identity.topic(.barrier(.controller)), barrier, retain: false)
    }

    /// Compares the incarnations that devices speak of with those that were given out.
    private mutating func learn(_ enrolments: [DeviceID: Int64], _ turn: inout Turn) throws {
        if enrolments != self.enrolments { schedule.noteOtherEnrolments() }
        self.enrolments = enrolments
        schedule.noteEnrolments(enrolments, Self.enrolmentPatience, at: turn.now)
        let hasNewcomers = schedule.needsEnrolments
        let (strangers, missing, letIn) = try store.transaction { transaction in
            let (strangers, missing, letIn) = try transaction.learn(enrolments, hasNewcomers: hasNewcomers)
            return (
                try strangers.filter { try transaction.warn($0, DeviceWarning.neverGivenOut($0.incarnation)) },
                try missing.filter { try transaction.warn($0, DeviceWarning.isNotEnrolled($0.name)) }, letIn
            )
        }
        for device in strangers {
            turn.log(
                .warning, "a device speaks as an incarnation that was never given out",
                ["device": "\(device.name)", "incarnation": "\(device.incarnation)"])
        }
        for device in missing {
            turn.log(.warning, "a device is known that is not enrolled any more", ["device": "\(device.name)"])
        }
        for device in letIn {
            turn.log(.warning, "a device was removed, and the home lets it in", ["device": "\(device)"])
        }
    }

    /// The time to sign next. The store knows of it before anybody else does.
    mutating func timeToSign(_ turn: Turn) throws -> Timestamp {
        let time = signingClock.next(turn.now, uptime: turn.uptime)
        if time > reservedTime {
            let next = time.advanced(bySeconds: Self.reservedAhead)
            try store.transaction { try $0.setSignedTime(next) }
            reservedTime = next
        }
        return time
    }

    func clock(at address: Address, _ latest: Revision, _ time: Timestamp) -> ControllerClock {
        ControllerClock(
            fleet: identity.fleet, topic: identity.topic(address), epoch: latest.epoch, revision: latest.number,
            at: time)
    }
}

/// One call of the core: its time, and what it has decided so far.
struct Turn {
    let now: Timestamp
    let uptime: Int64
    var effects: [ControllerCore.Effect] = []

    init(now: Timestamp, uptime: Int64) {
        self.now = now
        self.uptime = uptime
    }

    mutating func publish(_ topic: String, _ payload: [UInt8], retain: Bool) {
        effects.append(.publish(topic: topic, payload: payload, retain: retain))
    }

    mutating func log(
        _ level: ControllerCore.LogLine.Level, _ message: StaticString, _ details: [String: String] = [:]
    ) {
        effects.append(.log(ControllerCore.LogLine(level: level, message: "\(message)", details: details)))
    }
}
