import FleetProtocol
import Glibc
import TestSupport

/// An agent that does what a test tells it, on a real socket. Each step fails after ten seconds.
final class ScriptedAgent {
    let path: String
    private var listening: Int32

    init(at path: String) throws {
        self.path = path
        listening = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        unlink(path)
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listening, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0, listen(listening, 16) == 0 else { throw TestFailure("'\(path)': errno \(errno)") }
    }

    deinit { close(listening) }

    /// The next app that comes.
    func accept() throws -> Peer {
        try awaitInput(listening, "no app came")
        let descriptor = Glibc.accept(listening, nil, nil)
        guard descriptor >= 0 else { throw TestFailure("accept: errno \(errno)") }
        return Peer(descriptor)
    }

    /// The next app that comes, welcomed, and how it introduced itself.
    func welcome() throws -> (Peer, Registration) {
        let peer = try accept()
        guard case .register(let registration) = try peer.next() else { throw TestFailure("no registration") }
        try peer.send(
            .welcome(agent: "scripted/1", device: DeviceID(unchecked: "till-0042"), hasPasteboard: true))
        return (peer, registration)
    }

    /// The next app that comes, up to the answer to its ready.
    func ready(_ properties: AppProperties = .initial) throws -> Peer {
        let (peer, _) = try welcome()
        try peer.send(.ready(properties))
        guard try peer.next() == .ready else { throw TestFailure("no answer to ready") }
        return peer
    }

    /// One app's connection.
    final class Peer {
        private let descriptor: Int32
        private var buffer: [UInt8] = []

        init(_ descriptor: Int32) { self.descriptor = descriptor }
        deinit { Glibc.close(descriptor) }

        func send(_ frame: AgentFrame) throws { try send(bytes: frame.json + [UInt8(ascii: "\n")]) }

        /// Writes what goes: an app may have dropped the connection before it has read all.
        func send(bytes: [UInt8]) throws {
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }

        /// The next frame; nil when the app has closed the connection.
        func next() throws -> AppFrame? {
            while true {
                if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                    let line = Array(buffer[..<end])
                    buffer.removeSubrange(...end)
                    return try AppFrame(json: line, limit: Link.maximumLine)
                }
                try awaitInput(descriptor, "the app says nothing")
                var chunk = [UInt8](repeating: 0, count: 65_536)
                let count = recv(descriptor, &chunk, chunk.count, 0)
                if count <= 0 { return nil }
                buffer += chunk[..<count]
            }
        }

        /// Whether the app closes the connection, whatever of it has not been read.
        func isClosedByApp() -> Bool {
            var polled = pollfd(fd: descriptor, events: 0, revents: 0)
            return poll(&polled, 1, 120_000) == 1
        }

        func close() { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
}

private func awaitInput(_ descriptor: Int32, _ failure: String) throws {
    var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&polled, 1, 120_000) == 1 else { throw TestFailure("\(failure) within two minutes") }
}
