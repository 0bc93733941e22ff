import FleetHome
import FleetProtocol
import Foundation
import Glibc
import Synchronization

/// Everything that a bench needs, in a temporary folder: a fleet's home with its broker and controller, and what the
/// floors are made of. All of it ends with ``with(preparing:_:)``.
final class BenchHost: Sendable {
    let home: FleetHome
    private let folder: String
    private let parts = Mutex<Parts>(Parts())
    private let ends = Mutex<[@Sendable () async -> Void]>([])

    private struct Parts {
        var broker: Child?
        var controller: Child?
    }

    /// - Parameter prepare: Fills the home before broker and controller start.
    static func with<Value>(
        preparing prepare: (FleetHome) throws -> Void = { _ in }, _ body: (BenchHost) async throws -> Value
    ) async throws -> Value {
        signal(SIGPIPE, SIG_IGN)  // A process of the bench that has ended is told by its status.
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "fleet-sim-\(getpid())-\(RandomID.random().text.prefix(6))"
        ).path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let home = try FleetHome.create(
            at: folder + "/home", fleet: WireSamples.fleet, port: Loopback.freePort(), brokerUser: NSUserName(),
            guardLibrary: FleetHome.ownGuardLibrary)
        let host = BenchHost(home, folder)
        do {
            try prepare(home)
            try await host.startBroker()
            try await host.startController()
            let value = try await body(host)
            await host.end()
            return value
        } catch {
            // What a process of ours has to say tells more than what followed from it.
            var reason: any Error = error
            do {
                let parts = host.parts.withLock { $0 }
                for child in [parts.broker, parts.controller] { try child?.check() }
            } catch { reason = error }
            await host.end()
            throw reason
        }
    }

    private init(_ home: FleetHome, _ folder: String) {
        self.home = home
        self.folder = folder
    }

    // MARK: Ours

    var broker: Child {
        get throws {
            guard let broker = parts.withLock(\.broker) else { throw LoadError("the broker has not been started") }
            return broker
        }
    }

    var controller: Child {
        get throws {
            guard let child = parts.withLock(\.controller) else { throw LoadError("no controller has been started") }
            return child
        }
    }

    /// Starts the fleet's broker, again after a crash.
    func startBroker() async throws {
        let broker = try Child(Child.path(of: "mosquitto"), ["-c", home.brokerConfigurationPath], in: folder)
        parts.withLock { $0.broker = broker }
        try await Self.wait(for: broker, at: home.context.port)
    }

    func crashBroker() async throws { await (try broker).crash() }

    private func startController() async throws {
        let program = try Child.path(of: "fleet-controller")
        let controller = try Child(program, ["run", "--home", home.path, "--log-level", "notice"], in: folder)
        parts.withLock { $0.controller = controller }
    }

    /// The settings of the fleet's broker that matter for what is measured.
    var brokerSettings: [String] {
        ProcessUsage.lines(home.brokerConfigurationPath).map(String.init).filter { line in
            ["max_", "set_tcp", "persistence ", "autosave", "sys_", "acl_", "plugin"].contains { line.hasPrefix($0) }
        }.map { $0.split(separator: "/").count > 2 ? String($0.prefix { $0 != "/" }) + "…" : $0 }
    }

    static let bareSettings = [
        "allow_anonymous true", "persistence false", "max_queued_messages 10000000", "max_inflight_messages 1000",
        "set_tcp_nodelay true", "sys_interval 0",
    ]

    // MARK: What else is started

    struct BareBroker: Sendable {
        let folder: String
        let port: UInt16
    }

    /// Writes the configuration of a broker that stores and checks nothing.
    func bareBroker(named name: String) throws -> BareBroker {
        let folder = "\(folder)/\(name)-\(RandomID.random().text.prefix(6))"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let port = try Loopback.freePort()
        let settings =
            (geteuid() == 0 ? ["user root"] : []) + ["listener \(port) 127.0.0.1"] + Self.bareSettings
            + ["log_dest stderr", "log_type error"]
        try Data((settings.joined(separator: "\n") + "\n").utf8).write(
            to: URL(fileURLWithPath: folder + "/mosquitto.conf"))
        return BareBroker(folder: folder, port: port)
    }

    func start(_ bare: BareBroker) async throws -> Child {
        let broker = try Child(Child.path(of: "mosquitto"), ["-c", bare.folder + "/mosquitto.conf"], in: bare.folder)
        onEnd { await broker.end() }
        try await Self.wait(for: broker, at: bare.port)
        return broker
    }

    func peer(_ arguments: [String]) async throws -> (peer: Peer, first: JSONValue) {
        let (peer, first) = try await Peer.start(arguments, in: folder)
        onEnd { await peer.child.end() }
        return (peer, first)
    }

    /// Runs a program to its end.
    ///
    /// - Returns: Seconds, from before it is started until after it has ended.
    func run(_ program: String, _ arguments: [String]) throws -> Double {
        let path = try Child.path(of: program)
        let start = Clock.now()
        let child = try Child(path, arguments, in: folder, environment: ["FLEETCTL_HOME": home.path])
        let status = try child.finish(within: .seconds(60))
        let seconds = Double(Clock.now() - start) / 1e9
        guard status == .exited(0) else {
            let log = try? String(contentsOfFile: "\(folder)/\(program).log", encoding: .utf8)
            throw LoadError("\(program) ended with \(status): \(log?.suffix(1_000) ?? "")")
        }
        return seconds
    }

    /// Runs a program to its end, and returns what it printed.
    func output(of program: String, _ arguments: [String]) async throws -> String {
        let streams = Child.Streams(output: "\(folder)/output.txt", errors: "\(folder)/errors.txt")
        let child = try Child(program, arguments, streams)
        onEnd { await child.end() }
        while child.ending == nil { try await Task.sleep(for: .milliseconds(20)) }
        let text = try String(contentsOfFile: streams.output, encoding: .utf8)
        guard child.ending == .exited(0) else { throw LoadError("\(program) failed: \(text.suffix(500))") }
        return text
    }

    func write(_ text: String, to name: String) throws -> String {
        let path = "\(folder)/\(name)"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// Runs `end` when the bench ends, before what was started earlier.
    func onEnd(_ end: @escaping @Sendable () async -> Void) { ends.withLock { $0.append(end) } }

    private func end() async {
        for end in ends.withLock({ $0 }).reversed() { await end() }
        let parts = parts.withLock { $0 }
        await parts.controller?.end()
        await parts.broker?.end()
    }

    /// Waits until broker and controller have nothing to do any more: within a quarter of a second less than a fiftieth.
    func settle() async throws {
        let pids = [try broker.pid, try controller.pid]
        func used() -> Double { pids.reduce(0) { $0 + ProcessUsage(of: $1).processor } }
        for _ in 0..<400 {
            let before = used()
            try await Task.sleep(for: .milliseconds(250))
            if used() - before < 0.005 { return }
        }
    }

    // MARK: Ports

    private static func wait(for broker: Child, at port: UInt16) async throws {
        for attempt in 0... {
            try broker.check()
            if Loopback.answers(port: port) { break }
            guard attempt < 1_000 else { throw LoadError("no broker answers on port \(port)") }
            try await Task.sleep(for: .milliseconds(10))
        }
    }
}
