import DeviceAgent
import FleetProtocol

/// The laws of what decides for an app, at the moment in which that changes.
extension Machine {
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
