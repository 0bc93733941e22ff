import FleetController
import FleetProtocol

/// What Prometheus is told is what operators read, added up.
extension Controller {
    func checkMetrics() throws {
        guard let running else { return }
        let told = try running.core.metrics(at: clock).filter { $0.name != "fleetbus_build_info" }.flatMap { metric in
            metric.samples.map { sample in
                (([metric.name] + sample.labels.map(\.value)).joined(separator: " "), sample.value)
            }
        }
        let wanted = try figures(running)
        let named = Dictionary(told) { $1 }
        func text(_ figure: Double?) -> String { figure.map { "\($0)" } ?? "nothing" }
        for name in Set(named.keys).union(wanted.keys).sorted() where named[name] != wanted[name] {
            world.fail(.summary, "\(name) is told to be \(text(named[name])), and is \(text(wanted[name]))")
        }
        if told.count != wanted.count { world.fail(.summary, "\(told.count) figures are told of \(wanted.count)") }
    }

    /// Whoever is alarmed by it is so while a connection has not come so far, and when it has ended.
    func checkServing() {
        guard let running, let told = try? running.core.metrics(at: clock) else { return }
        let isServing = told.first { $0.name == "fleetbus_serving" }?.samples.first?.value == 1
        if isServing != (phase == .serving) {
            world.fail(.summary, "fleetbus_serving is told to be \(isServing), and the controller is \(phase.rawValue)")
        }
    }

    /// By their names and the values of their labels.
    private func figures(_ running: Running) throws -> [String: Double] {
        func rows(_ verb: Verb) throws -> [JSONValue] { try running.core.rows(of: verb, ListRequest(), now: clock) }
        let (devices, latest) = (try rows(.devices), try store.latest())
        let lost = try store.gaps().reduce(0.0) { $0 + Double($1.numbers.upperBound - $1.numbers.lowerBound + 1) }
        var figures: [String: Double] = [
            "fleetbus_serving": phase == .serving ? 1 : 0, "fleetbus_epoch": Double(latest.epoch),
            "fleetbus_revision": Double(latest.number), "fleetbus_events_lost": lost,
            "fleetbus_devices_warned": Double(devices.count { $0["warnings"]?.arrayValue?.isEmpty == false }),
        ]
        for state in ["online", "offline", "unknown"] {
            figures["fleetbus_devices \(state)"] = Double(devices.count { $0["state"]?.stringValue == state })
        }
        for row in try rows(.status) {
            let row = try StatusRow(json: row.json, limit: Response.maximumSize)
            let (counts, place) = (row.counts, "\(row.app) \(row.policy.rawValue)")
            let outcomes: [Outcome: Int64] = [
                .applied: counts.applied, .error: counts.error, .unsupported: counts.unsupported,
                .rejected: counts.rejected, .delivered: counts.delivered, .pending: counts.pending,
            ]
            for (outcome, count) in outcomes {
                figures["fleetbus_device_apps \(place) \(outcome.rawValue)"] = Double(count)
            }
            figures["fleetbus_device_apps_overdue \(place)"] = Double(counts.overdue)
            figures["fleetbus_device_apps_offline \(place)"] = Double(row.offline)
            guard let retirement = row.retirement else { continue }
            figures["fleetbus_retirements \(row.app) confirmed"] = Double(retirement.confirmed)
            figures["fleetbus_retirements \(row.app) outstanding"] = Double(retirement.outstanding)
            figures["fleetbus_retirements \(row.app) doubtful"] = Double(retirement.doubtful)
        }
        return figures
    }
}
