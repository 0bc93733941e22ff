import FleetProtocol

extension ControllerCore {
    /// Takes in a message below desired/, of whatever kind and topic.
    mutating func receiveDesired(_ message: Message, _ address: Address?, _ turn: inout Turn) throws {
        if case .trust? = address { return receiveTrust(message, &turn) }
        let copy = try compare(message, address)
        switch phase {
        case .offline: break
        case .looking:
            switch copy {
            case .same(let document): phase.readBack?.intact.insert(document.revision.number)
            case .newer(let document):
                let isUnknown = try isRestoring && store.transaction { try $0.document(at: document.address) } == nil
                phase.readBack?.note(newer: document, isUnknown: isUnknown)
            case .unknown(let document): phase.readBack?.note(unknown: document)
            case .foreign: phase.readBack?.note(foreign: message.topic)
            case .other(let document), .cleared(let document?):
                phase.readBack?.intact.remove(document.revision.number)
            case .cleared(nil): break
            }
        case .serving:
            switch copy {
            case .same(let document): phase.serving?.came(back: document.address)
            case .cleared(nil): break
            case .cleared(let document?), .other(let document):
                // An own publish that is still to come back will stand there last.
                guard phase.serving?.isUnderWay(document.address) != true else { return }
                publish(document, &turn)
                turn.log(.warning, "put back a document that someone else had replaced", ["topic": "\(message.topic)"])
            case .newer(let document): stop(seeing: "\(document.topic) is at revision \(document.revision)", &turn)
            case .unknown, .foreign: turn.publish(message.topic, [], retain: true)
            }
        }
    }

    /// The own barrier is back: the broker has shown all it holds. Repairs it, and begins to serve.
    mutating func finish(_ readBack: ReadBack, _ turn: inout Turn) throws {
        let issued: Int
        if isRestoring {
            issued = try restore(readBack, &turn)
        } else if let newest = readBack.newest {
            return stop(seeing: "\(newest.topic) is at revision \(newest.revision)", &turn)
        } else {
            issued = try withdraw(readBack.unknown, &turn) + replaceWithdrawnSignatures(&turn)
        }
        phase = .serving(Serving(barrier: readBack.barrier))
        var count = readBack.foreign.count
        for topic in readBack.foreign.sorted() { turn.publish(topic, [], retain: true) }
        if !readBack.isTrustIntact {
            publish(identity.trustWire, at: .trust, &turn)
            count += 1
        }
        // What has just been issued is behind the rest of the store, whose revisions are lower.
        try store.forEachDocument(reading: batches.documents) { document in
            guard !readBack.intact.contains(document.revision.number) else { return }
            publish(document, &turn)
            count += 1
        }
        phase.serving?.awaitRepair()
        turn.log(.info, "repaired", ["documents": "\(count)", "issued": "\(issued)"])
        if let presence { turn.publish(identity.topic(.presence(.controller)), presence.json, retain: true) }
        // Statuses come behind the presence that names their apps: now all have come.
        let present = readBack.present.sorted { $0.key < $1.key }
        let (left, dropped) = try store.transaction { transaction in
            var left: [(device: DeviceID, apps: [AppID])] = []
            var dropped: [Address] = []
            for (name, presence) in present {
                guard var device = try transaction.device(name) else { continue }
                let before = device
                let apps = try transaction.noteLeftKeys(by: presence, &device, in: identity.fleetID, at: turn.now)
                if device != before { try transaction.update(device) }
                if !apps.isEmpty { left.append((name, apps)) }
                dropped += try transaction.dropApps(missingIn: presence, device)
            }
            return (left, dropped)
        }
        for (device, apps) in left {
            turn.log(.warning, Self.needsLook, ["device": "\(device)", "what": DeviceWarning.leftKeys(of: apps)])
        }
        for address in dropped { turn.publish(identity.topic(address), [], retain: true) }
        for (device, presence) in readBack.present { phase.serving?.greet(device, presence) }
        for (device, lost) in readBack.cleared { phase.serving?.ask(device, lost: lost) }
        for message in readBack.deferred { try request(message, &turn) }
    }

    mutating func publish(_ document: StoredDocument, _ turn: inout Turn) {
        publish(document.wire, at: document.address, &turn)
    }

    private mutating func publish(_ wire: [UInt8], at address: Address, _ turn: inout Turn) {
        phase.serving?.published(address)
        turn.publish(identity.topic(address), wire, retain: true)
    }

