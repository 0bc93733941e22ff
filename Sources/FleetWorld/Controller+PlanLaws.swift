import FleetController
import FleetProtocol

/// What the controller has said that a change would do, just before it was asked to make it.
struct PlannedChange {
    let plan: Result<Plan, Response.Failure>
    /// The counts before, and the newest revision.
    let rows: [StatusRow]
    let latest: Int64
}

/// A plan is what comes of the change, and changes nothing.
extension Controller {
    func plan(_ asked: Asked, _ message: ControllerCore.Message) -> PlannedChange? {
        guard let running, asked.verb.canBePlanned,
            let body = try? JSONValue(json: asked.body, limit: Request.maximumSize),
            let rows = try? counts(running), let latest = try? store.latest().number
        else { return nil }
        let request = PlanRequest(verb: asked.verb, body: body)
        defer { if world.fault == .plansCarriedOut { carryOut(message) } }
        do {
            let plan = try running.core.plan(request, by: asked.user, at: clock)
            return PlannedChange(plan: .success(plan), rows: rows, latest: latest)
        } catch let failure as Response.Failure {
            return PlannedChange(plan: .failure(failure), rows: rows, latest: latest)
        } catch {
            world.fail(.planned, "\(asked.verb.rawValue) cannot be planned: \(error)")
            return nil
        }
    }

    private func counts(_ running: Running) throws -> [StatusRow] {
        try running.core.rows(of: .status, ListRequest(), now: clock).map {
            try StatusRow(json: $0.json, limit: Response.maximumSize)
        }
    }

    /// Under another id.
    private func carryOut(_ message: ControllerCore.Message) {
        guard let running, let request = try? Request(json: message.payload, limit: Request.maximumSize) else { return }
        let other = Request(
            id: .random(using: &world.noise), replyTo: request.replyTo, notAfter: request.notAfter, body: request.body)
        let copy = ControllerCore.Message(topic: message.topic, payload: other.json, isRetained: message.isRetained)
        _ = running.core.handle(.messages([copy]), at: clock, uptime: world.now)
    }

    func check(_ planned: PlannedChange, _ response: Response) throws {
        guard let running else { return }
        switch (planned.plan, response.result) {
        case (.success(let plan), .success(let body, _)):
            let change = try ChangeResponse(json: body.json, limit: Response.maximumSize)
            if plan.warnings != change.warnings {
                world.fail(.planned, "\(plan.warnings) were planned, and warned was of \(change.warnings)")
            }
            let history = try running.core.rows(of: .history, ListRequest(), now: clock)
            let new = history.filter { $0["revision"]?.integerValue ?? 0 > planned.latest }
            let told = try new.reversed().map { entry in
                try PlannedDocument(json: entry.json, limit: Response.maximumSize).jsonText
            }
            let issued = try store.latest().number - planned.latest
            if new.count != issued {
                world.fail(.planned, "history tells of \(new.count) of \(issued) documents that were changed at once")
            }
            let wanted = plan.documents.map(\.jsonText)
            if told != wanted { world.fail(.planned, "\(wanted) was planned, and changed was \(told)") }
            let count = change.results.count(where: \.isChanged)
            if !change.results.isEmpty, count != plan.documents.count {
                world.fail(.planned, "\(plan.documents.count) documents were planned, and \(count) changed")
            }
            let rows = try counts(running)
            // An app that nobody has may become known, or be forgotten.
            let apps = Set((planned.rows + rows).map(\.app)).sorted()
            let moves = apps.flatMap { app in
                Policy.allCases.compactMap { policy in
                    let none = StatusRow(app: app, policy: policy, counts: .init(), offline: 0)
                    let before = planned.rows.first { $0.app == app && $0.policy == policy } ?? none
                    let after = rows.first { $0.app == app && $0.policy == policy } ?? none
                    return before == after ? nil : PlannedMove(before: before, after: after)
                }
            }
            if plan.moves != moves {
                world.fail(
                    .planned, "\(plan.moves.map(\.jsonText)) was planned, and moved was \(moves.map(\.jsonText))")
            }
        case (.failure(let planned), .failure(let failure)):
            // One whose time is over, or whoever may not ask, is refused with that first.
            guard ![.forbidden, .expired].contains(failure.code), failure.location != "notAfter" else { return }
            if planned != failure { world.fail(.planned, "\(failure) comes of what was planned to be \(planned)") }
        case (.success, .failure(let failure)):
            guard ![.forbidden, .expired].contains(failure.code), failure.location != "notAfter" else { return }
            world.fail(.planned, "a change is refused that was planned: \(failure)")
        case (.failure(let failure), .success):
            world.fail(.planned, "a change is made that was planned to be refused: \(failure)")
        }
    }
}
