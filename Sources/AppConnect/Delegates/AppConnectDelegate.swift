public import FleetProtocol

/// What every app implements. For the optional callbacks the same object conforms to further protocols, such as
/// ``ConfigDelegate``: the library looks which, so it can answer for the app what the app does not support.
///
/// Calls are serial and in order, on the queue of the options. Before each, the property of the same name has changed;
/// the argument equals it.
public protocol AppConnectDelegate: AnyObject, Sendable {
    /// All properties can be read now. Comes first, once per launch.
    func appConnectIsReady(_ appConnect: AppConnect)

    /// The state, or only its message, has changed. Answer with ``AppConnect/authStateApplied(_:message:)``.
    func appConnect(_ appConnect: AppConnect, authStateChanged state: AuthState, message: String)
}
