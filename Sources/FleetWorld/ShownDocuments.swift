import DeviceAgent
import FleetProtocol

/// The controller's documents that have come to a device, and that it could not take yet: it knows no such key so far.
struct ShownDocuments {
    fileprivate var held: [Document] = []

    fileprivate struct Document {
        let address: Address
        let wire: [UInt8]
    }

    /// The connection has ended: what stands there comes again on the next one.
    mutating func disconnected() { held = [] }
}

extension Machine {
    /// What the controller has said, and has come, counts from then on, unless something newer does.
    func checkTaken(_ events: [DeviceEvent], in groups: [GroupID]) {
        // What came on a connection that has ended comes again on the next one.
        guard let core, core.connection != nil, !events.contains(where: isEnd) else { return }
        let memberships = events.count { event in
            guard case .message(let topic, _) = event else { return false }
            return if case .membership? = Address(topic: topic, in: SimulatedFleet.id) { true } else { false }
        }
        // Left and come to again in one moment, a group may not have been listened to in between.
        let heard = memberships > 1 ? [] : Set(groups).intersection(core.membership)
        for case .message(let topic, let wire) in events {
            guard let address = Address(topic: topic, in: SimulatedFleet.id), isListenedTo(address, in: heard),
                world.controller.documentsSaid[topic]?.contains(wire) ?? false
            else { continue }
            watch.shownDocuments.held.append(ShownDocuments.Document(address: address, wire: wire))
        }
        watch.shownDocuments.held.removeAll { isSettled($0, core) }
    }

    private func isEnd(_ event: DeviceEvent) -> Bool { if case .disconnected = event { true } else { false } }

    private func isListenedTo(_ address: Address, in groups: Set<GroupID>) -> Bool {
        switch address {
        case .membership(let device): device == id
        case .desired(.device(let device), _, _) where device != id: false
        case .groupMeta(let group): groups.contains(group)
        case .desired(.group(let group), let app, _): groups.contains(group) && disk.state.apps[app] != nil
        case .desired(_, let app, _): disk.state.apps[app] != nil
        default: false
        }
    }

    /// It counts, or need not.
    private func isSettled(_ shown: ShownDocuments.Document, _ core: DeviceCore) -> Bool {
        let mark = core.state.marks[shown.address]
        if let mark, mark.digest == Digest(of: shown.wire) { return true }
        guard let signed = try? SignedDocument(wire: shown.wire),
            let document = try? DesiredDocument(payload: signed.payload, in: SimulatedFleet.id),
            document.revision.epoch >= max(enrollment.epoch, core.state.highest.epoch),
            document.revision > mark?.revision ?? .zero
        else { return true }
        // In a hostile world others' documents may take the places of those that are held.
        guard core.trust.key(signed.keyID) != nil else { return world.schedule.broker == .hostile }
        if let group = shown.address.group, !core.membership.contains(group) { return true }
        world.fail(
            .convergence,
            "\(name): \(document.topic) of \(document.revision) has come, and \(mark?.revision ?? .zero) counts")
        return true
    }
}
