import FleetProtocol

/// Whether a change must be done, or why not.
extension DesiredModel {
    /// What stood in the store before the controller looked at a request that came alone.
    struct Standing {
        let asked: Controller.Asked
        /// The newest revision of each document, tombstones included.
        let revisions: [Address: Int64]
        /// The newest incarnation of each device that the store knows from the home, the one that has spoken where the home
        /// has the device, and the newest that there was.
        let enrolled: [DeviceID: Int64]
        let spoken: [DeviceID: Int64]
        let given: [DeviceID: Int64]
        /// As what devices are about to be enrolled, by what this run of the controller has answered just now.
        let enrolling: [DeviceID: Int64]
        /// Which apps of a device that is to be removed have keys, as it has said; nil where that is not known.
        let holding: [AppID]?
        /// On how many devices each retirement that is to end is not confirmed; nil where that is not known.
        let unconfirmed: [Address: Int]?
        /// Of how many devices at least keys are in doubt behind each retirement that is to end for all; nil where that is not
        /// known.
        let doubted: [Address: Int]?
        /// Of how many devices that are to leave a group keys are in doubt, by the apps that it retires; nil where that is not
        /// known.
        let leaving: [(app: AppID, devices: Int)]?
        let clock: Timestamp
        let plan: PlannedChange?
        /// Of a device that is to be removed; nil where that is not known.
        let lastSaid: LastSaid?
        /// Of a device that is to be removed; nil where that is not known.
        let keys: KeysOfRemoved?
    }

    /// What is wrong with the outcome of a change that nobody has been answered about yet.
    func problem(in response: Response, _ standing: Standing) throws -> String? {
        guard !isAnswered(RequestName(user: standing.asked.user, id: response.id)) else { return nil }
        let wanted = try outcomes(standing)
        let code: Response.Failure.Code? = if case .failure(let failure) = response.result { failure.code } else { nil }
        if case .success(let answer, _) = response.result {
            let warnings = answer["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
            if let holding = standing.holding {
                let isWarned = warnings.contains { warning in
                    holding.allSatisfy { warning.contains($0.text) } && warning.contains(" had the keys of ")
                }
                if isWarned == holding.isEmpty {
                    return "a device with the keys of \(holding) is removed, and warned is of \(warnings)"
                }
            }
            let unconfirmed = standing.unconfirmed ?? [:]
            if let problem = Self.problem(in: warnings, unconfirmed: unconfirmed) { return problem }
            if let problem = Self.problem(in: warnings, doubted: standing.doubted ?? [:]) { return problem }
            if let leaving = standing.leaving {
                let told = warnings.filter { $0.contains(" in doubt: ") }
                let isTold = leaving.allSatisfy { app, devices in
                    told.contains {
                        $0.hasPrefix("the retirement of \(app) for ") && $0.contains(" keys of \(devices) device")
                    }
                }
                if !isTold || told.count != leaving.count {
                    return "a group is left with keys in doubt of \(leaving), and warned is of \(warnings)"
                }
            }
        }
        guard !wanted.contains(code) else { return nil }
        func text(_ code: Response.Failure.Code?) -> String { code?.rawValue ?? "done" }
        return "\(standing.asked.verb.rawValue) is answered \(text(code)), and was to be \(wanted.map(text).sorted())"
    }

    /// Every outcome that is right; nil is that it is done.
    private func outcomes(_ standing: Standing) throws -> Set<Response.Failure.Code?> {
        let asked = standing.asked
        if case .viewer = asked.user { return [.forbidden] }
        if asked.notAfter <= standing.clock { return [.expired] }
        if asked.notAfter > standing.clock.advanced(bySeconds: 86_400) { return [.invalid] }
        switch asked.verb {
        case .apply:
            return [outcome(of: try ApplyRequest(json: asked.body, limit: Request.maximumSize), standing.revisions)]
        case .delete:
            let request = try SelectionRequest(json: asked.body, limit: Request.maximumSize)
            return [request.documents.allSatisfy { !live($0).isEmpty } ? nil : .notFound]
        case .groupDelete:
            let request = try GroupRequest(json: asked.body, limit: Request.maximumSize)
            return [groups[request.group] == nil ? .notFound : nil]
        case .deviceRemove:
            let request = try DeviceRequest(json: asked.body, limit: Request.maximumSize)
            let last = request.incarnation ?? .max
            if standing.enrolled[request.device] ?? 0 > last { return [.conflict] }
            // What has spoken since is not taken out with it.
            if standing.spoken[request.device] ?? 0 > last { return [.conflict, .unavailable] }
            if standing.enrolling[request.device] ?? 0 > last { return [.conflict, .unavailable] }
            // The home may have been read since, or is read first.
            return standing.given[request.device] ?? 0 > last ? [.conflict, .unavailable, nil] : [.unavailable, nil]
        default: return [nil]
        }
    }

    /// All of it is done, or none.
    private func outcome(of request: ApplyRequest, _ revisions: [Address: Int64]) -> Response.Failure.Code? {
        var places: Set<Address> = []
        for change in request.changes {
            let address = Address.desired(change.layer, change.app, change.aspect)
            guard places.insert(address).inserted else { return .invalid }
            guard let from = change.basedOn else { continue }
            // From nothing is also from what was deleted.
            let isRight = from == 0 ? values[address] == nil : from == revisions[address]
            if !isRight { return .conflict }
        }
        return nil
    }
}
