/// The state of every policy of one app on one device: the acknowledgements. Retained, so it is the present state.
package struct Status: Hashable, Sendable {
    package enum Keys: String, CaseIterable, Sendable { case present, destroyed }

    /// A document that failed verification.
    package struct Refusal: Hashable, Sendable {
        package let topic: String
        package let reason: String
        package let at: Timestamp

        package init(topic: String, reason: String, at: Timestamp) {
            self.topic = topic
            self.reason = reason
            self.at = at
        }
    }

    /// The largest status on the wire, in bytes.
    package static let maximumSize = 16 * 1_024
    package static let maximumRefusals = 8

    package var fleet: FleetID
    package var device: DeviceID
    package var app: AppID
    package var order: ReportOrder
    package var at: Timestamp
    package var agent: String
    package var sdk: String
    package var isRunning: Bool
    package var isReady: Bool
    package var managed: ManagedPolicy
    package var authState: AuthState
    package var authReason: AuthReason
    package var authMessage: String
    package var keys: Keys
    package var secureServices: SecureServicesAvailability
    package var logLevel: LogLevel
    /// The number of the newest event of this boot; 0 for none.
    package var events: Int64
    /// One report for each policy, by ``Policy/index``.
    package var policies: [PolicyReport]
    package var refusals: [Refusal]

    package init(
        fleet: FleetID, device: DeviceID, app: AppID, order: ReportOrder, at: Timestamp, agent: String, sdk: String,
        isRunning: Bool, isReady: Bool, managed: ManagedPolicy, authState: AuthState, authReason: AuthReason,
        authMessage: String, keys: Keys, secureServices: SecureServicesAvailability, logLevel: LogLevel,
        events: Int64, policies: [PolicyReport], refusals: [Refusal]
    ) {
        self.fleet = fleet
        self.device = device
        self.app = app
        self.order = order
        self.at = at
        self.agent = agent
        self.sdk = sdk
        self.isRunning = isRunning
        self.isReady = isReady
        self.managed = managed
        self.authState = authState
        self.authReason = authReason
        self.authMessage = authMessage
        self.keys = keys
        self.secureServices = secureServices
        self.logLevel = logLevel
        self.events = events
        self.policies = policies
        self.refusals = refusals
    }

    package subscript(policy: Policy) -> PolicyReport { policies[policy.index] }

    /// Where it is published.
    package var address: Address { .reply(device, app, .status) }
}
