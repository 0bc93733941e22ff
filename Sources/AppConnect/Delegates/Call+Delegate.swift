import FleetProtocol

extension AppSession.Call {
    /// Calls the one method that this call stands for. `connectionChanged` goes to the options, not to the delegate.
    func run(on delegate: any AppConnectDelegate, from appConnect: AppConnect) {
        switch self {
        case .connectionChanged: break
        case .ready: delegate.appConnectIsReady(appConnect)
        case .changed(_, .policy(let value, _)): run(value, on: delegate, from: appConnect)
        case .changed(_, .managed(let policy)):
            (delegate as? any ManagedPolicyDelegate)?.appConnect(appConnect, managedPolicyChanged: policy)
        case .changed(_, .availability(let availability)):
            (delegate as? any SecureServicesDelegate)?
                .appConnect(appConnect, secureServicesAvailabilityChanged: availability)
        case .attempted(let attempt):
            if let delegate = delegate as? any BlockedAttemptDelegate { run(attempt, on: delegate, from: appConnect) }
        case .activity(let isActive):
            guard let delegate = delegate as? any ActivityDelegate else { return }
            if isActive {
                delegate.appConnectDidBecomeActive(appConnect)
            } else {
                delegate.appConnectWillResignActive(appConnect)
            }
        }
    }

    private func run(_ value: PolicyValue, on delegate: any AppConnectDelegate, from appConnect: AppConnect) {
        switch value {
        case .auth(let state, let message):
            delegate.appConnect(appConnect, authStateChanged: state, message: message)
        case .config(let values):
            (delegate as? any ConfigDelegate)?.appConnect(appConnect, configChanged: values)
        case .openIn(let policy, let apps):
            (delegate as? any OpenInPolicyDelegate)?
                .appConnect(appConnect, openInPolicyChanged: policy, whitelist: Set(apps))
        case .openFrom(let policy, let apps):
            (delegate as? any OpenFromPolicyDelegate)?
                .appConnect(appConnect, openFromPolicyChanged: policy, whitelist: Set(apps))
        case .pasteboard(let policy):
            (delegate as? any PasteboardPolicyDelegate)?.appConnect(appConnect, pasteboardPolicyChanged: policy)
        case .print(let policy):
            (delegate as? any PrintPolicyDelegate)?.appConnect(appConnect, printPolicyChanged: policy)
        case .secureFileIO(let policy):
            (delegate as? any SecureFileIOPolicyDelegate)?.appConnect(appConnect, secureFileIOPolicyChanged: policy)
        case .logLevel(let level):
            (delegate as? any LogLevelDelegate)?.appConnect(appConnect, logLevelChanged: level)
        case .dragAndDrop, .secureServices: break
        }
    }

    private func run(
        _ attempt: Attempt, on delegate: any BlockedAttemptDelegate, from appConnect: AppConnect
    ) {
        switch attempt {
        case .openIn(let policy, _): delegate.appConnect(appConnect, openInAttemptedWhenBlocked: policy)
        case .openURL(let url): delegate.appConnect(appConnect, openURLAttemptedWhenUnauthorized: url)
        case .openFrom(let policy, let source):
            delegate.appConnect(appConnect, openFromAttemptedWhenBlocked: policy, source: source)
        case .copy(let policy): delegate.appConnect(appConnect, copyAttemptedWhenUnauthorized: policy)
        case .dragAndDrop: delegate.appConnectDragAndDropAttemptedToForeignApp(appConnect)
        case .print: delegate.appConnectPrintAttemptedWhenUnauthorized(appConnect)
        }
    }
}
