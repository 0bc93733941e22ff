import FleetProtocol

extension DesiredChange {
    /// Groups that one device may belong to.
    static let maximumGroups = 64

    /// Creates a group, or changes its priority and members: who leaves has left before the group has another priority, and who
    /// comes, comes to it as it is then. Devices follow each document by itself.
    mutating func set(_ request: GroupRequest) throws {
        let group = request.group
        let known = try transaction.priority(of: group)
        let priority = request.priority ?? known ?? 0
        if known == nil, request.devices == nil {
            warn("there was no group \(group): it is a new one now, with priority \(priority)")
        }
        let present = Set(try transaction.members(of: group))
        let removed = Set(request.remove)
        if let both = request.add.first(where: removed.contains) {
            throw Response.Failure(.invalid, "\(both) is to be added and removed", at: "add")
        }
        let wanted = Set(request.devices ?? Array(present)).union(request.add).subtracting(removed)
        let leaving = present.subtracting(wanted)
        // Before what may be said of very many devices.
        if !leaving.isEmpty { try warn(aboutLeaving: .group(group), leaving) }
        for device in removed.subtracting(present).sorted() {
            warn("the device \(device) is not in the group \(group)")
        }
        for device in leaving.sorted() {
            try transaction.setMember(device, of: group, false)
            try issueMembership(of: device)
        }
        if priority != known {
            try transaction.setGroup(group, priority: priority)
            try issue(.groupMeta(GroupMeta(priority: priority)), at: .groupMeta(group))
            layersMoved(of: .group(group))
        }
        for device in wanted.subtracting(present).sorted() {
            try transaction.setMember(device, of: group, true)
            try issueMembership(of: device)
            if try transaction.device(device) == nil {
                warn("the device \(device) is not known: it was never enrolled or seen")
            }
        }
    }

    /// Withdraws what a group says, and takes its members out of it.
    mutating func delete(_ group: GroupID) throws {
        guard try transaction.priority(of: group) != nil else {
            throw Response.Failure(.notFound, "there is no group \(group)", at: "group")
        }
        let documents = try transaction.documents(on: .group(group)).filter { !$0.isTombstone }
        for document in documents where document.isRetired { try warnOfEnd(of: document) }
        for document in documents { try warn(aboutDeleting: document) }
        for device in try transaction.members(of: group) {
            try transaction.setMember(device, of: group, false)
            try issueMembership(of: device)
        }
        for document in documents { try issue(.tombstone, at: document.address) }
        try transaction.removeGroup(group)
    }

    private mutating func warn(aboutLeaving layer: Layer, _ devices: Set<DeviceID>) throws {
        for document in try transaction.documents(on: layer) where document.isRetired {
            guard case .desired(_, let app, _) = document.address else { continue }
            warn(
                "\(app) is retired by \(layer): a device that leaves it releases the app only where another auth"
                    + " document that was changed after that decides")
            var tally = try transaction.tally(of: app, asked: [layer], now: now)
            let outstanding = try devices.count { name in
                let rows = try transaction.device(name).flatMap { try transaction.tallied(app, on: $0) }
                return rows.map { tally.askedRetirement(of: $0) == .outstanding } ?? false
            }
            warnOfKeys(of: app, for: layer, on: Int64(outstanding))
            let left = try transaction.leftKeys(of: app, retiredBy: [layer: document.change])
                .filter { $0.isOfPresentDevice && devices.contains($0.device) }
            warnOfDoubt(of: app, for: layer, on: left.devices)
        }
    }

    private mutating func issueMembership(of device: DeviceID) throws {
        let groups = try transaction.groups(of: device)
        guard groups.count <= Self.maximumGroups else {
            throw Response.Failure(
                .invalid,
                "\(device) would belong to \(groups.count) groups, where at most \(Self.maximumGroups) are allowed",
                at: "devices")
        }
        try issue(.membership(groups), at: .membership(device))
        layersMoved(of: .device(device))
    }
}
