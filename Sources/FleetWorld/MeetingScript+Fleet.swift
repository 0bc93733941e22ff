import FleetProtocol

/// Meetings of devices, of who is among them, of the controller and the broker.
extension MeetingScript {
    mutating func groupAgain() {
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
    }

    mutating func groupBehindBackup() {
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
    }

    mutating func endUnseen() {
        happen(.stall(device, random.milliseconds(100...4_000), isAsleep: false))
        for _ in 0..<2 {
            pass(0...60)
            say(any(0, 1) == 0 ? .config : .auth, random.below(3))
        }
        happen(.cutDevice(device, noticedAfter: random.milliseconds(0...3_000)))
        pass(0...2_000)
    }

    mutating func removalAtOnce() {
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
    }

    mutating func clockSetBack() {
        happen(.closeApp(device, app, 500_000))
        pass(500...3_000)
        happen(.setControllerClock(86_400))
        pass(0...2_000)
        say(any(0, 1) == 0 ? .config : .auth, random.below(3))
        pass(100...3_000)
        happen(.setControllerClock(-86_400))
        pass(310_000...400_000)
        happen(.question(0, 4))
    }

    mutating func tombstoneAgain() {
        say(.config, random.below(6))
        pass(1_000...4_000)
        happen(.unplug(device, random.milliseconds(20_000...60_000)))
        pass(100...1_000)
        ask(.delete(app: app, place))
        for _ in 0..<2 {
            pass(500...8_000)
            happen(.renewTrust)
        }
    }

    mutating func basedOnSignature() {
        say(.config, random.below(6))
        pass(1_000...4_000)
        if random.chance(30) { happen(.backUpController) }
        happen(random.chance(70) ? .renewTrust : .putBackController(withFolder: random.chance(50)))
        pass(2_000...15_000)
        ask(.apply(app: app, place, aspect: 2, variant: random.below(6), isBased: true))
    }

    mutating func reportsBehindBackup() {
        happen(.backUpController)
        for _ in 0...random.below(3) {
            pass(100...2_000)
            happen(random.chance(50) ? .attempt(device, app) : .crashAgent(device, effects: 0))
        }
        if random.chance(50) { happen(.cutController(noticedAfter: 100)) }
        pass(1_000...6_000)
        happen(.putBackController(withFolder: false))
    }

    mutating func retirementBehindBackup() {
        say(.auth, Change.authorized)
        pass(1_000...4_000)
        happen(.backUpController)
        pass(0...500)
        say(.auth, Change.retired)
        pass(500...4_000)
        happen(.putBackController(withFolder: random.chance(30)))
    }

    mutating func newInGroups() {
        say(.config, random.below(6), at: .group(group))
        happen(.enroll(device, isNew: true))
        for isThere in [true, false, true] {
            pass(200...2_500)
            gather(isThere)
        }
        say(.dlp, random.below(6), at: .group(group))
    }

    mutating func lateEnrolment() {
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
    }

    mutating func unheard() {
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
    }

    mutating func otherDiskUnheard() {
        say(.auth, Change.authorized)
        pass(2_000...6_000)
        happen(.enroll(device, isNew: true))
        pass(0...700)
        happen(.crashController(effects: random.below(4), downFor: random.milliseconds(300...4_000)))
        guard random.chance(50) else { return }
        // All that is heard of that disk is that it is gone.
        pass(500...2_500)
        happen(.unplug(device, random.milliseconds(8_000...20_000)))
        pass(5_000...9_000)
        happen(.enroll(device, isNew: true))
    }

    mutating func saidInTwoStarts() {
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
    }

    mutating func hiddenForLong() {
        let time = random.milliseconds(1_500_000...2_400_000)
        happen(.hide(device, time, isAll: false))
        pass(100...5_000)
        say(.config, random.below(6), at: .all)
        at += time
        happen(.pause)
    }

    mutating func hiddenAgain() {
        for _ in 0..<2 {
            happen(.hide(device, random.milliseconds(640_000...760_000), isAll: false))
            pass(100...5_000)
            say(.config, random.below(6), at: .all)
            pass(1_800_000...2_100_000)
        }
    }

    mutating func presencesInReadBack() {
        happen(.crashController(effects: 0, downFor: random.milliseconds(300...1_500)))
        for _ in 0..<3 {
            pass(100...900)
            happen(.cutDevice(device, noticedAfter: random.milliseconds(1_000...20_000)))
        }
    }

    mutating func wordsOfBefore() {
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
    }

    mutating func imageStartedAgain() {
        happen(.image(device))
        happen(.setClock(device, -1_700_000_000))
        for _ in 0..<3 {
            pass(100...1_000)
            happen(.putBack(device))
            pass(2_000...6_000)
            happen(.attempt(device, app))
        }
    }

    mutating func groupLostByBroker() {
        say(.config, random.below(6), at: .group(group))
        gather(true)
        pass(200...3_000)
        happen(.ageBroker(by: any(2, 4), downFor: random.milliseconds(1...800)))
    }
}
