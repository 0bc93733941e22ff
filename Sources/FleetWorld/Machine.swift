import DeviceAgent
import FleetProtocol

/// A device: the agent's process with its real core, its disk, its clocks, and the apps.
final class Machine: BusClient {
    unowned let world: World
    let number: Int
    let id: DeviceID
    let user: User
    let name: String
    var enrollment: Enrollment
    var core: DeviceCore?
    var disk: DeviceDisk
    var image: DeviceDisk?
    /// An image was put back, or a copy has run beside it: this device has been two.
    var wasPutBack = false
    /// The last start before an image was put back: what has this boot or an earlier one may be told of two.
    var lastBootOfOthers: Int64 = 0
    /// From this incarnation on it is one alone.
    var oneSince: Int64 = 1
    /// It has another disk than it began with; which incarnation was the first to be heard from there is not known here.
    var isReplaced = false
    /// The apps whose keys were on the disk that it had before this enrolment, as the controller knew.
    var leftBehind: (incarnation: Int64, apps: Set<AppID>)?
    /// As which it first ran on the disk that it has.
    var diskSince: Int64 = 1
    /// It was taken out of the fleet, and has not been enrolled again.
    var isRemoved = false
    /// The controller is still to be told of it.
    var isRemovalUnfinished = false
    /// It was enrolled again while it, or what it was before, was still being taken out: until then the removal may be heard
    /// of last, and the device counts as taken out until the home is read and it speaks again.
    var removalMayFollowUntil: Int64 = 0
    var takenOutAt: Int64 = 0
    /// As what the home had it then.
    var takenOutAs: Int64 = 0
    /// As what it was enrolled when the home was put back last: a removal that somebody asked for earlier takes that with it.
    var enrolledAtPutBack: Int64 = 0
    /// Until then the broker takes the password that it had before.
    var accountUntil: Int64 = 0
    /// The controller has known of its last enrolment before that was in the home.
    var isEnrolmentKnown = false
    /// The newest status of each app that has told of keys that are gone.
    var destroyedSaid: [AppID: ReportOrder] = [:]
    /// How somebody enrols it.
    var enrolment: Enrolment?
    var isGone = false

    enum Enrolment {
        /// As what it is.
        case again
        /// In the place of a device that is no more.
        case replaced
    }

    private(set) var apps: [AppProcess] = []
    /// Of the agent's process.
    var run = 0
    /// Effects that are still performed before the process dies.
    var effectsLeft: Int?
    /// The boot that its disk named when the agent started; 0 where there was none.
    var bootBefore: Int64 = 0
    /// How often there was each boot that its clock does not tell from others.
    var starts: [Int64: Int] = [:]
    var isDiskFull = false
    var fullUntil: Int64 = 0
    var inbox: [DeviceEvent] = []
    private var isWorkDue = false
    var wake = WakeTime()
    var clocks = DeviceClocks()
    var isOn = false
    /// Nothing of the process runs.
    var isStalled = false
    /// With all that runs on it.
    var isAsleep = false
    /// What is to be done when the disk has taken a transaction: the agent decides nothing meanwhile, and its client of the
    /// broker goes on.
    var unwritten: ArraySlice<DeviceEffect>?
    /// When that was decided, and for which connection, by its name.
    private var decidedAt: Int64 = 0
    private var decidedFor: RandomID?
    /// Whether that stands.
    var isConnectionCurrent: Bool {
        isEstablished && (watch.bus.connection == decidedFor || world.fault == .connectionsConfused)
    }
    // The bus
    var connection: Connection? {
        didSet {
            isEstablished = false
            greeting = nil
            outbox = Outbox()
        }
    }
    /// The client has been told that the connection stands.
    var isEstablished = false
    var outbox = Outbox()
    /// On this connection: all its apps, and what has become of them since.
    var hasReported = false
    /// The controller's last word to this device on this connection: it may come twice.
    var greeting: DeviceEvent?
    // The link
    var links: [Int64: AppProcess] = [:]
    var lastLink: Int64 = 0
    private var lastKey = 0
    /// Where a person waits whether the code that was typed is right.
    var codeLinks: Set<Int64> = []
    var person: Person
    /// Connections of processes that are another's app, and have not been closed yet. Their numbers are below zero: what
    /// they have said may be looked at when they are closed already.
    var intruders: Set<Int64> = []
    var unpluggedUntil: Int64 = 0
    /// What the last connection said last, which a library may say again.
    var lastSaid: [(topic: String, payload: [UInt8])] = []
    var isAboutToSayAgain = false
    var watch: Watch
    var dues = Dues()
    var wakes = Wakes()
    /// When the present connection was made.
    var connectedAt: Int64 = 0
    /// Connections of apps that have broken by themselves.
    var brokenLinks: Set<Int64> = []
    /// Texts that wait for the screen, or have it.
    var displays = 0
    /// Its agent is older than the controller, and does not know all of its values.
    let older: OlderReader?
    /// What each run of the agent makes its nonces from.
    var secrets = SplitMix64(seed: 0)

