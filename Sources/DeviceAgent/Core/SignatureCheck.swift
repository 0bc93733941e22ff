package import FleetProtocol

/// How what is signed is checked. A process that simulates many devices may check each distinct document once for all.
package struct SignatureCheck: Sendable {
    package typealias Desired =
        @Sendable (_ wire: [UInt8], _ trust: TrustDocument, _ fleet: FleetID) throws -> KeptDocument

    package let isValid: @Sendable (SignedDocument, VerifyingKey) -> Bool
    /// Reads a desired document whose signature is good; throws what is wrong with it.
    package let desired: Desired

    package init(
        isValid: @escaping @Sendable (SignedDocument, VerifyingKey) -> Bool, desired: Desired? = nil
    ) {
        self.isValid = isValid
        self.desired =
            desired ?? { wire, trust, fleet in
                let payload = try Self.payload(of: wire, .desired, trust, isValid)
                return KeptDocument(try DesiredDocument(payload: payload, in: fleet), wire)
            }
    }

    /// What a document says that is of this kind, and signed by a key that counts; throws what is wrong with it.
    func payload(of wire: [UInt8], _ kind: SignedDocument.Kind, _ trust: TrustDocument) throws -> [UInt8] {
        try Self.payload(of: wire, kind, trust, isValid)
    }

    private static func payload(
        of wire: [UInt8], _ kind: SignedDocument.Kind, _ trust: TrustDocument,
        _ isValid: (SignedDocument, VerifyingKey) -> Bool
    ) throws -> [UInt8] {
        let signed = try SignedDocument(wire: wire)
        guard signed.kind == kind else { throw FleetProtocolError(.mismatch, "a document of another kind") }
        guard let key = trust.key(signed.keyID) else {
            throw FleetProtocolError(.unknownKey, "signed by the unknown key \(signed.keyID)")
        }
        guard isValid(signed, key) else { throw FleetProtocolError(.signature, "the signature is wrong") }
        return signed.payload
    }

    package static let ed25519 = SignatureCheck { document, key in document.isSigned(by: key) }
}
