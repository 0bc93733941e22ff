import FleetController
import FleetProtocol

/// The keys of a device that was taken out of the fleet: whatever becomes of them, nobody is told.
struct KeysOfRemoved {
    /// Of which apps it had some, as it had said, or may have left some elsewhere.
    let apps: Set<AppID>
    /// The groups that it was in, and the newest change of that time: what retires an app later was not meant for it.
    let groups: Set<GroupID>
    let latest: Revision
}

/// Of what keys nobody can say any more whether they are gone.
extension Controller {
    /// What is known of a device that somebody asks to take out; nil where it is not known itself.
    func keysOfRemoved(_ asked: Asked) -> KeysOfRemoved? {
        guard asked.verb == .deviceRemove, let apps = holding(asked),
            let device = try? DeviceRequest(json: asked.body, limit: Request.maximumSize).device,
            (try? store.device(device)) != nil, let latest = try? store.latest()
        else { return nil }
        let groups = desired.groups.filter { $0.value.members.contains(device) }.keys
        return KeysOfRemoved(apps: Set(apps), groups: Set(groups), latest: latest)
    }

    /// It was taken out. Where something else was looked at in that moment, nothing is expected of its keys.
    func noteKeys(of asked: Asked, _ keys: KeysOfRemoved?) throws {
        let device = try DeviceRequest(json: asked.body, limit: Request.maximumSize).device
        desired.keysOfRemoved[device] = keys
    }

    /// The keys of removed devices that are in doubt, before something happens.
    func removedKeys() -> [FleetStore.RemovedKeys: Set<Int64>] {
        desired.keysOfRemoved.isEmpty ? [:] : (try? store.keysOfRemoved()) ?? [:]
    }

    /// Nothing that is heard ends the doubt about keys of a device that was removed, also not of one that has its name now, but
    /// what comes from the disk that they were on.
    func checkKeysOfRemoved(
        since before: [FleetStore.RemovedKeys: Set<Int64>], behind event: ControllerCore.Event
    ) {
        guard !before.isEmpty, let now = try? store.keysOfRemoved() else { return }
        for (keys, disks) in before where now[keys] == nil {
            // Where it is taken out in the same moment in which that comes, and perhaps enrolled again, nobody can say of which disk
            // it was.
            let known = try? store.device(keys.device)
            if known?.disk == nil, event.isHeard(of: keys.device) { continue }
            // Heard from that disk, and then from another one: they are told of as what was left on the first.
            if event.isHeard(of: keys.device), (try? store.leftKeys(of: keys.device).contains(keys.app)) == true {
                continue
            }
            guard let disk = known?.disk, disks.contains(disk) else {
                return world.fail(.erased, "\(keys) are told of no more, and may be on the disks \(disks.sorted())")
            }
        }
    }

    /// By which change each layer that retires an app does so.
    func retirements(of app: AppID) throws -> [Layer: Revision] {
        let retired = Set(
            desired.values.keys.filter { address in
                if case .desired(_, app, .auth) = address { desired.isRetired(address) } else { false }
            })
        guard !retired.isEmpty else { return [:] }
        let changes = try store.wishes().filter { retired.contains($0.address) }.compactMap { wish in
            wish.address.layerAndApp.map { ($0.layer, wish.change) }
        }
        return Dictionary(changes) { $1 }
    }

    /// Devices of which keys of an app are in doubt that these retire; there may be more. Of one that is there the store tells;
    /// of one that was taken out behind a retirement, and is not known any more, nothing is heard that could settle it.
    func doubted(of app: AppID, retiredBy retirements: [Layer: Revision]) throws -> Set<DeviceID> {
        guard !retirements.isEmpty else { return [] }
        let left = try world.machines.map(\.id).filter { device in
            let isMeant = retirements.keys.contains { layer in
                switch layer {
                case .all: true
                case .group(let group): desired.members(of: group).contains(device)
                case .device(let other): other == device
                }
            }
            return try isMeant && store.leftKeys(of: device).contains(app)
        }
        let removed = try desired.keysOfRemoved.filter { device, keys in
            let isMeant = retirements.contains { layer, change in
                guard keys.latest >= change else { return false }
                return switch layer {
                case .all: true
                case .group(let group): keys.groups.contains(group)
                case .device(let other): other == device
                }
            }
            return try isMeant && keys.apps.contains(app) && store.device(device) == nil
        }
        return Set(left).union(removed.keys)
    }

    /// The same for each retirement that is to end, but of those who leave a group: of these others are told.
    func doubted(_ asked: Asked, _ wishes: [FleetStore.Wish]) -> [Address: Int]? {
        guard asked.verb != .groupSet, let ended = try? desired.retirements(endedBy: asked) else { return nil }
        var counts: [Address: Int] = [:]
        for (address, _) in ended {
            guard let (layer, app) = address.layerAndApp,
                let change = wishes.first(where: { $0.address == address })?.change
            else { continue }
            counts[address] = (try? doubted(of: app, retiredBy: [layer: change]))?.count
        }
        return counts
    }
}

extension World {
    /// Of a retired app nobody is told that its keys are gone where a device is listed as having left some, or was taken out of
    /// the fleet with them; and of one that is not retired there is no doubt.
    func checkDoubtful(_ row: StatusRow) throws {
        let doubtful = row.retirement?.doubtful ?? 0
        let retirements = try controller.retirements(of: row.app)
        if retirements.isEmpty, doubtful > 0 {
            fail(.erased, "\(row.app) is not retired, and \(doubtful) are in doubt")
        }
        let doubted = try controller.doubted(of: row.app, retiredBy: retirements)
        if doubted.count > doubtful {
            fail(.erased, "\(row.app): keys are elsewhere of \(doubted.sorted()), and told is of \(doubtful)")
        }
    }

    /// Whoever asks about retirements is told of the same, and of which devices they are, as far as names are told.
    ///
    /// - Parameter layers: Those that are asked about.
    func checkDoubtful(_ row: StatusRow, in answer: ProgressAnswer, of layers: Set<Layer>) throws {
        let retirements = try controller.retirements(of: row.app).filter { layers.contains($0.key) }
        let doubted = try controller.doubted(of: row.app, retiredBy: retirements)
        let doubtful = row.retirement?.doubtful ?? 0
        if doubted.count > doubtful {
            fail(
                .erased,
                "progress of \(row.app): keys are elsewhere of \(doubted.sorted()), and told is of \(doubtful)")
        }
        let named = Set(answer.otherDisks.filter { $0.app == row.app }.map(\.device))
        if answer.otherDisks.count < Self.namedDisks, !doubted.isSubset(of: named) {
            fail(.erased, "progress of \(row.app) names \(named.sorted()), and keys are of \(doubted.sorted())")
        }
    }

    /// So many are named at most.
    private static let namedDisks = 20
}

extension ControllerCore.Event {
    /// Whether a device has said something of itself that stays.
    fileprivate func isHeard(of device: DeviceID) -> Bool {
        guard case .messages(let messages) = self else { return false }
        return messages.contains { message in
            switch Address(topic: message.topic, in: SimulatedFleet.id) {
            case .presence(.device(device)), .reply(device, _, .status): !message.payload.isEmpty
            default: false
            }
        }
    }
}
