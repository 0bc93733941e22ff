package import FleetProtocol

extension ControllerCore {
    /// What Prometheus is told of the fleet at `now`: what `fleetctl status` counts, how many devices are connected, how far
    /// the store has come. Reads the store in one transaction.
    package func metrics(at now: Timestamp) throws -> [Metric] {
        try store.transaction { transaction in
            let latest = try transaction.latest()
            let own = [
                Metric(
                    "fleetbus_serving",
                    "1 while the controller is connected to its broker and has compared what that holds.",
                    phase.serving == nil ? 0 : 1),
                Metric("fleetbus_epoch", "Rises with each restore from a backup.", latest.epoch),
                Metric("fleetbus_revision", "The number of the latest signed document.", latest.number),
            ]
            return [build] + own + (try devices(transaction)) + (try apps(transaction, now))
        }
    }

    private var build: Metric {
        var build = Metric("fleetbus_build_info", "1, by the controller's version and its fleet.")
        build.add(1, ["version": fleetbusVersion, "fleet": identity.fleetID.text])
        return build
    }

    private func devices(_ transaction: FleetStore.Transaction) throws -> [Metric] {
        var devices = Metric("fleetbus_devices", "Known devices, by whether they are connected.")
        let counts = try transaction.deviceCounts()
        for connection in Connectivity.allCases {
            devices.add(counts[connection] ?? 0, ["state": connection.rawValue])
        }
        return [
            devices,
            Metric(
                "fleetbus_devices_warned", "Devices that fleetctl get devices warns of.",
                try transaction.warnedDeviceCount()),
            Metric(
                "fleetbus_events_lost", "Events that are missing here, and that devices do not have any more.",
                try transaction.lostEventCount()),
        ]
    }

    private func apps(_ transaction: FleetStore.Transaction, _ now: Timestamp) throws -> [Metric] {
        var outcomes = Metric(
            "fleetbus_device_apps", "Apps on devices, by policy and how far they are with what is wanted of them.")
        var overdue = Metric(
            "fleetbus_device_apps_overdue",
            "Of those delivered or pending: on connected devices, and without an answer for five minutes.")
        var offline = Metric("fleetbus_device_apps_offline", "Of those delivered or pending: on devices not connected.")
        var retirements = Metric(
            "fleetbus_retirements", "Apps on devices where they are to be retired, by whether their keys are destroyed."
        )
        for app in try transaction.knownApps(after: "", limit: .max) {
            let tally = try Tally.of(app, transaction, now: now)
            for policy in Policy.allCases {
                let row = tally.row(of: policy)
                for (outcome, count) in row.counts.partition {
                    outcomes.add(count, ["app": app.text, "policy": policy.rawValue, "outcome": outcome.rawValue])
                }
                overdue.add(row.counts.overdue, ["app": app.text, "policy": policy.rawValue])
                offline.add(row.offline, ["app": app.text, "policy": policy.rawValue])
                guard let retirement = row.retirement else { continue }
                retirements.add(retirement.confirmed, ["app": app.text, "state": Retirement.confirmed.rawValue])
                retirements.add(retirement.outstanding, ["app": app.text, "state": Retirement.outstanding.rawValue])
                retirements.add(retirement.doubtful, ["app": app.text, "state": "doubtful"])
            }
        }
        return [outcomes, overdue, offline, retirements]
    }
}

extension OutcomeCounts {
    /// All that they count, once.
    fileprivate var partition: KeyValuePairs<Outcome, Int64> {
        [
            .applied: applied, .error: error, .unsupported: unsupported, .rejected: rejected, .delivered: delivered,
            .pending: pending,
        ]
    }
}
