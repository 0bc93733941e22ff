import FleetProtocol

extension Schedule {
    package static let groups = 2
    package static let operators = 2

    /// The schedule of a seed; with a theme, the one of that theme.
    package init(seed: UInt64, theme: Theme? = nil) {
        var random = SplitMix64(seed: seed)
        let mixture = Mixture(seed: seed, theme: theme)
        let devices = [1, 1, 1, 2, 2, 3, 4, 8][random.below(8)]
        let apps = 1 + random.below(3)
        let any: Manners = [.honest, .honest, .honest, .honest, .honest, .lossy, .hostile, .hostile][random.below(8)]
        let broker = theme == .losses ? .lossy : any
        let count = 5 + random.below(36)
        var at: Int64 = 0
        var steps: [Step] = []
        for _ in 0..<count {
            let burst = mixture.isLayered ? 5 : 30
            at += random.chance(40) ? random.milliseconds(0...burst) : random.milliseconds(0...2_500)
            // Limits that count minutes need minutes in which little happens.
            if random.chance(mixture.pauses) { at += random.milliseconds(20_000...400_000) }
            steps.append(Step(at, Action(&random, devices: devices, apps: apps, broker, mixture)))
        }
        self.init(seed: seed, devices: devices, apps: apps, broker: broker, steps: steps)
        addDay(theme)
        addClosings(theme)
        addReturns(theme)
        addChangesOfLayers(theme)
        addPeople(theme)
        addHiddenHome(theme)
        addHomePutBack(theme)
        addCopyOfHome()
        addWrongLists()
        addLockOut()
        addDoubt(theme)
        addBounces(theme)
        addMeetings(theme)
    }
}

extension Schedule {
    /// A few kinds of actions that a schedule repeats: what goes wrong only when three rare things meet is met there.
    package enum Theme: String, CaseIterable, Sendable {
        /// The controller is put back from backups, and the broker from older databases.
        case restore
        /// Devices leave the fleet, come again, are others, and change groups meanwhile.
        case members
        /// The controller is put back from before devices left the fleet, or came.
        case registry
        /// Images and clones of devices, which speak in one name.
        case clones
        /// The trust in the controller's key is renewed while devices are away.
        case trust
        /// Disks are full at the wrong moment.
        case disks
        /// Everything is about one app: its layers change all the time.
        case layers
        /// Apps retire themselves, and die, while much is said to them.
        case retiring
        /// Devices without contact: limits, clocks, starts.
        case away
        /// Log levels: codes, times, clocks.
        case levels
        /// The broker drops what it has to deliver, while devices and the controller come and go.
        case losses
        /// Apps ask for the device's passcode, and people enter it, rightly or not.
        case passcodes
        /// People copy and paste, while apps are authorized, retired and locked.
        case pasteboards

        /// One that needs no broker of its own, and no policy.
        fileprivate static func any(_ random: inout SplitMix64) -> Self {
            let drawn = allCases.filter { ![.losses, .passcodes, .pasteboards].contains($0) }
            return drawn[random.below(drawn.count)]
        }

        fileprivate var kinds: [Action.Kind] {
            switch self {
            case .restore:
                [
                    .backUpController, .putBackController, .ageBroker, .crashBroker, .saveBroker, .retire,
                    .setControllerClock,
                ]
            case .members: [.remove, .enroll, .clone, .cutDevice, .crashBroker, .unplug, .freeze]
            case .registry: [.backUpController, .putBackController, .remove, .enroll, .crashBroker, .ageBroker]
            case .clones: [.image, .putBack, .clone, .crashAgent, .enroll]
            case .trust: [.renewTrust, .backUpController, .putBackController, .unplug, .ageBroker, .enroll]
            case .disks: [.fillDisk, .fillControllerDisk, .crashAgent, .crashController]
            case .layers: [.request, .request, .request, .request]
            case .retiring: [.retire, .retire, .request, .request, .crashAgent, .crashApp, .answer, .stall]
            case .away: [.unplug, .unplug, .setClock, .reboot, .crashAgent, .crashController, .stall, .stopClock]
            case .losses:
                [
                    .request, .request, .cutDevice, .crashBroker, .crashController, .cutController, .enroll, .unplug,
                    .backUpController, .putBackController,
                ]
            case .pasteboards: [.request, .request, .request, .crashAgent, .crashApp, .retire, .stopAgent]
            case .passcodes: [.request, .request, .crashAgent, .crashApp, .reboot, .stall, .stopAgent]
            case .levels: [.enterCode, .enterCode, .setClock, .reboot, .renewTrust, .request]
            }
        }
    }
}

/// What a schedule is made of. In most of them anything happens; in some a few kinds of actions, over and over: those of a
/// ``Schedule/Theme``, or any.
struct Mixture {
    private var kinds: [Action.Kind] = []
    private var aspect: Int?
    private(set) var pauses = 2
    private(set) var isLayered = false
    private var isAway = false
    private var areAskedFor = false
    private var isCopied = false

