package import FleetProtocol

/// What the app asks and answers.
extension AppSession {
    func mustBeReady(for what: String) throws {
        switch phase {
        case .ready: return
        case .stopped: throw AppConnectError(.stopped, "\(what) after stop()")
        case .created, .starting: throw AppConnectError(.notReady, "\(what) before AppConnect was ready")
        }
    }

    func property<Value>(_ name: String, _ value: (AppProperties) -> Value) throws -> Value {
        switch phase {
        case .ready: return value(properties)
        case .stopped: throw AppConnectError(.propertyAccess, "\(name) was read after stop()")
        case .created, .starting:
            throw AppConnectError(.propertyAccess, "\(name) was read before AppConnect was ready")
        }
    }

    /// Takes the app's answer to the newest callback of `policy` that has begun. An equal answer sends nothing.
    package mutating func acknowledge(_ policy: Policy, _ state: PolicyState, _ message: String?) throws -> [Effect] {
        try mustBeReady(for: "\(policy.rawValue) was acknowledged")
        guard policy != .auth || state != .unsupported else {
            throw AppConnectError(
                .unsupportedAuth, "the authorization state cannot be acknowledged as unsupported: every app has it")
        }
        guard let delivery = answerable[policy] else {
            throw AppConnectError(
                .neverDelivered, "\(policy.rawValue) was acknowledged, and no callback of it has begun in this process")
        }
        guard delivery.isUnderstood else { return [] }
        answer(
            Acknowledgement(
                delivery: delivery.number, policy: policy, state: state, message: message.map { Text.printable($0) }))
        return flush()
    }

    mutating func answer(_ acknowledgement: Acknowledgement) {
        guard answers[acknowledgement.policy] != acknowledgement else { return }
        answers[acknowledgement.policy] = acknowledgement
        send(.acknowledge(acknowledgement))
    }

    /// The app retires itself: its properties are so at once. The callbacks follow when the agent has taken note, with
    /// numbers to acknowledge; without an agent the request is kept, also beyond the end of the process.
    package mutating func retire() throws -> [Effect] {
        try mustBeReady(for: "retire() was called")
        guard properties.authReason != .selfRetired else { return [] }
        isRetirementOwed = true
        effects.append(.retirementOwed(true))
        askForRetirement()
        return flush()
    }

    /// The ready of a launch begins, and a process before has retired the app: so has this one, unless its agent knows.
    /// Asked for only now: an agent that has stored it says so, unless the fleet has ended it since. What became of a request
    /// that this process has not made nobody can tell, so the app is retired once more then.
    mutating func goOnRetiring() {
        guard isRetirementOwed else { return }
        if properties.authReason == .selfRetired { settleRetirement() } else { askForRetirement() }
    }

    private mutating func askForRetirement() {
        properties = .initial
        properties[.auth] = .auth(.retired, message: PolicyValue.selfRetiredMessage)
        properties.authReason = .selfRetired
        keys = nil
        ask { .retire(number: $0) }
    }

    /// Whether the app's policy allows it; what it blocks is reported, and the delegate told.
    package mutating func request(_ request: DataRequest) throws -> (Bool, [Effect]) {
        try mustBeReady(for: "something was requested")
        guard let attempt = request.blocked(by: properties, in: registration?.app) else { return (true, []) }
        ask { .blocked(attempt.action, target: request.target, number: $0) }
        queue(.attempted(attempt))
        return (false, flush())
    }

    /// The id under which the answer will come; nil when there is no agent to ask.
    package mutating func display(_ text: String) -> (Int64?, [Effect]) {
        guard phase == .ready, connection == .open else { return (nil, []) }
        let id = inquire { .display(id: $0, text: Text.printable(text, limit: Link.maximumText)) }
        return (id, flush())
    }

    /// Asks the agent under a new id.
    mutating func inquire(_ frame: (_ id: Int64) -> AppFrame) -> Int64 {
        lastQuestion += 1
        questions.insert(lastQuestion)
        effects.append(.send(frame(lastQuestion)))
        return lastQuestion
    }

    /// Nobody waits for that answer any longer.
    mutating func forgetQuestion(_ id: Int64) {
        questions.remove(id)
        copying.remove(id)
    }
}
