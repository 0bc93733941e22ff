import FleetController
import FleetProtocol

/// The controller's process: its real core over a real store in memory.
final class Controller: BusClient {
    unowned let world: World
    let user = User.controller
    let name = "controller"
    var store: FleetStore
    var running: Running?
    var connection: Connection?
    /// What that is called.
    var connectionName: RandomID?
    var inbox: [ControllerCore.Message] = []
    /// The newest alarm that was set, and for when.
    var alarm = (number: 0, time: Timestamp?.none)
    /// It has not rung yet.
    var isAlarmSet = false
    /// When it last sent a heartbeat.
    var beatAt: Int64 = 0
    /// By how much its clock was set back since, each time by less than a heartbeat takes: the next one comes so much later.
    var beatDelay: Int64 = 0
    /// When it last greeted each device.
    var greetedAt: [DeviceID: Int64] = [:]
    /// When it last told each device on this connection which events are stored.
    var markedAt: [DeviceID: Int64] = [:]
    /// When it last told a device that something was lost.
    var lossSaidAt: Int64 = 0
    var isWorkDue = false
    /// Effects that are still performed before the process dies.
    var effectsLeft: Int?
    var downFor: Int64 = 0
    /// How many transactions its disk takes before it is full, if somebody is about to fill it, and how many it refuses then.
    var roomLeft: (transactions: Int, refused: Int)?
    var clockOffset: Int64 = 0
    /// Nothing of its process runs; what happens to it meanwhile, beside messages.
    var isStalled = false
    /// When it last did so no more, and read what had come meanwhile.
    var wentOnAt: Int64 = 0
    var late: [ControllerCore.Event] = []
    /// The run in which the broker has refused something first.
    var refusedRun: Int?
    /// When somebody set its clock last.
    var clockSetAt: Int64 = -301_000
    /// By how many milliseconds it was set back in all, where that was less than what makes anything late.
    var clockSetBack: Int64 = 0
    /// Its clock was always right.
    var isPunctual = true
    /// How far the store had come, as the home says.
    var noted: StorePosition?
    var backUp: FleetStore?
    var backedUpNote: StorePosition?
    /// A backup was put back, and the controller has not noticed yet.
    var isFromBackUp = false
    /// What its home has noted was put back with it, so it does not find that out by itself.
    var isFolderOld = false
    /// Of the store that was put back.
    var epochBefore: Int64 = 0
    /// All that it has begun, also those that a later backup does not know of.
    var epochs: Set<Int64> = []
    /// The newest time that was signed; nil where a backup has lost it.
    var signed: (epoch: Int64, at: Timestamp)?
    /// The newest for everybody, and for each device.
    var signedFor: [Address: (epoch: Int64, at: Timestamp)] = [:]
    /// The first time of a run.
    var signedSince: (run: Int, at: Int64, now: Int64)?
    /// When each of its words was signed, by the world's time.
    var signedAt: [SignedTime: Int64] = [:]
    /// It is one of before nonces were answered.
    var isOlder: Bool { world.schedule.seed % 16 == 7 }
    var putBacks = 0
    /// How often it was started.
    private(set) var runs = 0
    var wasPutBack: Bool { putBacks > 0 }
    /// What devices that are there have still to be asked for.
    var questions = Questions()
    /// The incarnations that the home has given out.
    var enrolments: [DeviceID: Int64] = [:]
    /// The last one of each device, also of those that were taken out since.
    var givenOut: [DeviceID: Int64] = [:]
    /// When they became again those of the last backup.
    var homePutBackAt: Int64 = -1
    /// Both, as they were at the last backup.
    var backedUpHome: (enrolments: [DeviceID: Int64], givenOut: [DeviceID: Int64])?
    /// As what this run has answered that devices may be enrolled, and when.
    var enrolling: [DeviceID: (incarnation: Int64, at: Int64)] = [:]
    /// Who was taken out, how often, and is let in by a home that was put back, as this controller knows.
    var letIn: [DeviceID: Int] = [:]
    /// What operators were answered to have been done: the lowest revision that each address must have.
    var promises: [Address: Int64] = [:]
    /// The latest epoch in which operators were answered that something is done; and as of the backup that was put back last.
    var answeredEpoch: Int64 = 0
    var undoneEpoch: Int64 = 0
    /// Every revision that an operator was answered with, and those that were made from another.
    var answered: [Address: Set<Int64>] = [:]
    var based: [(address: Address, from: Int64, to: Int64)] = []
    /// How often the root key has renewed the trust document.
    private(set) var renewals = 0
    private(set) var trustRenewedAt: Int64 = .min
    /// What the messages of this connection say of the devices, as somebody beside the controller reads them.
    var watch = PresenceWatch()
    /// What a deliberate fault lets it say once on a connection.
    var said: Set<[UInt8]> = []
    /// In which of its runs topics were cleared last.
    var clearedBy: [String: Int] = [:]
    /// When it has last cleared something that a device had said.
    var clearedAt: [DeviceID: Int64] = [:]
    /// The documents that it has ever published, by topic.
    var documentsSaid: [String: Set<[UInt8]>] = [:]
    /// What it has published on this connection to mend what the broker held.
    var repair = Repair()
    /// The requests of this connection that are not answered yet.
    var heard: Set<RequestName> = []
    /// When the changes were first answered whose answers are to be kept.
    var keptSince: [RequestName: Int64] = [:]
    /// The requests that have come.
    var asked: [RequestName: Asked] = [:]
    /// Where the newest report of each device-app stands that its store has had.
    var orders: [FleetStore.DeviceApp: ReportOrder] = [:]
    /// Through which incarnation each device was taken out of the fleet, as operators were answered.
    var removed: [DeviceID: Int64] = [:]
    /// Of which devices it warns in this run that they are copies, and which incarnation those are.
    var copies: [DeviceID: Int64] = [:]
    /// When this run has read first, and last, of each connection that another controller on this home has had; first as far
    /// as it must have counted that.
    var rivals: [RandomID: (first: Int64?, last: Int64)] = [:]
    /// Which devices it shows as gone; nil where that is not known.
    var offline: Set<DeviceID>?
    /// Since when it showed them so.
    var goneSince: [DeviceID: Timestamp?] = [:]
    /// Until when it reads there.
    var homeBusyUntil: Int64 = 0
    /// What it has read in the home last.
    private(set) var homeRead: [DeviceID: Int64] = [:]
    /// Of whom the home has something else since then, since it was put back.
    var unread: Set<DeviceID> = []
    /// Until when nothing can be read there.
    var homeHiddenUntil: Int64 = 0
    /// How often it has asked to read there.
    var homeReadings = 0
    /// What its store must say is desired, and what its backup must.
    var desired = DesiredModel()
    var backedUpDesired = DesiredModel()
    /// Since when each device-app is told by the layers that speak to it now.
    var layers = LayersWatch()
    var phase = Phase.offline
    var servingSince: Int64 = 0
    /// It was started with --restored, and has not begun its epoch yet.
    var isRestoring = false
    /// Of which retirements of after its backup the broker has shown it something on this connection.
    var retirementsShown: Set<Address> = []
    /// Whom it tells in vain, on this connection, that something is lost.
    var losses = LossWatch()

