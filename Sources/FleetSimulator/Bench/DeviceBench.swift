import FleetProtocol

/// Changes of single devices by way of the controller: as many as go, or at a modest rate, for their latency.
struct DeviceBench {
    let settings: BenchSettings
    /// Whether changes are due at a rate, instead of when others are done.
    let isPaced: Bool

    func run() async throws -> BenchReport {
        try await BusBench.with(settings) { bus in
            let driver = try OperatorDriver(bus.host.home, devices: settings.devices)
            bus.host.onEnd { await driver.end() }
            try await driver.connect()
            var (runs, floors): ([OperatorDriver.Result], [[FloorDriver.Result]]) = ([], bus.floors.map { _ in [] })
            var ours = UsageMeter(try bus.processes)
            var meters = bus.floors.map { UsageMeter($0.processes) }
            // The first document for a device costs more than those that follow.
            _ = try await driver.closedLoop(for: .seconds(1), outstanding: settings.outstanding)
            for _ in 0..<settings.rounds {
                for (index, floor) in bus.floors.enumerated() {
                    meters[index].start()
                    floors[index].append(try await run(floor.driver))
                    meters[index].stop()
                }
                ours.start()
                runs.append(
                    isPaced
                        ? try await driver.paced(for: settings.duration, rate: settings.rate)
                        : try await driver.closedLoop(for: settings.duration, outstanding: settings.outstanding))
                ours.stop()
            }
            return try await report(bus, runs, floors, ours, meters)
        }
    }

    private func run(_ driver: FloorDriver) async throws -> FloorDriver.Result {
        isPaced
            ? try await driver.paced(for: settings.duration, rate: settings.rate)
            : try await driver.closedLoop(
                for: settings.duration, outstanding: settings.outstanding, toAll: false)
    }

    private func report(
        _ bus: BusBench, _ runs: [OperatorDriver.Result], _ floors: [[FloorDriver.Result]], _ ours: UsageMeter,
        _ meters: [UsageMeter]
    ) async throws -> BenchReport {
        let counters = try await bus.devices.ask("counters")
        let changes = runs.reduce(0) { $0 + $1.changes }
        let replies = floors.map { $0.reduce(0) { $0 + $1.replies } }
        let rate = runs.map { Double($0.changes) / max($0.seconds, 1e-6) }.median
        let rates = floors.map { $0.map { Double($0.replies) / max($0.seconds, 1e-6) }.median }
        func merged(_ histograms: [Histogram]) -> Histogram {
            histograms.reduce(into: Histogram()) { $0.add($1) }
        }
        let latency = merged(runs.map(\.latency))
        let onBus = merged(runs.map(\.bus))
        let floorLatency = floors.map { merged($0.map(\.latency)) }
        let figure =
            isPaced
            ? BenchReport.Figure(
                name: "requestToStatusMs.p50", unit: "ms", ours: latency.milliseconds(at: 0.5),
                bare: floorLatency[0].milliseconds(at: 0.5), equalBytes: floorLatency.last?.milliseconds(at: 0.5))
            : BenchReport.Figure(
                name: "changesPerSecond", unit: "/s", ours: rate, bare: rates[0], equalBytes: rates.last)
        func text(_ histogram: Histogram) -> String {
            "p50 \(histogram.milliseconds(at: 0.5).rounded(to: 2)) p99 \(histogram.milliseconds(at: 0.99).rounded(to: 2)) ms"
        }
        func ratios(_ ours: Histogram, at part: Double) -> JSONValue {
            func ratio(to floor: Histogram?) -> JSONValue {
                guard let floor, floor.value(at: part) > 0 else { return .null }
                return .double((ours.milliseconds(at: part) / floor.milliseconds(at: part)).rounded(to: 3))
            }
            return .object(["bare": ratio(to: floorLatency[0]), "equalBytes": ratio(to: floorLatency.last)])
        }
        return BenchReport(
            scenario: isPaced ? "paced" : "device",
            parameters: settings.value([
                "seconds": .double(settings.duration.inSeconds),
                "rate": isPaced ? .integer(Int64(settings.rate)) : nil,
                "outstanding": isPaced ? nil : .integer(Int64(settings.outstanding)),
            ]),
            result: .object([
                "figure": .string(figure.name), "changesPerSecond": .double(rate.rounded(to: 0)),
                "requestToStatusMs": latency.value, "requestToAnswerMs": merged(runs.map(\.answer)).value,
                "documentToStatusMs": onBus.value, "atDeviceMs": counters["latencyMs"],
                "ratioOfP99": ratios(latency, at: 0.99),
                "documentToStatusRatio": .object(["p50": ratios(onBus, at: 0.5), "p99": ratios(onBus, at: 0.99)]),
                "refused": .integer(Int64(runs.reduce(0) { $0 + $1.refused })),
                "perAcknowledgement": ours.value(per: changes),
                "errors": .integer(Int64(counters.count("errors"))), "lastError": counters["lastError"],
            ]),
            floor: .object(
                bus.floors.indices.map { index in
                    JSONValue.Member(
                        bus.floors[index].kind.rawValue,
                        .object([
                            "changesPerSecond": .double(rates[index].rounded(to: 0)),
                            "latencyMs": floorLatency[index].value,
                            "perAcknowledgement": meters[index].value(per: replies[index]),
                        ]))
                }),
            figure: figure,
            lost: runs.reduce(0) { $0 + $1.lost } + floors.joined().reduce(0) { $0 + $1.lost },
            duplicated: counters.count("duplicated") + runs.reduce(0) { $0 + $1.duplicated },
            reordered: counters.count("reordered") + runs.reduce(0) { $0 + $1.reordered },
            brokerSettings: bus.host.brokerSettings,
            notes: [
                "request to status: \(text(latency)); document to status: \(text(onBus));"
                    + " bare floor: \(text(floorLatency[0]))"
            ] + BusBench.note(ours, meters[0], per: changes, floorCount: replies[0]) + BusBench.errors(counters))
    }
}
