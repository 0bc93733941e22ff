import DeviceAgent
import FleetController
import FleetProtocol

/// What the worlds of one thread share.
final class Workshop {
    let fleet: SimulatedFleet
    /// Used again and again: making the tables, and preparing the statements, takes longer than most schedules.
    private let store: FleetStore

    init(_ fleet: SimulatedFleet) throws {
        self.fleet = fleet
        store = try FleetStore()
    }

    /// The store, with nothing in it. One world at a time has it.
    func emptyStore() throws -> FleetStore {
        try store.empty()
        return store
    }
}

/// A whole fleet in one process and one thread: the real cores of controller, agents and apps, and a broker, disks, clocks
/// and networks that fail as the schedule says. Nothing in it is random but by the seed, and nothing waits.
final class World {
    let schedule: Schedule
    let fault: Fault?
    /// Counts what is visited, if somebody wants to know.
    let coverage: Coverage?
    let fleet: SimulatedFleet
    private let store: FleetStore
    var now: Int64 = 0
    var noise: SplitMix64
    var trace: Trace
    /// In some worlds devices can keep only few events.
    let eventLimit: Int
    /// In some, apps can keep only few requests.
    let requestLimit: Int
    /// In half of them a guard says who may do what at the broker.
    let isGuarded: Bool
    /// In some the broker ends a connection whenever it refuses what is published there, as Mosquitto does without a limit to its
    /// queues, or with a full one.
    let endsRefused: Bool
    /// The faults have stopped.
    var isCalm = false
    /// Everything has come to rest since.
    var isSettled = false
    /// The minute before it is looked at whether everything has.
    var restingMinute: RestingMinute?
    /// A hostile broker has shown the controller reports of earlier, as of a device's image.
    var areReportsReplayed = false
    /// A controller that did not notice that it was put back has given a number to another change as well.
    var isNumberUsedTwice = false
    private var queue = EventQueue()
    private(set) var violation: Violation?
    private(set) var steps = 0
    private(set) lazy var broker = Broker(schedule.broker, self)
    private(set) lazy var controller = Controller(store, self)
    private(set) lazy var rival = Rival(self)
    private(set) var machines: [Machine] = []
    /// Copies of machines, which run beside them.
    var clones: [Machine] = []
    /// Those who may change something, and one who may only look.
    private(set) var operators: [Operator] = []
    var viewer: Operator { operators[Schedule.operators] }

    init(
        _ schedule: Schedule, _ workshop: Workshop, fault: Fault? = nil, isTraced: Bool = false,
        coverage: Coverage? = nil
    ) throws {
        self.schedule = schedule
        self.fault = fault
        self.coverage = coverage
        fleet = workshop.fleet
        store = try workshop.emptyStore()
        noise = SplitMix64(seed: schedule.seed ^ 0xF1EE7)
        var limits = SplitMix64(seed: schedule.seed ^ 0x4EE9)
        eventLimit = limits.chance(20) ? 2 + limits.below(4) : 1_000
        requestLimit = limits.chance(20) ? 1 + limits.below(4) : 256
        isGuarded = limits.chance(50)
        endsRefused = limits.chance(20)
        trace = Trace(isOn: isTraced)
        machines = try (0..<schedule.devices).map { try Machine($0, self) }
        operators = (0...Schedule.operators).map { Operator($0, self) }
    }

    /// Nobody outside the world holds its parts.
    func takeApart() {
        queue = EventQueue()
        for machine in machines + clones { machine.takeApart() }
        controller.takeApart()
        for person in operators { person.takeApart() }
        broker.takeApart()
    }

    // MARK: Time

    func after(_ delay: Int64, _ body: @escaping () -> Void) { queue.add(now + max(0, delay), body) }

    /// How long a message is under way: mostly short.
    func delay() -> Int64 {
        if isCalm { return 1 }
        switch noise.below(16) {
        case 0: return noise.milliseconds(20...1_500)
        case 1...4: return noise.milliseconds(3...30)
        default: return noise.milliseconds(0...3)
        }
    }

    func say(_ who: @autoclosure () -> String, _ what: @autoclosure () -> String) {
        if trace.isOn { trace.add(now, who(), what()) }
    }

    func visit(_ part: String, _ what: @autoclosure () -> String, _ where: @autoclosure () -> String) {
        coverage?.count(part, what(), `where`())
    }

    func fail(_ law: Law, _ what: String) {
        guard violation == nil else { return }
        violation = Violation(law: law, what: what)
        say("LAW", "broken: \(law.rawValue): \(what)")
    }

    // MARK: Running

