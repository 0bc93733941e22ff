import FleetCommands
import FleetProtocol

/// The broker is killed under a connected fleet and started again; the devices come back as their back-off lets them.
/// Ends when every device has reported again, and follows a change that was made after the restart.
struct StormBench {
    let settings: BenchSettings

    private struct Memory {
        var (resident, peak) = (0, 0)
        var value: JSONValue {
            .object(["residentKiB": .integer(Int64(resident)), "peakKiB": .integer(Int64(peak))])
        }
    }

    func run() async throws -> BenchReport {
        let backOff = max(500, settings.devices * 1_000 / settings.connectRate)
        return try await BenchHost.with { host in
            let devices = try await BusBench.startDevices(host, settings, backOff: backOff).peer
            try await BusBench.connect(devices, settings)
            try await converge(1, host)
            let slow = memory(try host.broker.pid)
            try await host.settle()

            let start = Clock.now()
            try await host.crashBroker()
            try await host.startBroker()
            let down = Double(Clock.now() - start) / 1e9
            try await devices.wait(for: "the devices' notice", within: .seconds(30)) {
                $0.count("reported") < settings.devices
            }
            try await devices.wait(for: "every device's report", within: .seconds(600)) {
                $0.count("reported") == settings.devices
            }
            let reported = Double(Clock.now() - start) / 1e9
            let applied = try await converge(2, host)
            let seconds = Double(Clock.now() - start) / 1e9
            let storm = memory(try host.broker.pid)
            let counters = try await devices.ask("counters")
            _ = try await devices.ask("leave")

            var floors: [Double] = []
            for kind in FloorTraffic.Kind.allCases {
                let floor = try await Floor.start(
                    kind, devices: settings.devices, apps: settings.apps, window: 64, backOff: backOff, in: host)
                try await floor.connect()
                floors.append(try await floor.storm())
                await floor.end()
            }
            return BenchReport(
                scenario: "storm",
                parameters: settings.value([
                    "connectRate": .integer(Int64(settings.connectRate)), "backOffMs": .integer(Int64(backOff)),
                ]),
                result: .object([
                    "figure": "seconds", "seconds": .double(seconds.rounded(to: 3)),
                    "brokerDownSeconds": .double(down.rounded(to: 3)),
                    "allReportedSeconds": .double(reported.rounded(to: 3)), "brokerAfterSlowConnect": slow.value,
                    "brokerAfterStorm": storm.value, "errors": .integer(Int64(counters.count("errors"))),
                ]),
                floor: .object(
                    zip(FloorTraffic.Kind.allCases, floors).map {
                        JSONValue.Member($0.rawValue, .object(["seconds": .double($1.rounded(to: 3))]))
                    }),
                figure: BenchReport.Figure(
                    name: "seconds", unit: "s", ours: seconds, bare: floors[0], equalBytes: floors.last),
                lost: settings.devices - applied, duplicated: counters.count("duplicated"),
                reordered: counters.count("reordered"), brokerSettings: host.brokerSettings,
                notes: [
                    "broker: \(storm.peak / 1_024) MiB at most after the storm, \(slow.peak / 1_024) MiB after connecting"
                        + " at \(settings.connectRate)/s; all had reported again after \(reported.rounded(to: 1)) s"
                ])
        }
    }

    private func memory(_ pid: Int32) -> Memory {
        let (resident, peak) = ProcessUsage.memory(of: pid)
        return Memory(resident: resident, peak: peak)
    }

    /// Changes what all are to have, and waits until it is so.
    ///
    /// - Returns: How many follow it, at the end of patience at the latest.
    @discardableResult
    private func converge(_ number: Int, _ host: BenchHost) async throws -> Int {
        let deadline = Clock.now() + 120_000_000_000
        return try await FleetCommands.Controller.reach(host.home, as: .operator(Name(unchecked: "admin"))) {
            controller in
            try await BusBench.change(number, controller)
            var applied = 0
            repeat {
                applied = try await BusBench.applied(controller)
            } while applied < settings.devices
                && Clock.now() < deadline
            return applied
        }
    }
}
