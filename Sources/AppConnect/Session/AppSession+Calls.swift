package import FleetProtocol

/// What the delegate is told, and what it has been told.
extension AppSession {
    /// The next call for a delegate that implements `callbacks`, or nil when none is due. The property of the call has
    /// changed when this returns. `callbacks` is nil when there is no delegate: properties still change, so that the
    /// library's own checks are right, but what the delegate was due stays so, of each kind the newest.
    package mutating func next(for callbacks: Set<Callback>?) -> (Call?, [Effect]) {
        guard !isStopped, running == nil else { return (nil, flush()) }
        var index = 0
        while running == nil, index < inbox.count {
            switch take(inbox[index], for: callbacks) {
            case .notYet: index += 1
            case .done: inbox.remove(at: index)
            case .call(let call):
                inbox.remove(at: index)
                running = call
                if case .activity(let isActive) = call { isResigned = !isActive }
            }
        }
        return (running, flush())
    }

    /// What becomes of an entry of the inbox whose turn has come.
    private enum Turn {
        /// It stays where it is.
        case notYet
        /// The delegate need not be called for it.
        case done
        case call(Call)
    }

    private mutating func take(_ entry: Waiting, for callbacks: Set<Callback>?) -> Turn {
        switch entry {
        case .call(.connectionChanged(let state)): return .call(.connectionChanged(state))
        case .call(let call):
            guard let callbacks else { return .notYet }
            if let callback = call.callback, !callbacks.contains(callback) { return .done }
            return .call(call)
        case .ready(let properties):
            guard callbacks != nil else { return .notYet }
            self.properties = properties
            phase = .ready
            goOnRetiring()
            return .call(.ready)
        case .delivery(let number, let delivery, let problem):
            guard phase == .ready else { return .notYet }
            guard !isOvertaken(delivery) else {
                taken[delivery.kind] = Taken(number: number, delivery: delivery, hasReturned: true)
                send(.delivered(number))
                return .done
            }
            set(delivery)
            guard let callbacks else {
                if taken[delivery.kind]?.number != number { takeAlone(number, delivery) }
                return .notYet
            }
            return deliver(number, delivery, problem, to: callbacks).map(Turn.call) ?? .done
        }
    }

    /// Nobody can be called for what is in the properties now. It stays under way, and the agent sends what comes next.
    private mutating func takeAlone(_ number: Int64, _ delivery: Delivery) {
        taken[delivery.kind] = Taken(number: number, delivery: delivery, hasReturned: false, isAlone: true)
        send(.taken(number))
    }

    package mutating func returned(_ call: Call) -> [Effect] {
        running = nil
        guard !isStopped else { return [] }
        switch call {
        case .ready:
            if owesReady { send(.ready) }
            owesReady = false
        case .changed(let number, let delivery):
            if taken[delivery.kind]?.number == number { taken[delivery.kind]?.hasReturned = true }
            send(.delivered(number))
        case .connectionChanged, .attempted, .activity: break
        }
        if connection == .waiting { register() }
        if !inbox.isEmpty { effects.append(.callsWaiting) }
        return flush()
    }

    /// The call for a delivery; nil when the library has answered it for the app.
    private mutating func deliver(
        _ number: Int64, _ delivery: Delivery, _ problem: String?, to callbacks: Set<Callback>
    ) -> Call? {
        let kind = delivery.kind
        let isImplemented = kind.callback.map(callbacks.contains) ?? !kind.isSilent
        taken[kind] = Taken(number: number, delivery: delivery, hasReturned: !isImplemented)
        if isImplemented {
            if let policy = kind.acknowledged {
                answerable[policy] = Answerable(number: number, isUnderstood: problem == nil)
                if let problem {
                    answer(Acknowledgement(delivery: number, policy: policy, state: .error, message: problem))
                }
            }
            return .changed(number: number, delivery)
        }
        if let policy = kind.acknowledged {
            answer(
                Acknowledgement(
                    delivery: number, policy: policy, state: .unsupported, message: Self.unsupportedMessage))
        } else {
            send(.delivered(number))
        }
        return nil
    }

    static let unsupportedMessage = "This app does not implement this policy."

    func set(_ delivery: Delivery, in properties: inout AppProperties) {
        switch delivery {
        case .policy(let value, let reason):
            properties[value.policy] = value
            if value.policy == .auth { properties.authReason = reason }
        case .managed(let managed): properties.managed = managed
        case .availability(let availability): properties.availability = availability
        }
    }

    private mutating func set(_ delivery: Delivery) {
        if case .policy(.auth, .selfRetired) = delivery { confirmRetirement() }
        set(delivery, in: &properties)
    }

    /// Whether the app has retired itself since the agent sent this. Such a delivery changes nothing and calls nothing:
    /// the agent's own word about the retirement follows it.
    private func isOvertaken(_ delivery: Delivery) -> Bool {
        guard isRetirementUnconfirmed else { return false }
        if case .policy(.auth, let reason) = delivery { return reason != .selfRetired }
        var changed = properties
        set(delivery, in: &changed)
        return changed != properties
    }
}
