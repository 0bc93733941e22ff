import Dispatch
public import FleetProtocol
import Logging
import Synchronization

extension AppConnect {
    /// Retires the app: when it returns, the state is retired with a message that says so, all policies are back at their
    /// defaults, the configuration is empty, and whether the app is managed is unknown.
    ///
    /// The callbacks of these changes follow when the agent has taken note, so that they can be acknowledged. Without an
    /// agent the request is kept, in ``Options/dataFolder`` as well, and sent at the next connection of this process, or of
    /// the app's next one, whose ready then says `retired`. A second call does nothing.
    ///
    /// - Throws: ``AppConnectError`` before ready and after stop.
    public func retire() throws { try perform { try $0.retire() } }

    /// Has the agent show a text to the person at the device.
    ///
    /// - Parameter text: At most 4,000 characters; tabs and ends of lines become spaces, other control characters are taken out.
    /// - Returns: Whether it was shown; false also before ready, after stop, without an agent, after half a minute
    ///   without an answer, while four texts of the app are under way, and beyond twenty in a minute where the agent has no
    ///   command that shows them and writes them to its log.
    public func displayMessage(_ text: String) async -> Bool {
        await inquire { $0.display(text) } == .done(true)
    }

    /// Says that a person uses the app: call it for each touch or key, from any thread. Where the fleet asks for a passcode
    /// and locks apps that nobody uses, this keeps them unlocked, all apps of the device alike; work in the background is no
    /// use. The agent is told once a second at most, and only where it counts; before ready and after stop nothing happens.
    public func noteUse() {
        let now = ContinuousClock.now
        let aftermath: Aftermath? = state.withLock { state in
            guard let autoLock = state.session.autoLock else { return nil }
            let interval = min(Self.useInterval, .seconds(autoLock) / 4)
            guard state.usedAt.map({ now - $0 >= interval }) ?? true else { return nil }
            state.usedAt = now
            return state.take(state.session.used())
        }
        if let aftermath { finish(aftermath) }
    }

    private static let useInterval = Duration.seconds(1)

    /// Writes a message to the log, and to ``Options/logFile``, when `level` is not above ``logLevel``, the level's name before
    /// it. May be called at any time, also before ready and after stop. The message is evaluated only if it is written.
    public func log(_ level: LogLevel, _ message: @autoclosure () -> String) {
        let (isEmitted, environment) = state.withLock { (level <= $0.session.logLevel, $0.environment) }
        guard isEmitted else { return }
        let message = message()
        var logger = environment?.logger ?? Self.defaultLogger
        logger.logLevel = .trace  // The fleet has decided already; the logger's own threshold would decide again.
        logger.log(level: level.logged, "\(level): \(message)")
        environment?.logFile?.write(level, message, at: .now)
    }
}

extension LogLevel {
    /// The nearest level of swift-log.
    fileprivate var logged: Logger.Level {
        switch self {
        case .error: .error
        case .warning: .warning
        case .status: .notice
        case .info: .info
        case .verbose: .debug
        case .debug: .trace
        }
    }
}