    enum Phase: String, CaseIterable { case offline, looking, serving }

    /// One run of the process.
    final class Running {
        var core: ControllerCore
        let since: Int64
        let startedAt: Timestamp
        init(_ core: consuming ControllerCore, since: Int64, startedAt: Timestamp) {
            self.core = core
            self.since = since
            self.startedAt = startedAt
        }
    }

    init(_ store: FleetStore, _ world: World) {
        self.store = store
        self.world = world
    }

    /// Its connection has it too.
    func takeApart() { connection = nil }

    var clock: Timestamp {
        Timestamp(milliseconds: SimulatedFleet.begin.milliseconds + world.now + clockOffset)
    }

    var isUp: Bool { running != nil }

    /// Whether no message from before this run of the process can be under way any more.
    var isSteady: Bool { running.map { world.now - $0.since > 2_000 } ?? false }

    /// The connection, once it has been told that it is connected.
    var readingConnection: Connection? { phase == .offline ? nil : connection }

    /// In some worlds in which days pass, nobody remembers what was deleted before the day.
    var tombstoneLife: Int64 { world.schedule.forgetsTombstones ? 12 * 3_600 : 91 * 86_400 }

    /// In some worlds it does little at once.
    private var batches: ControllerCore.Batches {
        var any = SplitMix64(seed: world.schedule.seed ^ 0xBA7C)
        var batches = ControllerCore.Batches()
        if any.chance(25) {
            (batches.hellos, batches.echoes, batches.documents) = (1 + any.below(3), 1 + any.below(3), 1 + any.below(3))
        }
        return batches
    }

