import Dispatch
import FleetProtocol
import Glibc
import Logging
import Synchronization

extension AppConnect {
    /// What the lock protects: the session, and what belongs to it of the world outside.
    struct State {
        var session = AppSession()
        weak var delegate: (any AppConnectDelegate)?
        /// What that delegate implements.
        private(set) var callbacks: Set<Callback> = []
        /// When the agent was last told that a person uses the app.
        var usedAt: ContinuousClock.Instant?
        /// Nil before start.
        var environment: Environment?
        /// Lines for the agent that the link's thread has not fetched yet.
        var outbox: [UInt8] = []
        /// Why the connection is to be dropped.
        var drop: AppConnectError?
        var isClosing = false
        /// The delegate's queue is going to look whether there is something to call.
        var isDrainDue = false
        /// The thread on which a callback runs.
        var callThread: pthread_t?
        private var callWaiters: [DispatchSemaphore] = []
        var questions: [Int64: CheckedContinuation<AppSession.Answer, Never>] = [:]

        /// An agent that reads nothing while so much is written is as good as gone.
        static let maximumOutbox = 1 << 20

        mutating func setDelegate(_ delegate: (any AppConnectDelegate)?) {
            self.delegate = delegate
            callbacks =
                delegate.map { Callback.implemented(by: $0).subtracting(environment?.without ?? []) } ?? []
        }

        /// Puts effects into force as far as the lock reaches; the rest is for ``AppConnect/finish(_:)``.
        mutating func take(_ effects: [AppSession.Effect]) -> Aftermath {
            var aftermath = Aftermath(environment: environment)
            for effect in effects {
                switch effect {
                case .send(let frame):
                    outbox += frame.json
                    outbox.append(UInt8(ascii: "\n"))
                    if outbox.count > Self.maximumOutbox {
                        drop = AppConnectError(.unreachable, "the agent does not read what the app sends")
                    }
                    aftermath.mustWake = true
                case .disconnect(let problem):
                    drop = problem
                    aftermath.mustWake = true
                case .close:
                    isClosing = true
                    aftermath.mustWake = true
                case .callsWaiting:
                    // Once, however much comes while the queue is busy.
                    guard !isDrainDue, environment != nil else { continue }
                    isDrainDue = true
                    aftermath.hasCalls = true
                case .retirementOwed: aftermath.isRetirementChanged = true
                case .answered(let id, let answer):
                    if let continuation = questions.removeValue(forKey: id) {
                        aftermath.answers.append((continuation, answer))
                    }
                }
            }
            return aftermath
        }

        /// Something to wait on while a callback runs on another thread than the caller's.
        mutating func waiterForRunningCall() -> DispatchSemaphore? {
            guard let callThread, pthread_equal(callThread, pthread_self()) == 0 else { return nil }
            let waiter = DispatchSemaphore(value: 0)
            callWaiters.append(waiter)
            return waiter
        }

        mutating func callEnded() -> [DispatchSemaphore] {
            callThread = nil
            defer { callWaiters = [] }
            return callWaiters
        }
    }

    /// What is to be done when the lock has been left.
    struct Aftermath: Sendable {
        let environment: Environment?
        var mustWake = false
        var hasCalls = false
        var isRetirementChanged = false
        var answers: [(CheckedContinuation<AppSession.Answer, Never>, AppSession.Answer)] = []
    }

    /// What is made at start and stays.
    struct Environment: Sendable {
        /// Serial, whatever the queue of the options is.
        let queue: DispatchQueue
        let socket: String
        let logger: Logger
        let logFile: LogFile?
        let pasteboard: (any DevicePasteboard)?
        let connectionChanged: (@Sendable (ConnectionState) -> Void)?
        let without: Set<Callback>
        let retirement: RetirementMark
        let wake: WakePipe
        let linkEnd = DispatchGroup()

        init(_ options: Options, dataFolder: String) throws {
            queue = DispatchQueue(label: "AppConnect.delegate", target: options.queue)
            let path = RawFile.absolute(options.socket)
            socket = path.utf8.count <= Link.maximumPath ? path : options.socket
            logger = options.logger ?? AppConnect.defaultLogger
            logFile = try options.logFile.map { try LogFile(path: RawFile.absolute($0)) }
            pasteboard = options.pasteboard
            connectionChanged = options.connectionChanged
            without = options.without
            retirement = RetirementMark(in: dataFolder)
            wake = try WakePipe()
        }
    }

    static var defaultLogger: Logger { Logger(label: "AppConnect") }

    /// Gives the session an event, and does what it asks for.
    @discardableResult
    func perform<Value: Sendable>(
        _ event: (inout AppSession) throws -> (Value, [AppSession.Effect])
    ) rethrows -> Value {
        let (value, aftermath) = try state.withLock { state in
            let (value, effects) = try event(&state.session)
            return (value, state.take(effects))
        }
        finish(aftermath)
        return value
    }

    func perform(_ event: (inout AppSession) throws -> [AppSession.Effect]) rethrows {
        try perform { ((), try event(&$0)) }
    }

    func finish(_ aftermath: Aftermath) {
        if aftermath.isRetirementChanged, let environment = aftermath.environment { keepRetirement(in: environment) }
        if aftermath.mustWake { aftermath.environment?.wake.wake() }
        if aftermath.hasCalls, let queue = aftermath.environment?.queue { drainLater(on: queue) }
        for (continuation, answer) in aftermath.answers { continuation.resume(returning: answer) }
    }

    /// Whoever comes last has what is so then.
    private func keepRetirement(in environment: Environment) {
        do {
            try environment.retirement.set { state.withLock { $0.session.isRetirementOwed } }
        } catch {
            environment.logger.warning(
                "what becomes of this app's retirement by itself is known to this process alone",
                metadata: ["reason": "\(error)"])
        }
    }
}
