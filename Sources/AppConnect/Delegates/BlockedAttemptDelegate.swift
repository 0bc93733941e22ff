public import FleetProtocol

/// For apps that tell the person why nothing happened: each follows a request that was answered false, such as
/// ``AppConnect/requestCopy()``. All have an empty default.
public protocol BlockedAttemptDelegate: AppConnectDelegate {
    /// A document was to go to another app.
    func appConnect(_ appConnect: AppConnect, openInAttemptedWhenBlocked policy: OpenInPolicy)
    /// A URL was to go to another app.
    func appConnect(_ appConnect: AppConnect, openURLAttemptedWhenUnauthorized url: String)
    /// A document was to come from another app.
    func appConnect(
        _ appConnect: AppConnect, openFromAttemptedWhenBlocked policy: OpenFromPolicy, source: AppID)
    /// Something was to be copied.
    func appConnect(_ appConnect: AppConnect, copyAttemptedWhenUnauthorized policy: PasteboardPolicy)
    /// Something was to be dragged to an app that may not have it.
    func appConnectDragAndDropAttemptedToForeignApp(_ appConnect: AppConnect)
    /// Something was to be printed.
    func appConnectPrintAttemptedWhenUnauthorized(_ appConnect: AppConnect)
}

extension BlockedAttemptDelegate {
    /// Does nothing.
    public func appConnect(_ appConnect: AppConnect, openInAttemptedWhenBlocked policy: OpenInPolicy) {}
    /// Does nothing.
    public func appConnect(_ appConnect: AppConnect, openURLAttemptedWhenUnauthorized url: String) {}
    /// Does nothing.
    public func appConnect(
        _ appConnect: AppConnect, openFromAttemptedWhenBlocked policy: OpenFromPolicy, source: AppID
    ) {}
    /// Does nothing.
    public func appConnect(_ appConnect: AppConnect, copyAttemptedWhenUnauthorized policy: PasteboardPolicy) {}
    /// Does nothing.
    public func appConnectDragAndDropAttemptedToForeignApp(_ appConnect: AppConnect) {}
    /// Does nothing.
    public func appConnectPrintAttemptedWhenUnauthorized(_ appConnect: AppConnect) {}
}
