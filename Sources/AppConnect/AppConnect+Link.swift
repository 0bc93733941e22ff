import FleetProtocol
import Logging
import Synchronization

/// The link's thread: connects, reads and writes until stop.
extension AppConnect {
    private static let welcomeTime = Duration.seconds(10)
    private static let closeTime = Duration.seconds(1)

    func runLink(in environment: Environment) {
        let clock = ContinuousClock()
        var backOff = BackOff()
        while !isStopped {
            let start = clock.now
            let problem: AppConnectError
            do {
                let socket = try UnixSocket(connectingTo: environment.socket)
                let isRetirementOwed = environment.retirement.isThere
                perform { $0.connected(isRetirementOwed: isRetirementOwed) }
                problem = serve(socket, in: environment)
            } catch {
                problem = error
            }
            let isNew = connectionEnded(problem)
            if isNew { environment.logger.debug("not connected to the agent", metadata: ["reason": "\(problem)"]) }
            // Only a change of the agent or of its configuration helps these.
            let isRefused = [.notAllowed, .version, .invalid].contains(problem.code)
            let pause = backOff.next(after: clock.now - start, isRefused: isRefused, spread: .random(in: 0...1))
            let again = clock.now + pause
            while !isStopped, clock.now < again {
                environment.wake.wait(for: nil, writing: false, atMost: again - clock.now)
            }
        }
    }

    /// Takes back what was not written and tells the session at once: or a line of this connection, written by another
    /// thread in between, would stand before the next registration. Says whether the problem is a new one.
    private func connectionEnded(_ problem: AppConnectError) -> Bool {
        let (isNew, aftermath) = state.withLock { state in
            let isNew = state.session.connectionState != .disconnected(problem)
            state.outbox = []
            state.drop = nil
            return (isNew, state.take(state.session.lost(problem)))
        }
        finish(aftermath)
        return isNew
    }

    private var isStopped: Bool { state.withLock { $0.session.isStopped } }

    /// Serves one connection to its end, and says why it ended.
    private func serve(_ socket: borrowing UnixSocket, in environment: Environment) -> AppConnectError {
        let clock = ContinuousClock()
        var splitter = LineSplitter(limit: Link.maximumLine)
        var outgoing: [UInt8] = []
        var welcomeBy: ContinuousClock.Instant?
        var closeBy: ContinuousClock.Instant?
        while true {
            let isWriting = !outgoing.isEmpty
            let turn = nextTurn(isWriting: isWriting)
            if let drop = turn.drop { return drop }
            outgoing += turn.bytes
            do { try socket.write(&outgoing) } catch {
                readRest(of: socket, &splitter, in: environment)
                return error
            }
            // What has gathered behind it is fetched now: whoever added it has woken this thread already.
            if isWriting, outgoing.isEmpty { continue }
            if turn.isClosing {
                let deadline = closeBy ?? clock.now + Self.closeTime
                closeBy = deadline
                let isSaid = outgoing.isEmpty && !turn.isAwaited
                if isSaid || clock.now >= deadline { return AppConnectError(.stopped, "stopped") }
            }
            welcomeBy = turn.connection == .registering ? welcomeBy ?? clock.now + Self.welcomeTime : nil
            if let welcomeBy, clock.now >= welcomeBy {
                return AppConnectError(.unreachable, "the agent does not answer")
            }
            let deadline = closeBy ?? welcomeBy
            environment.wake.wait(
                for: socket.descriptor, writing: !outgoing.isEmpty,
                atMost: deadline.map { max(.zero, $0 - clock.now) })
            switch socket.read() {
            case .bytes(let bytes):
                for line in splitter.lines(in: bytes) where !line.isEmpty { received(line, in: environment) }
                if splitter.isOverflown {
                    return AppConnectError(.badFrame, "a line of the agent has more than \(Link.maximumLine) bytes")
                }
            case .nothingNow: break
            case .ended(let problem): return problem
            }
        }
    }

    /// What an agent has said before it went is heard: its last word may take the keys away, at once. Whom it wants to be called
    /// for it is told anew by the next one.
    private func readRest(
        of socket: borrowing UnixSocket, _ splitter: inout LineSplitter, in environment: Environment
    ) {
        while !isStopped, case .bytes(let bytes) = socket.read() {
            for line in splitter.lines(in: bytes) where !line.isEmpty { received(line, in: environment) }
            if splitter.isOverflown { return }
        }
    }

    private struct Turn: Sendable {
        let bytes: [UInt8]
        let drop: AppConnectError?
        let isClosing: Bool
        /// The agent has to say something before the connection may end.
        let isAwaited: Bool
        let connection: AppSession.Connection
    }

    /// Fetches what is to be written, unless there is still something from before: so the outbox shows what the agent
    /// has not taken.
    private func nextTurn(isWriting: Bool) -> Turn {
        state.withLock { state in
            let bytes = isWriting ? [] : state.outbox
            if !isWriting { state.outbox = [] }
            return Turn(
                bytes: bytes, drop: state.drop, isClosing: state.isClosing,
                isAwaited: state.session.isParting || state.session.awaitsRetirement,
                connection: state.session.connection)
        }
    }

    private func received(_ line: [UInt8], in environment: Environment) {
        switch AgentLine(line) {
        case .frame(let frame): perform { $0.received(frame) }
        case .unreadable(let delivery):
            environment.logger.debug(
                "a value of the agent is not known and counts as the default",
                metadata: ["problem": "\(delivery.problem)"])
            perform { $0.received(delivery) }
        case .unknown(let problem, let delivery):
            environment.logger.debug("a line of the agent is passed over", metadata: ["problem": "\(problem)"])
            if let delivery { perform { $0.passedOver(delivery) } }
        case .garbage(let problem): state.withLock { $0.drop = problem }
        }
    }
}