    /// Runs the schedule, lets the world come to rest, and looks at it.
    func run() -> Violation? {
        defer { takeApart() }
        controller.start(isRestoring: false)
        let end = (schedule.steps.last?.at ?? 0) + 3_000
        installLater(until: end)
        for machine in machines { machine.switchOn() }
        for person in operators { person.start() }
        broker.saveLater()
        for step in schedule.steps {
            queue.add(step.at) { [unowned self] in
                say("STEP", "\(step.action)")
                perform(step.action)
            }
        }
        var any = SplitMix64(seed: schedule.seed ^ 0xC0217)
        for _ in 0..<2 { queue.add(Int64(any.below(Int(end)))) { [unowned self] in checkCounts() } }
        // Much may happen while its delegate is gone.
        if let absentee, any.chance(50) {
            let time = Int64(any.below(Int(end)))
            queue.add(time) { if absentee.wasReady { absentee.turnAway() } }
            // Its agent comes back to it meanwhile.
            if any.chance(50) { queue.add(time + Int64(any.below(10_000))) { absentee.machine.kill() } }
        }
        pass(until: end)
        checkCounts()
        guard violation == nil else { return violation }
        calm()
        // A connection that is good for nothing any more is left when that has been noticed.
        let hasClogged = broker.connections.contains { $0.isClogged || $0.isOwing }
        pass(until: now + 2_000)
        checkCounts()
        // What was dropped without a word is found by comparing, which takes ten minutes to go round; so is what a restored
        // controller does not know of.
        let isLossy = schedule.broker == .lossy || schedule.forgetsTombstones || controller.wasPutBack
        // Who was shown nothing for long asks ever more rarely, and is told in later rounds what it lacks.
        rest(for: broker.hasHidden ? 3_600_000 : hasClogged ? 2_700_000 : isLossy ? 1_500_000 : 75_000)
        guard violation == nil, let absent else {
            changeAtRest()
            return violation
        }
        if absent.isClosed { absent.open() } else { absent.turnBack() }
        rest(for: 75_000)
        return violation
    }

    /// Lets the world come to rest, and looks at it.
    private func rest(for time: Int64) {
        pass(until: now + time - 60_000)
        let before = steps
        restingMinute = RestingMinute()
        pass(until: now + 60_000)
        let minute = restingMinute
        restingMinute = nil
        if violation == nil { checkAtRest() }
        if let minute, violation == nil { check(minute, steps: steps - before) }
    }

    /// Some apps come to their device only later.
    private func installLater(until end: Int64) {
        var any = SplitMix64(seed: schedule.seed ^ 0x1A7E)
        for machine in machines {
            for app in machine.apps where any.chance(4) {
                app.close()
                queue.add(Int64(any.below(Int(end)))) { app.open() }
            }
        }
    }

    /// An alarm has rung for what is over.
    func nothingHappened() { steps -= 1 }

    func pass(until end: Int64) {
        while violation == nil, let at = queue.next, at <= end {
            now = max(now, at)
            queue.removeFirst()?()
            steps += 1
            if steps > 400_000 + now / 100 { return fail(.bounded, "the world does not come to rest") }
        }
        now = max(now, end)
    }

    /// In some worlds an app stays closed, or without a delegate, until the rest has come to rest.
    private lazy var absentee: AppProcess? = {
        var any = SplitMix64(seed: schedule.seed ^ 0xC105ED)
        guard any.chance(15) else { return nil }
        let machine = machines[any.below(machines.count)]
        return machine.apps[any.below(machine.apps.count)]
    }()

    /// The same, as far as its agent knows it then: otherwise the controller may have an earlier device's status.
    private lazy var absent: AppProcess? = {
        guard let absentee else { return nil }
        let machine = absentee.machine
        let isKnown = machine.disk.state.apps[absentee.id] != nil && !machine.wasPutBack && machine.enrolment == nil
        return isKnown ? absentee : nil
    }()

    /// The faults stop; what is down comes up, what was shown wrongly is shown anew.
    private func calm() {
        say("STEP", "the faults stop")
        isCalm = true
        broker.calm()
        controller.calm()
        for copy in clones { copy.vanish() }
        for machine in machines { machine.calm() }
        for app in machines.flatMap(\.apps) where app.isClosedForAWhile { app.open() }
        if absent == nil { absentee?.turnBack() }
        if let absent, absent.wasReady, noise.chance(40) || !absent.isAttended {
            absent.turnAway()
        } else {
            absent?.close()
        }
        for machine in machines where machine.isRemovalUnfinished { finishRemoval(of: machine) }
        for machine in machines where machine.enrolment != nil { finishEnrolment(of: machine, by: operators[0]) }
        // The controller has mended what it was shown while it was there.
        if schedule.broker == .hostile {
            for connection in broker.connections where connection.client !== controller { broker.end(connection) }
        }
        broker.manners = .honest
    }
}
