/// One MQTT client on an event loop, for programs that run many, or need every microsecond: events go to a handler on
/// the loop's thread, requests are made there synchronously. `MQTTClient` is the comfortable form.
///
/// The client connects again by itself, after a wait that grows; each connection starts clean. The handler is called on
/// the loop's thread, one event at a time, never from within a call to the client; from there everything may be called.
public final class LoopClient: @unchecked Sendable {  // safe: used on the loop's thread alone
    /// Receives the client's events; a `LoopClient` is given so that a handler needs no reference of its own.
    public typealias Handler = @Sendable (LoopClient, Event) -> Void

    /// The loop that drives the client.
    public let loop: EventLoop
    /// What the client was made with.
    public let options: ClientOptions

    var phase = Phase.idle
    var connection: Connection?
    /// Connections by number; attempts count too, so that late news of an abandoned one is recognised.
    var attempt = 0
    var established = 0
    private var failures = 0
    var handler: Handler?
    /// Names the present connection in epoll.
    private(set) var key: UInt64 = 0
    var slot: Int?
    private var interest: UInt32 = 0
    /// A second descriptor of the socket, while the client takes leave.
    var lingering: Int32 = -1
    private var wroteInHandshake = false
    /// How many messages may still be read; the socket is left alone at zero.
    var credit: Int
    /// Publishes without an answer.
    var inFlight = 0
    /// All requests without an answer, and since when there was none.
    private var unanswered = 0
    private var unansweredSince: UInt64 = 0
    var limits = Connack(number: 0, sendMaximum: 0, maximumPacketSize: 0)

    init(_ options: ClientOptions, on loop: EventLoop, credit: Int?, handler: @escaping Handler) {
        self.options = options
        self.loop = loop
        self.credit = credit ?? .max
        self.handler = handler
    }

    /// Whether requests can be made now. On the loop's thread only.
    public var isConnected: Bool {
        loop.checkIsolated()
        if case .connected = phase { return true }
        return false
    }

    /// Whether the client has left, or is leaving, for good. On the loop's thread only.
    public var isClosed: Bool {
        loop.checkIsolated()
        switch phase {
        case .closing, .closed: return true
        case .idle, .resolving, .connecting, .connected, .waiting: return false
        }
    }

    /// Whether a publish can be made now. On the loop's thread only.
    public var hasRoom: Bool { isConnected && inFlight < limits.sendMaximum }

    /// Begins to connect, and goes on trying until `close`; from any thread, again without effect.
    public func start() {
        guard loop.isCurrent else { return loop.execute { self.start() } }
        guard case .idle = phase else { return }
        guard !loop.core.stopping else { return close() }
        slot = loop.core.clients.add(self)
        connect()
    }

    private func connect() {
        attempt += 1
        wroteInHandshake = false
        key = ClientTable.key(slot: slot ?? 0, number: attempt)
        phase = .resolving
        emit(.connecting)
        let number = attempt
        if options.hostIsNumeric, !loop.omitsSocketPairs {
            adopt(open(number), number)
        } else {
            loop.openings.add {
                let opened = self.open(number)
                self.loop.execute { self.adopt(opened, number) }
            }
        }
    }

    private func open(_ number: Int) -> Result<Connection, MosquittoError> {
        do throws(MosquittoError) {
            let connection = try Connection(self, omitsSocketPair: loop.omitsSocketPairs)
            try connection.open(attempt: number - 1)
            return .success(connection)
        } catch {
            return .failure(error)
        }
    }

    private func adopt(_ opened: Result<Connection, MosquittoError>, _ number: Int) {
        guard case .resolving = phase, number == attempt else { return }
        switch opened {
        case .success(let connection):
            self.connection = connection
            // The look-up of a name has its own time-outs, and may take longer than this one.
            let (deadline, overflow) = EventLoop.now().addingReportingOverflow(options.connectTimeout.nanoseconds)
            phase = .connecting(deadline: overflow ? .max : deadline)
            settle()
        case .failure(let error):
            end(cause: error)
        }
    }

