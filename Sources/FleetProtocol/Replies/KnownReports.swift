/// What statuses of a fleet have reported lately, by policy. Thousands of devices report the same but for the time of the
/// attempt, which stands last: a report that is known is read by comparing its bytes.
///
/// Bounded: a few reports of each policy, each of less than a kilobyte.
package struct KnownReports: Sendable {
    let fleet: FleetID
    /// Of each policy, the last one met first.
    private var known: [[Known]]

    private struct Known {
        /// All that is written before the time.
        let text: [UInt8]
        let report: PolicyReport
    }

    /// The time that was read last, as it is written: those of one status are mostly the same.
    private var lastTime: (text: [UInt8], time: Timestamp)?
    private let limit: Int
    private static let longest = 1_024

    /// - Parameter limit: How many reports of each policy are kept; 0 where only one status is read.
    package init(in fleet: FleetID, limit: Int = 8) {
        self.fleet = fleet
        self.limit = limit
        known = Array(repeating: [], count: Policy.allCases.count)
    }

    /// Reads the reports of all policies, by ``Policy/index``.
    mutating func read(from reader: inout JSONReader) throws -> [PolicyReport] {
        let none = PolicyReport.Attempt(revision: 0, outcome: .pending, at: Timestamp(milliseconds: 0))
        var reports = [PolicyReport](
            repeating: PolicyReport(source: nil, received: 0, applied: nil, attempt: none),
            count: Policy.allCases.count)
        var found = 0  // A bit for each.
        var next = Policy.allCases.first
        try reader.object { name, value in
            // Mostly they come in their order.
            let isNext = next.map { name.isEqual($0.rawValue) } ?? false
            guard let policy = isNext ? next : name.named(Policy.self) else { return }
            reports[policy.index] = try read(policy, from: &value)
            found |= 1 << policy.index
            next = policy.next
        }
        if let policy = Policy.allCases.first(where: { found & 1 << $0.index == 0 }) {
            throw FleetProtocolError(.missing, "this member is missing", at: policy.rawValue)
        }
        return reports
    }

    private mutating func read(_ policy: Policy, from reader: inout JSONReader) throws -> PolicyReport {
        let start = reader.mark
        if let index = known[policy.index].firstIndex(where: { reader.take($0.text) }) {
            if let at = try? time(from: &reader), reader.take(Self.end) {
                if index > 0 { known[policy.index].swapAt(0, index) }
                var report = known[policy.index][0].report
                report.attempt.at = at
                return report
            }
            reader.rewind(to: start)
        }
        let report = try PolicyReport(from: &reader, in: fleet)
        learn(report, policy, reader.text(from: start))
        return report
    }

    private mutating func time(from reader: inout JSONReader) throws -> Timestamp {
        if let lastTime, reader.take(lastTime.text) { return lastTime.time }
        let start = reader.mark
        let time = try Timestamp(from: &reader)
        lastTime = (Array(reader.text(from: start)), time)
        return time
    }

    /// Keeps a report that other devices may repeat. Only one that is written as ours are: there the time is the last value,
    /// and cannot be taken for another one.
    private mutating func learn(_ report: PolicyReport, _ policy: Policy, _ text: UnsafeBufferPointer<UInt8>) {
        guard limit > 0 else { return }
        if case .desired(.device, _, _) = report.source { return }
        var writer = JSONWriter()
        report.write(to: &writer, in: fleet)
        let written = writer.bytes
        guard written.count <= Self.longest, text.elementsEqual(written) else { return }
        let time = report.attempt.at.description.utf8.count + 2
        if known[policy.index].count == limit { known[policy.index].removeLast() }
        known[policy.index].insert(
            Known(text: Array(written.dropLast(time + Self.end.count)), report: report), at: 0)
    }

    private static let end = Array("}}".utf8)
}
