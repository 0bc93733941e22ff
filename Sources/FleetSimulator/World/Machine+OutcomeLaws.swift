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
