import FleetProtocol

/// How far some documents have come: counts for the policies they decide, over the devices they speak to, and who is
/// still missing.
struct Progress {
    /// How many of the missing are named.
    static let named = 20

    private(set) var answer = ProgressAnswer()
    private let session: Int64
    /// Whether the missing are named at all: they have to be looked for among all that are counted with them.
    private let isNaming: Bool

    /// Whether anybody waits for it: for what is offline nobody does, but for a retirement.
    private enum Kind {
        case online
        case outstanding
        case offline

        init(_ retirement: Retirement?, isOnline: Bool) {
            self = retirement == .outstanding ? .outstanding : isOnline ? .online : .offline
        }

        init(_ missing: ProgressAnswer.Waiting) { self.init(missing.retirement, isOnline: missing.isOnline) }
    }

    /// Whom the documents about a policy speak to.
    private enum Scope: Hashable {
        case all
        case layers(Set<Layer>)

        mutating func include(_ layer: Layer) {
            switch (self, layer) {
            case (.all, _): break
            case (.layers, .all): self = .all
            case (.layers(let layers), _): self = .layers(layers.union([layer]))
            }
        }
    }

    init(_ transaction: FleetStore.Transaction, _ request: SelectionRequest, now: Timestamp) throws {
        session = try transaction.session()
        isNaming = request.names
        var scopes: [AppID: [Policy: Scope]] = [:]
        for selector in request.documents {
            for policy in Policy.allCases
            where policy.aspect != nil && selector.aspect ?? policy.aspect == policy.aspect {
                scopes[selector.app, default: [:]][policy, default: .layers([])].include(selector.layer)
            }
        }
        let retiring = request.documents.filter { $0.aspect ?? .auth == .auth }
        for (app, policies) in scopes.sorted(by: { $0.key < $1.key }) {
            let asked = Set(retiring.filter { $0.app == app }.map(\.layer))
            var counted: [StatusRow] = []
            // In one order: which of many devices are named depends on it.
            let scopes = Dictionary(grouping: policies.keys.sorted(), by: { policies[$0] ?? .all })
            for (scope, policies) in scopes.sorted(by: { ($0.value.first ?? .auth) < ($1.value.first ?? .auth) }) {
                counted += try count(app, policies, scope, asked, transaction, now)
            }
            let retiring = try transaction.retirements(of: app).filter { asked.contains($0.key) }
            if !retiring.isEmpty {
                let left = try transaction.leftKeys(of: app, retiredBy: retiring)
                for index in counted.indices where counted[index].policy == .auth {
                    counted[index].retirement = counted[index].retirement ?? RetirementCounts()
                    counted[index].retirement?.doubtful = left.devices
                }
                name(left, of: app)
            }
            answer.rows += counted.sorted { $0.policy < $1.policy }
        }
        nameFew()
        answer.superseded = try Self.superseded(request.documents, transaction)
        answer.epoch = try transaction.latest().epoch
    }

    private mutating func name(_ left: [FleetStore.Transaction.LeftKeys], of app: AppID) {
        for left in left where answer.otherDisks.count < Self.named {
            let meant = ProgressAnswer.OtherDisk(device: left.device, app: app, place: .init(left.place))
            if !answer.otherDisks.contains(meant) { answer.otherDisks.append(meant) }
        }
    }

    /// A document that was only signed anew is still of its change.
    private static func superseded(
        _ selectors: [DocumentSelector], _ transaction: FleetStore.Transaction
    ) throws -> [ProgressAnswer.Superseded] {
        var found: [ProgressAnswer.Superseded] = []
        for selector in selectors {
            guard found.count < named else { break }
            guard let revision = selector.revision, let aspect = selector.aspect,
                let document = try transaction.document(at: .desired(selector.layer, selector.app, aspect)),
                document.change.number > revision
            else { continue }
            found.append(
                ProgressAnswer.Superseded(
                    app: selector.app, layer: selector.layer, aspect: aspect, revision: document.revision.number,
                    by: document.by, isDeleted: document.isTombstone))
        }
        return found
    }

    /// Of each kind that is waited for as many as of the other, and who is offline where there is room; who is there first.
    private mutating func nameFew() {
        var found: [Kind: Int] = [:]
        let ranked = answer.waiting.map { missing in
            let kind = Kind(missing)
            defer { found[kind, default: 0] += 1 }
            return (missing, (kind == .offline ? Self.named : 0) + found[kind, default: 0])
        }
        let chosen = ranked.enumerated().sorted { ($0.element.1, $0.offset) < ($1.element.1, $1.offset) }
            .prefix(Self.named).map(\.element.0)
        answer.waiting = chosen.filter(\.isOnline) + chosen.filter { !$0.isOnline }
    }

    private func room(for kind: Kind) -> Int {
        isNaming ? Self.named - answer.waiting.count { Kind($0) == kind } : 0
    }

    private mutating func count(
        _ app: AppID, _ policies: [Policy], _ scope: Scope, _ asked: Set<Layer>,
        _ transaction: FleetStore.Transaction, _ now: Timestamp
    ) throws -> [StatusRow] {
        var tally: Tally
        switch scope {
        case .all:
            tally = try Tally.of(app, asked: asked, transaction, now: now)
            // Who is there is named first: nobody waits for the others.
            for rows in try transaction.summary(of: app).sorted(by: { $0.connection < $1.connection }) {
                for policy in policies where tally.isOpen(policy, rows) {
                    let retirement = policy == .auth ? tally.askedRetirement(of: rows) : nil
                    let room = room(for: Kind(retirement, isOnline: rows.connection == .online))
                    let devices = room > 0 ? try transaction.devices(of: rows, limit: room) : []
                    for device in devices { add(device, app, policy, rows, &tally) }
                }
            }
        case .layers(let layers):
            tally = try transaction.tally(of: app, asked: asked, now: now)
            let members = try devices(of: layers, transaction).compactMap { name in
                try transaction.device(name).flatMap { device in
                    try transaction.tallied(app, on: device).map { (device, $0) }
                }
            }
            for (device, row) in members.sorted(by: { ($0.1.connection, $0.0.name) < ($1.1.connection, $1.0.name) }) {
                tally.add(row, policies: policies)
                if row.connection == .online, try transaction.isRecent(app, on: device, at: now) {
                    tally.excuse(row, policies: policies)
                }
                for policy in policies where tally.isOpen(policy, row) { add(device, app, policy, row, &tally) }
            }
        }
        return policies.map(tally.row)
    }

    private func devices(of layers: Set<Layer>, _ transaction: FleetStore.Transaction) throws -> Set<DeviceID> {
        var devices: Set<DeviceID> = []
        for layer in layers {
            switch layer {
            case .all: break
            case .group(let group): devices.formUnion(try transaction.members(of: group))
            case .device(let device): devices.insert(device)
            }
        }
        return devices
    }

    private mutating func add(
        _ device: DeviceRow, _ app: AppID, _ policy: Policy, _ row: Tally.Rows, _ tally: inout Tally
    ) {
        let missing = ProgressAnswer.Waiting(
            device: device.name, app: app, policy: policy, outcome: tally.outcome(of: policy, row),
            retirement: policy == .auth ? tally.askedRetirement(of: row) : nil,
            isOnline: device.connectivity(in: session) == .online)
        if room(for: Kind(missing)) > 0 { answer.waiting.append(missing) }
    }
}

extension ProgressAnswer.OtherDisk.Place {
    fileprivate init(_ place: FleetStore.Transaction.LeftKeys.Place) {
        self =
            switch place {
            case .earlierDisk: .earlier
            case .copy: .copied
            case .removed: .removed
            }
    }
}