    /// It is connected, and has read all that has come.
    var isIdle: Bool { isUp && phase != .offline && inbox.isEmpty && !isStalled }

    // MARK: The process

    func start(isRestoring: Bool) {
        guard running == nil else { return }
        runs += 1
        self.isRestoring = isRestoring
        (isStalled, late, copies, rivals) = (false, [], [:], [:])
        let isRestoring = isRestoring || world.fault == .startsAsRestored
        let isHomeHidden = world.fault == .enrolmentsNotRead || world.now < homeHiddenUntil
        let read = isHomeHidden ? [:] : enrolments
        do {
            let core = try ControllerCore(
                store: store, identity: world.fleet.identities[renewals],
                noted: world.fault == .putBackNotNoticed ? nil : noted,
                enrolments: read, isRestoring: isRestoring, startedAt: clock, tombstoneLife: tombstoneLife,
                batches: batches)
            if let noted, !isRestoring {
                let found = try store.position()
                if found.latest < noted.latest || found.latest == noted.latest && found.session < noted.session {
                    world.fail(.restored, "it starts on an older database, at \(found), than it has had, at \(noted)")
                }
            }
            running = Running(core, since: world.now, startedAt: clock)
            enrolling = [:]
            homeRead = read
            world.say(name, isRestoring ? "starts as restored" : "starts")
            connect()
        } catch let error as FleetControllerError where isFromBackUp && error.code == .stopped {
            world.say(name, "does not start: \(error)")
            world.after(500) { [unowned self] in start(isRestoring: true) }
        } catch {
            world.fail(.total, "the controller does not start: \(error)")
        }
    }

    func crash(thenStart isRestoring: Bool = false) {
        guard running != nil else { return }
        world.say(name, "is killed")
        running = nil
        phase = .offline
        effectsLeft = nil
        inbox = []
        if let connection {
            self.connection = nil
            // Its machine may be gone too, of which the broker hears nothing.
            let isSudden = downFor > 10_000 && world.noise.chance(50)
            world.broker.cut(connection, noticedAfter: isSudden ? world.noise.milliseconds(1...90_000) : 0)
        }
        forgetSome()
        world.after(downFor) { [unowned self] in start(isRestoring: isRestoring) }
    }

    func kill() { crash() }

    /// The home has a newer trust document, or the one after it: with the second it signs with the newer key, and the third
    /// withdraws the older one.
    func renewTrust() {
        let last = world.fleet.identities.count - 1
        guard renewals < last else { return }
        renewals = min(last, renewals + (world.noise.chance(40) ? 2 : 1))
        trustRenewedAt = world.now
        downFor = 100
        if isUp { crash() }
    }

    /// A process that starts again knows only what stands in the tables.
    private func forgetSome() {
        do {
            if world.fault == .eventsForgotten { try store.forgetEverySecondEvent() }
            store.forgetCaches()
        } catch {
            world.fail(.total, "\(error)")
        }
    }

