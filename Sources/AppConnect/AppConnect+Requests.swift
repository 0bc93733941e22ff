public import FleetProtocol

/// The checks before data leaves or enters the app. Each says whether the policy allows it. Where it does not, the attempt
/// is reported to the operators, and the delegate's ``BlockedAttemptDelegate`` callback follows on its queue.
///
/// They throw ``AppConnectError`` before ready and after stop.
extension AppConnect {
    /// Whether something may be copied to where anybody can paste it; not under `secureCopy`. Use ``copy(_:)``, which copies under
    /// that policy, too.
    public func requestCopy() throws -> Bool { try request(.copy) }

    /// Whether a document may go to another app.
    public func requestOpenIn(_ app: AppID) throws -> Bool { try request(.openIn(app)) }

    /// Whether a URL may be handed out. Under a whitelist only to an app that is named and on it: who else would get the
    /// URL is not known.
    public func requestOpenURL(_ url: String, in app: AppID? = nil) throws -> Bool {
        try request(.openURL(url, app))
    }

    /// Whether a document may be taken from another app.
    public func requestOpenFrom(_ app: AppID) throws -> Bool { try request(.openFrom(app)) }

    /// Whether something may be printed.
    public func requestPrint() throws -> Bool { try request(.print) }

    /// Whether something may be dragged to an app; within the app itself always.
    public func requestDragAndDrop(to app: AppID) throws -> Bool { try request(.dragAndDrop(app)) }

    private func request(_ request: DataRequest) throws -> Bool { try perform { try $0.request(request) } }
}
