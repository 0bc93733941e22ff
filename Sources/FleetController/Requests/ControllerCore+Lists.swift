package import FleetProtocol

extension ControllerCore {
    /// Rows that are fetched at once, before it is known how many fit on a page.
    private static let fetch = 2_000

    /// Answers a question of `user`, a list with a page of so many bytes at most.
    func read(
        _ body: JSONValue, _ verb: Verb, by user: User, now: Timestamp, pageSize: Int = Response.pageSize
    ) throws -> Answer {
        switch verb {
        case .progress:
            let request = try SelectionRequest(json: body.json, limit: Request.maximumSize)
            return try store.transaction { Answer(try Progress($0, request, now: now).answer) }
        case .plan:
            var plan = try plan(PlanRequest(json: body.json, limit: Request.maximumSize), by: user, at: now)
            plan.fit(into: pageSize)
            return Answer(plan)
        default: return try list(body, verb, now: now, pageSize)
        }
    }

    private func list(_ body: JSONValue, _ verb: Verb, now: Timestamp, _ pageSize: Int) throws -> Answer {
        let request = try ListRequest(json: body.json, limit: Request.maximumSize)
        return try store.transaction { transaction in
            switch verb {
            case .groups: try groups(request, transaction, pageSize)
            case .devices: try devices(request, transaction, pageSize)
            case .apps: try apps(request, transaction, now, pageSize)
            case .policies: try policies(request, transaction, now, pageSize)
            case .status: try status(request, transaction, now, pageSize)
            case .history: try history(request, transaction, pageSize)
            case .events: try events(request, transaction, pageSize)
            case .progress, .plan, .apply, .delete, .groupSet, .groupDelete, .enroll, .deviceRemove:
                Answer(JSONValue.object([]))
            }
        }
    }

    /// All rows of a list, as somebody has them who fetches page after page.
    package func rows(
        of verb: Verb, _ request: ListRequest, now: Timestamp, pageSize: Int = Response.pageSize
    ) throws -> [JSONValue] {
        var request = request
        var rows: [JSONValue] = []
        repeat {
            let body = try JSONValue(json: request.json, limit: Request.maximumSize)
            let answer = try list(body, verb, now: now, pageSize)
            guard case .object(let members) = try JSONValue(json: answer.body.json, limit: Response.maximumSize) else {
                break
            }
            rows += members.first?.value.arrayValue ?? []
            guard answer.next == nil || answer.next != request.page else {
                throw Response.Failure(
                    .unavailable, "page \(answer.next ?? "") of \(verb.rawValue) goes on with itself")
            }
            request.page = answer.next
        } while request.page != nil
        return rows
    }

