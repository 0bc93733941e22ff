extension Schedule {
    package static let groups = 2
    package static let operators = 2

    /// The schedule of a seed.
    package init(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let theme = Theme(seed: seed)
        let devices = [1, 1, 1, 2, 2, 3, 4, 8][random.below(8)]
        let apps = 1 + random.below(3)
        let broker: Manners = [.honest, .honest, .honest, .honest, .honest, .lossy, .hostile, .hostile][random.below(8)]
        let count = 5 + random.below(36)
        var at: Int64 = 0
        var steps: [Step] = []
        for _ in 0..<count {
            at += random.chance(40) ? random.milliseconds(0...30) : random.milliseconds(0...2_500)
            // Limits that count minutes need minutes in which little happens.
            if random.chance(theme.pauses) { at += random.milliseconds(20_000...400_000) }
            steps.append(Step(at, Action(&random, devices: devices, apps: apps, broker, theme)))
        }
        self.init(seed: seed, devices: devices, apps: apps, broker: broker, steps: steps)
    }
}

/// What a schedule is about. In most of them anything happens; in some a few things, over and over: what goes wrong only when
/// three rare things meet is met there.
private struct Theme {
    /// Kinds of actions, as ``Action`` draws them.
    private var kinds: [Int] = []
    private var aspect: Int?
    private(set) var pauses = 2

    init(seed: UInt64) {
        var random = SplitMix64(seed: seed ^ 0x7EE3)
        guard random.chance(15) else { return }
        // Something has to be wanted for anything to go wrong.
        kinds = [random.below(38)] + (0...1 + random.below(4)).map { _ in random.below(Action.kinds) }
        if random.chance(60) { aspect = random.below(5) }
        if random.chance(50) { pauses = 12 }
    }

    func kind(_ random: inout SplitMix64) -> Int {
        if kinds.isEmpty || random.chance(20) { return random.below(Action.kinds) }
        return kinds[random.below(kinds.count)]
    }

    func aspect(_ random: inout SplitMix64) -> Int {
        let any = [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4][random.below(11)]
        guard let aspect, random.chance(80) else { return any }
        return aspect
    }
}

extension Action {
    fileprivate static let kinds = 120

    fileprivate init(
        _ random: inout SplitMix64, devices: Int, apps: Int, _ broker: Schedule.Manners, _ theme: Theme
    ) {
        let device = random.below(devices)
        let app = random.below(apps)
        if broker == .hostile, random.chance(30) {
            self = .forge(device, Forgery.allCases[random.below(Forgery.allCases.count)])
            return
        }
        switch theme.kind(&random) {
        case 0..<38:
            self = .request(random.below(Schedule.operators), Change(&random, devices: devices, apps: apps, theme))
        case 38..<46: self = .crashAgent(device, effects: random.below(12))
        case 46..<48: self = .reboot(device)
        case 48..<50: self = .fillDisk(device)
        case 50..<52: self = .setClock(device, [-86_400, -60, 60, 3_600, 2_000_000_000][random.below(5)])
        case 52..<53: self = .image(device)
        case 53..<54: self = .putBack(device)
        case 54..<59: self = .crashApp(device, app)
        case 59..<61: self = .reinstallApp(device, app)
        case 61..<66: self = .answer(device, app)
        case 66..<69: self = .attempt(device, app)
        case 69..<70, 117..<119: self = .retire(device, app)
        case 70..<77: self = .cutDevice(device, noticedAfter: random.chance(50) ? 0 : random.milliseconds(1...45_000))
        case 77..<79: self = .cutController(noticedAfter: random.chance(50) ? 0 : random.milliseconds(1...45_000))
        case 79..<80: self = .cutOperator(random.below(Schedule.operators))
        case 80..<84:
            let time = random.milliseconds(1...3_000)
            // Now and then for two minutes: longer than anybody's alarm.
            self = .crashBroker(downFor: time > 2_900 ? time * 40 : time)
        case 84..<85: self = .stopBroker(downFor: random.milliseconds(1...3_000))
        case 85..<88: self = .saveBroker
        case 88..<89: self = .fillControllerDisk(after: random.below(4))
        case 89..<94:
            let isLong = random.chance(10)
            self = .crashController(
                effects: random.below(12), downFor: random.milliseconds(isLong ? 60_000...300_000 : 1...3_000))
        case 94..<95: self = .backUpController
        case 95..<96: self = .putBackController
        case 96..<97: self = .setControllerClock([-3_600, -30, 86_400, 17_280_000][random.below(4)])
        case 97..<99: self = .stopAgent(device)
        case 99..<103:
            self = .unplug(device, random.milliseconds(random.chance(20) ? 1_000...20_000 : 60_000...400_000))
        case 111..<112: self = .refuse(device, app)
        case 103..<104: self = .display(device, app)
        case 104..<107: self = .enterCode(device, min(1, apps - 1), isRight: random.chance(40))
        case 107..<109: self = .question(random.below(Schedule.operators), random.below(7))
        case 109..<111: self = .renewTrust
        case 112..<113: self = .remove(device)
        case 113..<115: self = .enroll(device, isNew: random.chance(40))
        case 115..<116: self = .clone(device)
        case 119..<120: self = .ageBroker(by: 1 + random.below(4), downFor: random.milliseconds(1...3_000))
        default: self = .pause
        }
    }
}

extension Change {
    fileprivate init(_ random: inout SplitMix64, devices: Int, apps: Int, _ theme: Theme) {
        let app = random.below(apps)
        let place: Place =
            switch random.below(6) {
            case 0..<3: .all
            case 3..<5: .group(random.below(Schedule.groups))
            default: .device(random.below(devices))
            }
        switch random.below(20) {
        case 0..<14:
            let aspect = theme.aspect(&random)
            self = .apply(app: app, place, aspect: aspect, variant: random.below(6), isBased: random.chance(15))
        case 14..<16: self = .delete(app: app, place)
        case 16..<19:
            self = .group(
                random.below(Schedule.groups), priority: Int64(random.below(3)), members: random.below(1 << devices))
        default: self = .deleteGroup(random.below(Schedule.groups))
        }
    }
}
