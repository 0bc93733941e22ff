import AppConnect
import DeviceAgent
import FleetProtocol

/// An app on a device: the library's real session, with a delegate that answers as this app does.
final class AppProcess {
    unowned let machine: Machine
    let id: AppID
    private(set) var session: AppSession?
    private var install: RandomID
    private(set) var launch = 0
    /// Nobody starts it.
    private(set) var isClosed = false
    private(set) var isClosedForAWhile = false
    /// This process has had its ready.
    var wasReady = false
    var isRunning = false
    /// It has retired itself, and has not been told so by its agent yet.
    var isRetiring = false
    /// Its data folder says that it has retired itself, as far as that can be written.
    private(set) var isMarked = false
    private var hasFolder: Bool { install.text.utf8.reduce(0, &+) % 4 != 0 }
    var link: LinkNumber?
    var isPumpDue = false
    /// It has a delegate at present.
    var isAttended = true
    /// The last that it was told of the screen is that the agent takes it.
    var isResigned = false
    var lastUp: Int64 = 0
    var lastDown: Int64 = 0
    /// Shown texts of which the person has said nothing yet.
    var displays: Set<Int64> = []
    /// What it has asked about copying and pasting, without an answer yet.
    var copying: [Int64: PasteboardItem?] = [:]
    var copies = 0
    /// Whether a person has seen them.
    var shown: [Int64: Bool] = [:]
    let manner: Manner
    /// What this version of the app implements.
    private(set) var callbacks: Set<Callback>
    private var updates: SplitMix64
    /// When its connection to the agent breaks by itself.
    var breaks: SplitMix64
    /// In which launches it has its delegate only later.
    private var attends: SplitMix64
    /// By what its agent has said last on this connection.
    var locksItself = false
    /// Of which it has said by itself that it cannot do it.
    var saidUnsupported: Set<Policy> = []
    var watch = AppWatch()
    /// The newest delivery of each kind that has come.
    var newestTold: [DeliveryKind: Int64] = [:]
    /// How often its earlier launches were said to be ready.
    private(set) var readiesBefore = 0
    /// The policies for which this installation, or the library for it, has answered.
    private(set) var answered: Set<Policy> = []
    /// What this installation was called with last, of each kind: it has kept that, whatever became of the process.
    var called: [DeliveryKind: Delivery] = [:]
    /// That has been forgotten since.
    var isCalledForLess = false
    var retirement = RetirementWatch()
    /// What this launch calls its library: an update of the app seldom brings another one.
    var sdk: String { "sim/\(launch / 3)" }

    typealias LinkNumber = Int64

    enum Manner { case prompt, wrong, late, never }

    var world: World { machine.world }
    var name: String { "\(machine.name)/\(id)" }

    init(_ id: AppID, _ machine: Machine) {
        self.id = id
        self.machine = machine
        install = .random(using: &machine.world.noise)
        manner = [.prompt, .prompt, .prompt, .prompt, .wrong, .late, .late, .never][machine.world.noise.below(8)]
        callbacks = Self.callbacks(&machine.world.noise)
        updates = SplitMix64(seed: UInt64(install.text.prefix(8), radix: 16) ?? 0)
        breaks = SplitMix64(seed: UInt64(install.text.suffix(8), radix: 16) ?? 0)
        attends = SplitMix64(seed: UInt64(install.text.prefix(16).suffix(8), radix: 16) ?? 0)
    }

    private static func callbacks(_ random: inout SplitMix64) -> Set<Callback> {
        guard random.chance(20) else { return Set(Callback.allCases) }
        return Set(Callback.allCases.filter { _ in !random.chance(40) })
    }

    // MARK: The process

    func start() {
        guard session == nil, !isClosed else { return }
        launch += 1
        // Another version, which implements other callbacks.
        if launch > 1, updates.chance(20) { callbacks = Self.callbacks(&updates) }
        wasReady = false
        isRunning = false
        isRetiring = false
        isAttended = true
        isResigned = false
        locksItself = false
        watch = AppWatch()
        readiesBefore = machine.watch.events.readies[id] ?? 0
        var session = AppSession(keepingRequests: world.requestLimit)
        try? session.start(
            as: Registration(
                app: id, install: install, launch: .random(using: &world.noise), sdk: sdk, implements: callbacks))
        if session.properties != .expectedInitial {
            world.fail(.quiet, "\(name) begins with \(session.properties)")
        }
        self.session = session
        world.say(name, "is launched")
        if !world.isCalm, attends.chance(5) { lookAway() }
        connect()
    }

