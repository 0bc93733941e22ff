import FleetProtocol

/// The keys that sign now, by the newest trust document that the guard has seen.
struct KnownKeys: Sendable {
    var document: TrustDocument?
    /// Its bytes: it is read by every device, and verified once.
    var wire: [UInt8] = []
}

extension Guard {
    /// The controller speaks with the fleet's keys, says empty words alone for devices, and keeps nothing that is said once.
    mutating func checkController(_ message: Message) throws {
        guard let path = path(of: message.topic) else { return }
        if path.begins(with: "desired/") {
            try checkDocument(message, path)
        } else if path.isEqual("presence/@controller") {
            try message.checkKept(limit: Presence.maximumSize)
            try message.checkObject()
        } else if path.begins(with: "reply/") || path.begins(with: "presence/") {
            guard message.payload.isEmpty else {
                throw FleetProtocolError(.mismatch, "the controller speaks for no device: it may only clear that")
            }
            if case .reply(let device, let app, .status)? = Address(path: path), let name = PackedName(device.text) {
                devices[name]?.apps.remove(app)
            }
        } else {
            try message.checkFleeting(limit: .max)
        }
    }

    /// Below desired/: signed by a key that counts, for this topic of this fleet.
    private mutating func checkDocument(_ message: Message, _ path: UnsafeBufferPointer<UInt8>) throws {
        guard !message.payload.isEmpty else {
            guard !path.isEqual(Self.trustPath) else {
                throw FleetProtocolError(.mismatch, "the keys that count are never cleared")
            }
            return
        }
        try message.checkKept(limit: SignedDocument.maximumSize)
        if path.isEqual(Self.trustPath) { return try takeTrust(message.payload) }
        let signed = try verified(message)
        if path.ends(with: Self.membershipEnding) { try takeMembership(signed, wire: message.payload) }
    }

    private static let trustPath: StaticString = "desired/all/_fleet/trust"
    private static let membershipEnding: StaticString = "/_device/membership"

    /// What is on its way to a reader teaches as well: it is how the guard knows again, after the broker's restart, what was
    /// published before. Nothing of it is believed without its signature, and what is not believed is delivered all the same:
    /// readers verify it, and the controller must see it to mend it.
    mutating func learn(from message: Message, readBy role: Access.Role) {
        guard !message.payload.isEmpty, let path = path(of: message.topic), path.begins(with: "desired/") else {
            return
        }
        if path.isEqual(Self.trustPath) {
            try? takeTrust(message.payload)
        } else if role == .device, path.ends(with: Self.membershipEnding), !isKnownMembership(message.payload, path),
            let signed = try? verified(message)
        {
            try? takeMembership(signed, wire: message.payload)
        }
    }

    /// Each device reads its own whenever it connects: it is verified once.
    private func isKnownMembership(_ wire: UnsafeBufferPointer<UInt8>, _ path: UnsafeBufferPointer<UInt8>) -> Bool {
        let start = "desired/device/".utf8.count
        let end = path.count - Self.membershipEnding.utf8CodeUnitCount
        guard start < end, let name = PackedName(UnsafeBufferPointer(rebasing: path[start..<end])) else { return false }
        return devices[name]?.membershipHash == Self.hash(wire)
    }

    private static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
        return hasher.finalize()
    }

    private mutating func takeTrust(_ payload: UnsafeBufferPointer<UInt8>) throws {
        guard !payload.elementsEqual(keys.wire) else { return }
        let wire = Array(payload)
        let signed = try SignedDocument(wire: wire)
        let document = try TrustDocument(json: signed.payload, limit: SignedDocument.maximumSize)
        guard signed.kind == .trust, isSigned(signed, configuration.root) else {
            throw FleetProtocolError(.signature, "the fleet's root key has not signed it")
        }
        guard document.fleet == configuration.uuid, document.topic == Address.trust.topic(in: configuration.fleet)
        else {
            throw FleetProtocolError(.mismatch, "it belongs to another fleet")
        }
        if let known = keys.document, document.version < known.version {
            throw FleetProtocolError(
                .mismatch, "its version is \(document.version), and there was \(known.version) already")
        }
        keys = KnownKeys(document: document, wire: wire)
    }

    private func verified(_ message: Message) throws -> SignedDocument {
        let signed = try SignedDocument(wire: Array(message.payload))
        guard let document = keys.document else {
            throw FleetProtocolError(.unknownKey, "no document has said yet which keys count")
        }
        guard let key = document.key(signed.keyID) else {
            throw FleetProtocolError(.unknownKey, "the key \(signed.keyID) does not count")
        }
        guard signed.kind == .desired, isSigned(signed, key) else {
            throw FleetProtocolError(.signature, "the signature does not fit")
        }
        let head = try Head(signed.payload)
        guard head.fleet == configuration.uuid, head.topic.utf8.elementsEqual(message.topic) else {
            throw FleetProtocolError(.mismatch, "it was signed for another topic or fleet")
        }
        return signed
    }

    /// What every document says of itself, whatever a later version may put beside it.
    private struct Head {
        let fleet: RandomID
        let topic: String

        init(_ payload: [UInt8]) throws {
            var fleet: RandomID?
            var topic: String?
            try JSONReader.read(payload, limit: SignedDocument.maximumSize) { reader in
                try reader.object { name, value in
                    switch name {
                    case "fleet": fleet = try value.value()
                    case "topic": topic = try value.string(limit: 512)
                    default: break
                    }
                }
            }
            self.fleet = try required(fleet, "fleet")
            self.topic = try required(topic, "topic")
        }
    }

    private mutating func takeMembership(_ signed: SignedDocument, wire: UnsafeBufferPointer<UInt8>) throws {
        let document = try DesiredDocument(payload: signed.payload, in: configuration.fleet)
        guard case .membership(let device) = document.address, let name = PackedName(device.text) else { return }
        if let known = devices[name]?.membership, document.revision < known { return }
        let groups: [GroupID]
        switch document.content {
        case .membership(let list): groups = list
        case .tombstone: groups = []
        case .aspect, .groupMeta: return
        }
        devices[name, default: KnownDevice()].groups = groups.compactMap { PackedName($0.text) }
        devices[name]?.membership = document.revision
        devices[name]?.membershipHash = Self.hash(wire)
    }
}
