import DeviceAgent
import FleetController
import FleetProtocol

extension World {
    /// What operators read at any moment: what the newest reports say, held against what is wanted now.
    func checkCounts() {
        guard controller.isUp, violation == nil else { return }
        do {
            let wishes = try controller.store.wishes()
            var layers: [DeviceID: SaidLayers] = [:]
            var real: [AppID: [Policy: OutcomeCounts]] = [:]
            for status in try controller.store.statuses(in: SimulatedFleet.id) {
                let said = layers[status.device] ?? SaidLayers(wishes, of: status.device)
                layers[status.device] = said
                for policy in Policy.allCases {
                    let (report, wanted) = (status[policy], said.deciding(policy, of: status.app))
                    let isAbout =
                        report.source == wanted.source && report.received == wanted.revision
                        && report.attempt.revision == wanted.revision
                    real[status.app, default: [:]][policy, default: OutcomeCounts()]
                        .count(isAbout ? report.attempt.outcome : .pending)
                }
            }
            for app in real.keys.sorted() {
                for row in try controller.store.summary(of: app, at: controller.clock) {
                    var told = row.counts
                    told.overdue = 0
                    let counted = real[app]?[row.policy] ?? OutcomeCounts()
                    if told != counted {
                        fail(.summary, "\(app) \(row.policy.rawValue): \(told), where the reports say \(counted)")
                    }
                }
            }
        } catch {
            fail(.total, "\(error)")
        }
    }

    /// What operators read is what the devices have, counted.
    func checkSummary(_ store: FleetStore) throws {
        for number in 0..<schedule.apps {
            let app = AppID(unchecked: "a\(number)")
            for row in try store.summary(of: app, at: controller.clock) {
                var real = OutcomeCounts()
                for machine in machines where !machine.isRemoved {
                    if let report = machine.core?.state.apps[app]?[row.policy] { real.count(report.attempt.outcome) }
                }
                var told = row.counts
                told.overdue = 0
                if told != real {
                    fail(.summary, "\(app) \(row.policy.rawValue): \(told), and really \(real)")
                }
            }
        }
    }
}