    init(_ number: Int, _ world: World) throws {
        self.number = number
        self.world = world
        id = DeviceID(unchecked: "d\(number)")
        name = id.text
        user = .device(id)
        enrollment = Enrollment(
            device: id, fleet: SimulatedFleet.id, fleetUUID: world.fleet.uuid, incarnation: 1,
            rootKey: world.fleet.rootKey.publicKey, trust: world.fleet.trust, epoch: 1, floors: [:])
        disk = DeviceDisk(isReal: world.schedule.seed % 8 == 0)
        world.controller.enrol(id, as: 1)
        watch = Watch(EventWatch(maximum: world.eventLimit))
        person = Person(seed: world.schedule.seed ^ 0xFACE &+ UInt64(number))
        var ages = SplitMix64(seed: world.schedule.seed ^ 0x01DE4 &+ UInt64(number))
        older = ages.chance(8) ? OlderReader(world.fleet) : nil
        apps = (0..<world.schedule.apps).map { AppProcess(AppID(unchecked: "a\($0)"), self) }
        clocks = DeviceClocks(seed: world.schedule.seed ^ 0xC10C &+ UInt64(number))
        secrets = SplitMix64(seed: world.schedule.seed ^ 0x5EC7 &+ UInt64(number))
    }

    init(copying original: Machine) {
        number = original.number
        world = original.world
        id = original.id
        name = original.name + "'"
        user = original.user
        enrollment = original.enrollment
        disk = original.disk
        wasPutBack = true
        disk.replace(by: original.disk)
        watch = Watch(EventWatch(maximum: world.eventLimit))
        watch.passcode = PasscodeWatch(wrong: disk.state.passcode.wrong)
        person = Person(seed: world.schedule.seed ^ 0xFACF &+ UInt64(number))
        older = original.older
        secrets = SplitMix64(seed: world.schedule.seed ^ 0xC10E &+ UInt64(number))
        apps = (0..<world.schedule.apps).map { AppProcess(AppID(unchecked: "a\($0)"), self) }
    }

    func takeApart() {
        links = [:]
        apps = []
        connection = nil
    }

    var clock: Now {
        let excess = world.fault == .wallClockTrusted ? max(0, clocks.wallOffset) : 0
        return Now(
            wall: clocks.wall(at: world.now), uptime: clocks.uptime(at: world.now) + excess, bootID: clocks.bootID)
    }

    /// How long it has run in all its boots.
    var runningTime: Int64 { watch.earlierBoots + clocks.uptime(at: world.now) }

    func post(_ event: DeviceEvent) {
        guard core != nil, world.fault == nil || !isDropped(event) else { return }
        inbox.append(event)
        workSoon()
    }

    private func workSoon() {
        guard !isWorkDue else { return }
        isWorkDue = true
        world.after(world.isCalm || world.noise.chance(70) ? 0 : world.noise.milliseconds(1...10)) { [unowned self] in
            isWorkDue = false
            guard !isStalled, unwritten == nil else { return }
            let events = inbox
            inbox = []
            if !events.isEmpty { work(events) }
        }
    }

