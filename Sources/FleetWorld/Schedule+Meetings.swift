import FleetProtocol

extension Schedule {
    /// In some worlds there are meetings.
    mutating func addMeetings(_ theme: Theme?) {
        var random = SplitMix64(seed: seed ^ 0x3EE7)
        let fitting = Meeting.fitting(theme, broker)
        guard random.chance(theme == nil ? 15 : 40), !fitting.isEmpty else { return }
        for _ in 0...random.below(2) {
            var script = Script(self, random, from: steps[random.below(steps.count)].at)
            script.play(fitting[random.below(fitting.count)])
            for step in script.steps { steps.insert(step, inOrderOf: \.at) }
            random = script.random
        }
    }
}

/// Writes down what happens at a meeting: to one device, one app, on one layer.
private struct Script {
    private(set) var steps: [Schedule.Step] = []
    private(set) var random: SplitMix64
    private var at: Int64
    private let device: Int
    private let app: Int
    private let group: Int
    private let place: Place
    private let devices: Int
    private let apps: Int

    init(_ schedule: Schedule, _ random: SplitMix64, from at: Int64) {
        self.random = random
        self.at = at
        (devices, apps) = (schedule.devices, schedule.apps)
        device = self.random.below(devices)
        app = self.random.below(apps)
        group = self.random.below(Schedule.groups)
        place = [.all, .device(device), Place.group(group)][self.random.below(3)]
    }

    /// Milliseconds pass.
    private mutating func pass(_ range: ClosedRange<Int>) { at += random.milliseconds(range) }

    private mutating func happen(_ action: Action) { steps.append(Schedule.Step(at, action)) }

    private mutating func ask(_ change: Change) { happen(.request(0, change)) }

    private mutating func say(_ aspect: Aspect, _ variant: Int, at place: Place? = nil, of other: Int? = nil) {
        guard let aspect = Aspect.allCases.firstIndex(of: aspect) else { return }
        ask(.apply(app: other ?? app, place ?? self.place, aspect: aspect, variant: variant, isBased: false))
    }

    /// Who is in the group: all, or nobody.
    private mutating func gather(_ isThere: Bool) {
        ask(.group(group, priority: Int64(random.below(2)), members: isThere ? 1 << devices - 1 : 0))
    }

    private mutating func any(_ variants: Int...) -> Int { variants[random.below(variants.count)] }

