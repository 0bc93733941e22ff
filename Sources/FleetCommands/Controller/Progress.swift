import FleetProtocol

/// How far the devices have come with some documents.
struct Progress {
    /// How many of the missing are named, of those of all parts.
    private static let named = 20

    /// What the controller has answered to `progress`, all parts of it.
    private let answer: ProgressAnswer
    /// How many devices are counted no more, and may not have said that the keys of an app are destroyed; but for those that
    /// the answer names.
    private(set) var departed: [AppID: Int64] = [:]
    /// Whether names were asked for.
    private let isNamed: Bool
    /// Whether the controller was restored from a backup behind the change: what stands now need not be what was asked for.
    private let isRestored: Bool
    /// Why nothing newer could be read, and since when.
    private(set) var outdated: (reason: String, since: Timestamp)?

    /// - Parameter epoch: In which the change was made; nil where the controller did not tell.
    init(joining parts: [ProgressAnswer], isNamed: Bool = true, since epoch: Int64? = nil) {
        self.isNamed = isNamed
        isRestored = epoch.map { made in parts.contains { ($0.epoch ?? made) > made } } ?? false
        answer = ProgressAnswer(
            rows: parts.flatMap(\.rows), waiting: parts.flatMap(\.waiting), otherDisks: parts.flatMap(\.otherDisks),
            superseded: parts.flatMap(\.superseded))
    }

    var rows: [StatusRow] { answer.rows }

    /// Notes who has left since `earlier` was read, without a word on the keys that were to be destroyed.
    mutating func follow(_ earlier: Progress) {
        departed = earlier.departed
        for (app, before) in earlier.retired {
            let now = retired.first { $0.app == app }?.counts ?? RetirementCounts()
            let named = Set(answer.otherDisks).subtracting(earlier.answer.otherDisks)
                .count { $0.app == app && $0.place != .copied }
            let left =
                before.outstanding - now.outstanding - max(0, now.confirmed - before.confirmed) - Int64(named)
            if left > 0 { departed[app, default: 0] += left }
        }
    }

    /// The same, where nothing newer could be read.
    func outdated(_ reason: some Error, since: Timestamp) -> Progress {
        var copy = self
        copy.outdated = (reason: "\(reason)", since: since)
        return copy
    }

    /// Whether nobody is waited for: who is offline answers when it comes back, but with a retirement that has to be certain.
    var isSettled: Bool { isRestored || sum(\.due) == 0 }
    /// Whether all who are not offline have applied it, and no retirement is outstanding; and it is what was asked for.
    var isConverged: Bool { isSettled && shortfall(within: "") == nil }

    /// Apps that are to be retired.
    private var retired: [(app: AppID, counts: RetirementCounts)] {
        rows.compactMap { row in row.retirement.map { (row.app, $0) } }
    }

    private func sum(_ count: (StatusRow) -> Int64) -> Int64 { rows.reduce(0) { $0 + count($1) } }

    /// Those who have answered that it is not applied, or not by all.
    private var others: [(app: AppID, line: String)] {
        rows.compactMap { row in
            Self.otherwise(row.counts).map { (row.app, "\n  \(row.app) \(row.policy.rawValue): \($0)") }
        }
    }

    /// Why not everybody has followed who could, or whose keys may be there still; nil when all is as it was wanted.
    func shortfall(within limit: String) -> String? {
        if isRestored { return Self.restored }
        var parts: [String] = []
        if let outdated {
            parts.append("\(outdated.reason)\nWhat stands here was so at \(outdated.since.timeOfDay).")
        }
        let due = sum(\.due) - retired.reduce(0) { $0 + $1.counts.outstanding }
        if due > 0 {
            var names = answer.waiting.filter { $0.isOnline && $0.retirement != .outstanding }.prefix(Self.named)
                .map { "\n  \($0.line)" }.joined()
            if isNamed, names.isEmpty {
                names = "\n  from devices that the controller has not heard since it connected"
            }
            let answers = due == 1 ? "1 answer has" : "\(due) answers have"
            parts.append("\(answers) not come within \(limit)\(names.isEmpty ? "" : ":")\(names)")
        }
        for (app, counts) in retired where counts.outstanding > 0 {
            let names = answer.waiting.filter { $0.retirement == .outstanding && $0.app == app }.prefix(Self.named)
                .map { "\n  \($0.device)\($0.isOnline ? "" : " (not connected)")" }.joined()
            parts.append(
                "\(counts.text(of: app)) within \(limit)\(names.isEmpty ? "" : ", not yet on")\(names)\nAll of these are shown by\n"
                    + "  \(RetirementCounts.outstandingCommand(for: app))")
        }
        for (app, counts) in retired where counts.all == 0 {
            parts.append(
                "no device that this is for has reported \(app), and none has said that its keys are gone: check the names of"
                    + " both")
        }
        if !answer.superseded.isEmpty {
            let lines = answer.superseded.prefix(Self.named).map { "\n  \($0.line)" }.joined()
            parts.append("what was asked for does not stand any more, and is counted as it stands now:\(lines)")
        }
        for (app, count) in departed.sorted(by: { $0.key < $1.key }) {
            parts.append(
                "\(count) device\(count == 1 ? "" : "s") left the count, and may not have destroyed the keys of \(app): with another"
                    + " policy, or removed by a controller of before")
        }
        for place in [ProgressAnswer.OtherDisk.Place.removed, .earlier, .copied] {
            let left = answer.otherDisks.filter { $0.place == place }
            let names = left.prefix(Self.named).map { "\n  \($0.device) \($0.app)" }.joined()
            if !left.isEmpty { parts.append("\(place.explanation):\(names)") }
        }
        if !others.isEmpty {
            let apps = Set(others.map(\.app)).sorted().map { "\n  fleetctl get apps --app \($0)" }.joined()
            parts.append(
                "not every app has applied it:\(others.map(\.line).joined())\nWhich devices, and why, is shown by\(apps)"
            )
            if rows.contains(where: { $0.policy == .auth && $0.counts.rejected > 0 }) {
                parts.append(
                    "Where an app was retired since, a newer auth document authorizes it: `fleetctl apply --again`, of the layer"
                        + " that decides there (`fleetctl get policies --device DEVICE`)")
            }
        }
        return parts.isEmpty ? nil : parts.joined(separator: "\n")
    }

