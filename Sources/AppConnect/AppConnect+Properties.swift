public import FleetProtocol
import Synchronization

/// The properties. Those that throw do so with ``AppConnectError/Code/propertyAccess`` before ready and after stop.
extension AppConnect {
    /// False until the ready callback begins; from then on true for the life of the process, also after ``stop()``.
    public var isReady: Bool { state.withLock { $0.session.hasBeenReady } }

    /// Whether there is a connection to the agent, or why not. Can be read at any time.
    public var connectionState: ConnectionState { state.withLock { $0.session.connectionState } }

    /// Whether the app's keys can be used. Can be read at any time: unavailable before ready and after ``stop()``.
    public var secureServicesAvailability: SecureServicesAvailability {
        state.withLock { $0.session.phase == .ready ? $0.session.properties.availability : .unavailable }
    }

    /// The most detailed level that ``log(_:_:)`` emits. Can be read at any time: status before ready.
    public var logLevel: LogLevel { state.withLock { $0.session.logLevel } }

    /// Unknown before the first contact and after the app has retired itself.
    public var managedPolicy: ManagedPolicy { get throws { try property("managedPolicy") { $0.managed } } }

    /// What the app may do at all.
    public var authState: AuthState { get throws { try property("authState") { $0.auth.0 } } }

    /// Why, for people.
    public var authMessage: String { get throws { try property("authMessage") { $0.auth.1 } } }

    /// Why, for programs.
    public var authReason: AuthReason { get throws { try property("authReason") { $0.authReason } } }

    /// Copying out of the app: ``copy(_:)`` does it as the policy says, under `secureCopy` as under `authorized`.
    public var pasteboardPolicy: PasteboardPolicy {
        get throws {
            try property("pasteboardPolicy") {
                if case .pasteboard(let policy) = $0[.pasteboard] { policy } else { .unauthorized }
            }
        }
    }

    /// Handing documents and URLs to other apps.
    public var openInPolicy: OpenInPolicy { get throws { try property("openInPolicy") { $0.openIn.0 } } }

    /// The apps that documents may go to where the policy is `whitelist`; else empty.
    public var openInWhitelist: Set<AppID> { get throws { try property("openInWhitelist") { Set($0.openIn.1) } } }

    /// Taking documents from other apps.
    public var openFromPolicy: OpenFromPolicy { get throws { try property("openFromPolicy") { $0.openFrom.0 } } }

    /// The apps that documents may come from where the policy is `whitelist`; else empty.
    public var openFromWhitelist: Set<AppID> {
        get throws { try property("openFromWhitelist") { Set($0.openFrom.1) } }
    }

    /// Printing.
    public var printPolicy: PrintPolicy {
        get throws {
            try property("printPolicy") { if case .print(let policy) = $0[.print] { policy } else { .unauthorized } }
        }
    }

    /// Whether files must be encrypted.
    public var secureFileIOPolicy: SecureFileIOPolicy {
        get throws {
            try property("secureFileIOPolicy") {
                if case .secureFileIO(let policy) = $0[.secureFileIO] { policy } else { .required }
            }
        }
    }

    /// The app's settings; the whole dictionary is replaced at each change.
    public var config: [String: String] {
        get throws {
            try property("config") { if case .config(let values) = $0[.config] { values } else { [:] } }
        }
    }

    private func property<Value: Sendable>(_ name: String, _ value: (AppProperties) -> Value) throws -> Value {
        try state.withLock { try $0.session.property(name, value) }
    }
}

extension AppSession {
    var logLevel: LogLevel { if case .logLevel(let level) = properties[.logLevel] { level } else { .status } }
}

extension AppProperties {
    fileprivate var auth: (AuthState, String) {
        if case .auth(let state, let message) = self[.auth] {
            (state, message)
        } else {
            (.unauthorized, PolicyValue.defaultMessage)
        }
    }

    fileprivate var openIn: (OpenInPolicy, [AppID]) {
        if case .openIn(let policy, let apps) = self[.openIn] { (policy, apps) } else { (.unauthorized, []) }
    }

    fileprivate var openFrom: (OpenFromPolicy, [AppID]) {
        if case .openFrom(let policy, let apps) = self[.openFrom] { (policy, apps) } else { (.unauthorized, []) }
    }
}