    init(seed: UInt64, theme: Schedule.Theme?) {
        var random = SplitMix64(seed: seed ^ 0x7EE3)
        let isAny = random.chance(15)
        let isNamed = random.chance(12) && !isAny
        var layers = SplitMix64(seed: seed ^ 0x1A7E5)
        let isOfLayers = !isAny && layers.chance(6)
        let theme = theme ?? (isNamed ? Schedule.Theme.any(&random) : isOfLayers ? .layers : nil)
        if let theme {
            kinds = theme.kinds + [.any(&random), .request]
        } else if isAny {
            // Something has to be wanted for anything to go wrong.
            kinds = [.request] + (0...1 + random.below(4)).map { _ in .any(&random) }
        } else {
            return
        }
        if random.chance(60) { aspect = random.below(5) }
        if random.chance(50) { pauses = 12 }
        switch theme {
        case .layers: isLayered = true
        case .away: (isAway, pauses) = (true, 12)
        case .levels: aspect = 4
        case .retiring: aspect = random.chance(50) ? 0 : aspect
        case .pasteboards: (aspect, isCopied) = (nil, true)
        case .passcodes: (areAskedFor, pauses) = (true, 12)
        default: break
        }
    }

    fileprivate func kind(_ random: inout SplitMix64) -> Action.Kind {
        if kinds.isEmpty || random.chance(20) { return .any(&random) }
        return kinds[random.below(kinds.count)]
    }

    func aspect(_ random: inout SplitMix64) -> Int {
        let any = [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4][random.below(11)]
        // Limits are for apps that are authorized.
        if isAway || areAskedFor { return random.chance(60) ? 3 : 0 }
        if isCopied { return [0, 0, 1, 1, 3][random.below(5)] }
        guard let aspect, random.chance(80) else { return any }
        return aspect
    }

    func variant(of aspect: Int, _ random: inout SplitMix64) -> Int {
        let any = random.below(6)
        if areAskedFor, aspect == 3 { return [0, 0, 0, 1, 3, 5][any] }
        return (isAway || areAskedFor) && aspect == 0 ? [0, 1, 2, 0, 3, 5][any] : any
    }
}

extension Action {
    /// What can happen, and how often beside the others.
    fileprivate enum Kind {
        case request, crashAgent, reboot, fillDisk, setClock, image, putBack, crashApp, reinstallApp, answer,
            attempt, retire, cutDevice, cutController, cutOperator, crashBroker, stopBroker, saveBroker,
            fillControllerDisk, crashController, backUpController, putBackController, setControllerClock,
            stopAgent, unplug, display, enterCode, question, renewTrust, refuse, remove, enroll, clone,
            ageBroker, pause, stopClock, stall, stallController, stallBroker, freeze, freezeController

        private static let weights: KeyValuePairs<Self, Int> = [
            .request: 38, .crashAgent: 7, .reboot: 2, .fillDisk: 2, .setClock: 2, .image: 1, .putBack: 1, .crashApp: 5,
            .reinstallApp: 2, .answer: 5, .attempt: 3, .retire: 1, .cutDevice: 6, .cutController: 2, .cutOperator: 1,
            .crashBroker: 4, .stopBroker: 1, .saveBroker: 3, .fillControllerDisk: 1, .crashController: 5,
            .backUpController: 1, .putBackController: 1, .setControllerClock: 1, .stopAgent: 2, .unplug: 4, .display: 1,
            .enterCode: 3, .question: 2, .renewTrust: 2, .refuse: 1, .remove: 1, .enroll: 2, .clone: 1, .pause: 1,
            .retire: 2, .ageBroker: 1, .stopClock: 1, .stall: 2, .stallController: 1, .stallBroker: 1, .freeze: 3,
            .freezeController: 1,
        ]

        private static let drawn = weights.flatMap { Array(repeating: $0.key, count: $0.value) }

        static func any(_ random: inout SplitMix64) -> Self { drawn[random.below(drawn.count)] }
    }

