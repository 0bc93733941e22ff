import FleetProtocol

/// How far some documents have come: counts for the policies they decide, over the devices they speak to, and who is
/// still missing.
struct Progress {
    /// How many of the missing are named.
    static let named = 20

    private(set) var rows: [StatusRow] = []
    private(set) var waiting: [Waiting] = []
    /// Devices that are to retire an app, and may have left its keys on an earlier disk; at most ``named`` of them.
    private(set) var otherDisks: [OtherDisk] = []
    /// At most ``named`` of them.
    private(set) var superseded: [Superseded] = []
    private let session: Int64

    /// One that counts as it is now, and of whose earlier disk nobody can say anything any more.
    struct OtherDisk {
        let device: DeviceID
        let app: AppID
    }

    /// A document that somebody has changed since it stood at the revision that is asked about.
    struct Superseded {
        let layer: Layer
        let app: AppID
        let aspect: Aspect
        let document: StoredDocument
    }

    /// Something that is still to come.
    struct Waiting {
        /// Whether anybody waits for it: for what is offline nobody does, but for a retirement.
        enum Kind {
            case online
            case outstanding
            case offline

            init(_ retirement: Retirement?, isOnline: Bool) {
                self = retirement == .outstanding ? .outstanding : isOnline ? .online : .offline
            }
        }

        let device: DeviceID
        let app: AppID
        let policy: Policy
        let outcome: Outcome
        let retirement: Retirement?
        let isOnline: Bool

        var kind: Kind { Kind(retirement, isOnline: isOnline) }
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
            if let scope = policies[.auth], try Self.isRetired(app, by: asked, transaction) {
                try addOtherDisks(app, scope, transaction)
            }
            for (scope, policies) in Dictionary(grouping: policies.keys, by: { policies[$0] ?? .all }) {
                counted += try count(app, policies.sorted(), scope, asked, transaction, now)
            }
            rows += counted.sorted { $0.policy < $1.policy }
        }
        nameFew()
        superseded = try Self.superseded(request.documents, transaction)
    }

    private static func isRetired(
        _ app: AppID, by layers: Set<Layer>, _ transaction: FleetStore.Transaction
    ) throws -> Bool {
        try layers.contains { try transaction.document(at: .desired($0, app, .auth))?.isRetired == true }
    }

    private mutating func addOtherDisks(
        _ app: AppID, _ scope: Scope, _ transaction: FleetStore.Transaction
    ) throws {
        var devices = try transaction.devices(whoseWarningBegins: DeviceWarning.onAnotherDisk)
            .filter { DeviceWarning.hasLeftKeys(of: app, $0.warning ?? "") }.map(\.name)
        if case .layers(let layers) = scope, !devices.isEmpty {
            let members = try self.devices(of: layers, transaction)
            devices = devices.filter(members.contains)
        }
        otherDisks += devices.prefix(Self.named - otherDisks.count).map { OtherDisk(device: $0, app: app) }
    }

    /// A document that was only signed anew is still of its change.
    private static func superseded(
        _ selectors: [DocumentSelector], _ transaction: FleetStore.Transaction
    ) throws -> [Superseded] {
        var found: [Superseded] = []
        for selector in selectors {
            guard found.count < named else { break }
            guard let revision = selector.revision, let aspect = selector.aspect,
                let document = try transaction.document(at: .desired(selector.layer, selector.app, aspect)),
                document.change.number > revision
            else { continue }
            found.append(
                Superseded(layer: selector.layer, app: selector.app, aspect: aspect, document: document))
        }
        return found
    }

    /// Of each kind that is waited for as many as of the other, and who is offline where there is room; who is there first.
    private mutating func nameFew() {
        var found: [Waiting.Kind: Int] = [:]
        let ranked = waiting.map { missing in
            defer { found[missing.kind, default: 0] += 1 }
            return (missing, (missing.kind == .offline ? Self.named : 0) + found[missing.kind, default: 0])
        }
        let chosen = ranked.enumerated().sorted { ($0.element.1, $0.offset) < ($1.element.1, $1.offset) }
            .prefix(Self.named).map(\.element.0)
        waiting = chosen.filter(\.isOnline) + chosen.filter { !$0.isOnline }
    }

    private func room(for kind: Waiting.Kind) -> Int { Self.named - waiting.count { $0.kind == kind } }

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
                    let room = room(for: Waiting.Kind(retirement, isOnline: rows.connection == .online))
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
        let missing = Waiting(
            device: device.name, app: app, policy: policy, outcome: tally.outcome(of: policy, row),
            retirement: policy == .auth ? tally.askedRetirement(of: row) : nil,
            isOnline: device.connectivity(in: session) == .online)
        if room(for: missing.kind) > 0 { waiting.append(missing) }
    }
}

extension Progress: JSONWritable {
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("rows", rows)
            writer.member("waiting", waiting)
            if !otherDisks.isEmpty { writer.member("otherDisks", otherDisks) }
            if !superseded.isEmpty { writer.member("superseded", superseded) }
        }
    }
}

extension Progress.OtherDisk: JSONWritable {
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("device", device)
            writer.member("app", app)
        }
    }
}

extension Progress.Superseded: JSONWritable {
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("app", app)
            writer.member("target", layer)
            writer.member("aspect", aspect)
            writer.member("revision", document.revision.number)
            writer.member("by", document.by)
            writer.member("deleted", document.isTombstone)
        }
    }
}

extension Progress.Waiting: JSONWritable {
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("device", device)
            writer.member("app", app)
            writer.member("policy", policy)
            writer.member("outcome", outcome)
            writer.member("retirement", ifPresent: retirement)
            writer.member("online", isOnline)
        }
    }
}
