import ArgumentParser
import FleetProtocol

/// Whether to ask only what a change would do.
struct PlanOptions: ParsableArguments {
    @Flag(
        name: .customLong("dry-run"),
        help: "Change nothing: show what would change, on how many devices, and what the controller would warn of.")
    var isDry = false

    func validate(beside wait: WaitOptions) throws {
        if isDry, wait.wait != nil {
            throw ValidationError("--dry-run changes nothing that could be waited for: leave out --wait")
        }
    }

    /// Asks for the plan and shows it. Groups are shown as a table alone.
    func show(_ verb: Verb, _ change: some JSONWritable, _ fleet: FleetOptions, _ output: OutputOptions?) async throws {
        let request = PlanRequest(verb: verb, body: change.value)
        let body = try await fleet.reach { try await $0.ask(.plan, request) }
        Warnings.show(in: body)
        let report = Self.report(try body.decoded(), body)
        if let output { try output.show(report) } else { try Terminal.print(report.table) }
    }

    static func report(_ plan: Plan, _ body: JSONValue) -> Report {
        guard !plan.documents.isEmpty else {
            return Report(body, table: ["dry run: nothing would change"])
        }
        var documents = Table([
            .init("APP"), .init("TARGET"), .init("ASPECT"), .init("CHANGE"), .init("OLD"), .init("NEW"),
        ])
        for document in plan.documents {
            let (old, new) = JSONValue.difference(document.old, document.new)
            documents.add([
                Cell.text(.string(document.app)), Cell.text(.string(document.target)),
                Cell.text(.string(document.aspect)), document.change, Cell.text(old, limit: 40),
                Cell.text(new, limit: 40),
            ])
        }
        var lines = ["dry run: nothing was changed; this is what would be", ""] + documents.lines
        if plan.documentsLeftOut > 0 { lines.append("and \(plan.documentsLeftOut) more documents") }
        return Report(body, table: lines + [""] + Self.moves(plan))
    }

    private static func moves(_ plan: Plan) -> [String] {
        var moves = Table([.init("APP"), .init("POLICY"), .init("NOW"), .init("WITH THE CHANGE")])
        for move in plan.moves where move.before.text != move.after.text {
            moves.add([move.after.app.text, move.after.policy.rawValue, move.before.text, move.after.text])
        }
        let more = plan.movesLeftOut > 0 ? ["and \(plan.movesLeftOut) more rows"] : []
        let lines = (moves.rows.isEmpty ? [] : moves.lines) + more + plan.moves.compactMap(\.retirement)
        guard lines.isEmpty else { return lines }
        return [
            plan.moves.isEmpty
                ? "no app that a device has reported would get another policy" : "the counts would stay as they are"
        ]
    }
}

extension PlannedDocument {
    fileprivate var change: String {
        switch (old, new) {
        case (nil, nil), (_?, nil): "deleted"
        case (nil, _?): "new"
        case (let old, let new): old == new ? "again" : "changed"
        }
    }
}

extension StatusRow {
    /// `2 applied, 10 pending (3 offline)`.
    fileprivate var text: String {
        let text = counts.text.isEmpty ? "none" : counts.text
        return text + (offline > 0 ? " (\(offline) offline)" : "")
    }
}

extension PlannedMove {
    /// What is not taken back by a later change.
    fileprivate var retirement: String? {
        let (now, then) = (before.retirement ?? RetirementCounts(), after.retirement ?? RetirementCounts())
        // Where it is retired already, another document wants it confirmed anew, and there is nothing to destroy.
        let more = min(then.outstanding - now.outstanding, then.all - now.all)
        guard more > 0 else { return nil }
        return "the keys of \(after.app) would be destroyed on \(more) device\(more == 1 ? "" : "s"), for good"
    }
}

extension JSONValue {
    /// What two values do not have in common: of two objects the members that differ.
    fileprivate static func difference(_ old: JSONValue?, _ new: JSONValue?) -> (old: JSONValue?, new: JSONValue?) {
        guard case .object(let left)? = old, case .object(let right)? = new, old != new else { return (old, new) }
        var (before, after): ([Member], [Member]) = ([], [])
        for name in left.map(\.name) + right.map(\.name).filter({ name in !left.contains { $0.name == name } }) {
            let (was, now) = (old?[name], new?[name])
            guard was != now else { continue }
            let inner = difference(was, now)
            if let value = inner.old { before.append(Member(name, value)) }
            if let value = inner.new { after.append(Member(name, value)) }
        }
        return (.object(before), .object(after))
    }
}
