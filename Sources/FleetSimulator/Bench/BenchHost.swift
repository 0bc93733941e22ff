import FleetHome
import FleetProtocol
import Foundation
import Glibc

/// Everything that a bench needs, in a temporary folder: a fleet's home with its broker and controller, and a bare broker
/// for the floor. All of it ends with ``with(_:)``.
struct BenchHost {
    let home: FleetHome
    let broker: Child
    let controller: Child
    let bareBroker: Child
    let barePort: UInt16

    static func with<Value>(_ body: (BenchHost) async throws -> Value) async throws -> Value {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fleet-sim-\(getpid())").path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        var children: [Child] = []
        do {
            let host = try await start(in: folder, &children)
            let value = try await body(host)
            await end(children, folder)
            return value
        } catch {
            await end(children, folder)
            throw error
        }
    }

    private static func end(_ children: [Child], _ folder: String) async {
        for child in children.reversed() { await child.end() }
        try? FileManager.default.removeItem(atPath: folder)
    }

    private static func start(in folder: String, _ children: inout [Child]) async throws -> BenchHost {
        let mosquitto = try Child.path(of: "mosquitto")
        let port = try Loopback.freePort()
        let barePort = try Loopback.freePort()
        let home = try FleetHome.create(
            at: folder + "/home", fleet: FleetID(unchecked: "bench"), port: port, brokerUser: NSUserName())
        let broker = try Child(mosquitto, ["-c", home.brokerConfigurationPath], in: folder)
        children.append(broker)
        let settings =
            (geteuid() == 0 ? ["user root"] : []) + [
                "listener \(barePort) 127.0.0.1", "allow_anonymous true", "persistence false",
                "max_queued_messages 10000000", "max_inflight_messages 1000", "set_tcp_nodelay true",
                "sys_interval 0", "log_dest stderr", "log_type error",
            ]
        let bareFolder = folder + "/bare"
        try FileManager.default.createDirectory(atPath: bareFolder, withIntermediateDirectories: true)
        try Data((settings.joined(separator: "\n") + "\n").utf8).write(
            to: URL(fileURLWithPath: bareFolder + "/mosquitto.conf"))
        let bareBroker = try Child(mosquitto, ["-c", bareFolder + "/mosquitto.conf"], in: bareFolder)
        children.append(bareBroker)
        try await waitFor([(broker, port), (bareBroker, barePort)])
        let controller = try Child(
            try Child.path(of: "fleet-controller"), ["run", "--home", home.path, "--log-level", "notice"], in: folder)
        children.append(controller)
        return BenchHost(
            home: home, broker: broker, controller: controller, bareBroker: bareBroker, barePort: barePort)
    }

    private static func waitFor(_ brokers: [(Child, UInt16)]) async throws {
        for (broker, port) in brokers {
            for attempt in 0... {
                try broker.check()
                if Loopback.answers(port: port) { break }
                guard attempt < 1_000 else { throw LoadError("no broker answers on port \(port)") }
                try await Task.sleep(for: .milliseconds(10))
            }
        }
    }
}
