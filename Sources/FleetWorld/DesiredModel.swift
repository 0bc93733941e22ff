import FleetController
import FleetProtocol

/// What operators have asked for and were answered, as somebody keeps it who reads requests and answers alone: the
/// controller's store must say the same.
struct DesiredModel {
    struct Group: Hashable {
        var priority: Int64 = 0
        var members: Set<DeviceID> = []
    }

    /// A document of an app that somebody changed.
    struct Change {
        let address: Address
        let user: User
        let why: String?
    }

    /// By whom something was changed, and why.
    struct Reason: Hashable {
        let user: String
        let why: String?
    }

    /// The live documents of apps, and their values as JSON.
    var values: [Address: String] = [:]
    private(set) var groups: [GroupID: Group] = [:]
    /// Which change each of those is, also when it was signed anew since.
    private(set) var newest: [Address: Int64] = [:]
    /// The documents of apps that operators were answered to have changed, by revision.
    private(set) var changes: [Int64: Change] = [:]
    /// Changes of groups that were done and changed something, as their history is to tell.
    private(set) var groupChanges: Set<Reason> = []
    /// Through which incarnation each device was taken out.
    private(set) var removed: [DeviceID: Int64] = [:]
    /// How often.
    private(set) var removals: [DeviceID: Int] = [:]
    /// What is known of the keys of each when it was taken out last.
    var keysOfRemoved: [DeviceID: KeysOfRemoved] = [:]
    /// Changes that were done, and those that were refused: what comes again is answered again.
    private var done: Set<RequestName> = []
    private var refused: Set<RequestName> = []

    /// The controller refuses what it cannot read.
    mutating func refused(_ response: Response, to name: RequestName) {
        if case .failure = response.result, !done.contains(name) { refused.insert(name) }
    }

    /// The controller answers a request. Returns what is wrong with the answer.
    ///
    /// - Parameter strangers: Devices that it did not know of when it was asked, or does not when it answers.
    mutating func answered(
        _ response: Response, to verb: Verb, _ body: [UInt8], of user: User, strangers: Strangers
    ) throws -> String? {
        let name = RequestName(user: user, id: response.id)
        guard !done.contains(name) else { return nil }
        switch response.result {
        case .failure:
            if verb.isChange { refused.insert(name) }
            return nil
        case .success(let answer, let next):
            done.insert(name)
            if !verb.isChange { return next == nil ? try problem(in: answer, to: verb, body) : nil }
            let before = self
            switch verb {
            case .apply:
                let request = try ApplyRequest(json: body, limit: Request.maximumSize)
                let devices = request.changes.compactMap(\.layer.device)
                let ended = request.changes.map { Address.desired($0.layer, $0.app, $0.aspect) }
                if let problem = try apply(request, results(answer), of: user, before: before) { return problem }
                let wanted = request.changes.map { warnings(of: $0) }
                return try before.differs(answer, wanted, strangers.among(devices), ended: ended)
            case .delete:
                let request = try SelectionRequest(json: body, limit: Request.maximumSize)
                let ended = request.documents.flatMap(live)
                if let problem = try delete(request, results(answer), of: user, before: before) { return problem }
                let wanted = ended.map { before.warnings(ofDeleting: $0, leaving: self) }
                return try before.differs(answer, wanted, ended: ended)
            case .groupSet:
                let request = try GroupRequest(json: body, limit: Request.maximumSize)
                set(request)
                if groups[request.group] != before.groups[request.group] { note(request, of: user) }
                let isLeft = !before.members(of: request.group).isSubset(of: members(of: request.group))
                let come = members(of: request.group).subtracting(before.members(of: request.group))
                let absent = Set(request.remove).subtracting(before.members(of: request.group))
                let unneeded = Set(absent.map { "the device \($0) is not in the group \(request.group)" })
                let isNew = before.groups[request.group] == nil && request.devices == nil
                let new =
                    "there was no group \(request.group): it is a new one now, with priority \(request.priority ?? 0)"
                return try differs(
                    answer,
                    [unneeded, isNew ? [new] : []]
                        + (isLeft ? [before.warnings(ofLeaving: .group(request.group))] : []),
                    strangers.among(come), ended: isLeft ? before.live(on: .group(request.group)) : [])
            case .groupDelete:
                let request = try GroupRequest(json: body, limit: Request.maximumSize)
                let group = request.group
                note(request, of: user)
                guard groups.removeValue(forKey: group) != nil else { return "\(group) was deleted, and was not there" }
                forget(.group(group))
                let ended = before.values.keys.filter { values[$0] == nil }
                let wanted = ended.map { before.warnings(ofDeleting: $0, leaving: self) }
                return try before.differs(answer, wanted, ended: ended)
            case .deviceRemove:
                let request = try DeviceRequest(json: body, limit: Request.maximumSize)
                let device = request.device
                removed[device] = max(removed[device] ?? 0, request.incarnation ?? 0)
                removals[device, default: 0] += 1
                for group in groups.keys { groups[group]?.members.remove(device) }
                forget(.device(device))
            case .enroll, .groups, .devices, .apps, .policies, .status, .progress, .history, .events, .plan: break
            }
            return nil
        }
    }

