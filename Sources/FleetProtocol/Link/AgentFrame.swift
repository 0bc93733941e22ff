/// From the agent to the app.
package enum AgentFrame: Hashable, Sendable {
    /// `kept` as in the frame of that name, of what this launch has said before; nil from an agent that does not count.
    /// `hasPasteboard`: it knows `copy` and `paste`.
    case welcome(agent: String, device: DeviceID, kept: Int64? = nil, hasPasteboard: Bool = false)
    case refused(Refusal, message: String)
    /// All properties, for the ready callback. Once per launch.
    case ready(AppProperties)
    /// One change: the property changes, then the callback runs, then `delivered` goes back with its number. Numbers
    /// grow from one delivery of an app to the next, also across restarts of the agent.
    case deliver(number: Int64, Delivery)
    case displayed(id: Int64, Bool)
    /// The agent is about to take the screen, or has given it back.
    case activity(isActive: Bool)
    /// The answer to `code`.
    case codeResult(Bool)
    /// The launch's requests (`blocked`, `retire`) up to this number are stored.
    case kept(Int64)
    /// The keys of this moment, at once and ahead of the word that they are available; nil: they are taken away.
    case keys(AppKeys?)
    /// Secure services end after so many seconds in which nobody uses an app: it says `used`. nil: they do not. Its own end
    /// with the connection, too, and not those of an app that only keeps others open.
    case autoLock(Int64?, isOwn: Bool = true)
    /// The answer to `copy`: whether it can be pasted now.
    case copied(id: Int64, Bool)
    /// The answer to `paste`; nil: there is nothing, or nothing for this app.
    indirect case pasted(id: Int64, PasteboardItem?)
    /// The answer to `passcode`.
    indirect case passcodeResult(PasscodeResult)

    package enum Refusal: String, CaseIterable, Hashable, Sendable {
        /// The process may not be this app.
        case notAllowed
        /// Another process is connected as this app.
        case inUse
        /// The agent does not speak this version of the link.
        case version
        /// The line could not be understood.
        case invalid
        /// The agent has as many apps as it may.
        case tooMany
    }
}

/// One change that an app is told of.
package enum Delivery: Hashable, Sendable {
    /// Not `secureServices`, of which the app sees the availability alone. The reason is auth's.
    case policy(PolicyValue, reason: AuthReason)
    case managed(ManagedPolicy)
    case availability(SecureServicesAvailability)
}