    func work(_ events: [DeviceEvent]) {
        guard core != nil else { return }
        let now = clock
        let groups = core?.membership ?? []
        for event in events {
            visit(event)
            if world.fault == .attemptsDropped, case .frame(_, .blocked) = event { continue }
            if world.fault == .documentsUnheard, isDocument(event), world.noise.chance(5) { continue }
            if givesUp(event) { continue }
            if case .connected(let name) = event { watch.bus.began(name, at: runningTime) }
            expectPasteboard(event)
            core?.handle(event, at: now)
            forgetCopied()
        }
        guard let effects = core?.takeEffects(at: now) else { return }
        (decidedAt, decidedFor) = (world.now, core?.connection)
        for case .publish(.presence, let said, _) in effects { noteNonce(said) }
        if let core { watch.looked(core, at: runningTime) }
        checkStep(events.contains(where: isOfIntruder) ? events.filter { !isOfIntruder($0) } : events, effects)
        checkTaken(events, in: groups)
        wakePerson()
        wakeCaller()
        watch.bus.before = []
        let said = world.fault == nil ? effects : altered(effects)
        checkPasteboard(said)
        checkDues(events, said)
        perform(said[...], isStored: false)
    }

    /// The disk takes its time for a transaction.
    private func write(then effects: ArraySlice<DeviceEffect>) {
        unwritten = effects
        let run = run
        func goOn(after time: Int64) {
            world.after(time) { [unowned self] in
                guard self.run == run, let effects = unwritten else { return }
                if isStalled { return goOn(after: 100) }
                unwritten = nil
                perform(effects, isStored: true)
                if self.run == run, unwritten == nil, !inbox.isEmpty { workSoon() }
            }
        }
        goOn(after: world.noise.milliseconds(20...3_000))
    }

    private func wakeLater() {
        guard let core else { return }
        let next = core.nextTick
        guard let delay = wake.set(for: next, at: core.state.running.total) else { return }
        let run = run
        let time = clocks.delay(of: min(delay, 3_600_000))
        world.after(decidedAt + time + 1 - world.now) { [unowned self] in
            if self.run == run, wake.rang(for: next) { post(.tick) }
        }
    }

