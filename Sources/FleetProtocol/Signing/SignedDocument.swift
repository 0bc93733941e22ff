/// A signed text: a JWS in flattened JSON serialization with an unencoded payload (RFC 7515, RFC 7797), Ed25519
/// (RFC 8037).
///
/// The wire is `{"protected":"…","payload":"…","signature":"…"}`; the signature covers `protected`, a dot and the
/// payload's unescaped bytes. The protected header has exactly our five members. The algorithm is the key's, not the
/// header's.
package struct SignedDocument: Hashable, Sendable {
    /// What a signature was made for; a document of one kind never passes for one of another.
    package enum Kind: String, CaseIterable, Sendable {
        case desired = "fleetbus-desired+jws"
        case trust = "fleetbus-trust+jws"
        case heartbeat = "fleetbus-heartbeat+jws"
        case hello = "fleetbus-hello+jws"
        case received = "fleetbus-received+jws"
        case history = "fleetbus-history+jws"
    }

    /// The largest document on the wire, in bytes.
    package static let maximumSize = 64 * 1_024

    package let kind: Kind
    package let keyID: KeyID
    /// The base64url text of the header, as it was signed.
    package let protected: String
    package let payload: [UInt8]
    package let signature: [UInt8]

    package init(signing payload: [UInt8], as kind: Kind, with key: SigningKey) throws {
        self.kind = kind
        self.payload = payload
        keyID = key.publicKey.id
        protected = Self.header(kind, keyID)
        signature = try key.signature(of: Self.signingInput(protected, payload))
    }

    /// Reads the wire form. Throws for any other member, a double one, or a header that is not exactly ours.
    package init(wire: [UInt8]) throws {
        var header: String?
        var payload: [UInt8]?
        var signature: Binary?
        try JSONReader.read(wire, limit: Self.maximumSize) { reader in
            try reader.object { name, value in
                switch name {
                case "protected": header = try value.string()
                case "payload": payload = try value.stringBytes()
                case "signature": signature = try value.value()
                default: throw FleetProtocolError(.signature, "only protected, payload and signature may stand here")
                }
            }
        }
        protected = try required(header, "protected")
        self.payload = try required(payload, "payload")
        self.signature = try required(signature, "signature").bytes
        guard self.signature.count == 64 else {
            throw FleetProtocolError(.signature, "expected the 64 bytes of an Ed25519 signature", at: "signature")
        }
        do {
            (kind, keyID) = try Self.parse(header: protected)
        } catch let error as FleetProtocolError {
            throw error.inside("protected")
        }
    }

    package var wire: [UInt8] {
        var writer = JSONWriter(capacity: payload.count + 512)
        writer.object { writer in
            writer.member("protected", protected)
            writer.member("payload") { $0.value(utf8: payload) }
            writer.member("signature", Binary(signature))
        }
        return writer.bytes
    }

    package func isSigned(by key: VerifyingKey) -> Bool {
        key.id == keyID && key.isValid(signature, of: Self.signingInput(protected, payload))
    }

    private static func signingInput(_ protected: String, _ payload: [UInt8]) -> [UInt8] {
        Array(protected.utf8) + [UInt8(ascii: ".")] + payload
    }

    private static func header(_ kind: Kind, _ keyID: KeyID) -> String {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("alg", "EdDSA")
            writer.member("b64", false)
            writer.member("crit", ["b64"])
            writer.member("kid", keyID)
            writer.member("typ", kind.rawValue)
        }
        return Base64URL.encode(writer.bytes)
    }

    private static func parse(header: String) throws -> (Kind, KeyID) {
        guard let bytes = Base64URL.decode(header.utf8) else {
            throw FleetProtocolError(.value, "expected base64url without padding")
        }
        var algorithm: String?
        var isEncoded: Bool?
        var critical: [String]?
        var keyID: KeyID?
        var type: String?
        try JSONReader.read(bytes, limit: 1_024) { reader in
            try reader.object { name, value in
                switch name {
                case "alg": algorithm = try value.string()
                case "b64": isEncoded = try value.bool()
                case "crit": critical = try value.values(limit: 4)
                case "kid": keyID = try value.value()
                case "typ": type = try value.string()
                default: throw FleetProtocolError(.signature, "only alg, b64, crit, kid and typ may stand here")
                }
            }
        }
        guard try required(algorithm, "alg") == "EdDSA" else {
            throw FleetProtocolError(.signature, "expected EdDSA", at: "alg")
        }
        guard try required(isEncoded, "b64") == false else {
            throw FleetProtocolError(.signature, "expected false", at: "b64")
        }
        guard try required(critical, "crit") == ["b64"] else {
            throw FleetProtocolError(.signature, "expected [\"b64\"]", at: "crit")
        }
        let typeName = try required(type, "typ")
        guard let kind = Kind(rawValue: typeName) else {
            throw FleetProtocolError(
                .signature, "unknown kind of document '\(Text.printable(typeName, limit: 40))'", at: "typ")
        }
        let key = try required(keyID, "kid")
        guard key.text.utf8.count == 16,
            key.text.utf8.allSatisfy({
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            })
        else {
            throw FleetProtocolError(.signature, "expected 16 hexadecimal digits", at: "kid")
        }
        return (kind, key)
    }
}
