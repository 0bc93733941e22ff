import FleetCommands
import FleetProtocol

/// One change for the whole fleet: from the operator's request until the controller's summary counts every device's
/// status, which it does when it is committed. Interleaved with the floors' fan-out.
struct ConvergeBench {
    let settings: BenchSettings
    private static let patience = Duration.seconds(60)

    private struct Round {
        /// Until the controller had committed, signed and answered the request; the broker had taken over the last
        /// status; and all were counted.
        var (applied, reported, counted) = (0.0, 0.0, 0.0)
        var lost = 0
    }

    func run() async throws -> BenchReport {
        try await BusBench.with(settings) { bus in
            var (rounds, floors): ([Round], [[Double]]) = ([], bus.floors.map { _ in [] })
            var ours = UsageMeter(try bus.processes)
            var meters = bus.floors.map { UsageMeter($0.processes) }
            var lost = 0
            try await bus.withController { controller in
                _ = try await change(0, controller, bus)  // The first of its kind fills every cache.
                for floor in bus.floors { _ = try await floor.driver.round() }
                for number in 1...settings.rounds {
                    for (index, floor) in bus.floors.enumerated() {
                        meters[index].start()
                        let result = try await floor.driver.round()
                        meters[index].stop()
                        floors[index].append(result.seconds)
                        lost += result.lost
                    }
                    ours.start()
                    let round = try await change(number, controller, bus)
                    ours.stop()
                    rounds.append(round)
                    lost += round.lost
                }
            }
            var reference: Double?
            if let program = settings.reference {
                reference = try await Reference(program: program).fanOut(
                    devices: settings.devices, rounds: settings.rounds, in: bus.host)
            }
            return try await report(bus, rounds, floors, ours, meters, lost: lost, reference: reference)
        }
    }

    private func change(_ number: Int, _ controller: FleetCommands.Controller, _ bus: BusBench) async throws -> Round {
        var round = Round()
        let before = try await bus.devices.ask("progress").count("acknowledged")
        let start = Clock.now()
        func elapsed() -> Double { Double(Clock.now() - start) / 1e9 }
        try await BusBench.change(number, controller)
        round.applied = elapsed()
        // A status that was lost shows below, in the controller's count.
        _ = try? await bus.devices.wait(for: "the answers", within: Self.patience) {
            $0.count("acknowledged") >= before + settings.devices
        }
        round.reported = elapsed()
        var counted = 0
        repeat {
            counted = try await BusBench.applied(controller)
        } while counted < settings.devices
            && elapsed() < Self.patience.inSeconds
        round.counted = elapsed()
        round.lost = settings.devices - counted
        return round
    }

    private func report(
        _ bus: BusBench, _ rounds: [Round], _ floors: [[Double]], _ ours: UsageMeter, _ meters: [UsageMeter], lost: Int,
        reference: Double?
    ) async throws -> BenchReport {
        let counters = try await bus.devices.ask("counters")
        let acknowledgements = settings.devices * settings.rounds
        let median = rounds.map(\.counted).median
        let bare = floors[0].median
        return BenchReport(
            scenario: "converge",
            parameters: settings.value,
            result: .object([
                "figure": "medianMs", "medianMs": .milliseconds(median),
                "roundsMs": rounds.map(\.counted).millisecondsValue,
                "requestAnsweredMs": .milliseconds(rounds.map(\.applied).median),
                "lastStatusAtBrokerMs": .milliseconds(rounds.map(\.reported).median),
                "acknowledgementsPerSecond": .integer(Int64(Double(settings.devices) / max(median, 1e-6))),
                "perAcknowledgement": ours.value(per: acknowledgements),
                "callsPerAcknowledgement": ours.calls(per: settings.devices), "latencyMs": counters["latencyMs"],
                "connectAllSeconds": .double(bus.connecting.rounded(to: 2)),
                "errors": .integer(Int64(counters.count("errors"))), "lastError": counters["lastError"],
            ]),
            floor: .object(
                zip(bus.floors, zip(floors, meters)).map { floor, figures in
                    JSONValue.Member(
                        floor.kind.rawValue,
                        .object([
                            "medianMs": .milliseconds(figures.0.median), "roundsMs": figures.0.millisecondsValue,
                            "perAcknowledgement": figures.1.value(per: acknowledgements),
                        ]))
                }
                    + (reference.map {
                        [
                            JSONValue.Member(
                                "reference",
                                .object([
                                    "medianMs": .milliseconds($0),
                                    "ratio": .double((median / max($0, 1e-9)).rounded(to: 3)),
                                ]))
                        ]
                    } ?? [])),
            figure: BenchReport.Figure(
                name: "medianMs", unit: "ms", ours: median * 1_000, bare: bare * 1_000,
                equalBytes: floors.last.map { $0.median * 1_000 }),
            lost: lost, duplicated: counters.count("duplicated"), reordered: counters.count("reordered"),
            brokerSettings: bus.host.brokerSettings,
            notes: BusBench.note(ours, meters[0], per: acknowledgements, floorCount: acknowledgements)
                + (reference.map {
                    [
                        "the reference floor: \(($0 * 1_000).rounded(to: 1)) ms, ratio \((median / max($0, 1e-9)).rounded(to: 2))"
                    ]
                } ?? []) + BusBench.errors(counters))
    }
}
