import FleetController
import FleetProtocol

/// The laws of what operators read.
extension Controller {
    /// The devices that the store knows as enrolled, before it learns who is.
    func enrolledDevices(before event: ControllerCore.Event) -> [DeviceID] {
        guard case .enrolments = event else { return [] }
        return world.machines.map(\.id).filter { (try? store.device($0))??.enrolled != nil }
    }

    /// Operators are warned of devices that are enrolled no more, and of such as say that they are what nobody has enrolled.
    func checkWarnings(_ enrolled: [DeviceID]) {
        for id in world.machines.map(\.id) {
            guard let device = try? store.device(id) else { continue }
            let given = homeRead[id]
            let isMissing = given == nil && enrolled.contains(id)
            let isStranger = given.map { $0 < device.incarnation } ?? false
            if isLetIn(id), (try? store.isLetInAgain(id)) != true {
                world.fail(.summary, "\(id) was taken out, and is let in by the home, and nobody is warned")
            }
            guard isMissing || isStranger else { continue }
            let wanted = isMissing ? "is not enrolled any more" : "speaks as incarnation \(device.incarnation), which"
            if !(device.warning ?? "").hasPrefix(wanted) {
                world.fail(.summary, "of \(id), which \(wanted), it is said: \(device.warning ?? "nothing")")
            }
        }
    }

    /// Of a copy of a device, or of one that was put back, operators are warned until the device is enrolled again.
    func checkCopies() {
        for machine in world.machines
        where machine.wasPutBack || world.clones.contains(where: { $0.id == machine.id }) {
            guard let device = try? store.device(machine.id) else {
                copies[machine.id] = nil
                continue
            }
            if copies[machine.id] == device.incarnation, !device.isCopied {
                world.fail(.summary, "\(machine.name) is a copy, and is warned of no more")
            }
            copies[machine.id] = device.isCopied ? device.incarnation : nil
        }
    }

    /// At rest lists say what the store has, which other laws hold against the devices: all of it, on pages of any size.
    func checkLists(_ statuses: [Status], _ online: Set<DeviceID>) throws {
        guard let running else { return }
        var any = SplitMix64(seed: world.schedule.seed ^ 0x1157)
        let pageSize = any.chance(50) ? Response.pageSize : 200 + any.below(4_000)
        let request = world.list(&any)
        func rows(of verb: Verb) throws -> [JSONValue] {
            try running.core.rows(of: verb, request, now: clock, pageSize: pageSize)
        }
        for verb in [Verb.groups, .devices, .policies, .history] {
            var found = try rows(of: verb)
            if verb == .groups { found = Self.whole(found) }
            let answer = JSONValue.object([JSONValue.Member(verb.rawValue, .array(found))])
            if let problem = try desired.problem(in: answer, to: verb, request.json) { world.fail(.summary, problem) }
        }
        let known = statuses.filter { status in
            request.app ?? status.app == status.app && request.device ?? status.device == status.device
        }
        try checkApps(known, request, pageSize, online, &any)
        let named = Set(statuses.map(\.app)).union(desired.values.keys.compactMap(Self.app))
        let apps = request.app.map { [$0] } ?? named.sorted()
        let summary = try apps.flatMap { try store.summary(of: $0, at: clock) }
        differs(try rows(of: .status), from: Set(summary.map(\.jsonText)), "status")
        let gaps = try store.gaps()
        for row in try rows(of: .devices) { try check(row, statuses, online, gaps) }
        try checkDevices(pageSize)
        try checkDocuments(try rows(of: .policies), of: request.device)
        try checkEvents(request, pageSize, &any)
    }

    /// Asked for one device, the list is what all of it says of that one.
    private func checkDevices(_ pageSize: Int) throws {
        guard let running else { return }
        func told(_ request: ListRequest) throws -> [JSONValue] {
            try running.core.rows(of: .devices, request, now: clock, pageSize: pageSize)
        }
        let all = try told(ListRequest())
        for id in world.machines.map(\.id) {
            let own = all.filter { $0["device"]?.stringValue == id.text }.map(\.jsonText)
            let alone = try told(ListRequest(device: id)).map(\.jsonText)
            if alone != own { world.fail(.summary, "devices tells of \(id) alone \(alone), and among all \(own)") }
        }
    }

