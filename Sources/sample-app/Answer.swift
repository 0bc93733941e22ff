import AppConnect
import ArgumentParser
import FleetProtocol

/// How the app acknowledges: everything as applied, or some or all policies with another state.
struct Answer: Sendable {
    var state = PolicyState.applied
    /// Nil for all.
    var policies: Set<Policy>?

    init() {}

    init(_ text: String) throws {
        let parts = text.split(separator: "=", maxSplits: 1)
        guard let name = parts.first, let state = PolicyState(wireName: String(name)) else {
            throw ValidationError("'\(text)' is no state: expected " + PolicyState.wireNames.joined(separator: ", "))
        }
        self.state = state
        guard parts.count == 2 else { return }
        policies = try Set(
            parts[1].split(separator: ",").map { name in
                guard let policy = Policy(rawValue: String(name)), policy.isAcknowledgedByApp else {
                    throw ValidationError("'\(name)' is no policy that an app acknowledges")
                }
                return policy
            })
    }

    func state(for policy: Policy) -> PolicyState {
        guard policies?.contains(policy) ?? true else { return .applied }
        return policy == .auth && state == .unsupported ? .applied : state
    }

    func message(for policy: Policy) -> String? {
        state(for: policy) == .applied ? nil : "sample-app was told to answer \(state(for: policy))"
    }
}
