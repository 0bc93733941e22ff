import AppConnect
import FleetProtocol

/// The laws of what an app says of its own accord.
extension AppProcess {
    /// What was blocked is told as what it was: to the agent, where it has not given way to something else, and to the
    /// delegate.
    func checkBlocked(_ request: DataRequest, in session: AppSession) {
        let (action, target) = Self.expectedReport(of: request)
        if let kept = session.requests.last, kept.number == session.lastRequest,
            kept.frame != .blocked(action, target: target, number: kept.number)
        {
            world.fail(.kept, "\(name): \(request) is blocked, and its agent is told \(kept.frame)")
        }
        // To an app that is not authorized nothing is allowed, whatever its other policies say.
        let isAuthorized = if case .auth(.authorized, _) = session.properties[.auth] { true } else { false }
        let said = isAuthorized ? session.properties : .expectedInitial
        guard let attempt = Self.expectedAttempt(request, by: said) else { return }
        if session.inbox.last != .call(.attempted(attempt)) {
            world.fail(.quiet, "\(name): \(attempt) is blocked, and its delegate is to be called otherwise")
        }
    }

    /// An app that says again what it has said of its newest callback says nothing new.
    func checkSaid(
        _ policy: Policy, after known: Acknowledgement?, in session: AppSession, _ effects: [AppSession.Effect]
    ) {
        guard session.answers[policy] == known, !effects.isEmpty else { return }
        world.fail(.quiet, "\(name): its answer for \(policy.rawValue) is what it was, and its agent is told again")
    }

    /// A retirement that the agent has stored is over for the data folder: no later launch asks for it again, whatever has
    /// become of it by then. Until then the next one does.
    ///
    /// - Parameter number: Of the last request that is stored.
    func checkMark(through number: Int64, was wasMarked: Bool) {
        guard let session else { return }
        let isStored = session.requests.contains { $0.isRetirement && $0.number <= number }
        if isMarked, isStored {
            world.fail(.latched, "\(name): its agent has stored its retirement, and its data folder still asks for it")
        }
        if wasMarked, !isMarked, !isStored {
            world.fail(.latched, "\(name): no agent has stored its retirement, and its data folder asks for it no more")
        }
    }

    /// Written again, beside the library's own: what the fleet is told.
    private static func expectedReport(of request: DataRequest) -> (AppEvent.Action, target: String?) {
        switch request {
        case .copy: (.copy, nil)
        case .print: (.print, nil)
        case .openIn(let app): (.openIn, app.text)
        case .openURL(let url, _): (.openURL, url)
        case .openFrom(let app): (.openFrom, app.text)
        case .dragAndDrop(let app): (.dragAndDrop, app.text)
        }
    }

    /// And what the delegate is.
    private static func expectedAttempt(_ request: DataRequest, by said: AppProperties) -> Attempt? {
        switch (request, said[.pasteboard], said[.openIn], said[.openFrom]) {
        case (.copy, .pasteboard(let policy), _, _): .copy(policy)
        case (.print, _, _, _): .print
        case (.openIn(let app), _, .openIn(let policy, _), _): .openIn(policy, app)
        case (.openURL(let url, _), _, _, _): .openURL(url)
        case (.openFrom(let app), _, _, .openFrom(let policy, _)): .openFrom(policy, app)
        case (.dragAndDrop(let app), _, _, _): .dragAndDrop(app)
        default: nil
        }
    }
}
