package import FleetProtocol

extension ControllerCore {
    /// What a change would do, found out by making it and taking it back. Throws what it would be refused with.
    package func plan(_ request: PlanRequest, by user: User, at now: Timestamp) throws -> Plan {
        let (documents, warnings, after) = try store.rehearsal { transaction in
            // One that is known by its documents alone may be forgotten with them.
            let known = try request.verb.namesApps ? [] : Set(transaction.knownApps(after: "", limit: .max))
            let outcome = try ChangeOutcome(
                request.verb, body: request.body.json, by: user, identity: identity, transaction: transaction,
                enrolments: enrolments, schedule: schedule, now: now)
            // A change with an answer that nobody could read is refused, whatever the id that it answers.
            _ = try outcome.answer.response(to: identity.fleet)
            let documents = try transaction.history(
                app: nil, layer: nil, before: JSONValue.largestInteger, limit: outcome.issued.count
            ).reversed().map(PlannedDocument.init)
            let apps = try outcome.movedApps ?? known.union(transaction.knownApps(after: "", limit: .max))
            return (documents, outcome.warnings, try rows(of: apps.sorted(), transaction, now))
        }
        let before = try store.transaction { try rows(of: after.map(\.app), $0, now) }
        let moves = zip(before, after).flatMap { before, after in
            zip(before.rows, after.rows).filter { $0 != $1 }.map(PlannedMove.init)
        }
        return Plan(documents: documents, warnings: warnings, moves: moves)
    }

    private func rows(
        of apps: [AppID], _ transaction: FleetStore.Transaction, _ now: Timestamp
    ) throws -> [(app: AppID, rows: [StatusRow])] {
        try apps.map { app in
            let tally = try Tally.of(app, transaction, now: now)
            return (app, Policy.allCases.map(tally.row))
        }
    }
}

extension Verb {
    /// Whether it changes documents of apps alone, and nobody's groups.
    fileprivate var namesApps: Bool { self == .apply || self == .delete }
}

extension ChangeOutcome {
    /// The apps whose counts the documents may move; nil for all that there are.
    fileprivate var movedApps: Set<AppID>? {
        var apps: Set<AppID> = []
        for document in issued {
            guard case .desired(_, let app, _) = document.address else { return nil }
            apps.insert(app)
        }
        return apps
    }
}

extension PlannedDocument {
    fileprivate init(_ entry: HistoryEntry) {
        self.init(
            app: entry.app, target: entry.target, aspect: entry.aspect, old: entry.old.map(JSONValue.init(stored:)),
            new: entry.new.map(JSONValue.init(stored:)))
    }
}