    /// How the store differs from it.
    func difference(from store: FleetStore, forgetsTombstones: Bool) throws -> String? {
        var stored: [Address: String] = [:]
        var priorities: [GroupID: Int64] = [:]
        let wishes = try store.wishes()
        for wish in wishes {
            // Devices go by what is signed, and not by the columns beside it.
            let read = try DesiredDocument(wire: wish.wire)
            if read.change != wish.change || read.revision != wish.revision {
                return
                    "\(wish.address.path) is of change \(wish.change) at \(wish.revision), and is read as \(read.change) at \(read.revision)"
            }
            guard let value = wish.value else { continue }
            switch wish.address {
            case .desired:
                stored[wish.address] = value
                if let change = newest[wish.address], change != wish.change.number {
                    return "\(wish.address.path) is of change \(wish.change), and was changed last by \(change)"
                }
            case .groupMeta(let group):
                let json = try JSONValue(json: Array(value.utf8), limit: Response.maximumSize)
                priorities[group] = try GroupMeta(json: json.json, limit: Response.maximumSize).priority
            default: break
            }
        }
        for address in Set(stored.keys).union(values.keys).sorted(by: { $0.path < $1.path })
        where stored[address].map({ Array($0.utf8) }) != values[address].map({ Array($0.utf8) }) {
            return "\(address.path) is \(stored[address] ?? "deleted"), and was to be \(values[address] ?? "deleted")"
        }
        let known = Set(wishes.map(\.address))
        if !forgetsTombstones, let address = newest.keys.filter({ !known.contains($0) }).min(by: { $0.path < $1.path })
        {
            return "\(address.path) was deleted, and the store has forgotten that"
        }
        if priorities != groups.mapValues(\.priority) {
            return "the groups are \(priorities), and were to be \(groups.mapValues(\.priority))"
        }
        for device in Set(groups.values.flatMap(\.members)).sorted() {
            let wanted = groups.filter { $0.value.members.contains(device) }.keys.sorted()
            let real = try store.groups(of: device).sorted()
            if real != wanted { return "\(device) is in \(real), and was to be in \(wanted)" }
        }
        return nil
    }

    func isDone(_ name: RequestName) -> Bool { done.contains(name) }

    /// Whether somebody was told what became of it.
    func isAnswered(_ name: RequestName) -> Bool { done.contains(name) || refused.contains(name) }

    func members(of group: GroupID) -> Set<DeviceID> { groups[group]?.members ?? [] }

