import AppConnect
import DeviceAgent
import FleetProtocol

/// Of which retirement an installation of an app has still to hear.
struct RetirementWatch {
    private var isRetired = false
    /// Behind which delivery it has to be called for that; nil when it has been.
    private var untold: Int64?

    /// The device has stored what is in force. A retirement by somebody else is one that the app has to hear of.
    mutating func stored(_ record: AppRecord) {
        let wasRetired = isRetired
        isRetired = record.latch != nil
        guard isRetired, !wasRetired else { return }
        untold = record.wasReady && record.latch?.reason != .selfRetired ? record.nextDelivery : nil
    }

    /// It has nothing to hear any more: it retires itself, or is another installation.
    mutating func forget() { untold = nil }

    /// Whatever has become of its retirement, an app is called for it before it is for what follows: it has data of its own to
    /// erase. Returns what is wrong with a call.
    mutating func problem(in call: AppSession.Call) -> String? {
        guard let untold, case .changed(let number, .policy(.auth(let state, _), _)) = call else { return nil }
        if state == .retired { forget() }
        guard state != .retired, number > untold else { return nil }
        return "it was retired, has not been told so, and is called for \(state)"
    }
}
