package import FleetProtocol

/// What the agent says.
extension AppSession {
    package mutating func received(_ frame: AgentFrame) -> [Effect] {
        if isStopped {
            if case .kept(let number) = frame { stored(through: number) }
            if isParting, case .welcome(let agent, let device, let kept, _) = frame {
                welcomed(by: agent, device, kept)
            }
            return flush()
        }
        switch frame {
        case .welcome(let agent, let device, let kept, let hasPasteboard):
            self.hasPasteboard = hasPasteboard
            welcomed(by: agent, device, kept)
        case .kept(let number): stored(through: number)
        case .refused(let refusal, let message):
            // Another process is the app now, or this one may not be it any more. Who waits for a callback to return has not
            // even asked, and comes again.
            if connection != .waiting { keys = nil }
            effects.append(.disconnect(AppConnectError(refusal.code, message)))
        case .ready(let properties): receivedReady(properties)
        case .deliver(let number, let delivery): receivedDelivery(number, delivery, problem: nil)
        case .displayed(let id, let isDone), .copied(let id, let isDone): answered(id, .done(isDone))
        case .pasted(let id, let item): answered(id, .pasted(item))
        case .activity(let isActive): receivedActivity(isActive)
        case .keys(let keys): received(keys)
        case .autoLock(let after, let isOwn): (autoLock, locksItself) = (after, isOwn && after != nil)
        case .codeResult, .passcodeResult: break
        }
        return flush()
    }

    /// A delivery with a value that this library does not know counts as its default, for that policy alone; the library
    /// answers for it that it was not understood.
    mutating func received(_ unreadable: UnreadableDelivery) -> [Effect] {
        guard !isStopped else { return [] }
        receivedDelivery(
            unreadable.number, .policy(.default(of: unreadable.policy), reason: .unknownValue),
            problem: unreadable.problem)
        return flush()
    }

    /// A delivery of which this library knows nothing has come all the same: the agent sends one of a kind at a time, and
    /// the next one waits for this word.
    mutating func passedOver(_ delivery: Int64) -> [Effect] {
        guard !isStopped, connection == .open else { return [] }
        send(.delivered(delivery))
        return flush()
    }

    private mutating func welcomed(by agent: String, _ device: DeviceID, _ kept: Int64?) {
        guard connection == .registering else {
            if connection != .open { violation("a welcome before the registration") }
            return
        }
        connection = .open
        if !isStopped { change(to: .connected(device: device.text, agent: agent)) }
        repeatRequests(kept: kept)
        for known in taken.values.filter(\.isAlone).sorted(by: { $0.number < $1.number }) {
            effects.append(.send(.taken(known.number)))
        }
        for frame in held { effects.append(.send(frame)) }
        held = []
    }

    private mutating func answered(_ question: Int64, _ answer: Answer) {
        copying.remove(question)
        if questions.remove(question) != nil { effects.append(.answered(id: question, answer)) }
    }

    private mutating func receivedReady(_ properties: AppProperties) {
        guard connection == .open else { return violation("ready before the welcome") }
        // An agent that has lost its memory begins the launch again; the app has had its ready. What differs follows.
        guard phase == .starting else { return effects.append(.send(.ready)) }
        guard !isReadyWaiting else { return }
        owesReady = true
        inbox.append(.ready(properties))
        effects.append(.callsWaiting)
    }

    private var isReadyWaiting: Bool { inbox.contains { if case .ready = $0 { true } else { false } } }

    private mutating func receivedDelivery(_ number: Int64, _ delivery: Delivery, problem: String?) {
        guard connection == .open else { return violation("a delivery before the welcome") }
        guard phase == .ready || isReadyWaiting else { return violation("a delivery before ready") }
        if let known = taken[delivery.kind], known.number == number, known.delivery == delivery {
            // Sent twice. While it runs, its own `delivered` follows.
            if known.hasReturned { send(.delivered(number)) }
            return
        }
        // The agent sends one of a kind at a time; should it not, the newest state is the one that counts.
        inbox.removeAll {
            if case .delivery(_, let earlier, _) = $0 { earlier.kind == delivery.kind } else { false }
        }
        inbox.append(.delivery(number: number, delivery, problem: problem))
        effects.append(.callsWaiting)
    }

    private mutating func receivedActivity(_ isActive: Bool) {
        guard connection == .open, phase == .ready else { return }  // An agent tells it to whoever is connected.
        if let opposite = inbox.firstIndex(of: .call(.activity(isActive: !isActive))) {
            inbox.remove(at: opposite)  // The screen was taken and given back before the app could be told.
        } else if isActive == isResigned, !inbox.contains(.call(.activity(isActive: isActive))) {
            queue(.activity(isActive: isActive))
        }
    }

    mutating func violation(_ what: String) {
        effects.append(.disconnect(AppConnectError(.badFrame, "the agent sent \(what)")))
    }
}

extension AgentFrame.Refusal {
    fileprivate var code: AppConnectError.Code {
        switch self {
        case .notAllowed: .notAllowed
        case .inUse: .inUse
        case .version: .version
        case .invalid: .invalid
        case .tooMany: .tooMany
        }
    }
}
