public import FleetProtocol

/// For apps that behave differently where no fleet manages them.
public protocol ManagedPolicyDelegate: AppConnectDelegate {
    /// Needs no acknowledgement.
    func appConnect(_ appConnect: AppConnect, managedPolicyChanged policy: ManagedPolicy)
}

/// For apps that keep secrets.
public protocol SecureServicesDelegate: AppConnectDelegate {
    /// Needs no acknowledgement. Comes with `available` again when others have taken the place of the keys: the app was retired
    /// and authorized in one moment.
    func appConnect(
        _ appConnect: AppConnect, secureServicesAvailabilityChanged availability: SecureServicesAvailability)
}

/// For apps that log by other means than ``AppConnect/log(_:_:)``.
public protocol LogLevelDelegate: AppConnectDelegate {
    /// Needs no acknowledgement.
    func appConnect(_ appConnect: AppConnect, logLevelChanged level: LogLevel)
}

/// For apps that want to know when the agent takes the screen, for a passcode, a debug code or a message.
public protocol ActivityDelegate: AppConnectDelegate {
    /// The agent is about to take the screen.
    func appConnectWillResignActive(_ appConnect: AppConnect)
    /// The agent has given the screen back, or is gone. Follows each call of the other.
    func appConnectDidBecomeActive(_ appConnect: AppConnect)
}
