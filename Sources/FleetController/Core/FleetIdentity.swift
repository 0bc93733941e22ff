package import FleetProtocol

/// Which fleet the controller speaks for, and with which key.
package struct FleetIdentity: Sendable {
    package let fleetID: FleetID
    package let fleet: RandomID
    package let signingKey: SigningKey
    /// The trust document as the root key has signed it.
    package let trustWire: [UInt8]
    package let trust: TrustDocument
    private let rootKey: VerifyingKey

    /// Throws when agents would not believe this key: the trust document must be this fleet's and name it.
    package init(
        fleetID: FleetID, fleet: RandomID, signingKey: SigningKey, trustWire: [UInt8], rootKey: VerifyingKey
    ) throws {
        self.fleetID = fleetID
        self.fleet = fleet
        self.signingKey = signingKey
        self.trustWire = trustWire
        self.rootKey = rootKey
        let signed = try SignedDocument(wire: trustWire)
        trust = try TrustDocument(json: signed.payload, limit: SignedDocument.maximumSize)
        guard signed.kind == .trust, trust.fleet == fleet, trust.topic == Address.trust.topic(in: fleetID) else {
            throw FleetControllerError(.home, "the trust document of the home belongs to another fleet")
        }
        guard trust.key(signingKey.publicKey.id) == signingKey.publicKey else {
            throw FleetControllerError(
                .home,
                "the signing key \(signingKey.publicKey.id) is not in the home's trust document: no device"
                    + " would believe it")
        }
    }

    func topic(_ address: Address) -> String { address.topic(in: fleetID) }

    package func sign(_ payload: some JSONWritable, as kind: SignedDocument.Kind) throws -> [UInt8] {
        try SignedDocument(signing: payload.json, as: kind, with: signingKey).wire
    }

    /// The version of the trust document in `wire`, if the root key has signed it for this fleet, and later than the one here.
    func newerTrust(_ wire: [UInt8]) -> Int64? {
        guard let signed = try? SignedDocument(wire: wire), signed.kind == .trust, signed.isSigned(by: rootKey),
            let other = try? TrustDocument(json: signed.payload, limit: SignedDocument.maximumSize),
            other.fleet == fleet, other.topic == trust.topic, other.version > trust.version
        else { return nil }
        return other.version
    }

    /// The document in `wire` if a key that counts now has signed it for this fleet and topic, else nil.
    func verified(_ wire: [UInt8], at topic: String) -> DesiredDocument? {
        guard let signed = try? SignedDocument(wire: wire), signed.kind == .desired,
            let key = trust.key(signed.keyID), signed.isSigned(by: key),
            let document = try? DesiredDocument(payload: signed.payload, in: fleetID),
            document.fleet == fleet, document.topic == topic
        else { return nil }
        return document
    }
}
