import FleetProtocol

extension DeviceCore {
    mutating func received(_ topic: String, _ payload: [UInt8], at now: Now) {
        guard session != nil, let address = Address(topic: topic, in: enrollment.fleet), isOurs(address) else { return }
        do {
            try take(payload, from: address, at: now)
        } catch {
            dismiss(payload, from: address, error, at: now)
        }
    }

    private mutating func take(_ payload: [UInt8], from address: Address, at now: Now) throws {
        switch address {
        case .barrier(.device(device)): receivedBarrier(payload, at: now)
        case .hello(device): try receivedHello(payload, at: now)
        case .heartbeat: try receivedHeartbeat(payload, at: now)
        case .received(device): try receivedMark(payload)
        case .presence(.device(device)): receivedOwnPresence(payload)
        // An empty message only means that the broker forgot: what was accepted stays until it is replaced.
        case .trust:
            if !payload.isEmpty { try receivedTrust(payload, at: now) }
        case .desired, .groupMeta, .membership:
            if !payload.isEmpty { try accept(payload, at: address, now) }
        case .barrier, .hello, .received, .presence, .reply, .request, .response: break
        }
    }

    /// Whether this device has asked for such a topic. What it has left and what is of no app here may still be on its
    /// way; it comes again when it is asked for.
    private func isOurs(_ address: Address) -> Bool {
        switch address {
        case .desired(let layer, let app, _):
            guard state.apps.contains(app) else { return false }
            return switch layer {
            case .all: true
            case .group(let group): isWanted(group)
            case .device(let id): id == device
            }
        case .groupMeta(let group): return isWanted(group)
        case .membership(let id): return id == device
        case .trust, .reply, .presence, .heartbeat, .hello, .received, .barrier, .request, .response: return true
        }
    }

    /// What a group that the membership names no more has told before may still count; it tells nothing new.
    func isWanted(_ group: GroupID) -> Bool { layers.membership.contains(group) }

    /// Refuses what has come. What an unknown key has signed is kept all the same, the newest of each topic: the trust
    /// document that names the key may be on its way; before a barrier that is even likely, and not worth a report.
    private mutating func dismiss(_ wire: [UInt8], from address: Address, _ error: any Error, at now: Now) {
        let topic = address.topic(in: enrollment.fleet)
        guard let held = session?.held, (error as? FleetProtocolError)?.code == .unknownKey else {
            return refuse(topic, error, at: now)
        }
        let hasRoom = held.count < Self.maximumHeld || held.contains { $0.topic == topic }
        if hasRoom { session?.hold(topic, wire) }
        if case .membership = address { session?.isMembershipUnread = true }
        fetchTrust()
        if !hasRoom || session?.hasAllShown == true { refuse(topic, error, at: now) }
    }

    /// Looks again at what was signed by keys that were unknown.
    mutating func retryHeld(at now: Now) {
        for (topic, wire) in session?.takeHeld() ?? [] { received(topic, wire, at: now) }
    }

    /// Takes a document that is signed by a trusted key, belongs here, and is not older than what was here before.
    private mutating func accept(_ wire: [UInt8], at address: Address, _ now: Now) throws {
        let mark = state.marks[address]
        if let mark, isHere(wire, at: address, mark) {
            session?.wanted?.shown.insert(address)
            return
        }
        let kept = try signatures.desired(wire, trust, enrollment.fleet)
        guard kept.document.fleet == enrollment.fleetUUID else {
            throw FleetProtocolError(.mismatch, "another fleet's document", at: "fleet")
        }
        guard kept.address == address else {
            throw FleetProtocolError(.mismatch, "this document belongs to \(kept.document.topic)", at: "topic")
        }
        let epoch = max(enrollment.epoch, state.highest.epoch)
        guard kept.revision.epoch >= epoch else {
            throw FleetProtocolError(
                .mismatch, "epoch \(kept.revision.epoch), where \(epoch) is known already", at: "epoch")
        }
        if let mark {
            guard kept.revision >= mark.revision else {
                throw FleetProtocolError(
                    .mismatch, "revision \(kept.revision), where \(mark.revision) was here already", at: "revision")
            }
            if kept.revision == mark.revision, let known = mark.digest, known != kept.digest {
                throw FleetProtocolError(
                    .mismatch, "revision \(kept.revision) was here with other content", at: "revision")
            }
        }
        keep(kept)
        took(kept, at: now)
    }

    /// Whether this is the very document of the mark, and kept, if it is one that is kept at all.
    private func isHere(_ wire: [UInt8], at address: Address, _ mark: DocumentMark) -> Bool {
        if let kept = layers[address] { return kept.revision == mark.revision && kept.isWritten(wire) }
        return tombstones.contains(address) && mark.digest == Digest(of: wire)
    }

    private mutating func keep(_ kept: KeptDocument) {
        let address = kept.address
        let mark = DocumentMark(revision: kept.revision, digest: kept.digest)
        state.marks[address] = mark
        state.highest = max(state.highest, kept.revision)
        batch.changes.append(.mark(address, mark))
        set(kept.isTombstone ? nil : kept, at: address)
        session?.wanted?.shown.insert(address)
        if kept.isTombstone {
            tombstones.insert(address)
        } else if !tombstones.isEmpty {
            tombstones.remove(address)
        }
    }

    /// From now on this document counts at its address, and with nil none; what was accepted there stays marked.
    mutating func set(_ document: KeptDocument?, at address: Address) {
        layers.set(document, at: address)
        if case .membership = address { noteLeftGroups() }
        batch.changes.append(.document(address, document?.wire))
    }

    private mutating func took(_ kept: KeptDocument, at now: Now) {
        switch kept.address {
        case .desired(_, let app, let aspect):
            // With the last one of an earlier epoch more becomes certain than what has come.
            settle([app], session?.showing == nil ? aspect : nil, at: now)
        case .groupMeta: settle(state.apps.keys, at: now)
        case .membership: followMembership(at: now)
        default: break
        }
    }

    private mutating func refuse(_ topic: String, _ error: any Error, at now: Now) {
        let reason = Text.printable("\(error)", limit: 200)
        log(.warning, "refused a document", "\(topic): \(reason)")
        refusals.removeAll { $0.topic == topic && $0.reason == reason }
        refusals.append(Status.Refusal(topic: topic, reason: reason, at: now.wall))
        if refusals.count > Status.maximumRefusals { refusals.removeFirst() }
        batch.reportedApps.insert(contentsOf: state.apps.keys)
    }
}