    /// Of events each that is stored, once, the newest first, with what its device has told; asked for some, these and no others.
    private func checkEvents(_ request: ListRequest, _ pageSize: Int, _ any: inout SplitMix64) throws {
        guard let running else { return }
        func told(_ request: ListRequest) throws -> [JSONValue] {
            try running.core.rows(of: .events, request, now: clock, pageSize: pageSize)
        }
        let all = try told(ListRequest())
        let stored = all.map { $0["storedAt"]?.stringValue.flatMap { Timestamp($0) }?.milliseconds ?? 0 }
        if stored != stored.sorted(by: >) { world.fail(.kept, "events are told in the order \(stored)") }
        let wanted = try store.events().map { key, body in
            try Self.row(of: key, JSONValue(json: body, limit: AppEvent.maximumSize))
        }
        differs(
            all.map { row in .object((row.memberValues ?? []).filter { $0.name != "storedAt" }) },
            from: Set(wanted.map(\.jsonText)), "events")
        var narrow = ListRequest(app: request.app, device: request.device)
        if any.chance(50) { narrow.kind = EventKind.allCases[any.below(EventKind.allCases.count)] }
        if any.chance(50), !stored.isEmpty {
            narrow.since = Timestamp(milliseconds: stored[any.below(stored.count)] + Int64(any.below(2)))
        }
        let some = zip(all, stored).filter { row, time in
            (narrow.app.map { $0.text == row["app"]?.stringValue } ?? true)
                && (narrow.device.map { $0.text == row["device"]?.stringValue } ?? true)
                && (narrow.kind.map { $0.rawValue == row["kind"]?.stringValue } ?? true)
                && (narrow.since.map { $0.milliseconds <= time } ?? true)
        }
        differs(try told(narrow), from: Set(some.map { $0.0.jsonText }), "events")
    }

    /// An event as it is listed, from what its device has sent.
    private static func row(of key: FleetStore.StoredEvent, _ body: JSONValue) -> JSONValue {
        let names = ["device", "app", "kind", "at", "incarnation", "boot", "number"]
        let told = (body.memberValues ?? []).filter { !["v", "oldest", "event"].contains($0.name) }
        let kind = JSONValue.Member("kind", body["event"] ?? .string(EventKind.logLevel.rawValue))
        let head = names.compactMap { name in name == "kind" ? kind : told.first { $0.name == name } }
        return .object(head + told.filter { !names.contains($0.name) })
    }

    /// Of apps each status as it was published, and how it counts; asked for those that count so, these and no others.
    private func checkApps(
        _ known: [Status], _ request: ListRequest, _ pageSize: Int, _ online: Set<DeviceID>, _ any: inout SplitMix64
    ) throws {
        guard let running else { return }
        let wishes = try store.wishes()
        var layers: [DeviceID: SaidLayers] = [:]
        for device in Set(known.map(\.device)) { layers[device] = SaidLayers(wishes, of: device) }
        let standings = known.compactMap { status in layers[status.device].map { Standing(status, $0) } }
        var narrow = request
        narrow.retirement = Retirement.allCases[any.below(2)]
        if any.chance(50) {
            var outcome = Outcome.allCases[any.below(Outcome.allCases.count)]
            // What is rare, and counts as something else.
            let outcomes = Set(standings.flatMap(\.outcomes))
            if outcomes.contains(.expired), any.chance(50) { outcome = .applied }
            if outcomes.contains(.awaitingCode), any.chance(50) { outcome = .pending }
            (narrow.outcome, narrow.retirement) = (outcome, nil)
            if any.chance(50) { narrow.policy = Policy.allCases[any.below(Policy.allCases.count)] }
        }
        for request in [request, narrow] {
            let wanted = zip(known, standings).filter { _, standing in standing.matches(request) }
            let told = try running.core.rows(of: .apps, request, now: clock, pageSize: pageSize)
            for row in told {
                let isOnline = row["device"]?.stringValue.flatMap { DeviceID($0) }.map(online.contains) ?? false
                if (row["connection"]?.stringValue == "online") != isOnline {
                    world.fail(.presence, "apps tells of \(row.jsonText), and online are \(online)")
                }
            }
            let rows = told.map { row in
                JSONValue.object((row.memberValues ?? []).filter { $0.name != "connection" })
            }
            let expected = try wanted.map { status, standing in
                let isDoubtful = try store.leftKeys(of: status.device).contains(status.app)
                return try standing.row(of: status, isDoubtful: isDoubtful).jsonText
            }
            differs(rows, from: Set(expected), "apps")
        }
    }

    /// Who changes what stands there names the revision that the list tells.
    /// - Parameter device: The one that was asked for: of each document it is told whether it decides there.
    private func checkDocuments(_ rows: [JSONValue], of device: DeviceID?) throws {
        let wishes = try store.wishes()
        let stored = Set(wishes.map(\.revision.number))
        let layers = device.map { SaidLayers(wishes, of: $0) }
        for row in rows {
            if row["revision"]?.integerValue.map(stored.contains) != true {
                world.fail(.summary, "policies tells of \(row.jsonText), and no document is at that revision")
            }
            let app = row["app"]?.stringValue.flatMap { AppID($0) }
            let policy = Policy.allCases.first { $0.aspect?.text == row["aspect"]?.stringValue }
            guard let layers, let app, let policy else { continue }
            let decides = layers.deciding(policy, of: app)?.revision == row["revision"]?.integerValue
            if row["decides"] != .bool(decides) {
                world.fail(.summary, "policies tells of \(row.jsonText), which decides: \(decides)")
            }
        }
    }

