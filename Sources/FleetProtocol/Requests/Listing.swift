/// The body of the reading verbs: what to list, and which page.
package struct ListRequest: Hashable, Sendable, JSONCodable {
    package var app: AppID?
    package var device: DeviceID?
    package var layer: Layer?
    /// The `next` of the page before.
    package var page: String?

    package init(app: AppID? = nil, device: DeviceID? = nil, layer: Layer? = nil, page: String? = nil) {
        self.app = app
        self.device = device
        self.layer = layer
        self.page = page
    }

    package init(from reader: inout JSONReader) throws {
        var result = ListRequest()
        try reader.object { name, value in
            switch name {
            case "app": result.app = try value.value()
            case "device": result.device = try value.value()
            case "target": result.layer = try value.value()
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

    /// Where an outcome is counted: a log level that waits for its code, or has expired, has been dealt with by the agent
    /// as its document says, so it is pending or applied.
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

/// One row of `status`: `{"app","policy","counts":{…},"offline"}`.
package struct StatusRow: Hashable, Sendable, JSONCodable {
    package let app: AppID
    package let policy: Policy
    package var counts: OutcomeCounts
    package var offline: Int64

    package init(app: AppID, policy: Policy, counts: OutcomeCounts, offline: Int64) {
        self.app = app
        self.policy = policy
        self.counts = counts
        self.offline = offline
    }

    package init(from reader: inout JSONReader) throws {
        var app: AppID?
        var policy: Policy?
        var counts: OutcomeCounts?
        var offline: Int64?
        try reader.object { name, value in
            switch name {
            case "app": app = try value.value()
            case "policy": policy = try value.value()
            case "counts": counts = try value.value()
            case "offline": offline = try value.integer()
            default: break
            }
        }
        self.init(
            app: try required(app, "app"), policy: try required(policy, "policy"),
            counts: try required(counts, "counts"), offline: try required(offline, "offline"))
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("app", app)
            writer.member("policy", policy)
            writer.member("counts", counts)
            writer.member("offline", offline)
        }
    }
}
