import Crypto

/// The name of a key: the first 8 bytes of the SHA-256 of its public part, in hexadecimal.
package struct KeyID: Identifier {
    package static let noun = "key id"
    package let text: String
    package init(unchecked text: String) { self.text = text }

    package init(of publicKey: [UInt8]) {
        self.init(
            unchecked: SHA256.hash(data: publicKey).prefix(8)
                .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())
    }
}

/// The public half of an Ed25519 key (RFC 8032), 32 bytes.
package struct VerifyingKey: Hashable, Sendable {
    package let bytes: [UInt8]
    package let id: KeyID
    private let key: Curve25519.Signing.PublicKey

    package init(bytes: [UInt8]) throws {
        guard bytes.count == 32, let key = try? Curve25519.Signing.PublicKey(rawRepresentation: bytes) else {
            throw FleetProtocolError(.value, "expected an Ed25519 public key of 32 bytes")
        }
        self.bytes = bytes
        self.key = key
        id = KeyID(of: bytes)
    }

    package func isValid(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        signature.count == 64 && key.isValidSignature(signature, for: message)
    }

    package static func == (left: VerifyingKey, right: VerifyingKey) -> Bool { left.bytes == right.bytes }
    package func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

/// The private half: signs documents. It is never printed; its 32 bytes leave it only for its file.
package struct SigningKey: Sendable, CustomStringConvertible {
    private let key: Curve25519.Signing.PrivateKey
    package let publicKey: VerifyingKey

    /// A new random key.
    package init() throws { try self.init(key: Curve25519.Signing.PrivateKey()) }

    package init(secret: [UInt8]) throws {
        guard let key = try? Curve25519.Signing.PrivateKey(rawRepresentation: secret) else {
            throw FleetProtocolError(.value, "expected an Ed25519 private key of 32 bytes")
        }
        try self.init(key: key)
    }

    private init(key: Curve25519.Signing.PrivateKey) throws {
        self.key = key
        publicKey = try VerifyingKey(bytes: Array(key.publicKey.rawRepresentation))
    }

    package var secret: [UInt8] { Array(key.rawRepresentation) }
    package var description: String { "SigningKey(\(publicKey.id))" }

    func signature(of message: [UInt8]) throws -> [UInt8] { Array(try key.signature(for: message)) }
}
