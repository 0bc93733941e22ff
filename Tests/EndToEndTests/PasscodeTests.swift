import FleetProtocol
import Foundation
import TestSupport
import Testing

@Suite("The passcode of a device")
struct PasscodeTests {
    private let app = "com.example.mail"

    @Test(
        "an app reads what it keeps when the passcode has been entered at the agent, and loses it to too many wrong ones"
    )
    func passcode() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet.running(fixture, "till-1")
            try await fleet.apply(
                app, "all",
                """
                {auth: {state: authorized}, secure-services: {passcode: {required: true, minLength: 6, classes: [digit],
                 maxAttempts: 2, then: wipe}, autoLock: 6s}}
                """, [])
            let path = fleet.folder.appending(path: "report").path()
            let process = try await fleet.startApp(app, on: "till-1")
            let said = Transcript()
            // Ends with the process' output, and so with the fixture.
            Task { for await line in process.lines { said.add(line) } }
            func says(_ event: String, _ member: String, _ value: String, by command: String? = nil) async throws {
                said.removeAll()
                if let command { try process.send(line: command) }
                try await said.first(event) { $0[member]?.stringValue == value }
            }
            try await says("secureServices", "availability", "unavailable")
            try await fleet.untilReported(app, on: "till-1", "secureServices") {
                $0["attempt"]?["message"]?.stringValue?.contains("no passcode") == true
            }
            #expect(try await fleet.fleetctl(["get", "apps"]).contains(" locked "))
            try await says("error", "code", "noKeys", by: "write \(path) takings")

            let weak = try await ask(fleet, ["set"], "secret")
            #expect(weak == Answer(1, "The passcode is too weak; it lacks: a digit."))
            said.removeAll()
            #expect(try await ask(fleet, ["set"], "secret1") == Answer(0, "Done."))
            try await said.first("secureServices") { $0["availability"]?.stringValue == "available" }
            try await says("written", "file", path, by: "write \(path) takings")
            // Used for longer than the fleet lets it lie, then not any more.
            said.removeAll()
            let end = ContinuousClock.now + .seconds(8)
            try await until("the person has used it") {
                try process.send(line: "use")
                return ContinuousClock.now >= end
            }
            #expect(said.all("secureServices").isEmpty)
            try await said.first("secureServices") { $0["availability"]?.stringValue == "unavailable" }
            try await says("error", "code", "noKeys", by: "read \(path)")
            said.removeAll()
            #expect(try await ask(fleet, ["enter"], "secret1") == Answer(0, "Done."))
            try await said.first("secureServices") { $0["availability"]?.stringValue == "available" }
            try await says("read", "text", "takings", by: "read \(path)")

            #expect(try await ask(fleet, ["set", "--change"], "secret1\nsecret2") == Answer(0, "Done."))
            #expect(try await ask(fleet, ["lock"], "") == Answer(0, "Done."))
            let first = try await ask(fleet, ["enter"], "secret1")
            #expect(first == Answer(1, "The passcode is wrong. With one more wrong one apps are locked or wiped."))
            let last = try await ask(fleet, ["enter"], "secret1")
            #expect(last.status == 1 && last.text.contains("wrong too often"))
            try await said.first("auth") { $0["reason"]?.stringValue == "passcodeAttempts" }
            try await until("the operator sees it") {
                let events = try await fleet.fleetctl(["get", "events", "--kind", "wiped"])
                return events.contains("passcodeAttempts")
            }
            let state = try FileManager.default.contentsOfDirectory(
                atPath: fleet.agentFolder("till-1").appending(path: "state").path())
            for file in state {
                let content = try? Data(contentsOf: fleet.agentFolder("till-1").appending(path: "state/\(file)"))
                #expect(content?.range(of: Data("secret2".utf8)) == nil, "\(file)")
            }
        }
    }

    private struct Answer: Equatable {
        let status: Int32
        let text: String

        init(_ status: Int32, _ text: String) { (self.status, self.text) = (status, text) }
    }

    private func ask(_ fleet: TestFleet, _ words: [String], _ input: String) async throws -> Answer {
        let configuration = fleet.agentFolder("till-1").appending(path: "agent.json").path()
        let result = try await run(
            program(named: "fleet-agent"), ["passcode"] + words + ["--config", configuration], input: input)
        return Answer(result.status, result.output)
    }
}