    mutating func play(_ meeting: Meeting) {
        switch meeting {
        case .limitInBetween: limitInBetween()
        case .backInReady:
            say(.auth, Change.authorized, at: .all)
            pass(2_000...6_000)
            happen(.closeApp(device, app, 4_000))
            pass(300...2_000)
            say(.auth, any(3, 4, 5), at: .all)
            pass(1_000...4_500)
            say(.auth, any(0, 1), at: .all)
        case .answerBeforeDeath:
            for variant in [any(0, 1), any(2, 3), any(4, 5)] {
                say(any(0, 1) == 0 ? .config : .dlp, variant)
                pass(random.chance(50) ? 0...300 : 500...4_000)
            }
            happen(.crashAgent(device, effects: random.below(4)))
        case .groupAgain:
            let aspect: Aspect = [.logLevel, .logLevel, .dlp, .auth, .config][random.below(5)]
            gather(true)
            say(aspect, random.below(6), at: .group(group))
            pass(2_000...20_000)
            let pause = random.chance(50) ? 0...60 : 500...8_000
            gather(false)
            pass(pause)
            if random.chance(50) { say(aspect, random.below(6), at: .group(group)) }
            pass(pause)
            gather(true)
        case .groupBehindBackup:
            if random.chance(40) {
                say(any(0, 1) == 0 ? .config : .dlp, random.below(6), at: .group(group))
                pass(500...4_000)
            }
            happen(.backUpController)
            pass(0...1_500)
            gather(true)
            say(any(0, 1) == 0 ? .config : .dlp, random.below(6), at: .group(group))
            pass(1_000...6_000)
            if random.chance(70) { happen(.ageBroker(by: any(1, 2, 4), downFor: random.milliseconds(1...2_000))) }
            happen(.putBackController(withFolder: random.chance(50)))
        case .returnsTwice:
            say(.auth, Change.authorized)
            pass(1_000...5_000)
            for variant in [Change.retired, any(0, 1), Change.retired, any(0, 2)] {
                say(.auth, variant)
                pass(random.chance(70) ? 0...60 : 100...1_500)
            }
        case .lockedForAWhile:
            say(.auth, Change.authorized, at: .all)
            say(.secureServices, 0)
            pass(8_000...40_000)
            say(.secureServices, 1)
            pass(1_000...25_000)
            say(.secureServices, 0)
            pass(35_000...60_000)
            if random.chance(30) { happen(.retire(device, app)) }
        case .listThatGoes:
            for other in 0..<apps { say(.auth, Change.authorized, at: .all, of: other) }
            say(.dlp, any(0, 3, 4))
            pass(2_000...8_000)
            if random.chance(60) { happen(.unplug(device, 20_000)) }
            pass(0...3_000)
            say(.dlp, random.below(6))
            for other in 0..<apps {
                pass(0...1_000)
                say(.auth, any(3, 4, 5), at: .all, of: other)
            }
        case .copiesInVain:
            happen(.copy(device, 60_000))
            for _ in 0..<3 + random.below(6) {
                pass(1_000...8_000)
                happen(random.chance(50) ? .stopAgent(device) : .crashAgent(device, effects: random.below(6)))
            }
        case .deathInCallback:
            let aspect: Aspect = [.config, .dlp, .auth][random.below(3)]
            say(aspect, 0)
            pass(1_500...5_000)
            say(aspect, any(1, 3, 4))
            pass(0...400)
            happen(random.chance(50) ? .crashApp(device, app) : .closeApp(device, app, random.milliseconds(1...4_000)))
            pass(0...300)
            say(aspect, 0)
        case .endUnseen:
            happen(.stall(device, random.milliseconds(100...4_000), isAsleep: false))
            for _ in 0..<2 {
                pass(0...60)
                say(any(0, 1) == 0 ? .config : .auth, random.below(3))
            }
            happen(.cutDevice(device, noticedAfter: random.milliseconds(0...3_000)))
            pass(0...2_000)
        case .removalAtOnce:
            if case .group = place { gather(true) }
            say(.auth, Change.authorized)
            pass(1_000...6_000)
            if random.chance(40) {
                happen(.clone(device))
                pass(3_000...20_000)
                if random.chance(50) { happen(.retire(device, app)) }
            }
            say(.auth, Change.retired)
            pass(random.chance(60) ? 0...40 : 500...5_000)
            happen(.remove(device))
            if random.chance(40) {
                pass(500...8_000)
                happen(.enroll(device, isNew: random.chance(30)))
            }
        case .clockSetBack:
            happen(.closeApp(device, app, 500_000))
            pass(500...3_000)
            happen(.setControllerClock(86_400))
            pass(0...2_000)
            say(any(0, 1) == 0 ? .config : .auth, random.below(3))
            pass(100...3_000)
            happen(.setControllerClock(-86_400))
            pass(310_000...400_000)
            happen(.question(0, 4))
        case .tombstoneAgain:
            say(.config, random.below(6))
            pass(1_000...4_000)
            happen(.unplug(device, random.milliseconds(20_000...60_000)))
            pass(100...1_000)
            ask(.delete(app: app, place))
            for _ in 0..<2 {
                pass(500...8_000)
                happen(.renewTrust)
            }
        case .basedOnSignature:
            say(.config, random.below(6))
            pass(1_000...4_000)
            if random.chance(30) { happen(.backUpController) }
            happen(random.chance(70) ? .renewTrust : .putBackController(withFolder: random.chance(50)))
            pass(2_000...15_000)
            ask(.apply(app: app, place, aspect: 2, variant: random.below(6), isBased: true))
        case .reportsBehindBackup:
            happen(.backUpController)
            for _ in 0...random.below(3) {
                pass(100...2_000)
                happen(random.chance(50) ? .attempt(device, app) : .crashAgent(device, effects: 0))
            }
            if random.chance(50) { happen(.cutController(noticedAfter: 100)) }
            pass(1_000...6_000)
            happen(.putBackController(withFolder: false))
        case .retirementBehindBackup:
            say(.auth, Change.authorized)
            pass(1_000...4_000)
            happen(.backUpController)
            pass(0...500)
            say(.auth, Change.retired)
            pass(500...4_000)
            happen(.putBackController(withFolder: random.chance(30)))
        case .newInGroups:
            say(.config, random.below(6), at: .group(group))
            happen(.enroll(device, isNew: true))
            for isThere in [true, false, true] {
                pass(200...2_500)
                gather(isThere)
            }
            say(.dlp, random.below(6), at: .group(group))
        case .lateEnrolment:
            if random.chance(40) {
                happen(.crashController(effects: 0, downFor: random.milliseconds(1...1_500)))
                pass(0...2_500)
            } else {
                happen(.enroll(device, isNew: random.chance(50)))
                pass(0...300)
                happen(.cutOperator(random.below(Schedule.operators)))
                pass(0...600)
            }
            happen(.remove(device))
            pass(0...600)
            happen(random.chance(50) ? .cutOperator(0) : .enroll(device, isNew: random.chance(50)))
        case .unheard:
            happen(.stallController(random.milliseconds(1_000...8_000)))
            pass(0...800)
            switch random.below(3) {
            case 0: happen(.enroll(device, isNew: true))
            case 1: say(.config, random.below(6), at: .all)
            default: for _ in 0..<4 { happen(.attempt(device, app)) }
            }
            for _ in 0..<1 + random.below(4) {
                pass(0...1_500)
                happen(random.chance(60) ? .answer(device, app) : .crashAgent(device, effects: 0))
            }
        case .levelBehindLevel:
            // Every other app has levels with codes.
            let app = min(1, apps - 1)
            say(.logLevel, any(1, 3, 3), of: app)
            pass(1_000...20_000)
            say(.logLevel, any(4, 5), of: app)
            pass(25_000...40_000)
            happen(.pause)
        case .retiredWhileLocked:
            say(.auth, Change.authorized, at: .all)
            say(.secureServices, 0)
            pass(20_000...60_000)
            happen(.guess(device, 60_000))
            pass(30_000...60_000)
            happen(.retire(device, app))
            pass(500...3_000)
            say(.auth, Change.authorized, at: .all)
        case .answerOfBefore:
            for _ in 0..<3 {
                say(.dlp, random.below(6))
                pass(4_200...6_000)
                say(.dlp, random.below(6))
                pass(60...1_500)
                happen(random.chance(70) ? .crashAgent(device, effects: 0) : .stopAgent(device))
                pass(2_000...6_000)
            }
        case .retiredBeforeSignature:
            say(.auth, Change.authorized)
            pass(3_000...15_000)
            happen(.retire(device, app))
            pass(1_000...8_000)
            let isRestored = random.chance(30)
            for _ in 0..<3 {
                happen(isRestored ? .backUpController : .renewTrust)
                pass(1_000...15_000)
                if isRestored { happen(.putBackController(withFolder: false)) }
            }
        case .retiredAtDeath:
            say(.auth, Change.authorized)
            pass(3_000...10_000)
            for _ in 0..<2 + random.below(3) {
                if random.chance(60) {
                    happen(.crashAgent(device, effects: 0))
                    pass(0...200)
                } else {
                    happen(.attempt(device, app))
                }
                happen(.retire(device, app))
                pass(0...60)
                happen(.crashAgent(device, effects: 1 + random.below(10)))
                pass(0...1_500)
                happen(.crashApp(device, app))
                pass(1_000...4_000)
                say(.auth, Change.authorized)
                pass(1_000...4_000)
            }
        case .otherDiskUnheard:
            say(.auth, Change.authorized)
            pass(2_000...6_000)
            happen(.enroll(device, isNew: true))
            pass(0...700)
            happen(.crashController(effects: random.below(4), downFor: random.milliseconds(300...4_000)))
            guard random.chance(50) else { break }
            // All that is heard of that disk is that it is gone.
            pass(500...2_500)
            happen(.unplug(device, random.milliseconds(8_000...20_000)))
            pass(5_000...9_000)
            happen(.enroll(device, isNew: true))
        case .guessedBeforeDeath:
            say(.auth, Change.authorized, at: .all)
            say(.secureServices, 0)
            pass(15_000...40_000)
            happen(.guess(device, 60_000))
            for _ in 0..<8 {
                pass(500...7_000)
                happen(.crashAgent(device, effects: random.below(6)))
            }
        case .saidInTwoStarts:
            let time = random.milliseconds(4_000...12_000)
            let end = at + time
            happen(.stallController(time))
            for _ in 0..<2 + random.below(2) {
                pass(300...1_500)
                happen(.attempt(device, app))
                pass(100...800)
                happen(.crashAgent(device, effects: 0))
            }
            at = max(at, end)
            for _ in 0..<3 {
                pass(0...400)
                happen(.crashAgent(device, effects: random.below(4)))
            }
        case .lockUnseen:
            say(.auth, Change.authorized, at: .all)
            say(.secureServices, 0)
            for _ in 0..<6 {
                pass(8_000...25_000)
                happen(.stall(device, random.milliseconds(5_000...45_000), isAsleep: false))
            }
        case .hiddenForLong:
            let time = random.milliseconds(1_500_000...2_400_000)
            happen(.hide(device, time, isAll: false))
            pass(100...5_000)
            say(.config, random.below(6), at: .all)
            at += time
            happen(.pause)
        case .hiddenAgain:
            for _ in 0..<2 {
                happen(.hide(device, random.milliseconds(640_000...760_000), isAll: false))
                pass(100...5_000)
                say(.config, random.below(6), at: .all)
                pass(1_800_000...2_100_000)
            }
        case .presencesInReadBack:
            happen(.crashController(effects: 0, downFor: random.milliseconds(300...1_500)))
            for _ in 0..<3 {
                pass(100...900)
                happen(.cutDevice(device, noticedAfter: random.milliseconds(1_000...20_000)))
            }
        case .wordsOfBefore:
            happen(.backUpController)
            pass(0...500)
            say(.config, random.below(6))
            pass(800...3_000)
            let time = 6_000 + random.below(10_000)
            let begin = at
            happen(.unplug(device, Int64(time)))
            pass(200...800)
            happen(.ageBroker(by: 4, downFor: 100))
            happen(.putBackController(withFolder: random.chance(50)))
            at = begin + Int64(time)
            for _ in 0..<5 {
                pass(0...400)
                say(any(0, 1) == 0 ? .dlp : .auth, any(0, 1, 2), at: random.chance(50) ? .all : .device(device))
            }
        case .retiredUnseen:
            say(.auth, Change.authorized)
            pass(2_000...8_000)
            let time = random.milliseconds(6_000...20_000)
            happen(.closeApp(device, app, time))
            pass(100...800)
            say(.auth, Change.retired)
            pass(300...2_000)
            say(.auth, Change.authorized)
            pass(300...2_000)
            happen(.crashAgent(device, effects: 0))
        case .imageStartedAgain:
            happen(.image(device))
            happen(.setClock(device, -1_700_000_000))
            for _ in 0..<3 {
                pass(100...1_000)
                happen(.putBack(device))
                pass(2_000...6_000)
                happen(.attempt(device, app))
            }
        case .screenTakenAtDeath:
            say(.auth, Change.authorized)
            for _ in 0...random.below(2) {
                pass(2_000...6_000)
                happen(.display(device, app))
                pass(50...1_500)
                happen(.crashAgent(device, effects: 0))
            }
        case .signedBehindRetirement:
            say(.auth, Change.authorized)
            pass(1_500...5_000)
            say(.auth, Change.retired)
            pass(1_500...6_000)
            happen(.unplug(device, random.milliseconds(15_000...60_000)))
            for _ in 0..<2 {
                pass(500...4_000)
                happen(.renewTrust)
            }
            pass(500...4_000)
            happen(.question(0, 0))
        case .codeBehindNewer:
            // Every other app has levels with codes.
            let app = min(1, apps - 1)
            let place = random.chance(50) ? Place.all : .device(device)
            for _ in 0..<3 {
                say(.logLevel, any(4, 5), at: place, of: app)
                pass(1_500...5_000)
                happen(.enterCode(device, app, isRight: true))
                pass(0...1_000)
            }
            say(.logLevel, any(4, 5), at: place, of: app)
        case .retiredInOneMoment:
            for _ in 0..<2 {
                say(.auth, Change.authorized)
                pass(3_000...8_000)
                happen(.stall(device, random.milliseconds(1_500...4_000), isAsleep: false))
                pass(0...500)
                happen(.retire(device, app))
                pass(0...500)
            }
            say(.auth, Change.authorized)
        case .groupLostByBroker:
            say(.config, random.below(6), at: .group(group))
            gather(true)
            pass(200...3_000)
            happen(.ageBroker(by: any(2, 4), downFor: random.milliseconds(1...800)))
        }
    }

    private mutating func limitInBetween() {
        let time = 110_000 + random.below(150_000)
        say(.auth, Change.authorized, at: .all)
        say(.secureServices, any(4, 5, 5))
        pass(2_000...8_000)
        let begin = at
        happen(.unplug(device, Int64(time)))
        switch random.below(3) {
        case 0:
            pass(100...3_000)
            happen(.closeApp(device, app, random.milliseconds(time - 10_000...time + 30_000)))
            at = begin + Int64(time)
            pass(0...8_000)
            say(.auth, any(1, 2), at: .all)
        case 1:
            for _ in 0..<3 + random.below(5) {
                pass(5_000...16_000)
                happen(.reboot(device))
            }
        default:
            pass(500...time - 1_000)
            say(.secureServices, any(1, 2, 3))
        }
    }
}
