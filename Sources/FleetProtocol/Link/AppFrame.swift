/// From the app to the agent.
package enum AppFrame: Hashable, Sendable {
    indirect case register(Registration)
    /// The ready callback has returned.
    case ready
    /// The callback of a delivery has returned.
    case delivered(Int64)
    /// The app reads a delivery's value, and there is nobody to be called for it now. On the wire it is `delivered` with
    /// `"called": false`: an agent that does not know that member sends what comes next all the same.
    case taken(Int64)
    case acknowledge(Acknowledgement)
    /// The app tried what its policy blocks. The number, which grows from one request of a launch to the next, is there so
    /// that the app can say it again until the agent has stored it, and the agent takes it once.
    case blocked(AppEvent.Action, target: String?, number: Int64? = nil)
    /// The app retires itself: a request as `blocked` is one.
    case retire(number: Int64? = nil)
    /// Show a text to the person at the device; answered by `displayed` with the same id.
    case display(id: Int64, text: String)
    /// What a person has copied, for the other apps of the device; answered by `copied` with the same id. nil: what was
    /// copied before is to be pasted no more. Only to an agent that has welcomed the app with `pasteboard`, as `paste`.
    indirect case copy(id: Int64, PasteboardItem?)
    /// Answered by `pasted` with the same id.
    case paste(id: Int64)
    /// The process ends AppConnect; the connection is closed next.
    case stop
    /// Not an app: a person at the device has typed the debug code for an app's log level.
    case code(AppID, String)
    /// A person uses the app. Only to an agent that has said `autoLock`.
    case used
    /// Not an app: a person at the device enters, sets or locks its passcode.
    indirect case passcode(PasscodeRequest)
}
