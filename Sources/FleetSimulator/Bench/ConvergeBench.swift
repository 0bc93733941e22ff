import FleetCommands
import FleetHome
import FleetProtocol

/// One change for the whole fleet: from the operator's request until the controller's summary counts every device's
/// status, which it does when it is committed. Interleaved with the floor.
struct ConvergeBench {
    let plan: LoadPlan
    let rounds: Int
    private static let patience = Duration.seconds(60)

    private struct Figures {
        var times: [Double] = []
        /// Until the controller had committed, signed and answered the request.
        var applied: [Double] = []
        /// Until the broker had taken over the last status.
        var reported: [Double] = []
        var floor: [Double] = []
        var lost = 0
    }

    func run() async throws -> BenchReport {
        try FileLimit.ensure(connections: plan.devices * 2)
        return try await BenchHost.with { host in
            let floor = try Floor(devices: plan.devices, port: host.barePort)
            do {
                try await floor.ready()
                let report = try await measure(host, floor)
                await floor.end()
                return report
            } catch {
                await floor.end()
                try host.controller.check()
                try host.broker.check()
                throw error
            }
        }
    }

    private func measure(_ host: BenchHost, _ floor: Floor) async throws -> BenchReport {
        let fleet = try await LoadFleet(plan, home: host.home)
        do {
            let report = try await measure(host, floor, fleet)
            await fleet.end()
            return report
        } catch {
            await fleet.end()
            throw error
        }
    }

    private func measure(_ host: BenchHost, _ floor: Floor, _ fleet: LoadFleet) async throws -> BenchReport {
        let clock = ContinuousClock()
        let start = clock.now
        await fleet.connect()
        let all = plan.devices * plan.apps
        try await fleet.wait(for: "every app's ready", within: .seconds(300)) { $0.ready == all }
        let connecting = (clock.now - start).inSeconds
        var figures = Figures()
        let before = (host.broker.processorTime, host.controller.processorTime)
        let counters = try await FleetCommands.Controller.reach(
            host.home, as: .operator(Name(unchecked: "admin"))
        ) { controller in
            _ = try await change(0, controller, fleet)  // The first of its kind fills every cache.
            _ = try await floor.round()
            for round in 1...rounds {
                figures.floor.append(try await floor.round())
                let measured = try await change(round, controller, fleet)
                figures.times.append(measured.time)
                figures.applied.append(measured.applied)
                figures.reported.append(measured.reported)
                figures.lost += measured.lost
            }
            return await fleet.counters
        }
        let changes = Double((rounds + 1) * plan.devices)
        return report(
            figures, counters, connecting: connecting,
            brokerMicroseconds: (host.broker.processorTime - before.0) * 1e6 / changes,
            controllerMicroseconds: (host.controller.processorTime - before.1) * 1e6 / changes)
    }

    private func change(_ round: Int, _ controller: FleetCommands.Controller, _ fleet: LoadFleet) async throws -> (
        time: Double, applied: Double, reported: Double, lost: Int
    ) {
        let clock = ContinuousClock()
        let app = LoadPlan.appID(1)
        let before = await fleet.counters.acknowledged
        let value = DesiredValue(.config(["round": "\(round)", "note": String(repeating: "p", count: 200)]))
        let start = clock.now
        _ = try await controller.ask(
            .apply,
            ApplyRequest(changes: [ApplyRequest.Change(app: app, layer: .all, aspect: .config, value: value)]))
        let applied = (clock.now - start).inSeconds
        // A status that was lost shows below, in the controller's count.
        _ = try? await fleet.wait(for: "the answers", within: Self.patience) {
            $0.acknowledged >= before + plan.devices
        }
        let reported = (clock.now - start).inSeconds
        var counted = 0
        repeat {
            let rows = try await controller.ask(.status, ListRequest(app: app))["rows"]?.arrayValue ?? []
            let row = rows.first { $0["policy"]?.stringValue == Policy.config.rawValue }
            counted = Int(row?["counts"]?["applied"]?.integerValue ?? 0)
        } while counted < plan.devices && clock.now - start < Self.patience
        return ((clock.now - start).inSeconds, applied, reported, plan.devices - counted)
    }

    private func report(
        _ figures: Figures, _ counters: LoadCounters, connecting: Double, brokerMicroseconds: Double,
        controllerMicroseconds: Double
    ) -> BenchReport {
        let (median, floor) = (figures.times.median, figures.floor.median)
        let ratio = floor > 0 ? median / floor : 0
        func milliseconds(_ seconds: Double) -> JSONValue { .double((seconds * 1_000).rounded(to: 2)) }
        return BenchReport(
            scenario: "converge",
            parameters: .object([
                "devices": .integer(Int64(plan.devices)), "apps": .integer(Int64(plan.apps)),
                "rounds": .integer(Int64(rounds)), "verifiesEach": .bool(plan.verifiesEach),
            ]),
            result: .object([
                "medianMs": milliseconds(median), "roundsMs": figures.times.millisecondsValue,
                "requestAnsweredMs": milliseconds(figures.applied.median),
                "lastStatusAtBrokerMs": milliseconds(figures.reported.median),
                "acknowledgementsPerSecond": .integer(Int64(Double(plan.devices) / max(median, 1e-6))),
                "brokerMicrosecondsPerChange": .double(brokerMicroseconds.rounded(to: 1)),
                "controllerMicrosecondsPerChange": .double(controllerMicroseconds.rounded(to: 1)),
                "connectAllSeconds": .double(connecting.rounded(to: 2)), "errors": .integer(Int64(counters.errors)),
                "lastError": counters.lastError.map(JSONValue.string),
            ]),
            floor: .object(["medianMs": milliseconds(floor), "roundsMs": figures.floor.millisecondsValue]),
            bareRatio: ratio, lost: figures.lost, duplicated: counters.duplicated, reordered: counters.reordered,
            line: "converge  \(plan.devices) devices  \((median * 1_000).rounded(to: 1)) ms"
                + "  floor \((floor * 1_000).rounded(to: 1)) ms  ratio \(ratio.rounded(to: 2))"
                + "  lost \(figures.lost)  duplicated \(counters.duplicated)  reordered \(counters.reordered)")
    }
}