    func crash() {
        guard session != nil else { return }
        if !world.isCalm, world.noise.chance(20) { stop() }
        world.say(name, "dies")
        session = nil
        (displays, copying) = ([], [:])
        closeLink()
        let launch = launch
        world.after(world.isCalm ? 10 : world.noise.milliseconds(10...5_000)) { [unowned self] in
            if self.launch == launch { start() }
        }
    }

    /// It ends its session itself. After that it is called for nothing.
    private func stop() {
        world.say(name, "stops")
        run { $0.stop() }
        run { session in
            let (call, effects) = session.next(for: callbacks)
            if let call { world.fail(.quiet, "\(name): it has stopped, and is called: \(call)") }
            return effects
        }
    }

    /// Somebody closes it, and may open it again later.
    func close() {
        world.say(name, "is closed")
        isClosed = true
        end()
        (displays, copying) = ([], [:])
    }

    /// Somebody closes it for milliseconds, or for as long as anything goes wrong, if that is less.
    func close(for time: Int64) {
        guard !isClosed else { return }
        isClosedForAWhile = true
        close()
        let launch = launch
        world.after(time) { [unowned self] in
            if self.launch == launch { open() }
        }
    }

    func open() {
        guard isClosed else { return }
        (isClosed, isClosedForAWhile) = (false, false)
        start()
    }

    /// Its machine is switched off for good.
    func end() {
        session = nil
        closeLink()
        launch += 1
    }

    func reinstall() {
        install = .random(using: &world.noise)
        answered = []
        saidUnsupported = []
        called = [:]
        isCalledForLess = false
        isMarked = false
        retirement.begin()
        crash()
    }

    /// Its device has stored what is in force, and why it has just been wiped.
    func stored(_ record: AppRecord, wiped: String?) {
        guard record.install == install else { return }
        let isReadySent = machine.watch.conversations[id]?.isReadySent ?? false
        retirement.stored(record, wiped: wiped, isReadySent: isReadySent)
    }

    // MARK: The session

    func run(_ body: (inout AppSession) -> [AppSession.Effect]) {
        guard session != nil else { return }
        var effects: [AppSession.Effect] = []
        if var session = self.session {
            self.session = nil
            effects = body(&session)
            self.session = session
        }
        for effect in effects {
            switch effect {
            case .send(let frame):
                watch.sends(frame)
                note(frame)
                send(frame)
            case .disconnect(let error):
                world.say(name, "drops the link: \(error.message)")
                guard let link else { continue }
                machine.linkClosed(link)
                lostLink(link)
            case .close:
                guard let link else { continue }
                self.link = nil
                // Behind what was said before.
                world.after(max(0, lastUp - world.now)) { [unowned machine] in machine.linkClosed(link) }
            case .callsWaiting: pumpLater()
            case .retirementOwed(let isOwed): isMarked = isOwed && hasFolder
            case .answered(let id, let answer):
                if copying.keys.contains(id) {
                    answered(id, answer)
                    continue
                }
                let isShown = answer == .done(true)
                if !displays.contains(id) {
                    world.fail(.quiet, "\(name): it is told of a text that it does not wait for")
                }
                if isShown, shown[id] != true {
                    world.fail(.quiet, "\(name): its text is said to be shown, and was not")
                }
                displays.remove(id)
            }
        }
        if session?.connection == .open, !watch.isEachAttemptTold {
            world.fail(
                .kept, "\(name): of \(watch.attempts) blocked attempts its agent is told \(watch.attemptsTold.count)")
        }
    }

    private func note(_ frame: AppFrame) {
        switch frame {
        case .acknowledge(let answer): answered.insert(answer.policy)
        case .register(let registration): answered.formUnion(registration.resume?.acknowledgements.map(\.policy) ?? [])
        default: break
        }
    }
}
