import FleetProtocol

/// Meetings of apps with their agent: what they are told, and what they and people do.
extension MeetingScript {
    mutating func limitInBetween() {
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

    mutating func backInReady() {
        say(.auth, Change.authorized, at: .all)
        pass(2_000...6_000)
        happen(.closeApp(device, app, 4_000))
        pass(300...2_000)
        say(.auth, any(3, 4, 5), at: .all)
        pass(1_000...4_500)
        say(.auth, any(0, 1), at: .all)
    }

    mutating func answerBeforeDeath() {
        for variant in [any(0, 1), any(2, 3), any(4, 5)] {
            say(any(0, 1) == 0 ? .config : .dlp, variant)
            pass(random.chance(50) ? 0...300 : 500...4_000)
        }
        happen(.crashAgent(device, effects: random.below(4)))
    }

    mutating func returnsTwice() {
        say(.auth, Change.authorized)
        pass(1_000...5_000)
        for variant in [Change.retired, any(0, 1), Change.retired, any(0, 2)] {
            say(.auth, variant)
            pass(random.chance(70) ? 0...60 : 100...1_500)
        }
    }

    mutating func lockedForAWhile() {
        say(.auth, Change.authorized, at: .all)
        say(.secureServices, 0)
        pass(8_000...40_000)
        say(.secureServices, 1)
        pass(1_000...25_000)
        say(.secureServices, 0)
        pass(35_000...60_000)
        if random.chance(30) { happen(.retire(device, app)) }
    }

    mutating func listThatGoes() {
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
    }

    mutating func copiesInVain() {
        happen(.copy(device, 60_000))
        for _ in 0..<3 + random.below(6) {
            pass(1_000...8_000)
            happen(random.chance(50) ? .stopAgent(device) : .crashAgent(device, effects: random.below(6)))
        }
    }

    mutating func deathInCallback() {
        let aspect: Aspect = [.config, .dlp, .auth][random.below(3)]
        say(aspect, 0)
        pass(1_500...5_000)
        say(aspect, any(1, 3, 4))
        pass(0...400)
        happen(random.chance(50) ? .crashApp(device, app) : .closeApp(device, app, random.milliseconds(1...4_000)))
        pass(0...300)
        say(aspect, 0)
    }

    mutating func levelBehindLevel() {
        // Every other app has levels with codes.
        let app = min(1, apps - 1)
        say(.logLevel, any(1, 3, 3), of: app)
        pass(1_000...20_000)
        say(.logLevel, any(4, 5), of: app)
        pass(25_000...40_000)
        happen(.pause)
    }

    mutating func retiredWhileLocked() {
        say(.auth, Change.authorized, at: .all)
        say(.secureServices, 0)
        pass(20_000...60_000)
        happen(.guess(device, 60_000))
        pass(30_000...60_000)
        happen(.retire(device, app))
        pass(500...3_000)
        say(.auth, Change.authorized, at: .all)
    }

    mutating func answerOfBefore() {
        for _ in 0..<3 {
            say(.dlp, random.below(6))
            pass(4_200...6_000)
            say(.dlp, random.below(6))
            pass(60...1_500)
            happen(random.chance(70) ? .crashAgent(device, effects: 0) : .stopAgent(device))
            pass(2_000...6_000)
        }
    }

    mutating func retiredBeforeSignature() {
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
    }

    mutating func retiredAtDeath() {
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
    }

    mutating func guessedBeforeDeath() {
        say(.auth, Change.authorized, at: .all)
        say(.secureServices, 0)
        pass(15_000...40_000)
        happen(.guess(device, 60_000))
        for _ in 0..<8 {
            pass(500...7_000)
            happen(.crashAgent(device, effects: random.below(6)))
        }
    }

    mutating func lockUnseen() {
        say(.auth, Change.authorized, at: .all)
        say(.secureServices, 0)
        for _ in 0..<6 {
            pass(8_000...25_000)
            happen(.stall(device, random.milliseconds(5_000...45_000), isAsleep: false))
        }
    }

    mutating func retiredUnseen() {
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
    }

    mutating func screenTakenAtDeath() {
        say(.auth, Change.authorized)
        for _ in 0...random.below(2) {
            pass(2_000...6_000)
            happen(.display(device, app))
            pass(50...1_500)
            happen(.crashAgent(device, effects: 0))
        }
    }

    mutating func signedBehindRetirement() {
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
    }

    mutating func codeBehindNewer() {
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
    }

    mutating func retiredInOneMoment() {
        for _ in 0..<2 {
            say(.auth, Change.authorized)
            pass(3_000...8_000)
            happen(.stall(device, random.milliseconds(1_500...4_000), isAsleep: false))
            pass(0...500)
            happen(.retire(device, app))
            pass(0...500)
        }
        say(.auth, Change.authorized)
    }
}
