import FleetProtocol

/// Counts device-apps of one app by policy and outcome.
struct Tally {
    /// How long a device that could have answered may take before it is called overdue.
    static let patience: Int64 = 300

    /// Whether who could answer since `time` still has time at `now`. What lies further ahead was noted while the clock was
    /// wrong: it must not hide for years who is late.
    static func isRecent(_ time: Timestamp, at now: Timestamp) -> Bool {
        let recent = recent(at: now)
        return time > recent.begin && time <= recent.end
    }

    static func recent(at now: Timestamp) -> (begin: Timestamp, end: Timestamp) {
        (now.advanced(bySeconds: -patience), now.advanced(bySeconds: patience))
    }

    /// Device-apps that are alike in all that is counted.
    struct Rows: Hashable, Sendable {
        let shape: Int64
        let overrides: Int64
        /// `devices.state`, and what it means now.
        let state: Int64
        let connection: Connectivity
        let count: Int64
    }

    let wishes: AppWishes
    let shapes: [Int64: Shape]
    let overrides: [Int64: OverrideClass]
    let now: Timestamp
    /// The layers whose documents are asked about; nil for all. A retirement that none of these wants is waited for by nobody
    /// who asks.
    let asked: Set<Layer>?

    private struct Need: Hashable {
        let overrides: Int64
        let policy: Policy
    }
    private var expectations: [Need: AppWishes.Expectation] = [:]
    private var counts: [Policy: OutcomeCounts] = [:]
    private var offline: [Policy: Int64] = [:]
    private var due: [Policy: Int64] = [:]
    private var retirement: RetirementCounts?
    /// Devices of which keys may be elsewhere, where the app is to be retired: see ``RetirementCounts/doubtful``.
    var doubtful: Int64 = 0

    init(
        wishes: AppWishes, shapes: [Int64: Shape], overrides: [Int64: OverrideClass], now: Timestamp,
        asked: Set<Layer>? = nil
    ) {
        self.wishes = wishes
        self.shapes = shapes
        self.overrides = overrides
        self.now = now
        self.asked = asked
    }

    /// How far all device-apps of these rows are with a policy.
    mutating func outcome(of policy: Policy, _ rows: Rows) -> Outcome {
        guard let entry = shapes[rows.shape]?[policy] else { return .pending }
        return entry.outcome(against: expectation(of: policy, for: rows.overrides))
    }

    /// How far they are with being retired; nil where nobody wants that of them.
    mutating func retirement(of rows: Rows) -> Retirement? {
        let expectation = expectation(of: .auth, for: rows.overrides)
        guard expectation.isRetired else { return nil }
        // That a key is withdrawn, and all signed again, brings no destroyed keys back.
        guard let shape = shapes[rows.shape], shape[.auth].hasReceivedTheSame(as: expectation), shape.keys != .present
        else { return .outstanding }
        return .confirmed
    }

    /// The same, where the documents that are asked about want it.
    mutating func askedRetirement(of rows: Rows) -> Retirement? {
        if let asked, !wishes.retire(by: asked, overrides[rows.overrides] ?? OverrideClass()) { return nil }
        return retirement(of: rows)
    }

    /// Whether something is still to come from them that is waited for, if they are connected: no word of an app that does
    /// not run, and whose keys are destroyed.
    mutating func isOpen(_ policy: Policy, _ rows: Rows) -> Bool {
        switch policy == .auth ? retirement(of: rows) : nil {
        case .outstanding: true
        case .confirmed where shapes[rows.shape]?.keys == .destroyed(isRunning: false): false
        case .confirmed, nil: !outcome(of: policy, rows).isFinal
        }
    }

    mutating func add(_ rows: Rows, policies: [Policy]) {
        for policy in policies {
            let outcome = outcome(of: policy, rows)
            counts[policy, default: OutcomeCounts()].count(outcome, rows.count)
            let retirement = policy == .auth ? askedRetirement(of: rows) : nil
            if let retirement {
                self.retirement = self.retirement ?? RetirementCounts()
                self.retirement?.count(retirement, rows.count)
            }
            if retirement == .outstanding || isOpen(policy, rows) && rows.connection != .offline {
                due[policy, default: 0] += rows.count
            }
            guard !outcome.isFinal else { continue }
            switch rows.connection {
            case .offline: offline[policy, default: 0] += rows.count
            case .online:
                if isLate(policy, rows.overrides) { counts[policy, default: OutcomeCounts()].overdue += rows.count }
            case .unknown: break
            }
        }
    }

    /// Takes back from `overdue` rows that ``add(_:policies:)`` has counted, which could answer only since just now.
    mutating func excuse(_ rows: Rows, policies: [Policy]) {
        for policy in policies
        where !outcome(of: policy, rows).isFinal && isLate(policy, rows.overrides) {
            counts[policy, default: OutcomeCounts()].overdue -= rows.count
        }
    }

    /// Whether there is anything to take back: who could not answer before has to be looked for.
    var hasOverdue: Bool { counts.values.contains { $0.overdue > 0 } }

    func row(of policy: Policy) -> StatusRow {
        var retirement = policy == .auth ? retirement : nil
        if policy == .auth, doubtful > 0 {
            retirement = retirement ?? RetirementCounts()
            retirement?.doubtful = doubtful
        }
        return StatusRow(
            app: wishes.app, policy: policy, counts: counts[policy] ?? OutcomeCounts(), offline: offline[policy] ?? 0,
            due: due[policy] ?? 0, retirement: retirement)
    }

    private mutating func isLate(_ policy: Policy, _ overrides: Int64) -> Bool {
        !Self.isRecent(expectation(of: policy, for: overrides).since, at: now)
    }

    private mutating func expectation(of policy: Policy, for id: Int64) -> AppWishes.Expectation {
        let need = Need(overrides: id, policy: policy)
        if let known = expectations[need] { return known }
        let expectation = wishes.expectation(of: policy, for: overrides[id] ?? OverrideClass(), at: now)
        expectations[need] = expectation
        return expectation
    }
}
