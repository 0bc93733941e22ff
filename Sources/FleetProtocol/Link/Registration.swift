/// How an app introduces itself.
package struct Registration: Hashable, Sendable {
    package var app: AppID
    /// Of this installation of the app: a new one is a first launch.
    package var install: RandomID
    /// Of this process: the same when it comes back to a restarted agent.
    package var launch: RandomID
    package var sdk: String
    package var implements: Set<Callback>
    /// Where the agent tells apps of one user apart by token.
    package var token: String?
    /// For a process that has had its ready callback and comes back to a restarted agent: what the agent may have missed.
    package var resume: Resume?

    /// What a process did while no agent listened. Deliveries are named by their numbers.
    package struct Resume: Hashable, Sendable {
        /// The newest delivery of each kind whose callback has returned.
        package var delivered: [Int64]
        /// Deliveries that the process has taken and whose callback has not returned yet: it says `delivered` of each
        /// on the new connection, and the agent does not send them again.
        package var begun: [Int64]
        /// The newest acknowledgement of each policy.
        package var acknowledgements: [Acknowledgement]

        /// The highest delivery that it names; 0 where it names none.
        package var newest: Int64 { max(delivered.max() ?? 0, begun.max() ?? 0) }

        package init(delivered: [Int64] = [], begun: [Int64] = [], acknowledgements: [Acknowledgement] = []) {
            self.delivered = delivered
            self.begun = begun
            self.acknowledgements = acknowledgements
        }
    }

    package init(
        app: AppID, install: RandomID, launch: RandomID, sdk: String, implements: Set<Callback>, token: String? = nil,
        resume: Resume? = nil
    ) {
        self.app = app
        self.install = install
        self.launch = launch
        self.sdk = sdk
        self.implements = implements
        self.token = token
        self.resume = resume
    }
}

/// An app's answer to a policy. It binds to the newest delivery of that policy whose callback has begun.
package struct Acknowledgement: Hashable, Sendable {
    package var delivery: Int64
    package var policy: Policy
    package var state: PolicyState
    package var message: String?

    package init(delivery: Int64, policy: Policy, state: PolicyState, message: String? = nil) {
        self.delivery = delivery
        self.policy = policy
        self.state = state
        self.message = message
    }
}
