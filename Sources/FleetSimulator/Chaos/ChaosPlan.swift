import FleetWorld

/// What goes wrong, when and for whom: all of it decided by one seed.
package struct ChaosPlan: Hashable, Sendable {
    /// A process of the fleet.
    package enum Target: Hashable, Sendable, CustomStringConvertible {
        case broker, controller
        case agent(Int)
        /// Device and app.
        case app(Int, Int)

        package var description: String {
            switch self {
            case .broker: "broker"
            case .controller: "controller"
            case .agent(let device): "agent d\(device)"
            case .app(let device, let app): "app d\(device)/a\(app)"
            }
        }

        var kind: String {
            switch self {
            case .broker: "Broker"
            case .controller: "Controller"
            case .agent: "Agent"
            case .app: "App"
            }
        }
    }

    /// A way to the broker: the controller's, which operators share, or an agent's.
    package enum Link: Hashable, Sendable, CustomStringConvertible {
        case controller
        case agent(Int)

        package var description: String {
            switch self {
            case .controller: "the controller's and the operators' way to the broker"
            case .agent(let device): "the way of d\(device) to the broker"
            }
        }
    }

    package enum Fault: Hashable, Sendable {
        /// kill -9, and a new start so much later.
        case kill(Target, down: Int64)
        /// SIGTERM, and a new start so much later.
        case end(Target, down: Int64)
        /// SIGSTOP, and SIGCONT so much later.
        case stop(Target, time: Int64)
        case reset(Link)
        case refuse(Link, time: Int64)
        case slow(Link, milliseconds: UInt32, time: Int64)
        case blackHole(Link, time: Int64)
        /// No file of the process grows, also after a new start.
        case fullDisk(Target, time: Int64)
        /// kill -9 of the broker, and a new start with a copy of its database from before; meanwhile, and for so much
        /// longer, the controller may be away too, and agents read what nobody has repaired.
        case oldDatabase(age: Int, down: Int64, alone: Int64?)
        case emptyDatabase(down: Int64)
        /// kill -9 of the controller, and a new start as after a restore: it begins an epoch, and signs all again.
        case restore(down: Int64)
        /// The fleet gets a new signing key, and maybe believes the others no more; then kill -9 of the controller, which signs
        /// with it from its new start on.
        case rotateKey(withdraws: Bool, down: Int64)
        /// The app retires itself.
        case retire(Target)
        /// The device gets another password and incarnation while its agent runs.
        case enroll(Int)
        /// The device is taken out of the fleet, and enrolled again so much later.
        case remove(Int, time: Int64)

        /// For counting.
        var kind: String {
            switch self {
            case .kill(let target, _): "kill\(target.kind)"
            case .end(let target, _): "end\(target.kind)"
            case .stop(let target, _): "stop\(target.kind)"
            case .reset: "reset"
            case .refuse: "refuse"
            case .slow: "slow"
            case .blackHole: "blackHole"
            case .fullDisk(let target, _): "fullDisk\(target.kind)"
            case .oldDatabase: "oldDatabase"
            case .emptyDatabase: "emptyDatabase"
            case .restore: "restore"
            case .rotateKey: "rotateKey"
            case .retire: "retireItself"
            case .enroll: "enrollAgain"
            case .remove: "remove"
            }
        }
    }

    package struct Step: Hashable, Sendable {
        package let at: Int64
        package let fault: Fault
    }

    package let steps: [Step]

    /// - Parameter duration: In milliseconds; the last fault begins before it.
    package init(seed: UInt64, duration: Int64, devices: Int, apps: Int) {
        var random = SplitMix64(seed: seed)
        var steps: [Step] = []
        var deck: [Int] = []
        var at = random.milliseconds(500...1_500)
        while at < duration {
            // Every kind once, in any order, then all of them again: no kind stays out for long.
            if deck.isEmpty { deck = Array(0..<Self.kinds) }
            let kind = deck.remove(at: random.below(deck.count))
            let device = 1 + random.below(devices)
            let fault = Self.fault(
                kind, device: device, of: devices, app: 1 + random.below(apps), duration, &random)
            steps.append(Step(at: at, fault: fault))
            at += random.milliseconds(300...2_200)
        }
        self.steps = steps
    }

    private static let kinds = 30

    private static func fault(
        _ kind: Int, device: Int, of devices: Int, app: Int, _ duration: Int64, _ random: inout SplitMix64
    ) -> Fault {
        let down = random.chance(50) ? 0 : random.milliseconds(100...3_000)
        let time = min(random.milliseconds(300...8_000), duration / 5)
        let link = random.chance(40) ? Link.controller : .agent(device)
        switch kind {
        case 0: return .kill(.broker, down: down)
        case 1: return .kill(.controller, down: down)
        case 2, 3: return .kill(.agent(device), down: down)
        case 4, 5: return .kill(.app(device, app), down: down)
        case 6: return .end(.broker, down: down)
        case 7: return .end(.controller, down: down)
        case 8: return .end(.agent(device), down: down)
        case 9: return .end(.app(device, app), down: down)
        case 10: return .stop(.broker, time: time)
        case 11: return .stop(.controller, time: time)
        case 12: return .stop(.agent(device), time: time)
        case 13: return .stop(.app(device, app), time: time)
        case 14, 15: return .reset(link)
        case 16: return .refuse(link, time: time)
        case 17, 18:
            return .slow(link, milliseconds: UInt32(random.milliseconds(20...400)), time: time)
        case 19, 20:
            // Now and then for so long that both sides notice by themselves.
            let long = min(random.milliseconds(20_000...70_000), duration / 3)
            return .blackHole(link, time: random.chance(15) ? long : time)
        case 21: return .fullDisk(.agent(device), time: time)
        case 22: return random.chance(50) ? .fullDisk(.controller, time: time) : .fullDisk(.broker, time: time)
        case 23:
            let alone = random.chance(60) ? random.milliseconds(1_000...4_000) : nil
            return .oldDatabase(age: random.below(4), down: down, alone: alone)
        case 24: return .emptyDatabase(down: down)
        case 25: return .retire(.app(device, app))
        case 26: return .enroll(device)
        case 27: return .restore(down: down)
        case 28: return .rotateKey(withdraws: random.chance(70), down: down)
        // The last one is a guest, for whom nothing stands but what is for all.
        default: return .remove(devices, time: time)
        }
    }
}
