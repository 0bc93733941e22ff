import FleetProtocol
import Glibc

/// Asks a person at the device for the debug code of an app, and the running agent whether it is right.
package struct DebugCodePrompt {
    private let path: String

    package init(configuration: AgentConfiguration) { path = configuration.socketPath }

    /// Reads a line from standard input (without showing it, on a terminal) and waits for the agent's answer.
    package func ask(for app: String) throws -> Bool {
        let app = try AppID(checking: app)
        let code = try readCode()
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Files.failure("make a socket") }
        defer { close(descriptor) }
        guard path.utf8.count <= Link.maximumPath else {
            throw DeviceAgentError(.socket, "the socket's path is too long: \(path)")
        }
        guard LinkSocket(path: path).connect(descriptor) else {
            throw DeviceAgentError(
                .socket, "no agent answers at \(path) (\(String(cString: strerror(errno)))): is it running?")
        }
        let line = AppFrame.code(app, code).json + [UInt8(ascii: "\n")]
        guard send(descriptor, line, line.count, Int32(MSG_NOSIGNAL)) == line.count else {
            throw Files.failure("speak to the agent at \(path)")
        }
        return try answer(on: descriptor)
    }

    private func answer(on descriptor: Int32) throws -> Bool {
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            guard let end = received.firstIndex(of: UInt8(ascii: "\n")) else {
                let count = received.count < Link.maximumLine ? recv(descriptor, &buffer, buffer.count, 0) : 0
                guard count > 0 else { throw DeviceAgentError(.socket, "the agent at \(path) closed the connection") }
                received += buffer[..<count]
                continue
            }
            switch try AgentFrame(json: Array(received[..<end]), limit: Link.maximumLine) {
            case .codeResult(let isRight): return isRight
            case .refused(_, let message): throw DeviceAgentError(.socket, "the agent refused: \(message)")
            case .activity: received.removeSubrange(...end)  // Whoever is connected is told.
            case .welcome, .ready, .deliver, .displayed, .kept, .keys:
                throw DeviceAgentError(.socket, "the agent gave an answer to something else")
            }
        }
    }

    private func readCode() throws -> String {
        let silence = TerminalSilence()
        if silence.isTerminal { write(STDERR_FILENO, "Debug code: ", 12) }
        defer {
            silence.end()
            if silence.isTerminal { write(STDERR_FILENO, "\n", 1) }
        }
        guard let code = readLine(strippingNewline: true), !code.isEmpty else {
            throw DeviceAgentError(.configuration, "no code was given on standard input")
        }
        return code
    }
}

/// A terminal that does not show what is typed, and does again after Ctrl-C.
private struct TerminalSilence {
    /// For the handler of signals; written before that is set.
    nonisolated(unsafe) private static var before = termios()
    private static let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
    let isTerminal: Bool

    init() {
        isTerminal = tcgetattr(STDIN_FILENO, &Self.before) == 0
        guard isTerminal else { return }
        for number in Self.signals {
            signal(number) { number in
                tcsetattr(STDIN_FILENO, TCSANOW, &TerminalSilence.before)
                signal(number, SIG_DFL)
                raise(number)
            }
        }
        var silent = Self.before
        silent.c_lflag &= ~tcflag_t(ECHO)
        tcsetattr(STDIN_FILENO, TCSANOW, &silent)
    }

    func end() {
        guard isTerminal else { return }
        tcsetattr(STDIN_FILENO, TCSANOW, &Self.before)
        for number in Self.signals { signal(number, SIG_DFL) }
    }
}
