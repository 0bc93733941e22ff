import DeviceAgent
import FleetProtocol

/// The laws of what is said of a policy's outcome.
extension Machine {
    /// What an app has answered stands until it is told something else, and an error is of its revision alone.
    func checkAnswers(_ app: AppRecord, was old: AppRecord) {
        for policy in Policy.allCases {
            let (was, now) = (old[policy].attempt, app[policy].attempt)
            if was.outcome == .error, now.outcome == .error, now.revision != was.revision,
                !watch.answering.contains(app.id)
            {
                world.fail(.ends, "\(name)/\(app.id): the error of \(policy.rawValue) was carried to another revision")
            }
            if was.outcome == .applied || was.outcome == .unsupported, now.outcome == .delivered {
                world.fail(
                    .kept,
                    "\(name)/\(app.id): its answer to \(policy.rawValue), \(was.outcome), is lost")
            }
        }
    }

    /// What has come, and what the app has still to be told, is not said to be in force: that is what it has answered before, if
    /// anything. A list of authorized apps may have been the one that it has, and be another one, in one moment.
    func checkUntold(_ app: AppRecord, was old: AppRecord, in changes: [StoreChange]) {
        guard watch.isAlone, !world.controller.wasPutBack, !wasPutBack else { return }
        for policy in [Policy.config, .openIn, .openFrom, .pasteboard, .print]
        where app[policy].applied != old[policy].applied && app[policy].attempt.outcome == .pending {
            let now = app[policy]
            let hasCome = changes.contains { change in
                guard case .document(.desired(_, app.id, let aspect), .some) = change else { return false }
                return aspect == policy.aspect
            }
            guard hasCome, now.applied == now.received, !now.namesAuthorized, !old[policy].namesAuthorized else {
                continue
            }
            world.fail(
                .summary,
                "\(name)/\(app.id): \(policy.rawValue) of \(now.received) is still to be told, and is said to be"
                    + " applied")
        }
    }

    /// An attempt's time says since when it stands so.
    func checkAttemptTimes(_ app: AppRecord, was old: AppRecord?) {
        for policy in Policy.allCases {
            let (before, attempt) = (old?[policy].attempt, app[policy].attempt)
            let isSame = before.map {
                ($0.revision, $0.outcome, $0.message) == (attempt.revision, attempt.outcome, attempt.message)
            }
            // It may have ended otherwise, and as before again, in one moment.
            guard attempt.at != clock.wall, isSame != true || attempt.at != before?.at else { continue }
            world.fail(
                .summary,
                "\(name)/\(app.id): \(policy.rawValue) is \(attempt.outcome) since \(attempt.at), and really since"
                    + " \((isSame == true ? before?.at : nil) ?? clock.wall)")
        }
    }

    /// What is not in force as it was wished is said to be rejected, and why.
    func checkRejections(_ app: AppRecord) {
        for policy in Policy.allCases where app[policy].attempt.outcome == .rejected {
            guard app[policy].attempt.message?.isEmpty ?? true else { continue }
            world.fail(.summary, "\(name)/\(app.id): \(policy.rawValue) is rejected, and nobody says why")
        }
        if app.authReason == .outOfContact, app.latch == nil, app[.auth].source != nil,
            app[.auth].attempt.outcome != .rejected
        {
            world.fail(
                .summary, "\(name)/\(app.id): blocked, and its authorization is \(app[.auth].attempt.outcome)")
        }
    }

    /// The event of a retirement names what has retired the app. Of several in one moment the last is in force.
    func checkWipedTold(_ app: AppRecord, was old: AppRecord, in changes: [StoreChange]) {
        guard watch.isAlone, let latch = app.latch, old.latch == nil else { return }
        let told = changes.compactMap { change -> AppEvent? in
            guard case .event(let kept) = change, case .event(let event) = kept.body else { return nil }
            return event.kind == .wiped && event.header.app == app.id ? event : nil
        }
        guard told.count == 1, told[0].message != "\(latch.reason)" else { return }
        world.fail(
            .kept,
            "\(name)/\(app.id): retired by \(latch.reason), and its event says \(told[0].message ?? "nothing")")
    }

    /// Of what cannot be read at all, what was in force before stays so, and secure services are locked. An app that retires
    /// itself has the defaults, until something else is certain.
    func checkUnreadable(_ app: AppRecord, was old: AppRecord, in changes: [StoreChange]) {
        guard app.latch == old.latch else { return }
        checkUnreadableLevel(app, was: old, in: changes)
        for policy in [Policy.config, .secureServices] where app[policy].attempt.outcome == .rejected {
            var expected = old[policy].value
            if case .secureServices(var services) = expected, app[policy].problem != "the app has retired itself" {
                services.isLocked = true
                expected = .secureServices(services)
            }
            guard app[policy].value != expected else { continue }
            world.fail(
                .barrier,
                "\(name)/\(app.id): \(policy.rawValue) of \(app[policy].received) cannot be read, and went from "
                    + "\(old[policy].value) to \(app[policy].value)")
        }
    }
}
