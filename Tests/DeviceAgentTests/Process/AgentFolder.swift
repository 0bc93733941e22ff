import DeviceAgent
import FleetProtocol
import Foundation
import Mosquitto
import TestSupport

/// A device's folder as `fleetctl enroll` makes it, and the agent that runs in it.
struct AgentFolder {
    let folder: URL
    let fleet: TestFleet
    /// The members of agent.json, as JSON texts.
    var members: [String: String]

    init(_ fixture: Fixture, fleet: TestFleet, port: UInt16) throws {
        self.fleet = fleet
        folder = try fixture.temporaryFolder()
        let enrollment = try fleet.enrollment()
        var trust = JSONWriter()
        trust.value(utf8: enrollment.trust.wire)
        members = [
            "v": "1", "device": "\"\(enrollment.device)\"", "fleet": "\"\(fleet.id)\"",
            "fleetUUID": "\"\(fleet.uuid)\"", "incarnation": "1",
            "broker": #"{"host":"127.0.0.1","port":\#(port)}"#,
            "rootKey": "\"\(Base64URL.encode(fleet.root.publicKey.bytes))\"",
            "trust": String(decoding: trust.bytes, as: UTF8.self), "epoch": "1", "floors": "{}",
            "credentials": "\"credentials.json\"",
        ]
        try write()
        try write(#"{"user":"till-1","password":"secret"}"#, to: "credentials.json", mode: 0o600)
    }

    var configuration: URL { folder.appendingPathComponent("agent.json") }
    var socket: String { folder.appendingPathComponent("agent.sock").path }
    var state: URL { folder.appendingPathComponent("state") }

    func write() throws {
        let text = "{" + members.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
        try write(text, to: "agent.json", mode: 0o600)
    }

    func write(_ text: String, to name: String, mode: Int) throws {
        let file = folder.appendingPathComponent(name)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
    }

    /// Starts the agent and waits until it serves apps.
    func start(_ fixture: Fixture) async throws -> ManagedProcess {
        let agent = try await fixture.process(
            program(named: "fleet-agent"), ["run", "--config", configuration.path, "--log-level", "debug"])
        try await until("the agent listens") {
            if let status = agent.status { throw TestFailure("the agent ended with \(status): \(agent.errors)") }
            return agent.errors.contains("agent started")
        }
        return agent
    }

    /// Runs the agent, which must end by itself. Returns its status and what it said.
    ///
    /// - Parameter obeysModes: Whether the modes of files count for it, as they do for everybody but root.
    func runToEnd(obeysModes: Bool = false) async throws -> (status: Int32, errors: String) {
        let result = try await within("the agent's end") { [configuration] in
            let (executable, arguments) = try command(
                program(named: "fleet-agent"), ["run", "--config", configuration.path], obeysModes: obeysModes)
            return try await run(program(named: "timeout"), ["-s", "KILL", "120", executable.path] + arguments)
        }
        return (result.status, result.errors)
    }
}

/// An app's end of the link, line by line. Reads give up after two minutes.
final class LinkClient: Sendable {
    private let descriptor: Int32
    private let buffer = Locked<[UInt8]>([])
    /// The global queue's threads are those of all tasks.
    private let queue = DispatchQueue(label: "link")

    init(_ path: String) throws {
        descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else { throw TestFailure("no agent at \(path): errno \(errno)") }
        var timeout = timeval(tv_sec: 120, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    func send(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            sent += count
        }
    }

    func send(_ frame: AppFrame) { send(frame.json + [UInt8(ascii: "\n")]) }

    /// Closes the connection, also in the middle of a line.
    func end() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// The next frame; nil when the agent has closed the connection.
    func next() async throws -> AgentFrame? {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try self.read() }) }
        }
    }

    private func read() throws -> AgentFrame? {
        try buffer.withLock { buffer in
            while true {
                if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                    defer { buffer.removeSubrange(...end) }
                    return try AgentFrame(json: Array(buffer[..<end]), limit: Link.maximumLine)
                }
                var chunk = [UInt8](repeating: 0, count: 65_536)
                let count = recv(descriptor, &chunk, chunk.count, 0)
                if count == 0 || count < 0 && errno == ECONNRESET { return nil }
                guard count > 0 else { throw TestFailure("nothing came from the agent: errno \(errno)") }
                buffer += chunk[..<count]
            }
        }
    }

    func register(_ app: AppID, token: String? = nil, launch: RandomID = .random()) {
        send(
            .register(
                Registration(
                    app: app, install: .random(), launch: launch, sdk: "test/1",
                    implements: Set(Callback.allCases), token: token)))
    }
}

/// Answers everything an app is told with `applied`, until its connection closes. `noting` sees it first.
func answerAll(_ client: LinkClient, noting: @Sendable (AgentFrame) -> Void = { _ in }) async throws {
    while let frame = try await client.next() {
        noting(frame)
        switch frame {
        case .ready: client.send(.ready)
        case .deliver(let number, let delivery):
            client.send(.delivered(number))
            if case .policy(let value, _) = delivery, value.policy.isAcknowledgedByApp {
                client.send(.acknowledge(Acknowledgement(delivery: number, policy: value.policy, state: .applied)))
            }
        case .welcome, .refused, .displayed, .activity, .codeResult, .kept, .keys, .autoLock, .passcodeResult, .copied,
            .pasted:
            break
        }
    }
}
