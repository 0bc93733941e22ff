import FleetProtocol
import Foundation
import TestSupport

/// A whole fleet of real processes in a temporary folder: Mosquitto, controller, agents and sample apps, driven by
/// fleetctl alone. All of it ends with the test.
final class TestFleet: Sendable {
    let fixture: Fixture
    let folder: URL
    let home: URL
    let port: UInt16

    /// - Parameter options: More arguments of `fleetctl init`.
    init(_ fixture: Fixture, _ options: [String] = []) async throws {
        self.fixture = fixture
        folder = try fixture.temporaryFolder()
        home = folder.appendingPathComponent("home")
        port = try freePort()
        let user = try await run(URL(fileURLWithPath: "/usr/bin/id"), ["-un"]).output
        try await fleetctl(
            [
                "init", home.path, "--fleet", "demo", "--port", "\(port)", "--broker-user", user,
            ] + options)
    }

    /// With broker, controller and the agent of one device.
    static func running(_ fixture: Fixture, _ device: String) async throws -> TestFleet {
        let fleet = try await TestFleet(fixture)
        _ = try await fleet.startBroker()
        _ = try await fleet.startController()
        try await fleet.enroll(device)
        _ = try await fleet.startAgent(device)
        return fleet
    }

    // MARK: Processes

    func startBroker() async throws -> ManagedProcess {
        let broker = try await fixture.process(
            program(named: "mosquitto"), ["-c", home.appendingPathComponent("broker/mosquitto.conf").path], in: folder)
        try await until("the broker on port \(port)") {
            if let status = broker.status { throw TestFailure("mosquitto ended with \(status): \(broker.errors)") }
            return accepts(port: port)
        }
        return broker
    }

    func startController(_ arguments: [String] = []) async throws -> ManagedProcess {
        try await fixture.process(
            program(named: "fleet-controller"), ["run", "--home", home.path] + arguments, in: folder)
    }

    /// Enrolls a device.
    func enroll(_ device: String, _ arguments: [String] = []) async throws {
        try await fleetctl(["enroll", "device", device, "--out", agentFolder(device).path] + arguments)
    }

    func agentFolder(_ device: String) -> URL { folder.appendingPathComponent(device) }
    func socket(_ device: String) -> String { agentFolder(device).appendingPathComponent("agent.sock").path }

    func startAgent(_ device: String) async throws -> ManagedProcess {
        let agent = try await fixture.process(
            program(named: "fleet-agent"),
            ["run", "--config", agentFolder(device).appendingPathComponent("agent.json").path], in: folder)
        let path = socket(device)
        try await until("the socket of \(device)") {
            if let status = agent.status { throw TestFailure("the agent ended with \(status): \(agent.errors)") }
            return FileManager.default.fileExists(atPath: path)
        }
        return agent
    }

    func startApp(_ app: String, on device: String, _ arguments: [String] = []) async throws -> ManagedProcess {
        try await fixture.process(
            program(named: "sample-app"),
            [
                "--socket", socket(device), "--app", app, "--data",
                folder.appendingPathComponent("data/\(device)/\(app)").path,
            ] + arguments, in: folder)
    }

    // MARK: fleetctl

    /// Runs fleetctl, which must succeed, and returns what it printed.
    @discardableResult
    func fleetctl(_ arguments: [String], input: String? = nil) async throws -> String {
        let result = try await attempt(arguments, input: input)
        guard result.status == 0 else {
            throw TestFailure(
                "fleetctl \(arguments.joined(separator: " ")) ended with \(result.status):\n\(result.output)\n"
                    + result.errors)
        }
        return result.output
    }

    func attempt(
        _ arguments: [String], input: String? = nil
    ) async throws -> (status: Int32, output: String, errors: String) {
        try await run(
            program(named: "fleetctl"), arguments, environment: ["FLEETCTL_HOME": home.path], input: input, in: folder)
    }

    func json(_ arguments: [String]) async throws -> JSONValue {
        try JSONValue(json: Array(try await fleetctl(arguments + ["-o", "json"]).utf8), limit: .max)
    }

    /// Applies a policy for one app and target; `spec` is YAML in flow style. Once more while nobody serves, as behind a
    /// broker that has just been started.
    func apply(_ app: String, _ target: String, _ spec: String, _ arguments: [String] = []) async throws {
        let document = """
            apiVersion: fleetbus/v1
            kind: AppPolicy
            metadata: {app: \(app), target: \(target)}
            spec: \(spec)
            """
        try await until("a controller serves") {
            let result = try await attempt(["apply", "-f", "-"] + arguments, input: document)
            guard result.status != 0, result.status != 4 else { return result.status == 0 }
            throw TestFailure("a policy was not applied (\(result.status)):\n\(result.output)\n\(result.errors)")
        }
    }

    /// The status documents of one app on one device, as `get apps` shows them.
    func reported(_ app: String, on device: String) async throws -> JSONValue {
        let list = try await json(["get", "apps"])
        guard
            let found = list.arrayValue?.first(where: {
                $0["app"]?.stringValue == app && $0["device"]?.stringValue == device
            })
        else { throw TestFailure("\(app) on \(device) is not among \(list.jsonText)") }
        return found
    }

    /// Waits until `policy` of an app on a device says what `condition` asks for.
    func untilReported(
        _ app: String, on device: String, _ policy: String,
        _ condition: @escaping @Sendable (JSONValue) -> Bool
    ) async throws {
        try await until("\(policy) of \(app) on \(device)") {
            guard let status = try? await self.reported(app, on: device), let report = status["policies"]?[policy]
            else { return false }
            return condition(report)
        }
    }
}
