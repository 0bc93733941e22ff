import FleetProtocol
import Foundation
import Mosquitto
import TestSupport

/// The programs of `foreign/`, which were written from `schemas/` alone, and what is said of them on the bus.
extension TestFleet {
    private static let repository = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    static let schemas = repository.appending(path: "schemas")

    /// The Python of `deploy/test`, which has what the programs import.
    static func python() throws -> URL {
        guard let path = ProcessInfo.processInfo.environment["FLEETBUS_PYTHON"] else {
            throw TestFailure(
                "FLEETBUS_PYTHON names the Python with an MQTT client: run deploy/test, which installs it")
        }
        return URL(filePath: path)
    }

    static func script(_ name: String) -> String {
        repository.appending(path: "Tests/EndToEndTests/foreign/\(name)").path()
    }

    /// Starts one of the programs; all it prints is in the transcript.
    func startForeign(_ name: String, _ arguments: [String]) async throws -> (ManagedProcess, Transcript) {
        let process = try await fixture.process(
            try Self.python(), [Self.script(name)] + arguments,
            environment: ["LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"], in: folder)
        let transcript = Transcript()
        // Ends with the process' output, and so with the fixture.
        Task { for await line in process.lines { transcript.add(line) } }
        return (process, transcript)
    }

    func startForeignDevice(_ device: String) async throws -> (ManagedProcess, Transcript) {
        try await startForeign("device.py", [agentFolder(device).path()])
    }

    func startForeignApp(
        _ app: String, on device: String, _ arguments: [String] = []
    ) async throws -> (ManagedProcess, Transcript) {
        let data = folder.appending(path: "data/\(device)/\(app)").path()
        return try await startForeign("app.py", ["--socket", socket(device), "--app", app, "--data", data] + arguments)
    }

    /// A client of the broker with the credentials in `file`, under the client id `id`.
    func client(_ file: URL, as id: String) async throws -> MQTTClient {
        let credentials = try JSONValue(json: Array(try Data(contentsOf: file)), limit: 4096)
        let loop = try EventLoop()
        var options = ClientOptions(host: "127.0.0.1", port: port, clientID: id)
        options.userName = credentials["user"]?.stringValue
        options.password = credentials["password"]?.stringValue.map { Password(Array($0.utf8)) }
        let client = try MQTTClient(options, on: loop)
        fixture.onEnd {
            await client.close()
            await loop.shutdown()
        }
        try await client.connect()
        return client
    }

    func credentials(of user: String) -> URL { home.appending(path: "credentials/\(user)") }

    /// Checks the files in `folder`, each in a folder named like its schema.
    func validate(_ folder: URL) async throws -> (isValid: Bool, said: String) {
        let result = try await run(
            try Self.python(), [Self.schemas.appending(path: "validate.py").path(), folder.path()],
            environment: ["LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"])
        return (result.status == 0, result.output + result.errors)
    }
}
