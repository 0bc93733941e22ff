package import FleetProtocol

/// What the delegate is told, and what it has been told.
extension AppSession {
    /// The next call for a delegate that implements `callbacks`, or nil when none is due. The property of the call has
    /// changed when this returns. `callbacks` is nil when there is no delegate: properties still change, so that the
    /// library's own checks are right, but what the delegate was due stays so.
    package mutating func next(for callbacks: Set<Callback>?) -> (Call?, [Effect]) {
        guard !isStopped, running == nil else { return (nil, flush()) }
        var index = 0
        while index < inbox.count {
            switch inbox[index] {
            case .call(.connectionChanged(let state)):
                inbox.remove(at: index)
                return (begin(.connectionChanged(state)), flush())
            case .ready(let properties):
                guard callbacks != nil else {
                    index += 1
                    continue
                }
                inbox.remove(at: index)
                self.properties = properties
                phase = .ready
                return (begin(.ready), flush())
            case .call(let call):
                guard let callbacks else {
                    index += 1
                    continue
                }
                inbox.remove(at: index)
                if let callback = call.callback, !callbacks.contains(callback) { continue }
                return (begin(call), flush())
            case .delivery(let number, let delivery, let problem):
                guard phase == .ready else {
                    index += 1
                    continue
                }
                guard !isOvertaken(delivery) else {
                    inbox.remove(at: index)
                    taken[delivery.kind] = Taken(number: number, delivery: delivery, hasReturned: true)
                    send(.delivered(number))
                    continue
                }
                set(delivery)
                guard let callbacks else {
                    index += 1
                    continue
                }
                inbox.remove(at: index)
                if let call = deliver(number, delivery, problem, to: callbacks) { return (begin(call), flush()) }
            }
        }
        return (nil, flush())
    }

    private mutating func begin(_ call: Call) -> Call {
        running = call
        return call
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
        if case .policy(.auth, .selfRetired) = delivery { isRetirementUnconfirmed = false }
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
