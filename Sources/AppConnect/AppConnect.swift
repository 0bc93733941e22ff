import Dispatch
// Exported: the enumerations of FleetProtocol and AppID are this library's vocabulary, so an app imports one module.
@_exported public import FleetProtocol
import Glibc
import Synchronization

/// The app's connection to the policies of its fleet: one per process.
///
/// ```swift
/// AppConnect.shared.delegate = delegate
/// try AppConnect.shared.start(options: .init(app: app, socket: "/run/fleetbus/agent.sock"))
/// ```
///
/// Every member may be used from any thread. The delegate is called serially and in order; before each call the property
/// of the same name has changed, and the argument equals it. Properties can be read from the ready callback on, until
/// ``stop()``. An agent that restarts is reconnected to; the app notices nothing but a delay.
public final class AppConnect: Sendable {
    /// The one of this process.
    public static let shared = AppConnect()

    let state = Mutex(State())

    /// For tests, which play several apps in one process. Each must be stopped.
    package init() {}

    /// Who is called; held weakly. Once it is gone nothing is called: what was due stays so, and goes to the next one.
    public var delegate: (any AppConnectDelegate)? {
        get { state.withLock { $0.delegate } }
        set {
            let environment = state.withLock { state in
                state.setDelegate(newValue)
                return state.environment
            }
            if let environment { drainLater(on: environment.queue) }
        }
    }

    /// Registers the app with the agent of its device, and keeps the connection from then on. Returns at once: whether
    /// there is an agent shows in ``connectionState``. Until ready the app shows that it is initialising.
    ///
    /// - Throws: ``AppConnectError`` if there is no delegate, the data folder or an option cannot be used, or it was
    ///   called before.
    public func start(options: Options) throws {
        guard let delegate else {
            throw AppConnectError(
                .noDelegate,
                "start(options:) needs a delegate; it is held weakly, so one that nobody else holds is gone")
        }
        guard (1...Link.maximumPath).contains(options.socket.utf8.count), !options.socket.utf8.contains(0) else {
            throw AppConnectError(
                .invalidOptions, "the socket's path must have 1 to \(Link.maximumPath) bytes: '\(options.socket)'")
        }
        if let token = options.token, token.utf8.count > 200 {
            throw AppConnectError(.invalidOptions, "a token has at most 200 bytes")
        }
        if let folder = options.dataFolder, folder.isEmpty || folder.utf8.contains(0) {
            throw AppConnectError(.invalidOptions, "the data folder is no path: '\(folder)'")
        }
        // Looked at before the disk is touched; decided again under the lock below.
        var trial = state.withLock { $0.session }
        let folder = RawFile.absolute(try options.dataFolder ?? InstallID.defaultFolder(of: options.app))
        let callbacks = Callback.implemented(by: delegate).subtracting(options.without)
        func registration(_ install: RandomID) -> Registration {
            Registration(
                app: options.app, install: install, launch: .random(), sdk: Self.version, implements: callbacks,
                token: options.token)
        }
        try trial.start(as: registration(.random()))
        let identity = registration(try InstallID.read(in: folder))
        let environment = try Environment(options, dataFolder: folder)
        // The delegate leaves the lock, where this may be the last to hold it: its deinit may take the lock.
        _ = try state.withLock { state in
            try state.session.start(as: identity)
            state.environment = environment
            let delegate = state.delegate
            state.setDelegate(delegate)
            return delegate
        }
        environment.linkEnd.enter()
        // The thread that all reading and writing happens on; stop() waits for its end.
        DispatchQueue(label: "AppConnect.link").async { [self] in
            runLink(in: environment)
            environment.linkEnd.leave()
        }
    }

    /// Ends AppConnect for the process. No callback begins after it has returned; called within one, that is the last.
    ///
    /// It waits for a callback that runs on another thread, so it must not be called while holding what that callback
    /// waits for, and for up to a second until all acknowledgements and requests are written, also to an agent that has
    /// yet to welcome the app, and a retirement stored. Afterwards only ``logLevel``, ``log(_:_:)``, ``isReady`` and
    /// ``connectionState`` are of use; what can throw does. A second call does nothing.
    public func stop() {
        let (aftermath, running, environment) = state.withLock { state in
            let aftermath = state.take(state.session.stop())
            return (aftermath, state.waiterForRunningCall(), state.environment)
        }
        finish(aftermath)
        running?.wait()
        _ = environment?.linkEnd.wait(timeout: .now() + 1)
    }

    static let version = "AppConnect-Swift/1"
}
