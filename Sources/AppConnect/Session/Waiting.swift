package import FleetProtocol

extension AppSession {
    /// An entry of the inbox.
    package enum Waiting: Hashable, Sendable {
        case ready(AppProperties)
        /// `problem` says what was not understood of it: it then counts as the default, and is answered with `error`.
        case delivery(number: Int64, Delivery, problem: String?)
        case call(Call)
    }

    /// Appends a call that the delegate gets when it is ready for it. Of too many the oldest attempt goes, if there is one.
    mutating func queue(_ call: Call) {
        inbox.append(.call(call))
        let calls = inbox.indices.filter { if case .call = inbox[$0] { true } else { false } }
        if calls.count > Self.maximumCalls {
            let attempt = calls.first { if case .call(.attempted) = inbox[$0] { true } else { false } }
            inbox.remove(at: attempt ?? calls[0])
        }
        effects.append(.callsWaiting)
    }
}

extension AppSession.Call {
    /// Whether it comes from the app or library itself, so that a lost connection does not take it back.
    var isFromApp: Bool {
        switch self {
        case .connectionChanged, .attempted: true
        case .ready, .changed, .activity: false
        }
    }

    /// What the delegate must implement for it; nil for what every delegate has.
    var callback: Callback? {
        switch self {
        case .connectionChanged, .ready: nil
        case .changed(_, let delivery): delivery.kind.callback
        case .attempted: .attempts
        case .activity: .activity
        }
    }
}

/// What a delivery is about. At most one delivery of a kind is under way.
package enum DeliveryKind: Hashable, Sendable {
    case policy(Policy)
    case managed
    case availability

    /// The optional callback of that kind; nil for auth, which is required, and for what the library enforces itself.
    package var callback: Callback? {
        switch self {
        case .policy(.secureServices): nil
        case .policy(let policy): Callback(of: policy)
        case .managed: .managedPolicy
        case .availability: .secureServices
        }
    }

    /// Whether an app is never told: the library enforces it.
    var isSilent: Bool { self == .policy(.dragAndDrop) || self == .policy(.secureServices) }

    /// The policy that an app would acknowledge.
    package var acknowledged: Policy? {
        if case .policy(let policy) = self, policy.isAcknowledgedByApp { policy } else { nil }
    }
}

extension Delivery {
    package var kind: DeliveryKind {
        switch self {
        case .policy(let value, _): .policy(value.policy)
        case .managed: .managed
        case .availability: .availability
        }
    }
}
