public import FleetProtocol

/// The app's answers. Each answers the newest callback of its policy that has begun, during it or any time later, from
/// any thread; a later one replaces an earlier one, an equal one sends nothing. Without an agent the newest of each policy
/// is kept, for the life of the process. The message reaches the operators, up to 1,000 characters of it.
///
/// They throw ``AppConnectError``, and send nothing, before ready, after stop, and where no callback of the policy has begun.
extension AppConnect {
    /// Answers the authorization callback. `unsupported` is refused with an error: every app implements it.
    public func authStateApplied(_ state: PolicyState, message: String? = nil) throws {
        try acknowledge(.auth, state, message)
    }

    /// Answers the configuration callback.
    public func configApplied(_ state: PolicyState, message: String? = nil) throws {
        try acknowledge(.config, state, message)
    }

    /// Answers the open-in callback.
    public func openInPolicyApplied(_ state: PolicyState, message: String? = nil) throws {
        try acknowledge(.openIn, state, message)
    }

    /// Answers the open-from callback.
    public func openFromPolicyApplied(_ state: PolicyState, message: String? = nil) throws {
        try acknowledge(.openFrom, state, message)
    }

    /// Answers the pasteboard callback.
    public func pasteboardPolicyApplied(_ state: PolicyState, message: String? = nil) throws {
        try acknowledge(.pasteboard, state, message)
    }

    /// Answers the print callback.
    public func printPolicyApplied(_ state: PolicyState, message: String? = nil) throws {
        try acknowledge(.print, state, message)
    }

    /// Answers the secure file I/O callback.
    public func secureFileIOPolicyApplied(_ state: PolicyState, message: String? = nil) throws {
        try acknowledge(.secureFileIO, state, message)
    }

    private func acknowledge(_ policy: Policy, _ state: PolicyState, _ message: String?) throws {
        try perform { try $0.acknowledge(policy, state, message) }
    }
}