    func perform(_ effects: ArraySlice<DeviceEffect>, isStored: Bool) {
        let run = run
        var isStored = isStored
        for (index, effect) in zip(effects.indices, effects) {
            if let left = effectsLeft {
                guard left > 0 else {
                    if isStored { watch.unsaid(effects[index...]) }
                    return crash(isRestarting: true)
                }
                effectsLeft = left - 1
            }
            visit(effect)
            switch effect {
            case .destroyKeys(let app):
                checkDestruction(of: app)
                if !world.isCalm, world.noise.chance(2) {
                    world.say(name, "cannot destroy the keys of \(app)")
                    return crash(isRestarting: true)
                }
                disk.keys[app] = nil
            case .createKeys(let app):
                if disk.keys[app] == nil || world.fault == .keysMadeAnew {
                    if meetsFullDisk() { return crash(isRestarting: true) }
                    lastKey += 1
                    disk.keys[app] = lastKey
                    watch.conversations[app]?.renewed()
                }
                checkKeys(of: app)
            case .store(let changes):
                if meetsFullDisk() { return crash(isRestarting: true) }
                if world.fault == .transactionsHalved, world.noise.chance(10) {
                    try? disk.apply(Array(changes.prefix(changes.count / 2)))
                    return crash(isRestarting: true)
                }
                let passcode = disk.state.passcode
                do { try disk.apply(changes) } catch { return world.fail(.total, "\(name): \(error)") }
                stored(changes, was: passcode)
                watch.performed(at: runningTime, clock.wall, core?.trust.version ?? 0)
                isStored = true
                if !world.isCalm, world.noise.chance(3) { return write(then: effects[(index + 1)...]) }
            case .subscribe(let filters, let barrier): subscribe(filters, barrier)
            case .unsubscribe(let filters):
                guard let connection, isConnectionCurrent, world.fault != .groupsStillHeard else { continue }
                watch.bus.left(filters)
                world.broker.unsubscribe(filters.map { $0.text(in: SimulatedFleet.id) }, on: connection)
            case .publish(let address, let payload, let retain):
                checkTold(address, payload)
                publish(payload, to: address, retain: retain)
            case .report(let status):
                checkTold(status)
                if status.keys == .destroyed { destroyedSaid[status.app] = status.order }
                report(status)
            case .reconnect:
                guard isConnectionCurrent else { continue }
                world.say(name, "leaves the connection for another one")
                cut(noticedAfter: 0)
            case .send(let link, let frame):
                if case .codeResult = frame, codeLinks.remove(link.number) != nil {
                    post(.linkClosed(link))
                    continue
                }
                if case .passcodeResult(let result) = frame {
                    told(result, on: link)
                    continue
                }
                if case .refused = frame { watch.refused(link) }
                checkIntruder(frame, on: link)
                checkConversation(frame, on: link)
                checkSent(frame, to: links[link.number], on: link)
                links[link.number]?.receive(frame, on: link.number)
            case .sendKeys(let link, let app):
                guard let keys = keys(of: app) else { return crash(isRestarting: true) }
                checkIntruder(.keys(keys), on: link)
                checkMayHaveKeys(app, on: link)
                watch.given[link.number] = disk.keys[app]
                if watch.firstGiven[link.number] == nil { watch.firstGiven[link.number] = disk.keys[app] }
                links[link.number]?.receive(.keys(keys), on: link.number)
            case .close(let link):
                intruders.remove(link.number)
                if let app = links.removeValue(forKey: link.number) {
                    checkThrownOff(app, from: link.number)
                    app.lostLink(link.number)
                }
                later(after: 1) { $0.post(.linkClosed(link)) }
            case .display(let link, let number, _):
                if world.fault == .displaysNotAnswered, world.noise.chance(50) { continue }
                let isShown = world.noise.chance(80)
                links[link.number]?.shown[number] = isShown
                takeScreen()
                // Until the person has read it.
                later(after: world.isCalm ? 1 : world.noise.milliseconds(1...20_000)) {
                    $0.post(.displayed(link, id: number, isShown))
                    $0.giveScreenBack()
                }
            case .checkCode(let check, let text, _):
                let isRight = text == Self.rightCode || world.fault == .wrongCodesTaken
                later(after: 1 + Int64(person.codes.below(3_000))) { $0.post(.codeChecked(check, isRight: isRight)) }
            case .checkPasscode(let check, let text, let hash, let new):
                checkCounted(hash)
                let isRight = hash.map { $0 == text.map(Person.hash) } ?? true || world.fault == .wrongPasscodesTaken
                // Now and then there is no memory to compare it.
                var memory = SplitMix64(seed: world.schedule.seed ^ 0x3E30 ^ UInt64(bitPattern: world.now))
                let isUnknown = !world.isCalm && memory.chance(5)
                let verdict: PasscodeCheck.Verdict =
                    isUnknown ? .unknown : isRight ? .right(new: new.map(Person.hash)) : .wrong
                // Now and then longer than it takes a person to ask for something else.
                let time = 1 + Int64(person.chance.below(300))
                later(after: time.isMultiple(of: 8) ? 10 * time : time) { $0.post(.passcodeChecked(check, verdict)) }
            case .log(let entry):
                watch.noteRefusal(entry)
                if entry.detail?.hasSuffix("was here with other content") == true, world.controller.wasPutBack {
                    world.isNumberUsedTwice = true
                }
                world.say(name, "logs: \(entry.message) \(entry.detail ?? "") \(entry.app?.text ?? "")")
            }
            guard self.run == run else { return }
        }
        watch.performed(at: runningTime, clock.wall, core?.trust.version ?? 0)
        wakeLater()
    }

    /// Something that the process waits for.
    func later(after delay: Int64? = nil, _ body: @escaping (Machine) -> Void) {
        let run = run
        world.after(delay ?? world.delay()) { [unowned self] in if self.run == run { body(self) } }
    }
}