    /// The layers besides `all` that say something to an app on a device, by aspect, highest precedence first.
    func layers(of app: AppID, on device: DeviceID) -> [Aspect: [Layer]] {
        let groups = groups.filter { $0.value.members.contains(device) }
            .sorted { ($1.value.priority, $0.key) < ($0.value.priority, $1.key) }
        let layers = [.device(device)] + groups.map { Layer.group($0.key) }
        var result: [Aspect: [Layer]] = [:]
        for aspect in Aspect.allCases {
            let live = layers.filter { values[.desired($0, app, aspect)] != nil }
            if !live.isEmpty { result[aspect] = live }
        }
        return result
    }

    // MARK: Changes

    private func results(_ answer: JSONValue) throws -> [ChangeResult] {
        try ChangeResponse(json: answer.json, limit: Response.maximumSize).results
    }

    private mutating func apply(
        _ request: ApplyRequest, _ results: [ChangeResult], of user: User, before: Self
    ) -> String? {
        let addresses = request.changes.map { Address.desired($0.layer, $0.app, $0.aspect) }
        guard results.count == addresses.count else { return "\(results) are not what was asked for" }
        guard Set(addresses).count == addresses.count else { return "one document was changed twice at once" }
        for ((address, change), result) in zip(zip(addresses, request.changes), results) {
            guard address == .desired(result.layer, result.app, result.aspect) else {
                return "\(results) are not what was asked for"
            }
            if let from = change.basedOn, let problem = problem(in: address, madeFrom: from) { return problem }
            let value = change.value.jsonText
            let isSame = values[address].map { Text.isSame($0, value) } ?? false
            if result.isChanged != (request.isAgain || !isSame) {
                return "\(address.path) is said to be \(result.isChanged ? "" : "un")changed"
            }
            values[address] = value
            if result.isChanged { note(result, Change(address: address, user: user, why: request.why)) }
        }
        return problem(inOrderOf: results, after: before) ?? Self.problem(inOrderOf: results, of: request.changes)
    }

    private mutating func note(_ result: ChangeResult, _ change: Change) {
        (changes[result.revision], newest[change.address]) = (change, result.revision)
    }

    /// A change that says from what it was made, and was done: nobody else may have changed that since.
    private func problem(in address: Address, madeFrom revision: Int64) -> String? {
        if revision == 0, values[address] == nil { return nil }
        guard revision < newest[address] ?? 0 || revision == 0 else { return nil }
        return "\(address.path) was changed from \(revision), and stands at \(newest[address] ?? 0) at least"
    }

    private mutating func delete(
        _ request: SelectionRequest, _ results: [ChangeResult], of user: User, before: Self
    ) -> String? {
        let wanted = Set(request.documents.flatMap(live))
        let told = Set(results.map { Address.desired($0.layer, $0.app, $0.aspect) })
        for address in wanted { values[address] = nil }
        for result in results {
            let address = Address.desired(result.layer, result.app, result.aspect)
            note(result, Change(address: address, user: user, why: request.why))
        }
        guard told != wanted else {
            return problem(inOrderOf: results, after: before) ?? before.problem(inOrderOfDeleted: results)
        }
        return "\(told.map(\.path).sorted()) were deleted, and not \(wanted.map(\.path).sorted())"
    }

    private mutating func set(_ request: GroupRequest) {
        var group = groups[request.group] ?? Group()
        group.priority = request.priority ?? group.priority
        if let devices = request.devices { group.members = Set(devices) }
        group.members = group.members.union(request.add).subtracting(request.remove)
        groups[request.group] = group
    }

    private mutating func note(_ request: GroupRequest, of user: User) {
        groupChanges.insert(Reason(user: user.text, why: request.why))
    }

    private mutating func forget(_ layer: Layer) {
        values = values.filter { address, _ in
            if case .desired(layer, _, _) = address { false } else { true }
        }
    }

    func live(on layer: Layer) -> [Address] {
        values.keys.filter { if case .desired(layer, _, _) = $0 { true } else { false } }
    }

    func live(_ selector: DocumentSelector) -> [Address] {
        (selector.aspect.map { [$0] } ?? Aspect.allCases)
            .map { Address.desired(selector.layer, selector.app, $0) }.filter { values[$0] != nil }
    }
}
