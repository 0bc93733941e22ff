import FleetProtocol
import Glibc

/// One question of a person's program to the running agent.
struct AgentInquiry {
    let path: String
    /// How long the agent may say nothing. What takes it longest, comparing a code, is a matter of seconds.
    var patience = Duration.seconds(30)

    /// Sends a frame, and waits for the answer.
    func answer(to frame: AppFrame) throws -> AgentFrame {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Files.failure("make a socket") }
        defer { close(descriptor) }
        guard path.utf8.count <= Link.maximumPath else {
            throw DeviceAgentError(.socket, "the socket's path is too long: \(path)")
        }
        limitWaiting(on: descriptor)
        guard LinkSocket(path: path).connect(descriptor) else {
            throw DeviceAgentError(
                .socket, "no agent answers at \(path) (\(String(cString: strerror(errno)))): is it running?")
        }
        let line = frame.json + [UInt8(ascii: "\n")]
        guard send(descriptor, line, line.count, Int32(MSG_NOSIGNAL)) == line.count else {
            throw Files.failure("speak to the agent at \(path)")
        }
        return try answer(on: descriptor)
    }

    private func answer(on descriptor: Int32) throws -> AgentFrame {
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            guard let end = received.firstIndex(of: UInt8(ascii: "\n")) else {
                let count = received.count < Link.maximumLine ? recv(descriptor, &buffer, buffer.count, 0) : 0
                guard count >= 0 || errno != EAGAIN else {
                    throw DeviceAgentError(
                        .socket,
                        "the agent at \(path) has not answered for \(patience): whether it does what was asked is not known;"
                            + " is it stopped, or its disk stuck?")
                }
                guard count > 0 else { throw DeviceAgentError(.socket, "the agent at \(path) closed the connection") }
                received += buffer[..<count]
                continue
            }
            switch try AgentFrame(json: Array(received[..<end]), limit: Link.maximumLine) {
            case .refused(_, let message): throw DeviceAgentError(.socket, "the agent refused: \(message)")
            case .activity: received.removeSubrange(...end)  // Whoever is connected is told.
            case let answer: return answer
            }
        }
    }

    private func limitWaiting(on descriptor: Int32) {
        let (seconds, attoseconds) = patience.components
        var time = timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    static func unexpected() -> DeviceAgentError {
        DeviceAgentError(.socket, "the agent gave an answer to something else")
    }
}
