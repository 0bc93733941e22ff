import FleetProtocol
import FleetWorld

/// What one app on one device must have.
extension ChaosSnapshot {
    func check(_ app: App, _ model: ChaosModel, _ chain: [Layer], _ findings: inout [ChaosFinding]) {
        func fail(_ law: Law, _ what: String) {
            findings.append(ChaosFinding(law, "\(app.app) on \(app.device): \(what)", device: app.device.text))
        }
        guard let status = status(of: app) else { return fail(.summary, "no status") }
        if status["running"] != true || status["ready"] != true { fail(.summary, "it runs, and is not shown so") }
        guard let properties = app.properties else { return fail(.convergence, "it does not say what it has") }
        let isRetired = status["auth"]?["state"]?.stringValue == "retired"
        if isRetired == app.hasKeyFile {
            fail(.erased, "\(isRetired ? "retired, and its key file is there" : "its key file is not there")")
        }
        if (status["keys"]?.stringValue == "present") != app.hasKeyFile { fail(.erased, "its status is wrong of keys") }
        if !app.isOpened { fail(.passcodes, "the passcode cannot be entered") }
        checkFile(app, properties, fail)
        checkServices(app, properties, model.documents(app.app, .secureServices, chain).first, fail)
        if app.mayHaveRetired, status["auth"]?["reason"]?.stringValue == "selfRetired" {
            // It has none of its policies, until a later auth document comes.
            if properties["authState"]?.stringValue != "retired" { fail(.summary, "shown as retired by itself") }
            return
        }
        checkAuth(app, status, properties, model, chain, fail)
        for policy in Policy.allCases where policy != .auth {
            let documents = policy.aspect.map { model.documents(app.app, $0, chain) } ?? []
            checkReport(policy, of: app, status, documents.first, rejected: false, fail)
            checkValue(policy, status, properties, documents, fail)
        }
    }

    /// Who has keys reads what it has written, and nobody else does.
    private func checkFile(_ app: App, _ properties: JSONValue, _ fail: (Law, String) -> Void) {
        guard let file = app.file else { return fail(.convergence, "it does not say what is in its file") }
        if properties["secureServicesAvailability"]?.stringValue == "available" {
            if properties["authState"]?.stringValue != "authorized" {
                fail(.erased, "it is not authorized, and has keys")
            }
            if file["text"]?.stringValue != Self.takings { fail(.keys, "it cannot read its file: \(file.jsonText)") }
        } else if file["code"]?.stringValue != "noKeys" {
            fail(.erased, "it has no keys, and says of its file: \(file.jsonText)")
        }
    }

    /// Who is authorized has secure services, unless the policy locks them.
    private func checkServices(
        _ app: App, _ properties: JSONValue, _ deciding: ChaosModel.Live?, _ fail: (Law, String) -> Void
    ) {
        let isAvailable = properties["secureServicesAvailability"]?.stringValue == "available"
        let isLocked = deciding?.document.value["locked"] == true
        let mustBe = properties["authState"]?.stringValue == "authorized" && !isLocked
        if isAvailable != mustBe, app.isOpened {
            fail(.keys, "its secure services are \(isAvailable ? "" : "not ")available")
        }
    }

    private func checkAuth(
        _ app: App, _ status: JSONValue, _ properties: JSONValue, _ model: ChaosModel, _ chain: [Layer],
        _ fail: (Law, String) -> Void
    ) {
        let documents = model.documents(app.app, .auth, chain)
        let deciding = documents.first { $0.document.isRetirement } ?? documents.first
        let isToBeRetired = deciding?.document.isRetirement == true
        let retirement: JSONValue? = isToBeRetired ? .string(Retirement.confirmed.rawValue) : nil
        if status["retirement"] != retirement {
            let shown = status["retirement"]?.stringValue ?? "not wanted"
            fail(.erased, "its retirement is shown as \(shown), and is \(isToBeRetired ? "confirmed" : "not wanted")")
        }
        let told = properties["authState"]?.stringValue ?? "nothing"
        let shown = status["auth"]?["state"]?.stringValue ?? "nothing"
        if shown != told { fail(.summary, "shown as \(shown), and it says that it is \(told)") }
        let wanted = deciding?.document.value["state"]?.stringValue ?? "unauthorized"
        let isLatched =
            told == "retired" && wanted != "retired"
            && model.mayBeLatched(app.app, on: app.device, after: deciding?.revision ?? 0)
        checkReport(.auth, of: app, status, deciding, rejected: isLatched && deciding != nil, fail)
        guard !isLatched else { return }
        if told != wanted { fail(.convergence, "it is \(told), and its layers say \(wanted)") }
        guard let message = deciding?.document.value["message"]?.stringValue else { return }
        for (place, text) in [
            ("the app", properties["authMessage"]), ("its status", status["auth"]?["message"]),
        ] where text?.stringValue != message {
            fail(.convergence, "auth of \(place) is \(text?.stringValue ?? "nothing"), not \(message)")
        }
    }