    private mutating func receiveTrust(_ message: Message, _ turn: inout Turn) {
        let isIntact = message.payload == identity.trustWire
        if !isIntact, let version = identity.newerTrust(message.payload) {
            return stop(
                "the fleet knows of keys that this controller's home does not: the broker has a trust document of version"
                    + " \(version), signed by the root key, and the home one of version \(identity.trust.version). The home"
                    + " was put back from a backup that is older than the keys. Put keys/ and trust.json back as they were"
                    + " last, or make a new key with: fleetctl key rotate --withdraw-others", &turn)
        }
        phase.readBack?.isTrustIntact = isIntact
        guard case .serving = phase else { return }
        if isIntact { phase.serving?.came(back: .trust) } else { publish(identity.trustWire, at: .trust, &turn) }
    }

    private func compare(_ message: Message, _ address: Address?) throws -> BrokerCopy {
        let (stored, latest) = try store.transaction { transaction in
            (try address.flatMap { try transaction.document(at: $0) }, try transaction.latest())
        }
        guard !message.payload.isEmpty else { return .cleared(stored) }
        if let stored, stored.wire == message.payload { return .same(stored) }
        guard let document = identity.verified(message.payload, at: message.topic) else {
            return stored.map { .other($0) } ?? .foreign
        }
        // The same signed text in another envelope tells of no other time: it is only put right.
        if let stored, stored.revision == document.revision,
            let ours = try? SignedDocument(wire: stored.wire), let theirs = try? SignedDocument(wire: message.payload),
            ours.payload == theirs.payload
        {
            return .other(stored)
        }
        // Equal in revision with another text: the counter has been here before.
        if document.revision > latest || stored.map({ document.revision >= $0.revision }) ?? false {
            return .newer(document)
        }
        return stored.map { .other($0) } ?? .unknown(document)
    }

    /// Begins a new epoch beyond all that was seen. Returns how many documents it has signed, as do the next two.
    private mutating func restore(_ readBack: ReadBack, _ turn: inout Turn) throws -> Int {
        let seen = Revision(
            epoch: max(readBack.newest?.revision.epoch ?? 1, readBack.highest.epoch, noted?.latest.epoch ?? 1),
            number: max(readBack.newest?.revision.number ?? 0, readBack.highest.number, noted?.latest.number ?? 0))
        let issued = try store.transaction { transaction in
            var change = DesiredChange(
                transaction, identity, by: User.controller.text, why: "unknown after a restore", now: turn.now)
            try change.restore(
                seen: seen, withdrawing: readBack.unknown.sorted { $0.path < $1.path }, reading: batches.documents)
            try change.finish()
            return change.issued.count + change.reissued
        }
        isRestoring = false
        areSignaturesTrusted = true
        let latest = try store.transaction { try $0.latest() }
        turn.log(
            .notice, "began a new epoch after a restore",
            [
                "epoch": "\(latest.epoch)", "revision": "\(latest.number)", "documents": "\(issued)",
            ])
        try logEnded(readBack.retirements, &turn)
        return issued
    }

    /// Retirements that were wanted after the copy was made, and that nobody wants any more: who has not followed by now never
    /// will, and who has stays without keys until a newer auth document.
    private mutating func logEnded(_ retirements: Set<Address>, _ turn: inout Turn) throws {
        for address in retirements.sorted(by: { $0.path < $1.path }) {
            let stands = try store.transaction { try $0.document(at: address) }
            guard stands?.isRetired != true else { continue }
            turn.log(
                .warning,
                "a retirement is not in this database, and nobody follows it any more: apply it or another auth again",
                ["topic": "\(identity.topic(address))", "instead": "\(stands?.value ?? "nothing")"])
        }
    }

    /// Once in a run: the trust document is the same for as long as it lasts.
    private mutating func replaceWithdrawnSignatures(_ turn: inout Turn) throws -> Int {
        guard !areSignaturesTrusted else { return 0 }
        let reissued = try store.transaction { transaction in
            var change = DesiredChange(transaction, identity, by: User.controller.text, why: nil, now: turn.now)
            try change.replaceWithdrawnSignatures(reading: batches.documents)
            return change.reissued
        }
        areSignaturesTrusted = true
        if reissued > 0 {
            turn.log(.notice, "signed again what a withdrawn key had signed", ["documents": "\(reissued)"])
        }
        return reissued
    }

    /// Puts tombstones where the broker has verified documents that the store has long forgotten.
    private func withdraw(_ unknown: Set<Address>, _ turn: inout Turn) throws -> Int {
        guard !unknown.isEmpty else { return 0 }
        return try store.transaction { transaction in
            var change = DesiredChange(
                transaction, identity, by: User.controller.text, why: "found on the broker, unknown to the store",
                now: turn.now)
            for address in unknown.sorted(by: { $0.path < $1.path }) {
                if case .device(let device)? = DocumentPlace(address)?.layer, try transaction.isRemoved(device) {
                    turn.publish(identity.topic(address), [], retain: true)
                } else {
                    try change.issue(.tombstone, at: address)
                }
            }
            try change.finish()
            return change.issued.count
        }
    }
}
