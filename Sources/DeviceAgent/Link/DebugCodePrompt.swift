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
        while !received.contains(UInt8(ascii: "\n")), received.count < Link.maximumLine {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { throw DeviceAgentError(.socket, "the agent at \(path) closed the connection") }
            received += buffer[..<count]
        }
        let line = Array(received.prefix { $0 != UInt8(ascii: "\n") })
        switch try AgentFrame(json: line, limit: Link.maximumLine) {
        case .codeResult(let isRight): return isRight
        case .refused(_, let message): throw DeviceAgentError(.socket, "the agent refused: \(message)")
        case .welcome, .ready, .deliver, .displayed, .activity:
            throw DeviceAgentError(.socket, "the agent gave an answer to something else")
        }
    }

    private func readCode() throws -> String {
        var terminal = termios()
        let isTerminal = tcgetattr(STDIN_FILENO, &terminal) == 0
        if isTerminal {
            var silent = terminal
            silent.c_lflag &= ~tcflag_t(ECHO)
            tcsetattr(STDIN_FILENO, TCSANOW, &silent)
            write(STDERR_FILENO, "Debug code: ", 12)
        }
        defer {
            if isTerminal {
                tcsetattr(STDIN_FILENO, TCSANOW, &terminal)
                write(STDERR_FILENO, "\n", 1)
            }
        }
        guard let code = readLine(strippingNewline: true), !code.isEmpty else {
            throw DeviceAgentError(.configuration, "no code was given on standard input")
        }
        return code
    }
}
