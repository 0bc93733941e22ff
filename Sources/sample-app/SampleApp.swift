import AppConnect
import Dispatch
import FleetProtocol

/// Prints each callback, then acknowledges it as it was told to.
final class SampleApp: Sendable {
    private let answer: Answer
    private let ackAfter: Duration?
    private let neverAcks: Bool
    private let demo: DemoData?

    init(answer: Answer, ackAfter: Duration?, neverAcks: Bool, demo: DemoData?) {
        self.answer = answer
        self.ackAfter = ackAfter
        self.neverAcks = neverAcks
        self.demo = demo
    }

    private func acknowledge(_ policy: Policy, in app: AppConnect) {
        guard !neverAcks else { return }
        let (state, message) = (answer.state(for: policy), answer.message(for: policy))
        guard let ackAfter else { return acknowledge(policy, state, message, in: app) }
        let delay = DispatchTimeInterval.milliseconds(Int(ackAfter / .milliseconds(1)))
        DispatchQueue.global().asyncAfter(deadline: .now() + delay) { [self] in
            acknowledge(policy, state, message, in: app)
        }
    }

    func acknowledge(_ policy: Policy, _ state: PolicyState, _ message: String?, in app: AppConnect) {
        do {
            switch policy {
            case .auth: try app.authStateApplied(state, message: message)
            case .config: try app.configApplied(state, message: message)
            case .openIn: try app.openInPolicyApplied(state, message: message)
            case .openFrom: try app.openFromPolicyApplied(state, message: message)
            case .pasteboard: try app.pasteboardPolicyApplied(state, message: message)
            case .print: try app.printPolicyApplied(state, message: message)
            case .secureFileIO: try app.secureFileIOPolicyApplied(state, message: message)
            case .dragAndDrop, .secureServices, .logLevel: return
            }
            Output.write(
                "acknowledged",
                ["policy": .string(policy.rawValue), "state": .name(state), "message": message.map { .string($0) }])
        } catch {
            Output.write(error: error)
        }
    }
}

extension SampleApp: AppConnectDelegate {
    func appConnectIsReady(_ appConnect: AppConnect) {
        Output.write("ready")
        Output.write(propertiesOf: appConnect)
        if (try? appConnect.authState) == .authorized { demo?.make(in: appConnect) }
    }

    func appConnect(_ appConnect: AppConnect, authStateChanged state: AuthState, message: String) {
        let reason = try? appConnect.authReason
        Output.write(
            "auth", ["state": .name(state), "message": .string(message), "reason": reason.map { .name($0) }])
        switch state {
        case .authorized: demo?.make(in: appConnect)
        case .unauthorized: break
        case .retired: Output.write("erased", ["files": .integer(demo?.erase() ?? 0)])
        }
        acknowledge(.auth, in: appConnect)
    }
}

extension SampleApp: ConfigDelegate, OpenInPolicyDelegate, OpenFromPolicyDelegate, PasteboardPolicyDelegate,
    PrintPolicyDelegate, SecureFileIOPolicyDelegate
{
    func appConnect(_ appConnect: AppConnect, configChanged config: [String: String]) {
        Output.write("config", ["values": .texts(config)])
        acknowledge(.config, in: appConnect)
    }

    func appConnect(_ appConnect: AppConnect, openInPolicyChanged policy: OpenInPolicy, whitelist: Set<AppID>) {
        Output.write("openIn", ["policy": .name(policy), "apps": .apps(whitelist)])
        acknowledge(.openIn, in: appConnect)
    }

    func appConnect(_ appConnect: AppConnect, openFromPolicyChanged policy: OpenFromPolicy, whitelist: Set<AppID>) {
        Output.write("openFrom", ["policy": .name(policy), "apps": .apps(whitelist)])
        acknowledge(.openFrom, in: appConnect)
    }

    func appConnect(_ appConnect: AppConnect, pasteboardPolicyChanged policy: PasteboardPolicy) {
        Output.write("pasteboard", ["policy": .name(policy)])
        acknowledge(.pasteboard, in: appConnect)
    }

    func appConnect(_ appConnect: AppConnect, printPolicyChanged policy: PrintPolicy) {
        Output.write("print", ["policy": .name(policy)])
        acknowledge(.print, in: appConnect)
    }

    func appConnect(_ appConnect: AppConnect, secureFileIOPolicyChanged policy: SecureFileIOPolicy) {
        Output.write("secureFileIO", ["policy": .name(policy)])
        acknowledge(.secureFileIO, in: appConnect)
    }
}

extension SampleApp: ManagedPolicyDelegate, SecureServicesDelegate, LogLevelDelegate, ActivityDelegate {
    func appConnect(_ appConnect: AppConnect, managedPolicyChanged policy: ManagedPolicy) {
        Output.write("managedPolicy", ["policy": .name(policy)])
    }

    func appConnect(
        _ appConnect: AppConnect, secureServicesAvailabilityChanged availability: SecureServicesAvailability
    ) {
        Output.write("secureServices", ["availability": .name(availability)])
    }

    func appConnect(_ appConnect: AppConnect, logLevelChanged level: LogLevel) {
        Output.write("logLevel", ["level": .name(level)])
    }

    func appConnectWillResignActive(_ appConnect: AppConnect) { Output.write("willResignActive") }
    func appConnectDidBecomeActive(_ appConnect: AppConnect) { Output.write("didBecomeActive") }
}

extension SampleApp: BlockedAttemptDelegate {
    func appConnect(_ appConnect: AppConnect, openInAttemptedWhenBlocked policy: OpenInPolicy) {
        Output.write("blocked", ["action": "openIn", "policy": .name(policy)])
    }

    func appConnect(_ appConnect: AppConnect, openURLAttemptedWhenUnauthorized url: String) {
        Output.write("blocked", ["action": "openURL", "url": .string(url)])
    }

    func appConnect(_ appConnect: AppConnect, openFromAttemptedWhenBlocked policy: OpenFromPolicy, source: AppID) {
        Output.write("blocked", ["action": "openFrom", "policy": .name(policy), "source": .string(source.text)])
    }

    func appConnect(_ appConnect: AppConnect, copyAttemptedWhenUnauthorized policy: PasteboardPolicy) {
        Output.write("blocked", ["action": "copy", "policy": .name(policy)])
    }

    func appConnectDragAndDropAttemptedToForeignApp(_ appConnect: AppConnect) {
        Output.write("blocked", ["action": "dragAndDrop"])
    }

    func appConnectPrintAttemptedWhenUnauthorized(_ appConnect: AppConnect) {
        Output.write("blocked", ["action": "print"])
    }
}
