import DeviceAgent
package import FleetHome
package import FleetProtocol
import Foundation

/// A simulated fleet in this process: real cores, real signatures, the real client.
package struct LoadFleet: Sendable {
    private let load: LoadLoop
    package let plan: LoadPlan

    /// Enrols the devices that are not yet, and makes them. None connects before ``connect()``.
    package init(_ plan: LoadPlan, home: FleetHome) async throws {
        self.plan = plan
        try FileLimit.ensure(connections: plan.devices)
        let configurations = try LoadRoster(home).configurations(of: plan.deviceIDs)
        load = try LoadLoop(plan)
        do {
            // A run has a later boot than the one before it, also in another process.
            try await load.add(configurations, boot: Int64(Date.now.timeIntervalSince1970 * 1_000))
        } catch {
            await load.end()
            throw error
        }
    }

    package func connect() async { await load.connect() }

    package var counters: LoadCounters { get async { await load.counters } }
    /// The numbers of ``counters``, at little cost.
    package var progress: JSONValue { get async { await load.progress } }

    /// Waits until the counters satisfy `condition`.
    ///
    /// - Throws: ``LoadError`` naming `what`, after `timeout`.
    @discardableResult
    package func wait(
        for what: String, within timeout: Duration, _ condition: (LoadCounters) -> Bool
    ) async throws -> LoadCounters {
        let deadline = ContinuousClock.now + timeout
        while true {
            let counters = await load.counters
            if condition(counters) { return counters }
            guard ContinuousClock.now < deadline else {
                throw LoadError(
                    "\(what): not within \(timeout): \(counters.line)"
                        + (counters.lastError.map { "; the last error: \($0)" } ?? ""))
            }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    /// Says goodbye and ends all connections.
    package func end() async { await load.end() }
}
