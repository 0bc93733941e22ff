import FleetProtocol

/// A whole fleet connects: connection, both stages of subscriptions with their markers, presence, hello, and a status of
/// every app. The bare floor only connects and subscribes; the equal-bytes floor does all of it with idle bytes.
struct ConnectBench {
    let settings: BenchSettings

    private struct Run {
        var (seconds, bytes, trimmed) = (0.0, 0.0, 0.0)
        var broker = 0
        var usage: [(name: String, usage: ProcessUsage)] = []
    }

    /// What one round of ours and of each floor has shown.
    private struct Round {
        var ours: Run
        var floors: [Run]
        var counters: JSONValue
        var brokerSettings: [String]
    }

    /// Each round has a home, a broker and a controller of its own, as each floor has a broker: in one that has carried a
    /// fleet before, Mosquitto's lists of subscribers lie scattered, and the same work takes it 40% longer.
    func run() async throws -> BenchReport {
        var rounds: [Round] = []
        for _ in 0..<settings.rounds { rounds.append(try await BenchHost.with { try await round(on: $0) }) }
        return report(rounds)
    }

    private func round(on host: BenchHost) async throws -> Round {
        var floors: [Run] = []
        for kind in FloorTraffic.Kind.allCases { floors.append(try await connect(kind, host)) }
        let (peer, first) = try await BusBench.startDevices(host, settings)
        try await host.settle()
        let broker = try host.broker.pid
        let pids = [("broker", broker), ("simulator", peer.pid), ("controller", try host.controller.pid)]
        let memory = ProcessUsage.memory(of: broker).resident
        var meter = UsageMeter(pids)
        meter.start()
        let start = Clock.now()
        try await BusBench.connect(peer, settings)
        var run = Run()
        run.seconds = Double(Clock.now() - start) / 1e9
        meter.stop()
        run.broker = ProcessUsage.memory(of: broker).resident - memory
        run.usage = pids.map { ($0.0, meter.usage(of: $0.0)) }
        try await measureMemory(&run, peer, first)
        let counters = try await peer.ask("counters")
        _ = try await peer.ask("leave")
        return Round(ours: run, floors: floors, counters: counters, brokerSettings: host.brokerSettings)
    }

    private func connect(_ kind: FloorTraffic.Kind, _ host: BenchHost) async throws -> Run {
        let floor = try await Floor.start(kind, devices: settings.devices, apps: settings.apps, window: 64, in: host)
        let memory = ProcessUsage.memory(of: floor.peer.pid).resident
        var run = Run()
        run.seconds = try await floor.connect()
        run.broker = ProcessUsage.memory(of: floor.broker.pid).resident
        try await measureMemory(&run, floor.peer, .object(["residentBeforeKiB": .integer(Int64(memory))]))
        await floor.end()
        return run
    }

    private func measureMemory(_ run: inout Run, _ peer: Peer, _ first: JSONValue) async throws {
        func each() -> Double {
            let now = ProcessUsage.memory(of: peer.pid).resident
            return Double(now - first.count("residentBeforeKiB")) * 1_024 / Double(settings.devices)
        }
        run.bytes = each()
        _ = try await peer.ask("trim")
        run.trimmed = each()
    }

    private func report(_ rounds: [Round]) -> BenchReport {
        let ours = rounds.map(\.ours)
        let floors = FloorTraffic.Kind.allCases.indices.map { index in rounds.map { $0.floors[index] } }
        func rate(_ runs: [Run]) -> Double { runs.map { Double(settings.devices) / max($0.seconds, 1e-6) }.median }
        func value(_ runs: [Run], _ usage: JSONValue?) -> JSONValue {
            .object([
                "devicesPerSecond": .double(rate(runs).rounded(to: 0)),
                "roundsSeconds": .array(runs.map { .double($0.seconds.rounded(to: 3)) }),
                "residentBytesPerDevice": .double(runs.map(\.bytes).median.rounded(to: 0)),
                "residentBytesPerDeviceTrimmed": .double(runs.map(\.trimmed).median.rounded(to: 0)),
                "brokerResidentKiB": .double(runs.map { Double($0.broker) }.median.rounded(to: 0)),
                "perDevice": usage,
            ])
        }
        let usage: [JSONValue.Member] = (ours.first?.usage ?? []).indices.map { index in
            let total = ours.reduce(ProcessUsage()) { $0 + $1.usage[index].usage }
            return JSONValue.Member(ours[0].usage[index].name, total.value(per: settings.devices * ours.count))
        }
        return BenchReport(
            scenario: "connect",
            parameters: settings.value(["window": .integer(Int64(settings.window))]),
            result: value(ours, .object(usage)),
            floor: .object(
                zip(FloorTraffic.Kind.allCases, floors).map { JSONValue.Member($0.rawValue, value($1, nil)) }),
            figure: BenchReport.Figure(
                name: "devicesPerSecond", unit: "/s", ours: rate(ours), bare: rate(floors[0]),
                equalBytes: floors.last.map(rate)),
            duplicated: rounds.reduce(0) { $0 + $1.counters.count("duplicated") },
            reordered: rounds.reduce(0) { $0 + $1.counters.count("reordered") },
            brokerSettings: rounds.first?.brokerSettings ?? [],
            notes: [
                "\(Int(ours.map(\.bytes).median)) bytes resident in the simulator for each device with \(settings.apps)"
                    + " apps (\(Int(ours.map(\.trimmed).median)) when the allocator gives back what is free);"
                    + " bare floor: \(Int(floors[0].map(\.bytes).median))"
            ] + rounds.flatMap { BusBench.errors($0.counters) })
    }
}
