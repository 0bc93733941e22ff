package import FleetProtocol

/// How far a store has come. Within an epoch neither ever goes back: a store that is behind where it has been was put back
/// from a copy.
package struct StorePosition: Hashable, Sendable, LosslessStringConvertible {
    /// The newest revision that was given out.
    package let latest: Revision
    /// How often the controller has connected.
    package let session: Int64

    package init(latest: Revision, session: Int64) {
        self.latest = latest
        self.session = session
    }

    /// Reads what ``description`` writes; nil when it is anything else.
    package init?(_ description: String) {
        let numbers = description.split(separator: " ", omittingEmptySubsequences: false).map { Int64($0) }
        guard numbers.count == 3, let epoch = numbers[0], let number = numbers[1], let session = numbers[2] else {
            return nil
        }
        self.init(latest: Revision(epoch: epoch, number: number), session: session)
    }

    /// `1 42 7`: epoch, revision, session.
    package var description: String { "\(latest.epoch) \(latest.number) \(session)" }

    /// An epoch that is later began in a store that was put back, with the sessions of its copy: it is not behind.
    func isBehind(_ other: Self) -> Bool {
        latest < other.latest || latest.epoch == other.latest.epoch && session < other.session
    }
}
