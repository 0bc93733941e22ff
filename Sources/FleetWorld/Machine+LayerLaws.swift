import DeviceAgent
import FleetProtocol

/// The laws of what decides for an app, at the moment in which that changes.
extension Machine {
    /// What is in force changes to what is stored of the layers, and not because the agent has forgotten some of it: without
    /// contact it goes on. Of several things in one moment each may have counted for a while; log levels have times of their
    /// own.
    func checkGoesOn(_ app: AppRecord, was old: AppRecord, in changes: [StoreChange]) {
        let changed = Policy.allCases.filter { $0 != .logLevel && old[$0].value != app[$0].value }
        guard watch.isAlone, !changed.isEmpty, let core else { return }
        var groups = disk.state.groups
        var held = disk.state.documents.filter { address, _ in
            if case .desired(_, let other, _) = address { other == app.id } else { true }
        }
        for change in changes {
            switch change {
            case .document(let address, let wire): held[address] = wire
            case .groups(let new): groups = new
            default: break
            }
        }
        let layers = SaidLayers(held: held, by: id, in: groups)
        let apps = core.state.apps.values
        let authorized = apps.filter { $0.authState == .authorized }.map(\.id)
        for policy in changed {
            let (was, now) = (old[policy], app[policy])
            guard let wanted = layers.wish(policy, of: app, authorized, at: clock.wall).0,
                !wanted.isWritten(as: now.value), !isFoundHere(now.value, of: app)
            else { continue }
            // Until it is certain what replaces it, it names no app that has lost its authorization.
            let others = Set(apps.map(\.id)).subtracting(authorized)
            if was.namesAuthorized, was.value.naming(noneOf: others) == now.value { continue }
            world.fail(
                .continues,
                "\(name)/\(app.id): \(policy.rawValue) went from \(was.value) to \(now.value), and what is stored says"
                    + " \(wanted)")
        }
    }

    /// What the device itself has found about an app: that it is out of contact, or retired until that ends for certain.
    private func isFoundHere(_ value: PolicyValue, of app: AppRecord) -> Bool {
        guard value.policy == .auth else { return false }
        if app.authReason == .outOfContact { return true }
        return app.latch.map { value == .auth(.retired, message: $0.message) } ?? false
    }

    /// What a device is told alone, and is certain of, it follows at once, and not with its next look at the clock.
    func checkFollows(_ events: [DeviceEvent], _ core: DeviceCore) {
        guard events.count == 1, case .message(let topic, _) = events[0], older == nil, !wasPutBack else { return }
        switch Address(topic: topic, in: SimulatedFleet.id) {
        case .groupMeta where core.membership == core.state.groups:
            let layers = SaidLayers(held: core.signedDocuments, by: id, in: core.state.groups)
            guard !mayHaveNobodys(core) else { return }
            for record in core.state.apps.values { checkFollows(record, layers) }
        case .desired(_, let app, .secureServices):
            guard let record = core.state.apps[app], record.latch == nil, record.authReason == .outOfContact,
                record.secureServices.offline?.blockAfter == nil, watch.bus.isStillCertain(app),
                !mayHaveNobodys(core)
            else { return }
            world.fail(.limits, "\(name)/\(app): it is still blocked, and nothing says any more after what time")
        default: break
        }
    }

    /// Whether it has documents of an earlier epoch than the controller's: some may be nobody's wish, and that is looked at before
    /// anything is certain.
    func mayHaveNobodys(_ core: DeviceCore) -> Bool {
        SaidLayers(held: core.signedDocuments, by: id, in: core.state.groups)
            .haveDocuments(before: core.state.highest.epoch)
    }

    /// Whether an app is told something of an epoch before the controller's last hello: that is to come anew, or is no word of its
    /// any more. Until then nobody knows what the app is told.
    func hasOfEarlierEpoch(_ app: AppID) -> Bool {
        guard let core, watch.bus.epochBefore > 1 else { return false }
        return SaidLayers(held: core.signedDocuments, by: id, in: core.state.groups)
            .haveDocument(of: app, before: watch.bus.epochBefore)
    }

    /// What a group tells of which a device knows that it has left is no wish for it.
    func checkListens(_ events: [DeviceEvent], _ effects: [DeviceEffect], _ core: DeviceCore) {
        let isMoved = events.contains { event in
            guard case .message(let topic, _) = event else { return false }
            return switch Address(topic: topic, in: SimulatedFleet.id) {
            case .membership, .trust: true
            default: false
            }
        }
        guard !isMoved else { return }
        for case .store(let changes) in effects {
            for case .document(let address, .some) in changes {
                guard let group = address.group, !core.membership.contains(group) else { continue }
                world.fail(.convergence, "\(name) listens to \(address.path), and is in \(core.membership) alone")
            }
        }
    }

    private func checkFollows(_ record: AppRecord, _ layers: SaidLayers) {
        guard watch.bus.isStillCertain(record.id), record.authReason != .outOfContact else { return }
        for policy in Policy.allCases where policy.aspect != nil {
            let (report, wanted) = (record[policy], layers.deciding(policy, of: record.id))
            guard report.source != wanted?.source || report.received != wanted?.revision ?? 0 else { continue }
            world.fail(
                .convergence,
                "\(name)/\(record.id): \(policy.rawValue) follows \(report.source?.path ?? "default") at"
                    + " \(report.received), not \(wanted?.source.path ?? "default") at \(wanted?.revision ?? 0)")
        }
    }
}