    /// How long a device has been online or offline is told of no other state.
    func checkTimes() throws {
        guard let running else { return }
        for row in try running.core.rows(of: .devices, ListRequest(), now: clock, pageSize: Response.pageSize) {
            switch row["state"]?.stringValue {
            case "unknown" where row["since"] != nil: world.fail(.presence, "devices tells of \(row.jsonText)")
            case "online": try checkOnline(row)
            default: break
            }
        }
    }

    /// A device is connected as what the home has enrolled last, and for no longer than its connection is old.
    private func checkOnline(_ row: JSONValue) throws {
        guard let name = row["device"]?.stringValue.flatMap({ DeviceID($0) }), let known = try store.device(name) else {
            return
        }
        if let enrolled = known.enrolled, known.incarnation < enrolled {
            world.fail(.presence, "\(name) is shown as connected, and was enrolled as \(enrolled) since")
        }
        guard isPunctual, isIdle, let machine = world.machines.first(where: { $0.id == name }),
            !world.clones.contains(where: { $0.id == name }), let connection = watch.present[name]?.connection,
            connection == machine.watch.bus.connection, let since = known.since
        else { return }
        let time = since.milliseconds - SimulatedFleet.begin.milliseconds
        if time < machine.connectedAt {
            world.fail(
                .presence, "\(name) has been connected since \(machine.connectedAt), and is shown so since \(time)")
        }
    }

    /// A group that goes over several pages comes with other members on each.
    private static func whole(_ rows: [JSONValue]) -> [JSONValue] {
        var groups: [JSONValue] = []
        for row in rows {
            guard let last = groups.last, last["group"] == row["group"], last["priority"] == row["priority"] else {
                groups.append(row)
                continue
            }
            let members = (last["devices"]?.arrayValue ?? []) + (row["devices"]?.arrayValue ?? [])
            groups[groups.count - 1] = .object([
                JSONValue.Member("group", last["group"] ?? .null),
                JSONValue.Member("priority", last["priority"] ?? .null),
                JSONValue.Member("devices", .array(members)),
            ])
        }
        return groups
    }

    private static func app(of address: Address) -> AppID? {
        if case .desired(_, let app, _) = address { app } else { nil }
    }

    private func differs(_ told: [JSONValue], from wanted: Set<String>, _ name: String) {
        let told = told.map(\.jsonText)
        guard told.count != wanted.count || Set(told) != wanted else { return }
        world.fail(.summary, "\(name) tells of \(told.sorted()), and there is \(wanted.sorted())")
    }

    private func check(
        _ row: JSONValue, _ statuses: [Status], _ online: Set<DeviceID>, _ gaps: [FleetStore.Gap]
    ) throws {
        guard let name = row["device"]?.stringValue.flatMap({ DeviceID($0) }), let known = try store.device(name) else {
            return world.fail(.summary, "devices tells of \(row.jsonText)")
        }
        let apps = statuses.count { $0.device == name }
        guard row["incarnation"]?.integerValue == known.incarnation, row["boot"]?.integerValue == known.boot,
            row["agent"]?.stringValue == known.agent, row["since"]?.stringValue == known.since?.description,
            row["apps"]?.integerValue == Int64(apps), (row["state"]?.stringValue == "online") == online.contains(name)
        else { return world.fail(.summary, "devices tells of \(row.jsonText), and there are \(apps) apps of \(known)") }
        // Whoever removes it is told of the same.
        let left = row["leftKeys"]?.arrayValue?.compactMap(\.stringValue) ?? []
        let doubted = try store.leftKeys(of: name).map(\.text)
        if left != doubted {
            world.fail(.erased, "devices tells of keys of \(left) of \(name), and there are \(doubted)")
        }
        let warnings = row["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
        let lost = min(5, gaps.count { $0.device == name })
        if warnings.count(where: { $0.hasSuffix("gone on the device") }) != lost {
            world.fail(.summary, "devices warns of \(warnings), and events were lost \(lost) times")
        }
    }
}

extension Standing {
    fileprivate func matches(_ request: ListRequest) -> Bool {
        if let retirement = request.retirement, self.retirement != retirement { return false }
        guard let outcome = request.outcome else { return true }
        let expired: Set<Outcome> = outcome == .applied ? [.expired] : outcome == .pending ? [.awaitingCode] : []
        let asked = request.policy.map { [outcomes[$0.index]] } ?? outcomes
        return !expired.union([outcome]).isDisjoint(with: asked)
    }

    /// - Parameter isDoubtful: Whether the device is listed as having left keys of the app elsewhere.
    fileprivate func row(of status: Status, isDoubtful: Bool) throws -> JSONValue {
        let counted = Policy.allCases.map { JSONValue.Member($0.rawValue, .string(outcomes[$0.index].rawValue)) }
        let published = try JSONValue(json: status.json, limit: Status.maximumSize)
        return .object(
            (published.memberValues ?? []) + [.init("counted", .object(counted))]
                + (retirement.map { [.init("retirement", .string($0.rawValue))] } ?? [])
                + (retirement != nil && isDoubtful ? [.init("doubtful", true)] : []))
    }
}
