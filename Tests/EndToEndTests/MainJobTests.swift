import FleetProtocol
import Foundation
import TestSupport
import Testing

@Suite("The main job, with real processes", .serialized)
struct MainJobTests {
    private let app = "com.example.mail"

    @Test("each aspect at each layer reaches two apps, which acknowledge, and fleetctl shows who applied what")
    func aspectsAndLayers() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet.running(fixture, "till-1")
            _ = try await fleet.startApp(app, on: "till-1")
            _ = try await fleet.startApp("com.example.notes", on: "till-1")
            try await fleet.fleetctl(["group", "set", "kiosk", "--add", "till-1"])
            try await fleet.untilReported(app, on: "till-1", "auth") {
                $0["attempt"]?["outcome"]?.stringValue == "applied"
            }
            for (layer, level) in [("all", "info"), ("group/kiosk", "warning"), ("device/till-1", "error")] {
                for app in [app, "com.example.notes"] {
                    try await fleet.apply(
                        app, layer,
                        """
                        {auth: {state: authorized, message: "\(layer)"},
                         dlp: {openIn: {policy: whitelist, apps: [com.example.notes]}, openFrom: {policy: authorized},
                               pasteboard: secureCopy, print: authorized, dragAndDrop: appConnectApps},
                         config: {layer: "\(layer)"}, secure-services: {passcode: {required: false}, autoLock: 5m},
                         log-level: {level: \(level)}}
                        """, ["--wait=2m"])
                }
                let status = try await fleet.reported(app, on: "till-1")
                #expect(status["auth"]?["message"]?.stringValue == layer)
                #expect(status["logLevel"]?.stringValue == level)
                for policy in Policy.allCases where policy != .secureFileIO {
                    let report = status["policies"]?[policy.rawValue]
                    #expect(report?["attempt"]?["outcome"]?.stringValue == "applied", "\(policy) on \(layer)")
                    #expect(report?["source"]?.stringValue?.contains("desired/\(layer)/") == true)
                }
            }
            let rows = try await fleet.json(["status", app])
            #expect(rows.arrayValue?.count == Policy.allCases.count)
            for row in rows.arrayValue ?? [] { #expect(row["counts"]?["applied"] == 1, "\(row.jsonText)") }
            // Deleting the overrides goes back to what the layers below say.
            try await fleet.fleetctl(["delete", app, "--target", "device/till-1", "--wait=2m"])
            #expect(try await fleet.reported(app, on: "till-1")["logLevel"]?.stringValue == "warning")
        }
    }

    @Test("an app that answers error, is missing callbacks, or never answers is shown as such")
    func answers() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet.running(fixture, "till-1")
            _ = try await fleet.startApp("app.error", on: "till-1", ["--answer", "error"])
            _ = try await fleet.startApp("app.without", on: "till-1", ["--without", "print,config"])
            _ = try await fleet.startApp("app.silent", on: "till-1", ["--never-ack"])
            for (app, policy, outcome) in [
                ("app.error", "config", "error"), ("app.without", "config", "unsupported"),
                ("app.without", "print", "unsupported"), ("app.without", "openIn", "applied"),
                ("app.silent", "config", "delivered"),
            ] {
                try await fleet.untilReported(app, on: "till-1", policy) {
                    $0["attempt"]?["outcome"]?.stringValue == outcome
                }
            }
            let rows = try await fleet.json(["status", "app.silent"])
            let config = rows.arrayValue?.first { $0["policy"]?.stringValue == "config" }
            #expect(config?["counts"]?["delivered"] == 1)
            #expect(config?["counts"]?["error"] == 0)
            let document = """
                apiVersion: fleetbus/v1
                kind: AppPolicy
                metadata: {app: app.without, target: all}
                spec: {config: {any: value}}
                """
            let waited = try await fleet.attempt(["apply", "--wait", "-f", "-"], input: document)
            #expect(waited.status == 3)
            #expect(waited.errors.contains("\n  app.without config: 1 unsupported\n"), "\(waited.errors)")
        }
    }

    @Test("a retired app loses its key file, also while it is not running")
    func retired() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet.running(fixture, "till-1")
            let process = try await fleet.startApp(app, on: "till-1")
            try await fleet.apply(app, "all", "{auth: {state: authorized}}")
            try await fleet.untilReported(app, on: "till-1", "auth") { $0["applied"]?.integerValue ?? 0 > 0 }
            await process.terminate()
            let key = fleet.agentFolder("till-1").appendingPathComponent("state/keys/\(app).key")
            #expect(FileManager.default.fileExists(atPath: key.path))
            try await fleet.apply(app, "all", "{auth: {state: retired, message: gone}}")
            try await fleet.untilReported(app, on: "till-1", "auth") { $0["received"]?.integerValue == 2 }
            #expect(!FileManager.default.fileExists(atPath: key.path))
            #expect(try await fleet.reported(app, on: "till-1")["keys"]?.stringValue == "destroyed")
        }
    }

    @Test("what a retired app has kept in secure files nobody reads again, not even that app")
    func secureFiles() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet.running(fixture, "till-1")
            let path = fleet.folder.appending(path: "report").path()
            try await fleet.apply(app, "all", "{auth: {state: authorized}}")
            let written = try await answers(of: fleet, to: ["write \(path) takings of today", "read \(path)"])
            #expect(written.map { $0["event"]?.stringValue } == ["written", "read"])
            #expect(written.last?["text"]?.stringValue == "takings of today")
            let onDisk = try Data(contentsOf: URL(filePath: path))
            #expect(onDisk.range(of: Data("takings".utf8)) == nil)
            let again = try await answers(of: fleet, to: ["read \(path)"])
            #expect(again.last?["text"]?.stringValue == "takings of today", "the next launch has the same key")
            // Nobody waits for who has not reported the app yet.
            try await fleet.untilReported(app, on: "till-1", "auth") { $0["received"]?.integerValue == 1 }
            // The app was killed, and hears of it when it starts.
            try await fleet.apply(app, "all", "{auth: {state: retired}}", ["--wait=2m"])
            try await fleet.apply(app, "all", "{auth: {state: authorized}}")
            try await fleet.untilReported(app, on: "till-1", "auth") { $0["received"]?.integerValue == 3 }
            let later = try await answers(of: fleet, to: ["read \(path)", "write \(path) anew", "read \(path)"])
            #expect(later.first?["code"]?.stringValue == "badKeyOrCorruptData")
            #expect(later.last?["text"]?.stringValue == "anew")
        }
    }

    /// What a launch of the app says to each of these commands, once it has its keys. It is killed then.
    private func answers(of fleet: TestFleet, to commands: [String]) async throws -> [JSONValue] {
        let process = try await fleet.startApp(app, on: "till-1")
        var answers: [JSONValue] = []
        var isBegun = false
        for await line in process.lines {
            let said = try JSONValue(json: Array(line.utf8), limit: 100_000)
            let event = try #require(said["event"]?.stringValue)
            if ["written", "read", "error"].contains(event) {
                answers.append(said)
            } else {
                let availability = said["availability"] ?? said["secureServicesAvailability"]
                guard !isBegun, availability?.stringValue == "available" else { continue }
                isBegun = true
            }
            guard answers.count < commands.count else { break }
            try process.send(line: commands[answers.count])
        }
        await process.killNow()
        return answers
    }

    @Test("a policy file with mistakes names each with its line, and changes nothing")
    func mistakes() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet(fixture)
            _ = try await fleet.startBroker()
            _ = try await fleet.startController()
            let file = fleet.folder.appendingPathComponent("policy.yaml")
            try Data(
                """
                apiVersion: fleetbus/v1
                kind: AppPolicy
                metadata: {app: com.example.mail, target: all}
                spec:
                  auth: {state: authorised}
                  config: {port: 8080}
                  nonsense: {a: b}
                ---
                apiVersion: fleetbus/v1
                kind: AppPolicy
                metadata: {app: com.example.notes, target: all}
                spec: {auth: {state: authorized}}
                """.utf8
            ).write(to: file)
            let result = try await fleet.attempt(["apply", "-f", file.path])
            #expect(result.status != 0)
            for line in [5, 6, 7] { #expect(result.errors.contains("policy.yaml:\(line)"), "\(result.errors)") }
            #expect(try await fleet.json(["get", "policies"]) == [])
        }
    }
}
