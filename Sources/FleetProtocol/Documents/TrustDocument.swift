/// Which keys sign now: the payload of the document at ``Address/trust``, signed by the fleet's root key. The highest
/// version counts.
package struct TrustDocument: Hashable, Sendable {
    package let fleet: RandomID
    package let topic: String
    package let version: Int64
    package let issuedAt: Timestamp
    package let keys: [VerifyingKey]

    /// How many keys may count at a time.
    package static let maximumKeys = 16

    package init(fleet: RandomID, fleetID: FleetID, version: Int64, issuedAt: Timestamp, keys: [VerifyingKey]) {
        self.fleet = fleet
        topic = Address.trust.topic(in: fleetID)
        self.version = version
        self.issuedAt = issuedAt
        self.keys = keys
    }

    package func key(_ id: KeyID) -> VerifyingKey? { keys.first { $0.id == id } }
}

extension TrustDocument: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var fleet: RandomID?
        var topic: String?
        var version: Int64?
        var formatVersion: Int64?
        var issuedAt: Timestamp?
        var keys: [VerifyingKey]?
        try reader.object { name, value in
            switch name {
            case "v": formatVersion = try value.version()
            case "fleet": fleet = try value.value()
            case "topic": topic = try value.string(limit: 512)
            case "version": version = try value.integer(in: 1...JSONValue.largestInteger)
            case "issuedAt": issuedAt = try value.value()
            case "keys":
                var list: [VerifyingKey] = []
                try value.array(limit: TrustDocument.maximumKeys) { list.append(try VerifyingKey(from: &$0)) }
                keys = list
            default: break
            }
        }
        _ = try required(formatVersion, "v")
        self.fleet = try required(fleet, "fleet")
        self.topic = try required(topic, "topic")
        self.version = try required(version, "version")
        self.issuedAt = try required(issuedAt, "issuedAt")
        self.keys = try required(keys, "keys")
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("v", 1)
            writer.member("fleet", fleet)
            writer.member("topic", topic)
            writer.member("version", version)
            writer.member("issuedAt", issuedAt)
            writer.member("keys", keys)
        }
    }
}

extension VerifyingKey: JSONCodable {
    /// `{"kid":"…","alg":"EdDSA","x":"<32 bytes>"}`; the id must be the key's own.
    package init(from reader: inout JSONReader) throws {
        var id: KeyID?
        var algorithm: String?
        var bytes: Binary?
        try reader.object { name, value in
            switch name {
            case "kid": id = try value.value()
            case "alg": algorithm = try value.string()
            case "x": bytes = try value.value()
            default: break
            }
        }
        guard try required(algorithm, "alg") == "EdDSA" else {
            throw FleetProtocolError(.value, "expected EdDSA", at: "alg")
        }
        let key = try VerifyingKey(bytes: try required(bytes, "x").bytes)
        guard try required(id, "kid") == key.id else {
            throw FleetProtocolError(.value, "this is not the id of the key", at: "kid")
        }
        self = key
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("kid", id)
            writer.member("alg", "EdDSA")
            writer.member("x", Binary(bytes))
        }
    }
}
