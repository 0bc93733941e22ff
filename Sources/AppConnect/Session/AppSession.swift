package import FleetProtocol

/// The app's side of the link as a value: events go in, effects come out. No socket, lock, clock or delegate in here.
///
/// One method per event; each returns what the shell has to do, in order. Whatever waits for the delegate's queue is
/// fetched with ``next(for:)`` and handed back with ``returned(_:)``, one call at a time.
package struct AppSession: Sendable {
    package enum Phase: Hashable, Sendable {
        case created
        /// Registered or trying to; the ready callback has not begun.
        case starting
        case ready
        case stopped(wasReady: Bool)
    }

    package enum Connection: Hashable, Sendable {
        case none
        /// Connected, but a callback from before is still running: only when it has returned can the registration say
        /// truly what was delivered.
        case waiting
        case registering
        case open
    }

    package enum Effect: Hashable, Sendable {
        case send(AppFrame)
        /// Drop the connection now, and come back.
        case disconnect(AppConnectError)
        /// Drop the connection when all has been written, for good.
        case close
        /// There may be something for ``AppSession/next(for:)``.
        case callsWaiting
        /// ``AppSession/isRetirementOwed`` has changed: it has to outlive the process.
        case retirementOwed(Bool)
        /// What the app has waited for under this id.
        case answered(id: Int64, Answer)
    }

    /// What runs on the delegate's queue.
    package enum Call: Hashable, Sendable {
        case connectionChanged(ConnectionState)
        case ready
        case changed(number: Int64, Delivery)
        case attempted(Attempt)
        case activity(isActive: Bool)
    }

    /// What comes of a question to the agent.
    package enum Answer: Hashable, Sendable {
        case done(Bool)
        case pasted(PasteboardItem?)
        /// The connection ended before it came, or nobody could be asked, or it took too long.
        case unanswered
    }

    /// A delivery that the delegate, or the library for it, has taken.
    package struct Taken: Hashable, Sendable {
        package let number: Int64
        package let delivery: Delivery
        package var hasReturned: Bool
        /// There was nobody to be called for it.
        var isAlone = false
    }

    /// A delivery whose callback has begun, so that the app may acknowledge it.
    package struct Answerable: Hashable, Sendable {
        package let number: Int64
        /// The library answers for what it did not understand; the app has only seen the default.
        package let isUnderstood: Bool
    }

    package var phase = Phase.created
    package var connection = Connection.none
    package var connectionState = ConnectionState.disconnected(
        AppConnectError(.notStarted, "start(options:) has not been called"))
    package var properties = AppProperties.initial
    package var registration: Registration?
    /// What the agent has given, and not taken away.
    package var keys: AppKeys?
    /// Seconds without use after which the agent takes keys of apps away; nil: it does not.
    package var autoLock: Int64?
    /// This app's are among them.
    package var locksItself = false

    /// What waits for the delegate's queue, in the order it came; of each kind of delivery the newest.
    package var inbox: [Waiting] = []
    package var running: Call?
    /// The last that it was told of the screen is that the agent takes it.
    var isResigned = false
    /// Whether `ready` came on the present connection and is to be answered on it.
    var owesReady = false
    /// The newest of each kind.
    package var taken: [DeliveryKind: Taken] = [:]
    /// The newest of each policy.
    package var answerable: [Policy: Answerable] = [:]
    package var answers: [Policy: Acknowledgement] = [:]
    /// What the app has asked for, or reported, and its agent may not have stored yet: the oldest first.
    package var requests: [Request] = []
    /// The app has retired itself, in this process or in one before, and for all that it knows no agent has stored that yet.
    package var isRetirementOwed = false
    /// The number of this launch's last request.
    package var lastRequest: Int64 = 0
    /// The agent of this connection says what it has stored.
    var doesAgentCount = false
    /// What is written as soon as the agent has welcomed the app.
    var held: [AppFrame] = []
    /// The agent of this connection keeps what is copied.
    var hasPasteboard = false
    /// What the app waits for.
    var questions: Set<Int64> = []
    var lastQuestion: Int64 = 0
    /// Of these, what is copied and pasted: it is large, and waits in memory until it is written.
    var copying: Set<Int64> = []
    var effects: [Effect] = []

    /// Calls kept while the delegate is busy; the oldest go.
    static let maximumCalls = 256
    /// Requests kept for the agent; the oldest attempts go.
    let maximumRequests: Int

    package init(keepingRequests maximumRequests: Int = 256) {
        self.maximumRequests = maximumRequests
    }

    var isStopped: Bool { if case .stopped = phase { true } else { false } }
    /// Stopped before the agent has welcomed it, with something to say behind the welcome.
    var isParting: Bool { isStopped && connection == .registering && !(requests.isEmpty && held.isEmpty) }
    /// Stopped, and its agent is about to say that it has stored the retirement.
    var awaitsRetirement: Bool {
        isStopped && connection == .open && doesAgentCount && isRetirementOwed && isRetirementUnconfirmed
    }
    var hasBeenReady: Bool { phase == .ready || phase == .stopped(wasReady: true) }

    mutating func flush() -> [Effect] {
        defer { effects = [] }
        return effects
    }

    // MARK: The connection

    package mutating func start(as registration: Registration) throws {
        switch phase {
        case .created: break
        case .stopped: throw AppConnectError(.stopped, "AppConnect cannot be started after stop()")
        case .starting, .ready: throw AppConnectError(.alreadyStarted, "AppConnect has been started already")
        }
        self.registration = registration
        phase = .starting
        connectionState = .disconnected(AppConnectError(.unreachable, "the agent has not been reached yet"))
    }

    /// - Parameter isRetirementOwed: What outlived the process that said so last.
    package mutating func connected(isRetirementOwed: Bool = false) -> [Effect] {
        guard !isStopped, connection == .none else { return [] }
        // Looked at until its own ready: another process of the app may have it until then.
        if !hasBeenReady { self.isRetirementOwed = isRetirementOwed }
        if running == nil || !hasBeenReady { register() } else { connection = .waiting }
        return flush()
    }

    mutating func register() {
        guard var registration else { return }
        if hasBeenReady {
            registration.resume = Registration.Resume(
                delivered: taken.values.filter(\.hasReturned).map(\.number).sorted(),
                begun: taken.values.filter { !$0.hasReturned }.map(\.number).sorted(),
                acknowledgements: answers.values.sorted { $0.policy < $1.policy })
        }
        connection = .registering
        effects.append(.send(.register(registration)))
    }

    /// The connection is gone or could not be made. What the agent had sent and has not begun is dropped: it sends it
    /// again to whoever does not name it as delivered.
    package mutating func lost(_ problem: AppConnectError) -> [Effect] {
        connection = .none
        owesReady = false
        // Of one that has had its ready the agent says on the next connection what it may have. Nobody would lock, meanwhile,
        // what is to lock by itself.
        if !hasBeenReady || locksItself { keys = nil }
        (autoLock, locksItself) = (nil, false)
        inbox.removeAll { entry in
            switch entry {
            case .call(let call): !call.isFromApp
            case .ready: true
            // It is in the properties already: only the delegate has not had it.
            case .delivery(let number, let delivery, _): taken[delivery.kind]?.number != number
            }
        }
        held = []
        endQuestions()
        if !isStopped {
            // Nobody will say any more that the screen was given back.
            if isResigned { queue(.activity(isActive: true)) }
            change(to: .disconnected(problem))
        }
        return flush()
    }

    package mutating func stop() -> [Effect] {
        guard !isStopped else { return [] }
        phase = .stopped(wasReady: phase == .ready)
        inbox = []
        keys = nil
        // The callback that still runs is named as begun: nobody says that it has returned.
        if connection == .waiting, !(requests.isEmpty && answers.isEmpty) { register() }
        if connection == .open || isParting { send(.stop) }
        connectionState = .disconnected(AppConnectError(.stopped, "AppConnect has been stopped"))
        endQuestions()
        effects.append(.close)
        return flush()
    }

    private mutating func endQuestions() {
        for id in questions.sorted() { effects.append(.answered(id: id, .unanswered)) }
        (questions, copying) = ([], [])
    }

    mutating func change(to state: ConnectionState) {
        guard state != connectionState else { return }
        connectionState = state
        queue(.connectionChanged(state))
    }

    /// Writes at once, or when the agent has welcomed the app, or never: the next registration says it.
    mutating func send(_ frame: AppFrame) {
        switch connection {
        case .open: effects.append(.send(frame))
        case .registering: held.append(frame)
        case .none, .waiting: break
        }
    }
}
