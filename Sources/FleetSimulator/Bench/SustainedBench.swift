import FleetCommands
import FleetProtocol

/// Change upon change for the whole fleet, the next one when fewer acknowledgements are missing than there are devices;
/// counted until the controller's summary has the last one of every device.
struct SustainedBench {
    let settings: BenchSettings

    private struct Run {
        var (seconds, answered, statuses, lost) = (0.0, 0, 0, 0)
        var perSecond: Double { Double(answered) / max(seconds, 1e-6) }
    }

    func run() async throws -> BenchReport {
        try await BusBench.with(settings) { bus in
            var (runs, floors): ([Run], [[FloorDriver.Result]]) = ([], bus.floors.map { _ in [] })
            var ours = UsageMeter(try bus.processes)
            var meters = bus.floors.map { UsageMeter($0.processes) }
            var number = 0
            try await bus.withController { controller in
                for _ in 0..<settings.rounds {
                    for (index, floor) in bus.floors.enumerated() {
                        meters[index].start()
                        floors[index].append(
                            try await floor.driver.closedLoop(
                                for: settings.duration, outstanding: settings.devices + 1, toAll: true))
                        meters[index].stop()
                    }
                    ours.start()
                    runs.append(try await run(&number, controller, bus))
                    ours.stop()
                }
            }
            return try await report(bus, runs, floors, ours, meters)
        }
    }

    private func run(_ number: inout Int, _ controller: FleetCommands.Controller, _ bus: BusBench) async throws -> Run {
        let before = try await bus.devices.ask("progress")
        let start = Clock.now()
        func elapsed() -> Double { Double(Clock.now() - start) / 1e9 }
        var sent = 0
        var progress = before
        func answered() -> Int { progress.count("answered") - before.count("answered") }
        while elapsed() < settings.duration.inSeconds {
            while sent * settings.devices - answered() < settings.devices + 1 {
                number += 1
                sent += 1
                try await BusBench.change(number, controller)
            }
            progress = try await bus.devices.ask("progress")
            // To ask takes time of what is measured; a change takes much longer than this.
            try await Task.sleep(for: .milliseconds(20))
        }
        _ = try? await bus.devices.wait(for: "the answers", within: .seconds(60)) {
            progress = $0
            return answered() >= sent * settings.devices
        }
        var counted = 0
        repeat {
            counted = try await BusBench.applied(controller)
        } while counted < settings.devices
            && elapsed() < settings.duration.inSeconds + 120
        return Run(
            seconds: elapsed(), answered: answered(), statuses: progress.count("statuses") - before.count("statuses"),
            lost: settings.devices - counted + sent * settings.devices - answered())
    }

    private func report(
        _ bus: BusBench, _ runs: [Run], _ floors: [[FloorDriver.Result]], _ ours: UsageMeter, _ meters: [UsageMeter]
    ) async throws -> BenchReport {
        let counters = try await bus.devices.ask("counters")
        let answered = runs.reduce(0) { $0 + $1.answered }
        let rates = floors.map { $0.map { Double($0.replies) / max($0.seconds, 1e-6) } }
        let median = runs.map(\.perSecond).median
        return BenchReport(
            scenario: "sustained",
            parameters: settings.value(["seconds": .double(settings.duration.inSeconds)]),
            result: .object([
                "figure": "acknowledgementsPerSecond",
                "acknowledgementsPerSecond": .double(median.rounded(to: 0)),
                "roundsPerSecond": runs.map(\.perSecond).roundedValue,
                "statuses": .integer(Int64(runs.reduce(0) { $0 + $1.statuses })),
                "acknowledgements": .integer(Int64(answered)),
                "perAcknowledgement": ours.value(per: answered), "latencyMs": counters["latencyMs"],
                "errors": .integer(Int64(counters.count("errors"))), "lastError": counters["lastError"],
            ]),
            floor: .object(
                bus.floors.indices.map { index in
                    JSONValue.Member(
                        bus.floors[index].kind.rawValue,
                        .object([
                            "acknowledgementsPerSecond": .double(rates[index].median.rounded(to: 0)),
                            "roundsPerSecond": rates[index].roundedValue,
                            "perAcknowledgement": meters[index].value(
                                per: floors[index].reduce(0) { $0 + $1.replies }),
                        ]))
                }),
            figure: BenchReport.Figure(
                name: "acknowledgementsPerSecond", unit: "/s", ours: median, bare: rates[0].median,
                equalBytes: rates.last?.median),
            lost: runs.reduce(0) { $0 + $1.lost } + floors.joined().reduce(0) { $0 + $1.lost },
            duplicated: counters.count("duplicated"), reordered: counters.count("reordered"),
            brokerSettings: bus.host.brokerSettings,
            notes: BusBench.note(
                ours, meters[0], per: answered, floorCount: floors[0].reduce(0) { $0 + $1.replies })
                + BusBench.errors(counters))
    }
}