    /// Serves a socket that epoll has named.
    func pump(_ events: UInt32, isAlone: Bool = false) {
        guard let connection else { return drain() }
        if case .connecting = phase, events & (Poller.error | Poller.hangUp) != 0 {
            let number = connection.takeFailureToConnect()
            if number != 0 { return end(cause: connection.cause(wasConnected: false, socketError: number)) }
        }
        if events & (Poller.readable | Poller.error | Poller.hangUp) != 0 {
            connection.read()
            if isAlone { readOn(connection) }
            wroteInHandshake = false
            // Behind what has arrived nothing comes any more, and epoll would say so without end.
            if case .connecting = phase, events & Poller.hangUp != 0 {
                readOn(connection)
                return lost(connection)
            }
        }
        if connection.isOpen, events & Poller.writable != 0 || connection.wantsWrite {
            connection.write()
            wroteInHandshake = true
        }
        settle()
    }

    /// The library reads one packet. A socket that is the only one with news often has more: reading it on costs one call
    /// in vain for all of them, waiting for it anew one for each.
    private func readOn(_ connection: Connection) {
        for _ in 1..<Self.packetsAtOnce where credit > 0 && connection.isOpen && connection.failure == nil {
            let before = loop.core.events.count
            connection.read()
            if loop.core.events.count == before { return }
        }
    }

    private static let packetsAtOnce = 256

    /// After any call to the library: notices a closed socket, and what to wait for next.
    func settle() {
        guard let connection else { return }
        guard connection.failure == nil, connection.isOpen else { return lost(connection) }
        if case .connected = phase, connection.keepsErrorLog { connection.removeErrorLog() }
        var wanted: UInt32 = credit > 0 ? Poller.readable : 0
        if connection.wantsWrite {
            // In a TLS handshake the library always wants to write, also while only the broker can go on.
            if options.tls == nil || !wroteInHandshake || isEstablished { wanted |= Poller.writable }
        }
        guard wanted != interest else { return }
        if !watch(lingering >= 0 ? lingering : connection.socket, for: wanted) {
            end(cause: MosquittoError(.system, "the event loop could not watch the socket to \(options.endpoint)"))
        }
    }

    func watch(_ descriptor: Int32, for wanted: UInt32) -> Bool {
        if wanted == interest { return true }
        defer { interest = wanted }
        return loop.poller.watch(descriptor, key: key, from: interest, to: wanted)
    }

    private var isEstablished: Bool {
        if case .connected = phase { return true }
        return false
    }

    private func lost(_ connection: Connection) {
        if case .closing = phase { return drain() }
        end(cause: connection.cause(wasConnected: isEstablished))
    }

    /// Looks at the clock: deadlines, and libmosquitto's keep-alive.
    func tick(now: UInt64) {
        switch phase {
        case .connecting(let deadline):
            if now > deadline {
                end(
                    cause: MosquittoError(
                        .timedOut, "connecting to \(options.endpoint): no answer within \(options.connectTimeout)"))
            } else {
                wroteInHandshake = false
                settle()
            }
        case .connected:
            connection?.misc()
            settle()
            checkAnswers(now)
        case .idle, .resolving, .waiting, .closing, .closed:
            break
        }
    }

    /// A request has gone out.
    func asked() {
        if unanswered == 0 { unansweredSince = EventLoop.now() }
        unanswered += 1
    }

    /// The broker has answered a request, or it was not made. A broker may also answer what nobody has asked.
    func answered() {
        unanswered = max(0, unanswered - 1)
        unansweredSince = EventLoop.now()
    }

    private func checkAnswers(_ now: UInt64) {
        // Answers wait behind the messages that nobody reads now.
        if credit <= 0 { unansweredSince = now }
        guard unanswered > 0, now > unansweredSince, now - unansweredSince > options.answerTimeout.nanoseconds,
            case .connected = phase
        else { return }
        end(
            cause: MosquittoError(
                .timedOut,
                "\(options.endpoint) has left \(unanswered) requests without an answer for \(options.answerTimeout)"))
    }

    /// A connection or an attempt has ended: wait and try again.
    func end(cause: MosquittoError) {
        if case .closing = phase { return finish() }
        if case .connected(let since) = phase,
            EventLoop.now() - since >= options.backoff.stableAfter.nanoseconds
        {
            failures = 0
        }
        drop()
        failures += 1
        var generator = SystemRandomNumberGenerator()
        let delay = options.backoff.delay(failures: failures, using: &generator)
        phase = .waiting(loop.schedule(after: delay) { [weak self] in self?.retry() })
        emit(.disconnected(cause, retryIn: delay))
    }

    private func retry() {
        guard case .waiting = phase else { return }
        connect()
    }

    func drop() {
        if let connection, connection.isOpen, lingering < 0 { _ = watch(connection.socket, for: 0) }
        connection = nil
        interest = 0
        inFlight = 0
        unanswered = 0
    }
}
