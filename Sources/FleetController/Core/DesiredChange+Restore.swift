import FleetProtocol

extension DesiredChange {
    /// How far the counter jumps beyond everything that was seen: room for what the broker did not show.
    static let restoreGap: Int64 = 1_000

    /// Starts a new epoch beyond all that the fleet may have seen of a time that this store has no memory of.
    ///
    /// Every document is signed again as the change that it was; what others may still follow is withdrawn.
    mutating func restore(seen: Revision, withdrawing unknown: [Address]) throws {
        let latest = try transaction.latest()
        try transaction.advance(
            to: Revision(
                epoch: max(latest.epoch, seen.epoch) + 1, number: max(latest.number, seen.number) + Self.restoreGap))
        var last: Int64 = 0
        while true {
            let page = try transaction.documents(after: last, limit: 500)
                .filter { $0.revision.number <= latest.number }
            guard let end = page.last?.revision.number else { break }
            for document in page { try reissue(document) }
            last = end
        }
        for address in unknown where try transaction.document(at: address) == nil {
            try issue(.tombstone, at: address)
        }
    }
}
