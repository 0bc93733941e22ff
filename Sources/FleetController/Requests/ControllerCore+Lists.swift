import FleetProtocol

extension ControllerCore {
    /// Rows that are fetched at once, before it is known how many fit on a page.
    private static let fetch = 2_000

    /// Answers a question.
    func read(_ body: JSONValue, _ verb: Verb, now: Timestamp) throws -> Answer {
        if verb == .progress {
            let request = try SelectionRequest(json: body.json, limit: Request.maximumSize)
            return try store.transaction { try Progress($0, request, now: now).answer }
        }
        let request = try ListRequest(json: body.json, limit: Request.maximumSize)
        return try store.transaction { transaction in
            switch verb {
            case .groups: try groups(request, transaction)
            case .devices: try devices(request, transaction)
            case .apps: try apps(request, transaction)
            case .policies: try policies(request, transaction)
            case .status: try status(request, transaction, now)
            case .history: try history(request, transaction)
            case .progress, .apply, .delete, .groupSet, .groupDelete, .enroll, .deviceRemove:
                Answer(JSONValue.object([]))
            }
        }
    }

    private func groups(_ request: ListRequest, _ transaction: FleetStore.Transaction) throws -> Answer {
        // A group with many members may go over several pages: then it comes again, with the rest of them.
        let start = request.page?.split(separator: "/", maxSplits: 1).map { String($0) } ?? []
        var page = Page("groups")
        var last = ""
        let groups = try transaction.groups(from: start.first ?? "", limit: Self.fetch)
        for (group, priority) in groups {
            var members = try transaction.members(of: group).map(\.text)
            if group.text == start.first { members.removeAll { $0 <= start.last ?? "" } }
            if group.text == start.first, members.isEmpty, start.count > 1 { continue }
            repeat {
                let part = Array(members.prefix(4_000))
                page.add(
                    JSONValue.object([
                        "group": .string(group.text), "priority": .integer(priority),
                        "devices": .array(part.map { .string($0) }),
                    ]), behind: last)
                if page.isFull { return page.answer }
                members.removeFirst(part.count)
                last = "\(group)/\(part.last ?? "")"
            } while !members.isEmpty
        }
        if groups.count == Self.fetch { page.end(behind: last) }
        return page.answer
    }

    private func devices(_ request: ListRequest, _ transaction: FleetStore.Transaction) throws -> Answer {
        var page = Page("devices")
        var last = request.page ?? ""
        let session = try transaction.session()
        while !page.isFull {
            let devices = try transaction.devices(named: request.device, after: last, limit: 200)
            if devices.isEmpty { break }
            for device in devices {
                page.add(
                    JSONValue.object([
                        "device": .string(device.name.text),
                        "state": .string(Connectivity(state: device.state, session: session).rawValue),
                        "since": device.since.map { .string($0.description) },
                        "agent": device.agent.map { .string($0) },
                        "incarnation": .integer(device.incarnation), "boot": .integer(device.boot),
                        "groups": .array(try transaction.groups(of: device.name).map { .string($0.text) }),
                        "apps": .integer(try transaction.appCount(of: device)),
                        "warnings": .array(
                            (device.warning.map { [$0] } ?? []).map { .string($0) }
                                + (try transaction.gaps(of: device)).map { .string($0) }),
                    ]), behind: last)
                if page.isFull { break }
                last = device.name.text
            }
        }
        return page.answer
    }

    private func apps(_ request: ListRequest, _ transaction: FleetStore.Transaction) throws -> Answer {
        var page = Page("apps")
        var last = try number(request.page, or: 0)
        while !page.isFull {
            let statuses = try transaction.statuses(
                in: identity.fleetID, app: request.app, device: request.device, after: last, limit: 200)
            if statuses.isEmpty { break }
            for (row, status) in statuses {
                page.add(status, behind: "\(last)")
                if page.isFull { break }
                last = row
            }
        }
        return page.answer
    }

    private func policies(_ request: ListRequest, _ transaction: FleetStore.Transaction) throws -> Answer {
        var page = Page("policies")
        var last = request.page ?? ""
        while !page.isFull {
            let documents = try transaction.policies(
                app: request.app, layer: request.layer, for: request.device, after: last, limit: 100)
            if documents.isEmpty { break }
            for document in documents {
                page.add(PolicyRow(document: document), behind: last)
                if page.isFull { break }
                last = document.address.path
            }
        }
        return page.answer
    }

    private func status(_ request: ListRequest, _ transaction: FleetStore.Transaction, _ now: Timestamp) throws
        -> Answer
    {
        var page = Page("rows")
        var last = request.page ?? ""
        let apps = try request.app.map { [$0] } ?? transaction.knownApps(after: last, limit: Self.fetch)
        for app in apps {
            let tally = try Tally.of(app, transaction, now: now)
            page.add(Policy.allCases.map(tally.row), behind: last)
            if page.isFull { break }
            last = app.text
        }
        return page.answer
    }

    private func history(_ request: ListRequest, _ transaction: FleetStore.Transaction) throws -> Answer {
        var page = Page("history")
        var last = try number(request.page, or: JSONValue.largestInteger)
        while !page.isFull {
            let entries = try transaction.history(app: request.app, layer: request.layer, before: last, limit: 100)
            if entries.isEmpty { break }
            for entry in entries {
                page.add(entry, behind: "\(last)")
                if page.isFull { break }
                last = entry.revision
            }
        }
        return page.answer
    }

    private func number(_ page: String?, or start: Int64) throws -> Int64 {
        guard let page else { return start }
        guard let number = Int64(page) else {
            throw Response.Failure(.invalid, "this is no page of this list", at: "page")
        }
        return number
    }
}

extension Tally {
    /// An app counted over the whole fleet.
    static func of(_ app: AppID, _ transaction: FleetStore.Transaction, now: Timestamp) throws -> Tally {
        var tally = try transaction.tally(of: app, now: now)
        for rows in try transaction.summary(of: app) { tally.add(rows, policies: Policy.allCases) }
        guard tally.hasOverdue else { return tally }
        for rows in try transaction.summary(of: app, onlineSince: now.advanced(bySeconds: -patience)) {
            tally.excuse(rows, policies: Policy.allCases)
        }
        return tally
    }
}
