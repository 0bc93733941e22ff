/// Every property of an app at one moment.
package struct AppProperties: Hashable, Sendable {
    package var managed: ManagedPolicy
    package var authReason: AuthReason
    package var availability: SecureServicesAvailability
    /// One value for each policy, by ``Policy/index``; the one of `secureServices` does not pass over the link.
    package var values: [PolicyValue]

    package init(
        managed: ManagedPolicy, authReason: AuthReason, availability: SecureServicesAvailability, values: [PolicyValue]
    ) {
        self.managed = managed
        self.authReason = authReason
        self.availability = availability
        self.values = values
    }

    package subscript(policy: Policy) -> PolicyValue {
        get { values[policy.index] }
        set { values[policy.index] = newValue }
    }
}
