import FleetProtocol

/// A whole `fleetctl`, from its start to its end, beside a controller that knows a large fleet: what it is asked, and
/// what it is told to change. The floor is a process that only has some bytes returned by a bare broker.
struct StoreBench {
    let settings: BenchSettings
    let isApply: Bool

    func run() async throws -> BenchReport {
        var filling = 0.0
        var devices = 0
        return try await BenchHost.with(preparing: { home in
            let start = Clock.now()
            let fill = try StoreFill(rows: settings.rows, apps: settings.apps, home: home)
            try fill.fill().close()
            devices = fill.devices
            filling = Double(Clock.now() - start) / 1e9
        }) { host in
            let echo = try host.bareBroker(named: "echo")
            _ = try await host.start(echo)
            try await waitForController(host)
            let idle = ProcessUsage.memory(of: try host.controller.pid)
            var (times, floors): ([Double], [Double]) = ([], [])
            for round in 0..<settings.rounds {
                floors.append(
                    try host.run("fleet-sim", ["bench-echo", "--port", "\(echo.port)", "--bytes", "2000"]))
                times.append(try host.run("fleetctl", try command(round, host)))
            }
            let memory = ProcessUsage.memory(of: try host.controller.pid)
            let name = isApply ? "apply" : "status"
            return BenchReport(
                scenario: name,
                parameters: .object([
                    "rows": .integer(Int64(devices * settings.apps)), "devices": .integer(Int64(devices)),
                    "apps": .integer(Int64(settings.apps)), "rounds": .integer(Int64(settings.rounds)),
                ]),
                result: .object([
                    "figure": "medianMs", "medianMs": .milliseconds(times.median),
                    "roundsMs": times.millisecondsValue, "controllerResidentKiB": .integer(Int64(memory.resident)),
                    "controllerPeakKiB": .integer(Int64(memory.peak)),
                    "controllerResidentBeforeKiB": .integer(Int64(idle.resident)),
                    "fillingSeconds": .double(filling.rounded(to: 1)),
                ]),
                floor: .object([
                    "bare": .object(["medianMs": .milliseconds(floors.median), "roundsMs": floors.millisecondsValue])
                ]),
                figure: BenchReport.Figure(
                    name: "medianMs", unit: "ms", ours: times.median * 1_000, bare: floors.median * 1_000),
                brokerSettings: host.brokerSettings,
                notes: [
                    "\(devices * settings.apps) rows; the controller has \(memory.resident / 1_024) MiB,"
                        + " \(memory.peak / 1_024) at most"
                ])
        }
    }

    private func command(_ round: Int, _ host: BenchHost) throws -> [String] {
        guard isApply else { return ["status"] }
        let text = """
            apiVersion: fleetbus/v1
            kind: AppPolicy
            metadata: {app: \(LoadPlan.appID(1)), target: all}
            spec: {config: {round: "\(round)", note: "\(WireSamples.note)"}}

            """
        return ["apply", "-f", try host.write(text, to: "policy-\(round).yaml")]
    }

    private func waitForController(_ host: BenchHost) async throws {
        for attempt in 1... {
            do {
                _ = try host.run("fleetctl", ["status"])
                return try await host.settle()
            } catch let error where attempt < 5 {
                _ = error  // It may still read back what the broker holds.
            }
        }
    }
}
