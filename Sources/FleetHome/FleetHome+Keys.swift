package import FleetProtocol

extension FleetHome {
    /// A key that devices believe.
    package struct TrustedKey: Hashable, Sendable {
        package let id: KeyID
        /// Whether the controller signs with it, from its next start on.
        package let signs: Bool
    }

    /// Whether a controller runs, which signs with the key that it has read at its start.
    package func isControllerRunning() throws -> Bool {
        try FileLock(path: folder.path(of: "controller.lock"), waits: false) == nil
    }

    /// The keys that count, by the newest trust document.
    package func trustedKeys() throws -> [TrustedKey] {
        let signing = try signingKey().publicKey.id
        return try trustDocument().keys.map { TrustedKey(id: $0.id, signs: $0.id == signing) }
    }

    /// Makes a new signing key, with which the controller signs from its next start on.
    ///
    /// Whenever it ends half-way, the key that signs is trusted, and it can be repeated.
    /// - Parameter withdrawingOthers: Devices believe none of the others any more: one may be in the wrong hands.
    package func rotateSigningKey(withdrawingOthers: Bool) throws {
        try changing {
            let trusted = try trustDocument().keys
            _ = try signingKey()  // What could not be read would not be replaced, and might be somebody's.
            guard trusted.count < TrustDocument.maximumKeys else {
                throw FleetHomeError(
                    .exists, "the fleet trusts \(trusted.count) keys already, as many as there may be",
                    remedy: "withdraw some of them first: `fleetctl key list`, `fleetctl key withdraw`")
            }
            let key = try SigningKey()
            // Its secret is still nowhere: should this be all that happens, nobody has the key, and it harms nobody. What is
            // left of a write that is cut short goes with the next change.
            try trust(trusted + [key.publicKey])
            try keyFolder.write(KeyFile(key, for: .signing), to: "signing.key")
            if withdrawingOthers { try trust([key.publicKey]) }
        }
    }

    /// Devices do not believe this key any more, once the controller has started again.
    package func withdrawKey(_ id: KeyID) throws {
        try changing {
            let trusted = try trustDocument().keys
            guard trusted.contains(where: { $0.id == id }) else {
                throw FleetHomeError(
                    .missing, "the fleet trusts no key \(id)", remedy: "`fleetctl key list` names those that it trusts")
            }
            guard try signingKey().publicKey.id != id else {
                throw FleetHomeError(
                    .exists, "the controller signs with \(id)",
                    remedy: "`fleetctl key rotate --withdraw-others` makes a new one in its place")
            }
            try trust(trusted.filter { $0.id != id })
        }
    }

    private func trustDocument() throws -> TrustDocument {
        try TrustDocument(json: trust().payload, limit: SignedDocument.maximumSize)
    }

    /// Writes the next trust document.
    ///
    /// Its version is the time in milliseconds, if that is later than the one before: of a folder that was put back from a
    /// backup nobody knows how far the versions had come since, and devices believe none that is not higher.
    private func trust(_ keys: [VerifyingKey]) throws {
        let now = Timestamp.now
        let document = TrustDocument(
            fleet: context.uuid, fleetID: context.fleet,
            version: max(try trustDocument().version + 1, now.milliseconds), issuedAt: now, keys: keys)
        let signed = try SignedDocument(signing: document.json, as: .trust, with: rootKey())
        try folder.write(signed.wire, to: "trust.json")
    }
}
