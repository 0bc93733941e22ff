import FleetProtocol

/// The keys that sign now, by the newest trust document that the guard has seen.
struct KnownKeys: Sendable {
    var document: TrustDocument?
    /// Its bytes: it is read by every device, and verified once.
    var wire: [UInt8] = []
}

/// The newest of each device, of bounded size: beyond it none is held, and a device without one reads no group until it comes
/// again.
struct HeldMemberships: Sendable {
    struct Held: Sendable {
        let topic: [UInt8]
        let payload: [UInt8]
    }

    private var held: [PackedName: Held] = [:]
    private var size = 0

    private static let maximumSize = 16 << 20

    mutating func hold(_ message: Guard.Message, of device: PackedName) {
        drop(device)
        guard message.payload.count <= SignedDocument.maximumSize, size + message.payload.count <= Self.maximumSize
        else { return }
        held[device] = Held(topic: Array(message.topic), payload: Array(message.payload))
        size += message.payload.count
    }

    mutating func drop(_ device: PackedName) {
        if let old = held.removeValue(forKey: device) { size -= old.payload.count }
    }

    mutating func takeAll() -> [PackedName: Held] {
        defer { self = HeldMemberships() }
        return held
    }
}

extension Guard {
    /// The controller speaks with the fleet's keys, says empty words alone for devices, and keeps nothing that is said once.
    mutating func checkController(_ message: Message) throws {
        let path = try known(path(of: message.topic))
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
            // It is said behind all that was missing here.
            if path.isEqual("control/heartbeat") { isRepaired = true }
        }
    }

    /// Below desired/: signed by a key that counts, for this topic of this fleet.
    private mutating func checkDocument(_ message: Message, _ path: UnsafeBufferPointer<UInt8>) throws {
        guard !message.payload.isEmpty else {
            guard !path.isEqual(Self.trustPath) else {
                throw FleetProtocolError(.mismatch, "the keys that count are never cleared")
            }
            if let name = memberName(path) {
                devices[name]?.groups = []
                heldMemberships.drop(name)
            }
            return
        }
        try message.checkKept(limit: SignedDocument.maximumSize)
        if path.isEqual(Self.trustPath) { return try takeTrust(message.payload) }
        let signed = try verified(message)
        if let name = memberName(path), let member = try? member(signed) { try take(member, of: name, message.payload) }
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
        } else if role == .device, let name = memberName(path) {
            // Each device reads its own whenever it connects: it is verified once.
            guard devices[name]?.membershipHash != Self.hash(message.payload) else { return }
            learn(from: message, of: name)
        }
    }

    private mutating func learn(from message: Message, of name: PackedName) {
        do {
            try take(member(verified(message)), of: name, message.payload)
        } catch let error as FleetProtocolError where error.code == .unknownKey {
            heldMemberships.hold(message, of: name)
        } catch {}
    }

    /// The device whose membership stands there.
    private func memberName(_ path: UnsafeBufferPointer<UInt8>) -> PackedName? {
        let start = "desired/device/".utf8.count
        let end = path.count - Self.membershipEnding.utf8CodeUnitCount
        guard path.ends(with: Self.membershipEnding), start < end else { return nil }
        return PackedName(UnsafeBufferPointer(rebasing: path[start..<end]))
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
        for (device, held) in heldMemberships.takeAll() {
            held.topic.withUnsafeBufferPointer { topic in
                held.payload.withUnsafeBufferPointer { payload in
                    learn(from: Message(topic: topic, payload: payload, isRetained: true), of: device)
                }
            }
        }
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

    private struct Member {
        let groups: [GroupID]
        let revision: Revision
    }

    private func member(_ signed: SignedDocument) throws -> Member {
        let document = try DesiredDocument(payload: signed.payload, in: configuration.fleet)
        switch document.content {
        case .membership(let groups): return Member(groups: groups, revision: document.revision)
        case .tombstone: return Member(groups: [], revision: document.revision)
        case .aspect, .groupMeta: throw FleetProtocolError(.mismatch, "this is no membership")
        }
    }

    private mutating func take(_ member: Member, of name: PackedName, _ wire: UnsafeBufferPointer<UInt8>) throws {
        if let known = devices[name]?.membership, member.revision < known {
            throw FleetProtocolError(
                .mismatch, "its revision is \(member.revision), and there was \(known) already")
        }
        devices[name, default: KnownDevice()].groups = member.groups.compactMap { PackedName($0.text) }
        devices[name]?.membership = member.revision
        devices[name]?.membershipHash = Self.hash(wire)
    }
}
