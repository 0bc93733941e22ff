import FleetProtocol

/// What an operator who changes something is told that it may not do.
extension DesiredModel {
    /// What is wrong with the warnings in an answer, of those that the model knows of.
    func differs(_ answer: JSONValue, _ wanted: [Set<String>]) throws -> String? {
        let told = try ChangeResponse(json: answer.json, limit: Response.maximumSize).warnings
            .filter { $0.contains(" retire") || $0.hasPrefix("there is no group") }
        let wanted = wanted.reduce(into: Set()) { $0.formUnion($1) }
        return told.count == wanted.count && Set(told) == wanted
            ? nil : "it is warned that \(told), and was to be that \(wanted.sorted())"
    }

    func warnings(of change: ApplyRequest.Change) -> Set<String> {
        var warnings: Set<String> = []
        if case .group(let group) = change.layer, groups[group] == nil {
            warnings.insert("there is no group \(group) yet: this reaches nobody until it has members")
        }
        if case .auth(let state, _) = change.value.content, state != .retired {
            warnings.formUnion(retirements(of: change.app, besides: change.layer))
        }
        return warnings
    }

    func warnings(ofDeleting address: Address) -> Set<String> {
        guard case .desired(let layer, let app, .auth) = address else { return [] }
        var warnings = retirements(of: app, besides: layer)
        if isRetired(address) {
            warnings.insert(
                "deleting the retirement of \(app) for \(layer) releases an app that was retired only where another"
                    + " auth document that was changed after it decides")
        }
        return warnings
    }

    func warnings(ofLeaving layer: Layer) -> Set<String> {
        Set(
            values.keys.compactMap { address in
                guard case .desired(layer, let app, .auth) = address, isRetired(address) else { return nil }
                return "\(app) is retired by \(layer): a device that leaves it releases the app only where another auth"
                    + " document that was changed after that decides"
            })
    }

    private func retirements(of app: AppID, besides layer: Layer) -> Set<String> {
        Set(
            values.keys.compactMap { address in
                guard case .desired(let other, app, .auth) = address, other != layer, isRetired(address) else {
                    return nil
                }
                if case .device = layer, case .device = other { return nil }  // No device belongs to both.
                return "\(app) is retired by \(other), which wins over every layer"
            })
    }

    private func isRetired(_ address: Address) -> Bool {
        let value = values[address].flatMap { try? JSONValue(json: Array($0.utf8), limit: SignedDocument.maximumSize) }
        return value?["state"]?.stringValue == "retired"
    }
}