    private func groups(
        _ request: ListRequest, _ transaction: FleetStore.Transaction, _ pageSize: Int
    ) throws -> Answer {
        // A group with many members may go over several pages: then it comes again, with the rest of them.
        let start =
            request.page?.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map { String($0) } ?? []
        var page = Page("groups", limit: pageSize)
        var last = ""
        let groups = try transaction.groups(from: start.first ?? "", limit: Self.fetch)
        for (group, priority) in groups {
            var members = try transaction.members(of: group).map(\.text)
            if group.text == start.first { members.removeAll { $0 <= start.last ?? "" } }
            if group.text == start.first, members.isEmpty, start.count > 1 { continue }
            repeat {
                let part = Array(members.prefix(max(1, pageSize / 64)))
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

    private func devices(
        _ request: ListRequest, _ transaction: FleetStore.Transaction, _ pageSize: Int
    ) throws -> Answer {
        let session = try transaction.session()
        return try page(
            "devices", pageSize, after: request.page ?? "",
            { try transaction.devices(named: request.device, after: $0, limit: 200) }, key: { $0.name.text }
        ) { device in
            let state = device.connectivity(in: session)
            let (left, copied) = try (
                transaction.keysOnEarlierDisks(of: device.name), transaction.keysOnCopies(of: device.name)
            )
            // As whoever removes it is told.
            let apps = try Set(transaction.keysInDoubt(of: device.name) + copied).sorted()
            var warnings = device.warning.map { [$0] } ?? []
            if device.isCopied, !DeviceWarning.isOfCopy(device.warning) { warnings.append(DeviceWarning.isCopied) }
            if try transaction.isLetInAgain(device) { warnings.append(DeviceWarning.isLetInAgain) }
            if !left.isEmpty { warnings.append(DeviceWarning.leftKeys(of: left)) }
            if !copied.isEmpty { warnings.append(DeviceWarning.keysOnCopies(of: copied)) }
            warnings += try transaction.gaps(of: device)
            return JSONValue.object([
                "device": .string(device.name.text), "state": .string(state.rawValue),
                // Of one that has not been heard on this connection the store knows since when it was online before.
                "since": state == .unknown ? nil : device.since.map { .string($0.description) },
                "agent": device.agent.map { .string($0) },
                "incarnation": .integer(device.incarnation), "boot": .integer(device.boot),
                "groups": .array(try transaction.groups(of: device.name).map { .string($0.text) }),
                "apps": .integer(try transaction.appCount(of: device)),
                "warnings": .array(warnings.map(JSONValue.string)),
                "leftKeys": apps.isEmpty ? nil : .array(apps.map { .string($0.text) }),
            ])
        }
    }

    private func apps(
        _ request: ListRequest, _ transaction: FleetStore.Transaction, _ now: Timestamp, _ pageSize: Int
    ) throws -> Answer {
        guard request.policy == nil || request.outcome != nil else {
            throw Response.Failure(.invalid, "a policy selects nothing without an outcome", at: "policy")
        }
        var counts = AppCounts(transaction: transaction, now: now)
        var selection: FleetStore.Transaction.Selection?
        if request.outcome != nil || request.retirement != nil {
            let apps = try request.app.map { [$0] } ?? transaction.knownApps(after: "", limit: .max)
            selection = .init()
            for app in apps {
                for rows in try transaction.summary(of: app) where try counts.counted(rows, of: app).matches(request) {
                    selection?.add(rows)
                }
            }
        }
        return try page(
            "apps", pageSize, after: try number(request.page, or: 0),
            {
                try transaction.statuses(
                    in: identity.fleetID, app: request.app, device: request.device, among: selection, after: $0,
                    limit: 200)
            }, key: { $0.row },
            { try AppRow($0.status, $0.tallied, &counts) })
    }

    private func policies(
        _ request: ListRequest, _ transaction: FleetStore.Transaction, _ now: Timestamp, _ pageSize: Int
    ) throws -> Answer {
        var deciding: [AppID: Set<Address>] = [:]
        func decides(_ document: StoredDocument) throws -> Bool? {
            guard let device = request.device, case .desired(_, let app, _) = document.address else { return nil }
            let known = try deciding[app] ?? transaction.deciding(of: app, on: device, at: now)
            deciding[app] = known
            return known.contains(document.address)
        }
        return try page(
            "policies", pageSize, after: request.page ?? "",
            {
                try transaction.policies(
                    app: request.app, layer: request.layer, for: request.device, after: $0, limit: 100)
            }, key: { $0.address.path }, { PolicyRow(document: $0, decides: try decides($0)) })
    }

    private func status(
        _ request: ListRequest, _ transaction: FleetStore.Transaction, _ now: Timestamp, _ pageSize: Int
    ) throws -> Answer {
        var page = Page("rows", limit: pageSize)
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

    private func history(
        _ request: ListRequest, _ transaction: FleetStore.Transaction, _ pageSize: Int
    ) throws -> Answer {
        try page(
            "history", pageSize, after: try number(request.page, or: JSONValue.largestInteger),
            { try transaction.history(app: request.app, layer: request.layer, before: $0, limit: 100) },
            key: { $0.revision }, { $0 })
    }

    private func events(
        _ request: ListRequest, _ transaction: FleetStore.Transaction, _ pageSize: Int
    ) throws -> Answer {
        let start = try request.page.map { text in
            guard let place = EventPlace(text) else { throw Self.noPage }
            return place
        }
        var page = Page("events", limit: pageSize)
        let found = try transaction.events(request, before: start ?? .end, limit: 1_000)
        var last = start ?? .end
        for event in found.events {
            page.add(EventRow(event), behind: last.description)
            last = event.place
        }
        if let end = found.end { page.end(behind: end.description) }
        return page.answer
    }

    /// A page of a list that is fetched in pieces, each of which begins behind the key of the row before it.
    private func page<Row, Key: LosslessStringConvertible>(
        _ name: String, _ pageSize: Int, after start: Key, _ piece: (Key) throws -> [Row], key: (Row) -> Key,
        _ json: (Row) throws -> any JSONWritable
    ) throws -> Answer {
        var page = Page(name, limit: pageSize)
        var last = start
        while !page.isFull {
            let rows = try piece(last)
            if rows.isEmpty { break }
            for row in rows {
                page.add(try json(row), behind: last.description)
                if page.isFull { break }
                last = key(row)
            }
        }
        return page.answer
    }

    private func number(_ page: String?, or start: Int64) throws -> Int64 {
        guard let page else { return start }
        guard let number = Int64(page) else { throw Self.noPage }
        return number
    }

    private static let noPage = Response.Failure(.invalid, "this is no page of this list", at: "page")
}

extension Tally {
    /// An app counted over the whole fleet.
    static func of(
        _ app: AppID, asked: Set<Layer>? = nil, _ transaction: FleetStore.Transaction, now: Timestamp
    ) throws -> Tally {
        var tally = try transaction.tally(of: app, asked: asked, now: now)
        for rows in try transaction.summary(of: app) { tally.add(rows, policies: Policy.allCases) }
        if asked == nil {
            tally.doubtful = try transaction.leftKeys(of: app, retiredBy: transaction.retirements(of: app)).devices
        }
        guard tally.hasOverdue else { return tally }
        for rows in try transaction.summaryOfRecent(of: app, at: now) {
            tally.excuse(rows, policies: Policy.allCases)
        }
        return tally
    }
}
