/// The body of the reading verbs: what to list, and which page.
package struct ListRequest: Hashable, Sendable, JSONCodable {
    package var app: AppID?
    package var device: DeviceID?
    package var layer: Layer?
    /// Of `apps`: those that are counted so, with ``policy`` or else with any.
    package var outcome: Outcome?
    package var policy: Policy?
    /// Of `apps`: those that are to be retired, and are so far with it.
    package var retirement: Retirement?
    /// Of `events`: those of this kind.
    package var kind: EventKind?
    /// Of `events`: those that were stored at this time, by the controller's clock, or later.
    package var since: Timestamp?
    /// The `next` of the page before.
    package var page: String?

    package init(
        app: AppID? = nil, device: DeviceID? = nil, layer: Layer? = nil, outcome: Outcome? = nil,
        policy: Policy? = nil, retirement: Retirement? = nil, kind: EventKind? = nil, since: Timestamp? = nil,
        page: String? = nil
    ) {
        self.app = app
        self.device = device
        self.layer = layer
        self.outcome = outcome
        self.policy = policy
        self.retirement = retirement
        self.kind = kind
        self.since = since
        self.page = page
    }

    package init(from reader: inout JSONReader) throws {
        var result = ListRequest()
        try reader.object { name, value in
            switch name {
            case "app": result.app = try value.value()
            case "device": result.device = try value.value()
            case "target": result.layer = try value.value()
            case "outcome": result.outcome = try value.value()
            case "policy": result.policy = try value.value()
            case "retirement": result.retirement = try value.value()
            case "kind": result.kind = try value.value()
            case "since": result.since = try value.value()
            case "page": result.page = try value.string(limit: 500)
            default: break
            }
        }
        self = result
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("app", ifPresent: app)
            writer.member("device", ifPresent: device)
            writer.member("target", ifPresent: layer)
            writer.member("outcome", ifPresent: outcome)
            writer.member("policy", ifPresent: policy)
            writer.member("retirement", ifPresent: retirement)
            writer.member("kind", ifPresent: kind)
            writer.member("since", ifPresent: since)
            writer.member("page", ifPresent: page)
        }
    }
}

/// How many device-apps have come how far with one policy. `applied` to `pending` are a partition; `overdue` and the
/// row's `offline` are subsets of `delivered` and `pending`.
package struct OutcomeCounts: Hashable, Sendable {
    package var applied: Int64 = 0
    package var error: Int64 = 0
    package var unsupported: Int64 = 0
    package var rejected: Int64 = 0
    package var delivered: Int64 = 0
    package var pending: Int64 = 0
    package var overdue: Int64 = 0

    package init() {}

    package var total: Int64 { applied + error + unsupported + rejected + delivered + pending }

    package mutating func count(_ outcome: Outcome, _ number: Int64 = 1) {
        switch outcome {
        case .applied, .expired: applied += number
        case .error: error += number
        case .unsupported: unsupported += number
        case .rejected: rejected += number
        case .delivered: delivered += number
        case .pending, .awaitingCode: pending += number
        }
    }
}

extension Outcome {
    /// The count that it adds to: a log level that waits for its code, or has expired, has been dealt with by the agent as
    /// its document says, so it is pending or applied.
    package var counted: Outcome {
        switch self {
        case .expired: .applied
        case .awaitingCode: .pending
        case .pending, .delivered, .applied, .error, .unsupported, .rejected: self
        }
    }
}

/// How far a device is with the retirement of an app that is wanted of it.
package enum Retirement: String, CaseIterable, Hashable, Sendable, JSONCodable {
    /// It has said that it knows of it, and that the app's keys are destroyed.
    case confirmed
    /// It has not, whatever the reason: its keys may be there.
    case outstanding

    package init(from reader: inout JSONReader) throws { self = try reader.oneOf() }
    package func write(to writer: inout JSONWriter) { writer.value(rawValue) }
}

