import DeviceAgent
import FleetProtocol

/// The laws of what outlives a run of the agent.
extension Machine {
    /// An agent that ends in order has saved how long it ran: time that nobody knows of would be no time without contact.
    func checkEnd(_ core: DeviceCore) {
        let lost = core.state.running.total - disk.state.running.total
        if lost > 1_000 { world.fail(.limits, "\(name) ends in order, and \(lost) ms of its time are not saved") }
    }

    /// Starts of one image are told apart also where the clock does not: two may be alike by chance, once in a thousand.
    private func checkBoot(_ boot: Int64) {
        guard boot > clock.wall.milliseconds else { return }
        starts[boot, default: 0] += 1
        if starts[boot] == 3 { world.fail(.kept, "\(name): three starts are boot \(boot), and cannot be told apart") }
    }

    /// Nothing is other than before because the agent starts, but for limits that have passed meanwhile.
    func checkStart() {
        guard let core else { return }
        watch.noted = core.state.contact
        bootBefore = disk.state.boot
        checkBoot(core.state.boot)
        if disk.state.disk != 0, core.state.disk != disk.state.disk {
            world.fail(
                .summary,
                "\(name) starts, and calls its disk \(core.state.disk), which was \(disk.state.disk): the controller takes"
                    + " it for another one")
        }
        let trust = try? TrustDocument(json: enrollment.trust.payload, limit: SignedDocument.maximumSize).version
        if let trust, core.trust.version < trust {
            world.fail(
                .forward, "\(name) starts with the trust document \(core.trust.version), and was enrolled with \(trust)"
            )
        }
        for (address, floor) in enrollment.floors
        where core.state.marks[address].map({ $0.revision < floor }) ?? true {
            world.fail(.forward, "\(name) starts, and would take \(address.path) from before \(floor)")
        }
        let isLimited = core.state.apps.values.contains { $0.authReason == .outOfContact }
        let wiped = Set(disk.state.apps.values.filter(\.isWipeDue).map(\.id))
        for was in disk.state.apps.values {
            let id = was.id
            guard let now = core.state.apps[id], !isLimited, !was.isWipeDue else { continue }
            for policy in Policy.allCases
            where policy != .logLevel && was[policy].value != now[policy].value
                && was[policy].value.naming(noneOf: wiped) != now[policy].value
            {
                world.fail(
                    .continues,
                    "\(name)/\(id): at the agent's start \(policy.rawValue) went from \(was[policy].value) to"
                        + " \(now[policy].value)")
            }
        }
    }

    /// At its start an agent destroys what a crash has left: keys of apps that have none by the store.
    func tidyKeys() {
        for app in disk.keys.keys where disk.state.apps[app]?.hasKeys != true {
            disk.keys[app] = nil
            watch.keys[app] = nil
        }
    }

    func checkDestruction(of app: AppID) {
        watch.keys[app] = nil
        // One that was retired and authorized in one moment gets new ones at once.
        guard !watch.isMakingKeys.contains(app) else { return }
        if let record = core?.state.apps[app], record.latch == nil, record.hasKeys, disk.keys[app] != nil {
            world.fail(.keys, "\(name)/\(app): its keys are destroyed, and it is not retired")
        }
    }

    func checkKeys(of app: AppID) {
        if let known = watch.keys[app], known != disk.keys[app] {
            world.fail(.keys, "\(name)/\(app): it has other keys than before")
        }
        watch.keys[app] = disk.keys[app]
    }
}

extension PolicyValue {
    /// What it says when these are authorized apps no more.
    func naming(noneOf gone: Set<AppID>) -> PolicyValue {
        func others(_ apps: [AppID]) -> [AppID] { apps.filter { !gone.contains($0) } }
        return switch self {
        case .openIn(let policy, let apps): .openIn(policy, whitelist: others(apps))
        case .openFrom(let policy, let apps): .openFrom(policy, whitelist: others(apps))
        case .dragAndDrop(let policy, let apps): .dragAndDrop(policy, apps: others(apps))
        default: self
        }
    }
}
