import FleetProtocol

extension Callback {
    /// The optional callbacks that a delegate implements, by the protocols that it conforms to.
    static func implemented(by delegate: any AppConnectDelegate) -> Set<Callback> {
        Set(allCases.filter { $0.isImplemented(by: delegate) })
    }

    private func isImplemented(by delegate: any AppConnectDelegate) -> Bool {
        switch self {
        case .managedPolicy: delegate is any ManagedPolicyDelegate
        case .config: delegate is any ConfigDelegate
        case .openIn: delegate is any OpenInPolicyDelegate
        case .openFrom: delegate is any OpenFromPolicyDelegate
        case .pasteboard: delegate is any PasteboardPolicyDelegate
        case .print: delegate is any PrintPolicyDelegate
        case .secureFileIO: delegate is any SecureFileIOPolicyDelegate
        case .secureServices: delegate is any SecureServicesDelegate
        case .logLevel: delegate is any LogLevelDelegate
        case .attempts: delegate is any BlockedAttemptDelegate
        case .activity: delegate is any ActivityDelegate
        }
    }
}