/// How many of those that are to be retired are how far: `{"confirmed","outstanding","doubtful"}`.
package struct RetirementCounts: Hashable, Sendable, JSONCodable {
    package var confirmed: Int64
    package var outstanding: Int64
    /// Devices, counted above or removed since, of which nobody can say whether keys are elsewhere than where they have looked.
    package var doubtful: Int64

    package init(confirmed: Int64 = 0, outstanding: Int64 = 0, doubtful: Int64 = 0) {
        self.confirmed = confirmed
        self.outstanding = outstanding
        self.doubtful = doubtful
    }

    package mutating func count(_ retirement: Retirement, _ number: Int64 = 1) {
        switch retirement {
        case .confirmed: confirmed += number
        case .outstanding: outstanding += number
        }
    }

    package init(from reader: inout JSONReader) throws {
        var result = RetirementCounts()
        try reader.object { name, value in
            switch name {
            case "confirmed": result.confirmed = try value.integer()
            case "outstanding": result.outstanding = try value.integer()
            case "doubtful": result.doubtful = try value.integer()
            default: break
            }
        }
        self = result
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("confirmed", confirmed)
            writer.member("outstanding", outstanding)
            if doubtful > 0 { writer.member("doubtful", doubtful) }
        }
    }
}

extension OutcomeCounts: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var result = OutcomeCounts()
        try reader.object { name, value in
            switch name {
            case "applied": result.applied = try value.integer()
            case "error": result.error = try value.integer()
            case "unsupported": result.unsupported = try value.integer()
            case "rejected": result.rejected = try value.integer()
            case "delivered": result.delivered = try value.integer()
            case "pending": result.pending = try value.integer()
            case "overdue": result.overdue = try value.integer()
            default: break
            }
        }
        self = result
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("applied", applied)
            writer.member("error", error)
            writer.member("unsupported", unsupported)
            writer.member("rejected", rejected)
            writer.member("delivered", delivered)
            writer.member("pending", pending)
            writer.member("overdue", overdue)
        }
    }
}

/// One row of `status`: `{"app","policy","counts":{…},"offline","due","retirement":{…}}`.
package struct StatusRow: Hashable, Sendable, JSONCodable {
    package let app: AppID
    package let policy: Policy
    package var counts: OutcomeCounts
    package var offline: Int64
    /// How many are waited for: those that are not offline and have still to answer, and all whose retirement is
    /// outstanding; but no app that does not run, and whose keys are destroyed.
    package var due: Int64
    /// Of `auth`, where the app is to be retired on some device.
    package var retirement: RetirementCounts?

    package init(
        app: AppID, policy: Policy, counts: OutcomeCounts, offline: Int64, due: Int64? = nil,
        retirement: RetirementCounts? = nil
    ) {
        self.app = app
        self.policy = policy
        self.counts = counts
        self.offline = offline
        // Controllers of before do not tell.
        self.due = due ?? max(0, counts.pending + counts.delivered - offline)
        self.retirement = retirement
    }

    package init(from reader: inout JSONReader) throws {
        var app: AppID?
        var policy: Policy?
        var counts: OutcomeCounts?
        var offline: Int64?
        var due: Int64?
        var retirement: RetirementCounts?
        try reader.object { name, value in
            switch name {
            case "app": app = try value.value()
            case "policy": policy = try value.value()
            case "counts": counts = try value.value()
            case "offline": offline = try value.integer()
            case "due": due = try value.integer()
            case "retirement": retirement = try value.value()
            default: break
            }
        }
        self.init(
            app: try required(app, "app"), policy: try required(policy, "policy"),
            counts: try required(counts, "counts"), offline: try required(offline, "offline"), due: due,
            retirement: retirement)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("app", app)
            writer.member("policy", policy)
            writer.member("counts", counts)
            writer.member("offline", offline)
            writer.member("due", due)
            writer.member("retirement", ifPresent: retirement)
        }
    }
}
