import FleetProtocol

/// Every scenario, small, for a look at each change of the code: times are noise there, what is counted is not.
enum BenchSmoke {
    static var scenarios: [(BenchSettings.Scenario, BenchSettings)] {
        BenchSettings.Scenario.allCases.filter { $0 != .all && $0 != .smoke }.map { scenario in
            var settings = BenchSettings.defaults(of: scenario)
            settings.devices = scenario == .converge ? 200 : 100
            settings.apps = 1
            settings.rounds = scenario == .decode ? 1 : 3
            settings.duration = .seconds(1)
            settings.rate = 100
            settings.outstanding = 16
            settings.connectRate = 200
            settings.rows = 1_000
            settings.batches = 1
            settings.messages = 200
            switch scenario {
            case .connect: (settings.apps, settings.rounds) = (3, 1)
            case .sustained, .device, .paced, .collector: settings.rounds = 1
            default: break
            }
            return (scenario, settings)
        }
    }

    /// Calls of the read and write families for each acknowledgement, by process. Measured were 5 (9 of the floor's
    /// clients), 6 and 5 when these were set. The controller's depend on how many statuses its transactions hold, and so
    /// on timing. One more packet for each status breaks the others.
    static let bounds: [(process: String, calls: Double)] = [
        ("simulator", 7), ("broker", 9), ("controller", 25),
    ]

    /// Which bounds a report breaks. Only where one change is for many devices does the number of calls not depend on
    /// how fast the machine is.
    static func broken(_ report: BenchReport) -> [String] {
        guard report.scenario == "converge" else { return [] }
        return bounds.compactMap { process, bound in
            guard case .double(let calls)? = report.result["callsPerAcknowledgement"]?[process] else { return nil }
            guard calls > bound else { return nil }
            return "\(process): \(calls) reads and writes for each acknowledgement, more than \(bound)"
        }
    }
}
