public import FleetProtocol

/// For apps with settings that an operator can give.
public protocol ConfigDelegate: AppConnectDelegate {
    /// The configuration was replaced. Answer with ``AppConnect/configApplied(_:message:)``.
    func appConnect(_ appConnect: AppConnect, configChanged config: [String: String])
}

/// For apps that hand documents or URLs to other apps.
public protocol OpenInPolicyDelegate: AppConnectDelegate {
    /// Policy or whitelist has changed. Answer with ``AppConnect/openInPolicyApplied(_:message:)``.
    func appConnect(_ appConnect: AppConnect, openInPolicyChanged policy: OpenInPolicy, whitelist: Set<AppID>)
}

/// For apps that take documents from other apps.
public protocol OpenFromPolicyDelegate: AppConnectDelegate {
    /// Policy or whitelist has changed. Answer with ``AppConnect/openFromPolicyApplied(_:message:)``.
    func appConnect(_ appConnect: AppConnect, openFromPolicyChanged policy: OpenFromPolicy, whitelist: Set<AppID>)
}

/// For apps that copy to the pasteboard.
public protocol PasteboardPolicyDelegate: AppConnectDelegate {
    /// Answer with ``AppConnect/pasteboardPolicyApplied(_:message:)``.
    func appConnect(_ appConnect: AppConnect, pasteboardPolicyChanged policy: PasteboardPolicy)
}

/// For apps that print.
public protocol PrintPolicyDelegate: AppConnectDelegate {
    /// Answer with ``AppConnect/printPolicyApplied(_:message:)``.
    func appConnect(_ appConnect: AppConnect, printPolicyChanged policy: PrintPolicy)
}

/// For apps that keep files.
public protocol SecureFileIOPolicyDelegate: AppConnectDelegate {
    /// Answer with ``AppConnect/secureFileIOPolicyApplied(_:message:)``.
    func appConnect(_ appConnect: AppConnect, secureFileIOPolicyChanged policy: SecureFileIOPolicy)
}
