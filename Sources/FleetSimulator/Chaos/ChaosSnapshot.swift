import FleetProtocol
import FleetWorld

/// What fleetctl and the apps say at one moment, when everything should be at rest.
struct ChaosSnapshot {
    /// How fleetctl is asked, by what it is asked for.
    static let questions: [(name: String, arguments: [String])] = [
        ("devices", ["get", "devices"]), ("apps", ["get", "apps"]), ("policies", ["get", "policies"]),
        ("history", ["get", "history"]), ("groups", ["group", "list"]), ("status", ["status"]),
    ]

    struct App {
        let device: DeviceID
        let app: AppID
        /// The app's number among those of a device: how it answers.
        let number: Int
        /// What the app itself prints.
        let properties: JSONValue?
        /// What it says of a secure file that it has just written, and read.
        let file: JSONValue?
        /// The passcode of its device has been entered, or nothing asks for one.
        let isOpened: Bool
        /// It was told to retire itself, and nothing for certain has ended that.
        let mayHaveRetired: Bool
        let hasKeyFile: Bool
    }

    /// What apps write.
    static let takings = "takings of the day"

    let fleet: FleetID
    let answers: [String: [JSONValue]]
    let apps: [App]
    let devices: [DeviceID]
    /// Under which revision each document stands now, and which change that was: a restored controller signs it again.
    let listed: [ChaosChange.Key: (revision: Int64, change: Int64)]

    init(fleet: FleetID, answers: [String: [JSONValue]], apps: [App], devices: [DeviceID]) {
        (self.fleet, self.answers, self.apps, self.devices) = (fleet, answers, apps, devices)
        var listed: [ChaosChange.Key: (revision: Int64, change: Int64)] = [:]
        for row in answers["policies"] ?? [] {
            guard let key = ChaosModel.key(row) else { continue }
            listed[key] = (row["revision"]?.integerValue ?? 0, row["change"]?.integerValue ?? 0)
        }
        self.listed = listed
    }

    subscript(name: String) -> [JSONValue] { answers[name] ?? [] }

    /// All that is not as the model has it.
    func findings(_ model: ChaosModel) -> [ChaosFinding] {
        var findings = model.problems.map { ChaosFinding(.answered, $0) }
        findings += model.groupProblems(self["groups"]).map { ChaosFinding(.answered, $0) }
        checkPolicies(model, &findings)
        checkDevices(&findings)
        let groups = ChaosModel.groups(self["groups"])
        for app in apps { check(app, model, ChaosModel.chain(of: app.device, groups), &findings) }
        checkSummary(&findings)
        return findings
    }

    func status(of app: App) -> JSONValue? {
        self["apps"].first {
            $0["device"]?.stringValue == app.device.text && $0["app"]?.stringValue == app.app.text
        }
    }

    private func checkPolicies(_ model: ChaosModel, _ findings: inout [ChaosFinding]) {
        for (key, live) in model.live where listed[key]?.change != live.revision {
            findings.append(
                ChaosFinding(
                    .answered,
                    "\(key) is at \(listed[key].map { "\($0.change)" } ?? "nothing"), not at \(live.revision)"))
        }
        for key in listed.keys where model.live[key] == nil {
            findings.append(ChaosFinding(.answered, "\(key) is there, and was deleted or never applied"))
        }
    }

    private func checkDevices(_ findings: inout [ChaosFinding]) {
        for device in devices {
            let row = self["devices"].first { $0["device"]?.stringValue == device.text }
            if row?["state"]?.stringValue != "online" {
                findings.append(
                    ChaosFinding(
                        .presence, "\(device) runs, and is shown as \(row?["state"]?.stringValue ?? "nothing")",
                        device: device.text))
            }
            for warning in row?["warnings"]?.arrayValue ?? [] {
                findings.append(
                    ChaosFinding(.kept, "\(device): \(warning.stringValue ?? "")", device: device.text))
            }
        }
    }

    /// What operators read is what the devices have, counted.
    private func checkSummary(_ findings: inout [ChaosFinding]) {
        var counts: [String: OutcomeCounts] = [:]
        var retired: [String: RetirementCounts] = [:]
        for status in self["apps"] {
            let app = status["app"]?.stringValue ?? ""
            if let retirement = status["retirement"]?.stringValue.flatMap(Retirement.init) {
                retired[app, default: RetirementCounts()].count(retirement)
            }
            for policy in status["policies"]?.memberValues ?? [] {
                guard let outcome = policy.value["attempt"]?["outcome"]?.stringValue.flatMap(Outcome.init) else {
                    continue
                }
                counts["\(app) \(policy.name)", default: OutcomeCounts()].count(outcome)
                if status["counted"]?[policy.name]?.stringValue != outcome.rawValue {
                    findings.append(
                        ChaosFinding(.summary, "\(app) \(policy.name): \(outcome), and counted \(status.jsonText)"))
                }
            }
        }
        for row in self["status"] {
            guard let shown = try? StatusRow(json: row.json, limit: 65_536) else {
                findings.append(ChaosFinding(.summary, "unreadable: \(row.jsonText)"))
                continue
            }
            let name = "\(shown.app) \(shown.policy.rawValue)"
            let real = counts.removeValue(forKey: name) ?? OutcomeCounts()
            let gone = shown.policy == .auth ? retired[shown.app.text] : nil
            if shown.counts != real || shown.offline != 0 || shown.retirement != gone {
                findings.append(
                    ChaosFinding(.summary, "\(name): shown \(row.jsonText), and really \(real)"))
            }
        }
        for name in counts.keys.sorted() { findings.append(ChaosFinding(.summary, "\(name) is not counted")) }
    }
}
