import FleetProtocol

/// How far the devices have come with some documents: the controller's answer to `progress`.
struct Progress: Hashable, JSONReadable {
    /// Someone who has not finished.
    struct Waiting: Hashable, JSONReadable, CustomStringConvertible {
        let device: String
        let app: String
        let policy: String
        let outcome: String
        let isOnline: Bool

        init(from reader: inout JSONReader) throws {
            var device = ""
            var app = ""
            var policy = ""
            var outcome = ""
            var isOnline = false
            try reader.object { name, value in
                switch name {
                case "device": device = try value.message(limit: 100)
                case "app": app = try value.message(limit: 100)
                case "policy": policy = try value.message(limit: 100)
                case "outcome": outcome = try value.message(limit: 100)
                case "online": isOnline = try value.bool()
                default: break
                }
            }
            self.device = device
            self.app = app
            self.policy = policy
            self.outcome = outcome
            self.isOnline = isOnline
        }

        var description: String { "\(device) \(app) \(policy): \(outcome)\(isOnline ? "" : " (offline)")" }
    }

    /// How many of the missing are named.
    private static let named = 20

    let rows: [StatusRow]
    let waiting: [Waiting]

    init(joining parts: [Progress]) {
        rows = parts.flatMap(\.rows)
        waiting = parts.flatMap(\.waiting)
    }

    init(from reader: inout JSONReader) throws {
        var rows: [StatusRow] = []
        var waiting: [Waiting] = []
        try reader.object { name, value in
            switch name {
            case "rows": rows = try value.values(limit: 100_000)
            case "waiting": waiting = try value.values(limit: 1_000)
            default: break
            }
        }
        self.rows = rows
        self.waiting = waiting
    }

    /// Those who are online and still have to answer. Who is offline answers when it comes back: nobody waits for it.
    var due: Int64 { rows.reduce(0) { $0 + max(0, $1.counts.pending + $1.counts.delivered - $1.offline) } }
    var isConverged: Bool { due == 0 }

    private func sum(_ count: (StatusRow) -> Int64) -> Int64 { rows.reduce(0) { $0 + count($1) } }

    /// Why not everybody has followed who could; nil when all who are online have.
    func shortfall(within limit: String) -> String? {
        var parts: [String] = []
        if !isConverged {
            var names = waiting.filter(\.isOnline).prefix(Self.named).map { "\n  \($0)" }.joined()
            if names.isEmpty { names = "\n  from devices that the controller has not heard since it connected" }
            let answers = due == 1 ? "1 answer has" : "\(due) answers have"
            parts.append("\(answers) not come within \(limit):\(names)")
        }
        let others = rows.compactMap { row in
            Self.otherwise(row.counts).map { (row.app, "\n  \(row.app) \(row.policy.rawValue): \($0)") }
        }
        if !others.isEmpty {
            let apps = Set(others.map(\.0)).sorted().map { "\n  fleetctl get apps --app \($0)" }.joined()
            parts.append(
                "not every app has applied it:\(others.map(\.1).joined())\nWhich devices, and why, is shown by\(apps)")
        }
        return parts.isEmpty ? nil : parts.joined(separator: "\n")
    }

    /// `2 error, 1 unsupported`; nil when no answer was another than that it is applied.
    private static func otherwise(_ counts: OutcomeCounts) -> String? {
        let said = [(counts.error, "error"), (counts.unsupported, "unsupported"), (counts.rejected, "rejected")]
            .filter { $0.0 > 0 }
        return said.isEmpty ? nil : said.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    }

    /// `policies: 20 applied, 2 error, 10 pending (10 offline)`, counted over the devices.
    var summary: String {
        let parts: [(Int64, String)] = [
            (sum(\.counts.applied), "applied"), (sum(\.counts.error), "error"),
            (sum(\.counts.unsupported), "unsupported"), (sum(\.counts.rejected), "rejected"),
            (sum(\.counts.delivered), "delivered"), (sum(\.counts.pending), "pending"),
        ]
        let said = parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
        let offline = sum(\.offline)
        return (said.isEmpty ? "no device has reported these apps yet" : "policies: " + said)
            + (offline > 0 ? " (\(offline) offline)" : "")
    }
}
