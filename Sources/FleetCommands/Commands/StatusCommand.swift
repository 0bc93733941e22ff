import ArgumentParser
import FleetProtocol

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Shows how many devices have come how far, by app and policy.",
        discussion: """
            APPLIED to PENDING add up to the devices that have reported the app. OVERDUE and OFFLINE say how many of \
            those that are delivered or pending are late, or not connected. Which devices stand behind a count is shown \
            by `fleetctl get apps --app APP --policy POLICY --outcome OUTCOME`: of those with outcome delivered or \
            pending, the connected ones (STATE online) are the late ones, but for what was changed in the last 5 minutes.

            EXAMPLES
              fleetctl status
              fleetctl status com.example.mail -o json
            """)

    @Argument(help: "One app only.", transform: { try AppID(checking: $0) })
    var app: AppID?
    @OptionGroup var fleet: FleetOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let values = try await fleet.reach { try await $0.list(.status, ListRequest(app: app)) }
        let rows: [StatusRow] = try values.map { try $0.decoded() }
        // Asked for an app, the controller answers with its policies, whether anybody has it or not.
        if rows.allSatisfy({ $0.counts.total == 0 }) {
            Terminal.note("note: no device has reported \(app.map { "app \($0)" } ?? "an app") yet")
        }
        try output.show(Self.report(rows))
    }

    static func report(_ rows: [StatusRow]) -> Report {
        let counts = ["APPLIED", "ERROR", "UNSUPPORTED", "REJECTED", "DELIVERED", "PENDING", "OVERDUE", "OFFLINE"]
        var table = Table([.init("APP"), .init("POLICY")] + counts.map { .init($0, isNumber: true) })
        for row in rows {
            let numbers = [
                row.counts.applied, row.counts.error, row.counts.unsupported, row.counts.rejected, row.counts.delivered,
                row.counts.pending, row.counts.overdue, row.offline,
            ]
            table.add([row.app.text, row.policy.rawValue] + numbers.map(Cell.count))
        }
        let retired = rows.compactMap { row in row.retirement.map { (row.app, $0) } }.map { app, counts in
            counts.text(of: app)
                + (counts.outstanding > 0
                    ? ": \(RetirementCounts.outstandingCommand(for: app))"
                    : counts.doubtful > 0 ? ": fleetctl get devices; removed ones: fleetctl get history" : "")
        }
        return Report(.array(rows.map(\.value)), table: table.lines + (retired.isEmpty ? [] : [""] + retired))
    }
}
