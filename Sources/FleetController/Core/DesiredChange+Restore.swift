import FleetProtocol

extension DesiredChange {
    /// How far the counter jumps at least beyond everything that was seen: room for what the broker did not show.
    static let restoreGap: Int64 = 1_000
    /// From where the milliseconds are counted that revisions begin behind: the first of 2026.
    private static let origin: Int64 = 1_767_225_600_000

    /// Starts a new epoch beyond all that the fleet may have seen of a time that this store has no memory of.
    ///
    /// Its number is later than all that were seen, and the milliseconds since 1970 at least: one that was begun from the same
    /// backup before, and of which nothing was seen, must be another. Its revisions begin behind what a change in each
    /// millisecond would have come to, so that no device's word of a lost one is taken for one of these. Every document is
    /// signed again as the change that it was; what others may still follow is withdrawn.
    mutating func restore(seen: Revision, withdrawing unknown: [Address], reading count: Int) throws {
        let latest = try transaction.latest()
        let epoch = max(latest.epoch + 1, seen.epoch + 1, now.milliseconds)
        let number = max(latest.number, seen.number, now.milliseconds - Self.origin)
        try transaction.advance(to: Revision(epoch: epoch, number: number + Self.restoreGap))
        try reissue(through: latest, reading: count)
        for address in unknown where try transaction.document(at: address) == nil {
            try issue(.tombstone, at: address)
        }
    }

    /// Signs again, as the changes that they were, what was signed with a key that has been withdrawn since: no device that
    /// knows of that would believe it.
    mutating func replaceWithdrawnSignatures(reading count: Int) throws {
        try reissue(through: try transaction.latest(), reading: count) { [identity] document in
            try identity.trust.key(SignedDocument(wire: document.wire).keyID) == nil
        }
    }

    private mutating func reissue(
        through latest: Revision, reading count: Int, where isMeant: (StoredDocument) throws -> Bool = { _ in true }
    ) throws {
        var last: Int64 = 0
        while true {
            let page = try transaction.documents(after: last, limit: count)
                .filter { $0.revision.number <= latest.number }
            guard let end = page.last?.revision.number else { return }
            for document in page where try isMeant(document) { try reissue(document) }
            last = end
        }
    }
}
