import FleetProtocol

/// What the layers say, worked out from what operators asked for and the order in which the history says it was done.
struct ChaosModel {
    typealias Key = ChaosChange.Key

    struct Live: Hashable {
        let revision: Int64
        let document: ChaosChange.Document
    }

    private(set) var live: [Key: Live] = [:]
    /// Every revision of each document that was written, by its tag.
    private(set) var revisions: [String: [Int64]] = [:]
    private var keys: [String: Key] = [:]
    private var retirements: [(key: Key, revision: Int64)] = []
    /// What history and answers do not agree on.
    private(set) var problems: [String] = []
    /// The states in which a group may be, nil for none of it; several where an answer did not come.
    private var groups: [GroupID: Set<ChaosGroup?>] = [:]

    static func isTag(_ text: String) -> Bool {
        text.first == "c" && text.dropFirst().first?.isNumber == true && text.contains(".")
    }

    /// - Parameter history: As `fleetctl get history -o json` lists it.
    init(changes: [ChaosChange], removals: [ChaosRemoval] = [], history: [JSONValue]) {
        var byReason: [String: ChaosChange] = [:]
        for change in changes { byReason[change.why] = change }
        var seen: [String: Set<Key>] = [:]
        var stored: [String: Set<Int64>] = [:]
        for entry in history.sorted(by: { ($0["revision"]?.integerValue ?? 0) < ($1["revision"]?.integerValue ?? 0) }) {
            if removals.contains(where: { $0.isTold(in: entry) }) { continue }
            guard let revision = entry["revision"]?.integerValue, let why = entry["why"]?.stringValue,
                let change = byReason[why]
            else {
                problems.append("the history has what nobody asked for: \(entry.jsonText)")
                continue
            }
            if case .refused(let reason) = change.answer {
                problems.append("\(why) is in the history, and was refused: \(reason)")
            }
            // What it says of groups is compared with what is listed of them.
            guard let key = Self.key(entry) else { continue }
            if seen[why, default: []].insert(key).inserted == false {
                problems.append("\(why) was applied twice: \(key)")
            }
            stored[why, default: []].insert(revision)
            take(change, key, revision, isLive: entry["new"] != nil && entry["new"] != .null)
        }
        for change in changes {
            guard case .accepted(let answer) = change.answer else { continue }
            for result in answer?["results"]?.arrayValue ?? [] where result["changed"] == true {
                guard let revision = result["revision"]?.integerValue else { continue }
                if stored[change.why]?.contains(revision) != true {
                    problems.append("\(change.why) was answered with revision \(revision), and history has it not")
                }
            }
        }
        for change in changes { takeGroup(change) }
        for removal in removals {
            let count = history.count(where: removal.isTold)
            if count > 1 || removal.isDone && count == 0 {
                problems.append("\(removal.why) of \(removal.device) stands \(count) times in the history")
            }
        }
    }

    static func key(_ row: JSONValue) -> Key? {
        guard let app = row["app"]?.stringValue.flatMap({ AppID($0) }),
            let layer = row["target"]?.stringValue.flatMap({ try? Layer(parsing: $0) }),
            let aspect = row["aspect"]?.stringValue.flatMap(Aspect.init)
        else { return nil }
        return Key(app: app, layer: layer, aspect: aspect)
    }

    private mutating func take(_ change: ChaosChange, _ key: Key, _ revision: Int64, isLive: Bool) {
        guard isLive else {
            live[key] = nil
            return
        }
        guard let document = change.document(at: key) else {
            problems.append("\(change.why) did not ask for \(key)")
            return
        }
        live[key] = Live(revision: revision, document: document)
        revisions[document.tag, default: []].append(revision)
        keys[document.tag] = key
        if document.isRetirement { retirements.append((key, revision)) }
    }

    private mutating func takeGroup(_ change: ChaosChange) {
        let (group, wish): (GroupID, ChaosGroup?)
        switch change.kind {
        case .group(let id, let state): (group, wish) = (id, state)
        case .groupDelete(let id): (group, wish) = (id, nil)
        case .apply, .delete: return
        }
        switch change.answer {
        case .accepted: groups[group] = [wish]
        case .unknown, nil: groups[group, default: [nil]].insert(wish)
        case .refused: break
        }
    }

    /// - Parameter list: As `fleetctl group list -o json` shows the groups.
    func groupProblems(_ list: [JSONValue]) -> [String] {
        let actual = Self.groups(list)
        return groups.sorted { $0.key < $1.key }.compactMap { group, possible in
            possible.contains(actual[group]) ? nil : "group \(group) is \(actual[group].map { "\($0)" } ?? "not there")"
        }
    }

    static func groups(_ list: [JSONValue]) -> [GroupID: ChaosGroup] {
        var groups: [GroupID: ChaosGroup] = [:]
        for row in list {
            guard let id = row["group"]?.stringValue.flatMap({ GroupID($0) }) else { continue }
            let devices = row["devices"]?.arrayValue?.compactMap { $0.stringValue.flatMap { DeviceID($0) } } ?? []
            groups[id] = ChaosGroup(priority: row["priority"]?.integerValue ?? 0, devices: devices.sorted())
        }
        return groups
    }

    // MARK: One device

    /// The layers of a device, the strongest first.
    static func chain(of device: DeviceID, _ groups: [GroupID: ChaosGroup]) -> [Layer] {
        let own = groups.filter { $0.value.devices.contains(device) }.sorted {
            $0.value.priority != $1.value.priority
                ? $0.value.priority > $1.value.priority : $0.key < $1.key
        }
        return [.device(device)] + own.map { .group($0.key) } + [.all]
    }

    /// What speaks to an app about an aspect, the strongest first.
    func documents(_ app: AppID, _ aspect: Aspect, _ chain: [Layer]) -> [Live] {
        chain.compactMap { live[Key(app: app, layer: $0, aspect: aspect)] }
    }

    /// Whether a retirement that nothing has ended may have reached a device: one from before would be over by `revision`.
    func mayBeLatched(_ app: AppID, on device: DeviceID, after revision: Int64) -> Bool {
        retirements.contains { retirement in
            guard retirement.key.app == app, retirement.revision > revision else { return false }
            if case .device(let other) = retirement.key.layer { return other == device }
            return true
        }
    }

    // MARK: Order

    /// The first step back in what an app was told: of each place, revisions only rise.
    func stepBack(in heard: [ChaosTranscript.Heard]) -> (String, at: Int64)? {
        struct Place: Hashable {
            let key: Key
            let policy: Policy
        }
        var newest: [Place: Int64] = [:]
        for item in heard {
            guard let key = keys[item.tag], let all = revisions[item.tag] else {
                return ("\(item.policy.rawValue) \(item.tag) was never put in force", item.at)
            }
            let place = Place(key: key, policy: item.policy)
            // What was applied again has several revisions: any of them that is not a step back will do.
            guard let revision = all.first(where: { $0 >= newest[place, default: 0] }) else {
                return (
                    "\(item.policy.rawValue) went back to \(item.tag) (revision \(all.max() ?? 0)) after revision"
                        + " \(newest[place] ?? 0) of \(key.layer)", item.at
                )
            }
            newest[place] = revision
        }
        return nil
    }
}

extension ChaosChange.Document {
    var isRetirement: Bool { key.aspect == .auth && value["state"]?.stringValue == "retired" }
}
