import FleetProtocol

/// What an operator who changes something is told that it may not do.
extension DesiredModel {
    /// Devices that a controller has never heard of, before it has read some messages and after that.
    struct Strangers {
        var before: Set<DeviceID> = []
        /// Who has spoken in these messages: it may be known, and removed, by them.
        var heard: Set<DeviceID> = []
        /// Whom somebody takes out, and enrols again, in these messages: it may not be known in between.
        var removed: Set<DeviceID> = []
        var after: Set<DeviceID> = []

        func among(_ devices: some Sequence<DeviceID>) -> Strangers {
            Strangers(
                before: before.intersection(devices), heard: heard, removed: removed.intersection(devices),
                after: after.intersection(devices))
        }

        fileprivate func warnings(_ devices: Set<DeviceID>) -> Set<String> {
            Set(devices.map { "the device \($0) is not known: it was never enrolled or seen" })
        }

        /// Those that it must warn of, and those that it may.
        fileprivate var must: Set<String> { warnings(before.intersection(after).subtracting(heard)) }
        fileprivate var may: Set<String> { warnings(before.union(after).union(removed)) }
    }

    /// What is wrong with the warnings in an answer.
    ///
    /// - Parameter ended: Documents that may have said `retired`, and do not any more: how many had not followed is told.
    func differs(
        _ answer: JSONValue, _ wanted: [Set<String>], _ strangers: Strangers = Strangers(), ended: [Address] = []
    ) throws -> String? {
        let list = try ChangeResponse(json: answer.json, limit: Response.maximumSize).warnings
        let unconfirmed = ended.filter(isRetired).compactMap { address in
            address.layerAndApp.map { "the retirement of \($0.app) for \($0.layer) " }
        }
        let told = Set(list.filter { text in !unconfirmed.contains { text.hasPrefix($0) } })
        let wanted = wanted.reduce(into: strangers.must) { $0.formUnion($1) }
        let isRight = Set(list).count == list.count && wanted.isSubset(of: told)
        return isRight && told.subtracting(wanted).isSubset(of: strangers.may)
            ? nil : "it is warned that \(list), and was to be that \(wanted.sorted())"
    }

    func warnings(of change: ApplyRequest.Change) -> Set<String> {
        var warnings: Set<String> = []
        if case .group(let group) = change.layer, groups[group] == nil {
            warnings.insert("there is no group \(group) yet: this reaches nobody until it has members")
        }
        if case .auth(let state, _) = change.value.content, state != .retired {
            warnings.formUnion(retirements(of: change.app, besides: change.layer))
        }
        if case .secureServices(let value) = change.value.content, let offline = value.offline {
            warnings.formUnion(risks(of: offline, change.app))
        }
        return warnings
    }

    /// Apps that are blocked within an hour, or wiped within a day or before they are blocked, when nothing reaches them; or
    /// already when the controller's next words are late.
    private func risks(of offline: SecureServicesValue.Offline, _ app: AppID) -> Set<String> {
        var risks: Set<String> = []
        if let shortest = [offline.blockAfter, offline.wipeAfter].compactMap(\.self).min(), shortest < 180 {
            risks.insert(
                "\(app) may be blocked or wiped while the controller is there:"
                    + " its heartbeats come once a minute, and \(shortest) s are fewer than three")
        }
        switch (offline.blockAfter, offline.wipeAfter) {
        case (let block?, let wipe):
            if block <= 3_600 {
                risks.insert(
                    "\(app) is blocked when the controller is away for \(block) s:"
                        + " an outage or an update may take longer")
            }
            if let wipe, wipe <= block {
                risks.insert("\(app) is wiped after \(wipe) s out of contact, before it would be blocked (\(block) s)")
            }
        case (nil, let wipe?):
            if wipe <= 86_400 { risks.insert("\(app) is wiped when the controller is away for \(wipe) s") }
        case (nil, nil): break
        }
        return risks
    }

    /// - Parameter rest: What is left.
    func warnings(ofDeleting address: Address, leaving rest: Self) -> Set<String> {
        guard case .desired(let layer, let app, .auth) = address else { return [] }
        var warnings = rest.retirements(of: app, besides: layer)
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

    /// The retirements that a change ends, and for whom where that is not for all whom the layer speaks to. Not those of an
    /// app of which it authorizes, or retires, more: the one is counted when the other counts already.
    func retirements(endedBy asked: Controller.Asked) throws -> [(address: Address, leaving: Set<DeviceID>?)] {
        let limit = Request.maximumSize
        var ended: [Address] = []
        var leaving: Set<DeviceID>?
        switch asked.verb {
        case .apply:
            let changes = try ApplyRequest(json: asked.body, limit: limit).changes.filter { $0.aspect == .auth }
            for change in changes where changes.count(where: { $0.app == change.app }) == 1 {
                if case .auth(.retired, _) = change.value.content { continue }
                ended.append(.desired(change.layer, change.app, .auth))
            }
        case .delete: ended = try SelectionRequest(json: asked.body, limit: limit).documents.flatMap(live)
        case .groupSet:
            let request = try GroupRequest(json: asked.body, limit: limit)
            let before = members(of: request.group)
            let after = Set(request.devices ?? Array(before)).union(request.add).subtracting(request.remove)
            leaving = before.subtracting(after)
            if leaving?.isEmpty == false { ended = live(on: .group(request.group)) }
        case .groupDelete: ended = live(on: .group(try GroupRequest(json: asked.body, limit: limit).group))
        default: break
        }
        return Set(ended.filter(isRetired)).map { (address: $0, leaving: leaving) }
    }

    /// Who ends a retirement is told on how many devices nobody knows yet that the keys are gone.
    static func problem(in warnings: [String], unconfirmed: [Address: Int]) -> String? {
        for (address, count) in unconfirmed.sorted(by: { $0.key.path < $1.key.path }) {
            guard let (layer, app) = address.layerAndApp else { continue }
            let begin = "the retirement of \(app) for \(layer) was not confirmed on "
            let told = warnings.filter { $0.hasPrefix(begin) }
            let text = begin + "\(count) device\(count == 1 ? "" : "s"): keys and data may stay there"
            if told != (count > 0 ? [text] : []) {
                return "\(address.path) ends, is not confirmed on \(count) devices, and warned is of \(warnings)"
            }
        }
        return nil
    }

    /// And of how many devices keys are in doubt, whether or not all have confirmed: of these at least.
    static func problem(in warnings: [String], doubted: [Address: Int]) -> String? {
        for (address, count) in doubted.sorted(by: { $0.key.path < $1.key.path }) where count > 0 {
            guard let (layer, app) = address.layerAndApp else { continue }
            let begin = "the retirement of \(app) for \(layer) leaves keys of "
            let told = warnings.filter { $0.hasPrefix(begin) }.compactMap { warning in
                Int(warning.dropFirst(begin.count).prefix(while: \.isNumber))
            }
            if told.max() ?? 0 < count {
                return "\(address.path) ends, keys of \(count) devices are in doubt, and warned is of \(warnings)"
            }
        }
        return nil
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

    func isRetired(_ address: Address) -> Bool { state(of: address) == "retired" }

    /// What an authorization says, where there is one.
    func state(of address: Address) -> String? {
        let value = values[address].flatMap { try? JSONValue(json: Array($0.utf8), limit: SignedDocument.maximumSize) }
        return value?["state"]?.stringValue
    }
}

extension Address {
    var layerAndApp: (layer: Layer, app: AppID)? {
        if case .desired(let layer, let app, _) = self { (layer, app) } else { nil }
    }
}

extension Layer {
    var device: DeviceID? { if case .device(let device) = self { device } else { nil } }
}