    private static let restored =
        "the controller was restored from a backup meanwhile, which may have undone the change: it is waited for no longer"
        + "\nLook with `fleetctl get policies`, and say it again where it does not stand."

    /// `2 error, 1 unsupported`; nil when no answer was another than that it is applied.
    private static func otherwise(_ counts: OutcomeCounts) -> String? {
        let said = [(counts.error, "error"), (counts.unsupported, "unsupported"), (counts.rejected, "rejected")]
            .filter { $0.0 > 0 }
        return said.isEmpty ? nil : said.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    }

    /// `policies: 20 applied, 2 error, 10 pending (10 offline)`, counted over the devices, and of each retired app
    /// `the keys of com.example.mail: destroyed on 9 of 10 devices`.
    var summary: [String] {
        let said = rows.reduce(into: OutcomeCounts()) { $0.add($1.counts) }.text
        let offline = sum(\.offline)
        let none = "no device that this is for has reported these apps yet: check the names of both if some should have"
        let policies = said.isEmpty ? none : "policies: " + said
        return [policies + (offline > 0 ? " (\(offline) offline)" : "")]
            + retired.filter { $0.counts.all + $0.counts.doubtful > 0 }.map { $0.counts.text(of: $0.app) }
    }
}

extension ProgressAnswer.Waiting {
    /// `till-7 com.example.mail config: pending (not connected)`.
    fileprivate var line: String {
        "\(device) \(app) \(policy.rawValue): \(outcome.rawValue)\(isOnline ? "" : " (not connected)")"
    }
}

extension ProgressAnswer.Superseded {
    /// `config of com.example.mail for all was changed meanwhile by @operator.anna`.
    fileprivate var line: String {
        "\(aspect.text) of \(app) for \(layer) was \(isDeleted ? "deleted" : "changed") meanwhile by \(by)"
    }
}

extension OutcomeCounts {
    /// `20 applied, 2 error, 10 pending`: what there is any of.
    var text: String {
        let parts = [
            (applied, "applied"), (error, "error"), (unsupported, "unsupported"), (rejected, "rejected"),
            (delivered, "delivered"), (pending, "pending"),
        ]
        return parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    }

    fileprivate mutating func add(_ other: OutcomeCounts) {
        applied += other.applied
        error += other.error
        unsupported += other.unsupported
        rejected += other.rejected
        delivered += other.delivered
        pending += other.pending
        overdue += other.overdue
    }
}

extension RetirementCounts {
    var all: Int64 { confirmed + outstanding }

    /// `the keys of com.example.mail: destroyed on 9 of 10 devices, and of 1 device perhaps elsewhere`.
    func text(of app: AppID) -> String {
        let elsewhere = "of \(Self.devices(doubtful)) perhaps elsewhere"
        if all == 0, doubtful > 0 { return "the keys of \(app): on no device that is there, and \(elsewhere)" }
        return "the keys of \(app): destroyed on \(confirmed) of \(Self.devices(all))"
            + (doubtful > 0 ? ", and \(elsewhere)" : "")
    }

    private static func devices(_ count: Int64) -> String { "\(count) device\(count == 1 ? "" : "s")" }

    /// What shows who has not confirmed.
    static func outstandingCommand(for app: AppID) -> String {
        "fleetctl get apps --app \(app) --retirement outstanding"
    }
}

extension ProgressAnswer.OtherDisk.Place {
    fileprivate var explanation: String {
        switch self {
        case .removed:
            "devices were removed since, and had not said that the keys are destroyed; `fleetctl apply --again` begins anew,"
                + " without them"
        case .earlier:
            "on devices that came back on another disk the keys may be on the one before; `fleetctl get devices` says so until"
                + " they are enrolled once more"
        case .copied:
            "on devices of which a copy was heard, or an older state, the keys may be on the other disk, whatever they say;"
                + " `fleetctl get devices` says so until they are enrolled once more"
        }
    }
}
