package import FleetProtocol

/// How what is signed is checked. A process that simulates many devices may check each distinct document once for all.
package struct SignatureCheck: Sendable {
    package typealias Desired =
        @Sendable (_ wire: [UInt8], _ digest: Digest, _ trust: TrustDocument, _ fleet: FleetID) throws ->
        KeptDocument

    package let isValid: @Sendable (SignedDocument, VerifyingKey) -> Bool
    /// Reads a desired document whose signature is good; throws what is wrong with it.
    package let desired: Desired

    package init(
        isValid: @escaping @Sendable (SignedDocument, VerifyingKey) -> Bool, desired: Desired? = nil
    ) {
        self.isValid = isValid
        self.desired =
            desired ?? { wire, _, trust, fleet in
                let signed = try SignedDocument(wire: wire)
                guard signed.kind == .desired else {
                    throw FleetProtocolError(.mismatch, "a document of another kind")
                }
                guard let key = trust.key(signed.keyID) else {
                    throw FleetProtocolError(.unknownKey, "signed by the unknown key \(signed.keyID)")
                }
                guard isValid(signed, key) else { throw FleetProtocolError(.signature, "the signature is wrong") }
                return KeptDocument(try DesiredDocument(payload: signed.payload, in: fleet), wire)
            }
    }

    package static let ed25519 = SignatureCheck { document, key in document.isSigned(by: key) }
}