    fileprivate init(
        _ random: inout SplitMix64, devices: Int, apps: Int, _ broker: Schedule.Manners, _ mixture: Mixture
    ) {
        let device = random.below(devices)
        let app = random.below(apps)
        if broker == .hostile, random.chance(30) {
            self = .forge(device, Forgery.any(&random))
            return
        }
        if broker == .lossy, random.chance(5) {
            let isController = random.chance(50)
            self = .refuseSaid(isController ? nil : device, random.milliseconds(1...100_000))
            return
        }
        switch mixture.kind(&random) {
        case .request:
            self = .request(random.below(Schedule.operators), Change(&random, devices: devices, apps: apps, mixture))
        case .crashAgent: self = .crashAgent(device, effects: random.below(12))
        case .reboot: self = .reboot(device)
        case .fillDisk: self = .fillDisk(device, random.chance(60) ? 0 : random.milliseconds(1...60_000))
        case .setClock:
            self = .setClock(device, [-1_700_000_000, -86_400, -60, 60, 3_600, 2_000_000_000][random.below(6)])
        case .image: self = .image(device)
        case .putBack: self = .putBack(device)
        case .crashApp: self = .crashApp(device, app)
        case .reinstallApp: self = .reinstallApp(device, app)
        case .answer: self = .answer(device, app)
        case .attempt: self = .attempt(device, app)
        case .retire: self = .retire(device, app)
        case .cutDevice:
            self = .cutDevice(device, noticedAfter: random.chance(50) ? 0 : random.milliseconds(1...45_000))
        case .cutController:
            self = .cutController(noticedAfter: random.chance(50) ? 0 : random.milliseconds(1...45_000))
        case .cutOperator: self = .cutOperator(random.below(Schedule.operators))
        case .crashBroker:
            let time = random.milliseconds(1...3_000)
            // Now and then for two minutes: longer than anybody's alarm.
            self = .crashBroker(downFor: time > 2_900 ? time * 40 : time)
        case .stopBroker: self = .stopBroker(downFor: random.milliseconds(1...3_000))
        case .saveBroker: self = .saveBroker
        case .fillControllerDisk: self = .fillControllerDisk(after: random.below(4))
        case .crashController:
            let isLong = random.chance(10)
            self = .crashController(
                effects: random.below(12), downFor: random.milliseconds(isLong ? 60_000...300_000 : 1...3_000))
        case .backUpController: self = .backUpController
        case .putBackController: self = .putBackController(withFolder: random.chance(50))
        case .setControllerClock:
            self = .setControllerClock([-3_600, -30, 86_400, 17_280_000, -17_280_000][random.below(5)])
        case .stopAgent: self = .stopAgent(device)
        case .unplug:
            self = .unplug(device, random.milliseconds(random.chance(20) ? 1_000...20_000 : 60_000...400_000))
        case .freeze: self = .freeze(device, random.milliseconds(1...60_000), isDead: random.chance(50))
        case .freezeController: self = .freezeController(random.milliseconds(1...120_000), isDead: random.chance(50))
        case .refuse: self = random.chance(50) ? .refuse(device, app) : .intrude(device, app)
        case .display: self = .display(device, app)
        case .enterCode: self = .enterCode(device, min(1, apps - 1), isRight: random.chance(40))
        case .question: self = .question(random.below(Schedule.operators), random.below(7))
        case .renewTrust: self = .renewTrust
        case .remove: self = .remove(device)
        case .enroll: self = .enroll(device, isNew: random.chance(40))
        case .clone: self = .clone(device)
        case .ageBroker: self = .ageBroker(by: 1 + random.below(4), downFor: random.milliseconds(1...3_000))
        case .pause: self = .pause
        case .stopClock: self = .stopClock(device, random.milliseconds(1_000...300_000))
        case .stall:
            let time = random.milliseconds(random.chance(50) ? 10...3_000 : 30_000...200_000)
            self = .stall(device, time, isAsleep: random.chance(30))
        case .stallBroker:
            self = .stallBroker(random.milliseconds(random.chance(50) ? 10...3_000 : 10_000...100_000))
        case .stallController:
            self = .stallController(random.milliseconds(random.chance(50) ? 10...3_000 : 30_000...150_000))
        }
    }
}

extension Change {
    /// As variants of the first aspect.
    static let (authorized, retired) = (0, 5)

    init(_ random: inout SplitMix64, devices: Int, apps: Int, _ mixture: Mixture) {
        if mixture.isLayered {
            self.init(layers: &random, devices: devices, mixture)
            return
        }
        let app = random.below(apps)
        let place: Place =
            switch random.below(6) {
            case 0..<3: .all
            case 3..<5: .group(random.below(Schedule.groups))
            default: .device(random.below(devices))
            }
        switch random.below(20) {
        case 0..<14:
            let aspect = mixture.aspect(&random)
            self = .apply(
                app: app, place, aspect: aspect, variant: mixture.variant(of: aspect, &random),
                isBased: random.chance(15))
        case 14..<16: self = .delete(app: app, place)
        case 16..<19:
            self = .group(
                random.below(Schedule.groups), priority: Int64(random.below(3)), members: random.below(1 << devices))
        default: self = .deleteGroup(random.below(Schedule.groups))
        }
    }

    /// One of the first app's layers, or who is in which.
    private init(layers random: inout SplitMix64, devices: Int, _ mixture: Mixture) {
        let group = random.below(Schedule.groups)
        let places: [Place] = [.all, .device(random.below(devices)), .group(group), .group(1 - group)]
        switch random.below(10) {
        case 0..<3:
            let all = 1 << devices
            self = .group(
                group, priority: Int64(random.below(2)), members: random.chance(70) ? all - 1 : random.below(all))
        case 3: self = .delete(app: 0, places[random.below(3)])
        default:
            self = .apply(
                app: 0, places[random.below(4)], aspect: mixture.aspect(&random), variant: random.below(6),
                isBased: false)
        }
    }
}
