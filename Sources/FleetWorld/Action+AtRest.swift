import FleetProtocol

extension Action {
    /// What happens in a fleet that has come to rest, and loses nothing.
    static func atRest(_ random: inout SplitMix64, devices: Int, apps: Int) -> Self {
        let device = random.below(devices)
        let app = random.below(apps)
        switch random.below(40) {
        case 0...1: return .cutDevice(device, noticedAfter: 0)
        case 2: return .stopAgent(device)
        case 3...4: return .crashAgent(device, effects: 0)
        case 5: return .reboot(device)
        case 6: return .crashApp(device, app)
        case 7: return .reinstallApp(device, app)
        case 8: return .attempt(device, app)
        case 9: return .answer(device, app)
        case 10: return .retire(device, app)
        case 11: return .cutController(noticedAfter: 0)
        case 12: return .crashController(effects: 0, downFor: 1)
        case 13: return .stopBroker(downFor: 100)
        case 14: return .renewTrust
        case 15: return .closeApp(device, app, random.milliseconds(1...3_000))
        case 16: return .enterCode(device, min(1, apps - 1), isRight: random.chance(60))
        case 17: return .display(device, app)
        default:
            let mixture = Mixture(seed: random.next(), theme: random.chance(50) ? .layers : nil)
            let change = Change(&random, devices: devices, apps: apps, mixture)
            return .request(random.below(Schedule.operators), change)
        }
    }

    /// Two groups say something of the same to an app, on devices that are in both: which of them counts, and which comes first,
    /// is anyone's guess.
    static func inTwoGroups(_ random: inout SplitMix64, devices: Int, apps: Int) -> [Self] {
        let app = random.below(apps)
        let aspect = random.below(Aspect.allCases.count)
        let all = 1 << devices - 1
        var changes: [Change] = (0..<Schedule.groups).flatMap { group -> [Change] in
            [
                .group(
                    group, priority: Int64(random.below(2)), members: random.chance(80) ? all : random.below(all + 1)),
                .apply(app: app, .group(group), aspect: aspect, variant: random.below(6), isBased: false),
            ]
        }
        changes.shuffle(using: &random)
        return changes.map { .request(0, $0) }
    }

    /// Devices leave a group, which says something to an app, and come to it again.
    static func leavingAndComing(_ random: inout SplitMix64, devices: Int, apps: Int) -> [Self] {
        let group = random.below(Schedule.groups)
        let members = random.below(1 << devices)
        let aspect = random.below(Aspect.allCases.count)
        let changes: [Change] = [
            .group(group, priority: 0, members: 0),
            .apply(
                app: random.below(apps), .group(group), aspect: aspect, variant: random.below(6), isBased: false),
            .group(group, priority: 0, members: members),
        ]
        return changes.map { .request(0, $0) }
    }
}
