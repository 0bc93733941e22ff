import FleetProtocol

/// What operators read in lists.
extension DesiredModel {
    /// What is wrong with a list, read at this moment, that fits on one page.
    func problem(in answer: JSONValue, to verb: Verb, _ body: [UInt8]) throws -> String? {
        let request = try ListRequest(json: body, limit: Request.maximumSize)
        switch verb {
        case .groups: return differs(rows(answer, "groups"), from: groupRows, "groups")
        case .policies:
            let told = rows(answer, "policies").map {
                Self.row($0, ["target", "app", "aspect", "change", "by", "why", "value"])
            }
            return differs(told, from: try policyRows(request), "policies")
        case .devices:
            let told = rows(answer, "devices").map { Self.row($0, ["device", "groups"]) }
            let names = told.compactMap { $0["device"]?.stringValue }
            if names != Set(names).sorted() { return "the devices are listed as \(names)" }
            return differs(told, from: names.map(deviceRow), "devices")
        case .history: return problem(inHistory: rows(answer, "history"), request)
        default: return nil
        }
    }

    private func rows(_ answer: JSONValue, _ name: String) -> [JSONValue] { answer[name]?.arrayValue ?? [] }

    /// Some members of a row.
    private static func row(_ row: JSONValue, _ names: [String]) -> JSONValue {
        .object(names.map { JSONValue.Member($0, row[$0] ?? .null) })
    }

    private func differs(_ told: [JSONValue], from wanted: [JSONValue], _ name: String) -> String? {
        guard told != wanted else { return nil }
        return "\(name) tells of \(told.map(\.jsonText)), and there is \(wanted.map(\.jsonText))"
    }

    private var groupRows: [JSONValue] {
        groups.sorted { $0.key < $1.key }.map { name, group in
            .object([
                .init("group", .string(name.text)), .init("priority", .integer(group.priority)),
                .init("devices", .array(group.members.sorted().map { .string($0.text) })),
            ])
        }
    }

    private func deviceRow(_ name: String) -> JSONValue {
        let within = groups.filter { $0.value.members.contains(DeviceID(unchecked: name)) }.keys.sorted()
        return .object([
            .init("device", .string(name)), .init("groups", .array(within.map { .string($0.text) })),
        ])
    }

    private func policyRows(_ request: ListRequest) throws -> [JSONValue] {
        try values.sorted { $0.key.path < $1.key.path }.compactMap { address, value in
            guard case .desired(let layer, let app, let aspect) = address, request.app ?? app == app,
                request.layer ?? layer == layer, request.device.map({ reads($0, layer) }) ?? true
            else { return nil }
            let number = newest[address] ?? 0
            let change = changes[number]
            return .object([
                .init("target", .string(layer.description)), .init("app", .string(app.text)),
                .init("aspect", .string(aspect.text)), .init("change", .integer(number)),
                .init("by", change.map { .string($0.user.text) } ?? .null),
                .init("why", change?.why.map(JSONValue.string) ?? .null),
                .init("value", try JSONValue(json: Array(value.utf8), limit: SignedDocument.maximumSize)),
            ])
        }
    }

    private func reads(_ device: DeviceID, _ layer: Layer) -> Bool {
        switch layer {
        case .all: true
        case .group(let group): members(of: group).contains(device)
        case .device(let other): device == other
        }
    }

    /// The newest first; each says what it has replaced; the newest of each document is what is there; and every change
    /// that was answered for is there.
    private func problem(inHistory rows: [JSONValue], _ request: ListRequest) -> String? {
        let revisions = rows.compactMap { $0["revision"]?.integerValue }
        if revisions.count != rows.count || revisions != Set(revisions).sorted(by: >) {
            return "history tells of the revisions \(revisions)"
        }
        var texts: [String: String?] = [:]
        for address in values.keys { if let name = Self.name(of: address) { texts[name] = values[address] } }
        for row in rows {
            let isOfApp = request.app.map { $0.text == row["app"]?.stringValue } ?? true
            if !isOfApp || !(request.layer.map { Self.isAbout($0, row) } ?? true) {
                return "history tells of \(row.jsonText), for which nobody has asked"
            }
        }
        for row in rows where row["app"]?.stringValue?.hasPrefix("_") == false {
            let name = ["target", "app", "aspect"].map { row[$0]?.stringValue ?? "" }.joined(separator: " ")
            if row["new"]?.jsonText != texts[name] ?? nil {
                return "history tells of \(row.jsonText), and then there was \((texts[name] ?? nil) ?? "nothing")"
            }
            texts[name] = row["old"]?.jsonText
            guard let change = row["revision"]?.integerValue.flatMap({ changes[$0] }) else { continue }
            if row["by"]?.stringValue != change.user.text || row["why"]?.stringValue != change.why {
                return "history tells of \(row.jsonText), and that was \(change)"
            }
        }
        for device in removed.keys where request.app == nil && request.layer ?? .device(device) == .device(device) {
            let isTold = rows.contains {
                $0["aspect"] == "removal" && $0["target"]?.stringValue == "\(Layer.device(device))"
            }
            if !isTold { return "history does not tell that \(device) was removed" }
        }
        if request.app == nil, request.layer == nil {
            let told = rows.map { DesiredModel.Reason(user: $0["by"]?.stringValue ?? "", why: $0["why"]?.stringValue) }
            let missing = groupChanges.subtracting(told)
            if !missing.isEmpty { return "history leaves out changes of groups by \(missing)" }
        }
        if case .group(let group)? = request.layer, request.app == nil, let problem = problem(in: rows, of: group) {
            return problem
        }
        let missing = changes.filter { revision, change in
            guard case .desired(let layer, let app, _) = change.address else { return false }
            return request.app ?? app == app && request.layer ?? layer == layer && !revisions.contains(revision)
        }
        return missing.isEmpty ? nil : "history leaves out \(missing.keys.sorted())"
    }

    /// Of each device the newest word of a group's history is that it came, where it is in the group, and else that it left.
    private func problem(in rows: [JSONValue], of group: GroupID) -> String? {
        var (told, seen): (Set<String>, Set<String>) = ([], [])
        for row in rows where row["aspect"]?.stringValue == "membership" {
            guard let device = row["target"]?.stringValue, seen.insert(device).inserted else { continue }
            if row["new"]?["groups"]?.arrayValue?.contains(.string(group.text)) ?? false { told.insert(device) }
        }
        let real = Set(members(of: group).map { "\(Layer.device($0))" })
        return told == real
            ? nil : "by its history \(group) has the members \(told.sorted()), and they are \(real.sorted())"
    }

    /// A change at its target, or of who is in the group.
    private static func isAbout(_ layer: Layer, _ row: JSONValue) -> Bool {
        guard case .group(let group) = layer, row["aspect"]?.stringValue == "membership" else {
            return row["target"]?.stringValue == "\(layer)"
        }
        let names = ["old", "new"].map { row[$0]?["groups"]?.arrayValue?.contains(.string(group.text)) ?? false }
        return names[0] != names[1]
    }

    private static func name(of address: Address) -> String? {
        guard case .desired(let layer, let app, let aspect) = address else { return nil }
        return "\(layer) \(app) \(aspect.text)"
    }
}
