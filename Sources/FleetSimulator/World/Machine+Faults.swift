import DeviceAgent
import FleetController
import FleetProtocol

/// Deliberate faults around the device's core.
extension Machine {
    func altered(_ effects: [DeviceEffect]) -> [DeviceEffect] {
        switch world.fault {
        case .saysBeforeStoring:
            return effects.filter { !isStore($0) } + effects.filter(isStore)
        case .keysDestroyedLast:
            return effects.filter { !isDestruction($0) } + effects.filter(isDestruction)
        case .keysNotDestroyed: return effects.filter { !isDestruction($0) }
        default: return effects.compactMap(altered)
        }
    }

    private func isStore(_ effect: DeviceEffect) -> Bool { if case .store = effect { true } else { false } }
    private func isDestruction(_ effect: DeviceEffect) -> Bool { if case .destroyKeys = effect { true } else { false } }

    private func altered(_ effect: DeviceEffect) -> DeviceEffect? {
        switch effect {
        case .store(let changes):
            watch.unstored = changes
            return .store(changes.compactMap(altered))
        case .report where world.fault == .statusesLost:
            return world.noise.chance(20) ? nil : effect
        case .publish(.presence, _, _) where world.fault == .presenceNotRepeated:
            defer { watch.isPresenceSaid = true }
            return watch.isPresenceSaid ? nil : effect
        case .publish(let address, let payload, _) where world.fault == .eventsNotSentAgain:
            guard case .reply(_, _, let reply) = address, reply != .status else { return effect }
            guard let header = try? AppEvent(wire: payload, device: id, app: AppID(unchecked: "a0")).header else {
                return effect
            }
            let key = FleetStore.StoredEvent(
                device: id, incarnation: header.incarnation, boot: header.boot, number: header.number)
            return watch.sentEvents.insert(key).inserted ? effect : nil
        case .send(_, .deliver) where world.fault == .deliveriesLost: return world.noise.chance(15) ? nil : effect
        default: return effect
        }
    }

    private func altered(_ change: StoreChange) -> StoreChange? {
        switch (world.fault, change) {
        case (.marksNotStored, .mark), (.appsNotStored, .app), (.eventsNotStored, .event): nil
        case (.bootNotStored, .started(let boot, let owner)): .started(boot: max(1, boot - 1), owner)
        default: change
        }
    }

    func altered(_ payload: [UInt8], at address: Address?) -> [UInt8]? {
        switch address {
        case .desired?, .groupMeta?, .membership?: break
        default: return payload
        }
        guard let address, let signed = try? SignedDocument(wire: payload), signed.kind == .desired,
            let document = try? DesiredDocument(payload: signed.payload, in: SimulatedFleet.id)
        else { return payload }
        switch (world.fault, address) {
        case (.tombstonesIgnored, _): return document.isTombstone ? nil : payload
        case (.membershipIgnored, .membership): return nil
        case (.groupMetaIgnored, .groupMeta): return nil
        case (.topicsNotCompared, _):
            return document.address == address ? payload : signedAgain(document, at: address, document.revision)
        case (.fleetsNotCompared, _):
            return document.fleet == world.fleet.uuid ? payload : signedAgain(document, at: address, document.revision)
        case (.revisionsNotCompared, _):
            guard let mark = core?.state.marks[address], document.revision < mark.revision else { return payload }
            return signedAgain(
                document, at: address, Revision(epoch: mark.revision.epoch, number: mark.revision.number + 1))
        default: return payload
        }
    }

    /// What a core that does not compare would take for true.
    private func signedAgain(_ document: DesiredDocument, at address: Address, _ revision: Revision) -> [UInt8]? {
        let changed = DesiredDocument(
            fleet: world.fleet.uuid, fleetID: SimulatedFleet.id, address: address, revision: revision,
            change: document.change, issuedAt: document.issuedAt, content: document.content)
        return try? SignedDocument(signing: changed.json, as: .desired, with: world.fleet.signingKey).wire
    }
}
