package import FleetProtocol

/// What a new device must know so that nobody can show it yesterday's documents: the epoch, the newest trust document,
/// and for each live topic the lowest (epoch, revision) that it may accept.
package struct Floors: Hashable, Sendable {
    package var epoch: Int64
    package var trust: SignedDocument
    /// The lowest incarnation that the device is to be given: above all that the controller has heard of.
    package var incarnation: Int64 = 1
    package var topics: [(topic: String, epoch: Int64, revision: Int64)] {
        revisions.sorted { $0.key < $1.key }.map { ($0.key, $0.value.epoch, $0.value.revision) }
    }
    private var revisions: [String: Pair] = [:]

    private struct Pair: Hashable, Sendable {
        let epoch: Int64
        let revision: Int64
    }

    /// Those of a fleet whose controller has not said anything yet.
    package init(trust: SignedDocument, epoch: Int64 = 1) {
        self.trust = trust
        self.epoch = epoch
    }

    package mutating func set(_ topic: String, epoch: Int64, revision: Int64) {
        revisions[topic] = Pair(epoch: epoch, revision: revision)
    }

    /// Those that the device itself is given.
    func writeMembers(to writer: inout JSONWriter) {
        writer.member("trust") { $0.value(utf8: trust.wire) }
        writer.member("epoch", epoch)
        writer.member("floors") { writer in
            writer.object { writer in
                for (topic, epoch, revision) in topics {
                    writer.member(named: topic) { writer in
                        writer.array { for number in [epoch, revision] { $0.value(number) } }
                    }
                }
            }
        }
    }
}
