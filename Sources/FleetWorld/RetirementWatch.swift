import AppConnect
import DeviceAgent
import FleetProtocol

/// Of which retirement an installation of an app has still to hear.
struct RetirementWatch {
    private var isRetired = false
    /// This installation has been retired, by whomever.
    private var wasEverRetired = false
    /// It was called for a retirement, and has seen nothing else since: it has nothing that it could have got in between.
    private var isToldRetired = false
    /// Behind which delivery it has to be called for that; nil when it has been.
    private var untold: Int64?
    /// That is of the first launch of this installation, in its ready callback: should that not come to its end on this
    /// connection, nobody knows that there was one.
    private var isOfFirstReady = false

    /// It was retired, and has not been called for that, whatever came of it.
    var isUntold: Bool { untold != nil }

    /// The device has stored what is in force. A retirement by somebody else is one that the app has to hear of.
    ///
    /// - Parameters:
    ///   - wiped: Why it was retired in this moment, also when that has ended in it.
    ///   - isReadySent: Its process is in its ready callback, or behind it: it may have read by that what it has to erase.
    mutating func stored(_ record: AppRecord, wiped: String?, isReadySent: Bool) {
        if isOfFirstReady, !isReadySent { untold = nil }
        if record.wasReady || untold == nil { isOfFirstReady = false }
        let wasRetired = isRetired
        isRetired = record.latch != nil
        if isRetired || wiped != nil { wasEverRetired = true }
        guard wiped != nil || isRetired && !wasRetired, !isToldRetired else { return }
        let isOwn = (record.latch.map { "\($0.reason)" } ?? wiped) == "\(AuthReason.selfRetired)"
        untold = (record.wasReady || isReadySent) && !isOwn ? record.nextDelivery : nil
        isOfFirstReady = untold != nil && !record.wasReady
    }

    /// It has nothing to hear any more: it retires itself.
    mutating func forget() { untold = nil }

    /// Its device was put back, and may know of more or of less.
    mutating func forgetAll() { (untold, wasEverRetired) = (nil, true) }

    /// It is another installation.
    mutating func begin() { self = RetirementWatch() }

    /// Whatever has become of its retirement, an app is called for it before it is for what follows: it has data of its own to
    /// erase. Returns what is wrong with a call.
    ///
    /// - Parameter shown: What the app can read, from its ready on.
    mutating func problem(in call: AppSession.Call, showing shown: AppProperties) -> String? {
        if call == .ready, case .auth(let state, _) = shown[.auth], state != .retired { isToldRetired = false }
        guard case .changed(let number, .policy(.auth(let state, _), _)) = call else { return nil }
        isToldRetired = state == .retired
        if isToldRetired, !wasEverRetired { return "it is called for a retirement that it never had" }
        guard let untold else { return nil }
        if state == .retired { self.untold = nil }
        guard state != .retired, number > untold else { return nil }
        return "it was retired, has not been told so, and is called for \(state)"
    }
}