    /// Which document decides, at which revision, and how that ended.
    private func checkReport(
        _ policy: Policy, of app: App, _ status: JSONValue, _ deciding: ChaosModel.Live?, rejected: Bool,
        _ fail: (Law, String) -> Void
    ) {
        guard let report = status["policies"]?[policy.rawValue] else {
            return fail(.convergence, "nothing is reported of \(policy.rawValue)")
        }
        let source = deciding.map { live in
            Address.desired(live.document.key.layer, app.app, live.document.key.aspect).topic(in: fleet)
        }
        let revision = deciding.map { listed[$0.document.key]?.revision ?? $0.revision } ?? 0
        guard report["source"]?.stringValue == source ?? "default", report["received"]?.integerValue == revision else {
            return fail(
                .convergence,
                "\(policy.rawValue) follows \(report.jsonText), not \(source ?? "default") at \(revision)")
        }
        let isTimed = policy == .logLevel && deciding?.document.value["for"] != nil
        let outcome: Outcome =
            rejected ? .rejected : isTimed ? .expired : ChaosFleet.answer(of: app.number, to: policy)
        let attempt = report["attempt"]
        guard attempt?["outcome"]?.stringValue == outcome.rawValue, attempt?["revision"]?.integerValue == revision
        else {
            return fail(
                .ends, "\(policy.rawValue) is \(attempt?.jsonText ?? "nothing"), not \(outcome.rawValue) at \(revision)"
            )
        }
        if outcome == .applied, report["applied"]?.integerValue != revision {
            fail(.kept, "\(policy.rawValue) was applied at \(revision), and not so: \(report.jsonText)")
        }
    }

    /// What the app itself has in hand.
    private func checkValue(
        _ policy: Policy, _ status: JSONValue, _ properties: JSONValue, _ documents: [ChaosModel.Live],
        _ fail: (Law, String) -> Void
    ) {
        let value = documents.first?.document.value
        func compare(_ name: String, _ wanted: JSONValue) {
            if properties[name] != wanted {
                fail(.convergence, "\(name) is \(properties[name]?.jsonText ?? "nothing"), not \(wanted.jsonText)")
            }
        }
        switch policy {
        case .config:
            let members = value?.memberValues?.sorted { $0.name < $1.name } ?? []
            compare("config", .object(members))
        case .openIn, .openFrom:
            let opening = value?[policy.rawValue]
            let name = opening?["policy"]?.stringValue ?? "unauthorized"
            let apps: [String] =
                switch name {
                case "whitelist": opening?["apps"]?.arrayValue?.compactMap(\.stringValue) ?? []
                case "appConnectApps": authorizedApps(of: status["device"]?.stringValue)
                default: []
                }
            compare("\(policy.rawValue)Policy", .string(name == "appConnectApps" ? "whitelist" : name))
            compare("\(policy.rawValue)Whitelist", .array(apps.sorted().map { .string($0) }))
        case .pasteboard: compare("pasteboardPolicy", value?["pasteboard"] ?? "unauthorized")
        case .print: compare("printPolicy", value?["print"] ?? "unauthorized")
        case .logLevel:
            // All that were for a time are over.
            let lasting = documents.first { $0.document.value["for"] == nil }
            let level = lasting?.document.value["level"] ?? "status"
            compare("logLevel", level)
            if status["logLevel"] != level {
                fail(.summary, "its level is shown as \(status["logLevel"]?.jsonText ?? "")")
            }
        case .auth, .dragAndDrop, .secureServices, .secureFileIO: break
        }
    }

    private func authorizedApps(of device: String?) -> [String] {
        self["apps"].filter { $0["device"]?.stringValue == device && $0["auth"]?["state"]?.stringValue == "authorized" }
            .compactMap { $0["app"]?.stringValue }
    }
}