    func handle(_ event: ControllerCore.Event) {
        guard let running else { return }
        guard !isStalled else { return late.append(event) }
        visit(event)
        if world.fault == .answersForgotten { try? store.forgetAnswers() }
        let isRequest: Bool
        if world.fault == .answersBeforeCommit, case .messages(let messages) = event {
            isRequest = messages.contains { $0.topic.contains("/request/") }
        } else {
            isRequest = false
        }
        let before = isRequest ? try? FleetStore(copying: store) : nil
        let (strangers, standing) = (strangers(before: event), standing(before: event))
        let enrolled = enrolledDevices(before: event)
        let (newer, wasLooking) = (newerWord(in: event), phase == .looking)
        let keysBefore = removedKeys()
        let isFull = roomLeft != nil
        noteRivals(in: event, isFull: isFull)
        if !isFull { noteRetirements(in: event) }
        var effects =
            if let roomLeft {
                store.onFullDisk(after: roomLeft.transactions, for: roomLeft.refused) {
                    running.core.handle(event, at: clock, uptime: world.now)
                }
            } else {
                running.core.handle(event, at: clock, uptime: world.now)
            }
        roomLeft = nil
        switch event {
        case .connected:
            phase = .looking
            (said, heard, repair, markedAt) = ([], [], Repair(), [:])
            watch = PresenceWatch()
            questions = Questions()
            retirementsShown = []
        case .disconnected: phase = .offline
        case .messages(let messages):
            let replaced = effects.compactMap { if case .publish(let topic, _, true) = $0 { topic } else { nil } }
            repair.cameBack(messages, replaced: Set(replaced), fromHostile: world.schedule.broker == .hostile)
            // What a full disk kept from it, it has not heard.
            if isFull {
                (questions, heard) = (Questions(), [])
            } else {
                questions.handled(messages, at: world.now, where: mayKnow)
            }
            // One that stops has read no further.
            if !effects.contains(where: { if case .stop = $0 { true } else { false } }) {
                checkPresences(new: strangers.before)
            }
            checkGone(messages)
            checkOrders()
            if !isFull { checkCopies() }
        case .tick: checkBeats(effects)
        case .refused: break
        case .enrolments(let enrolments):
            // What the home has had and has not any more was put back.
            enrolling = enrolling.filter { enrolments[$0.key] ?? 0 < $0.value.incarnation }
            // What they have said until now was somebody else's, or nobody's.
            orders = orders.filter { !unread.contains($0.key.device) }
            for device in unread.union(enrolments.keys.filter { !enrolled.contains($0) }) { forgetWords(of: device) }
            (homeRead, unread) = (enrolments, [])
            noteLetIn(enrolments)
            if !isFull { checkWarnings(enrolled) }
        }
        checkTold(event, effects, isFull: isFull)
        if world.fault != nil { effects = altered(effects) }
        if let newer, !isFull { checkStops(for: newer, effects, wasLooking: wasLooking) }
        checkKeysOfRemoved(since: keysBefore, behind: event)
        checkEnded(effects)
        checkAnswers(effects, strangers, standing)
        checkRivals(effects)
        // As well it may have died between two transactions, before it has said anything.
        if isFull, world.noise.chance(30) { return crash() }
        perform(effects, running, isFull)
        if self.running === running {
            switch event {
            case .messages: checkAnswered()
            case .connected, .disconnected: checkServing()
            case .tick: checkAlarm()
            case .refused, .enrolments: break
            }
        }
        if let before, world.noise.chance(25) {
            store = before
            crash()
        }
    }

    /// Where it says that it has published all that the broker lacked.
    func repair(in effects: [ControllerCore.Effect]) -> Int? {
        effects.firstIndex { if case .log(let line) = $0 { line.message == "repaired" } else { false } }
    }
}
