import FleetProtocol
import Foundation
import TestSupport
import Testing

@Suite("Copying from app to app")
struct PasteboardTests {
    private static let spec = "{auth: {state: authorized}, dlp: {pasteboard: secureCopy, dragAndDrop: appConnectApps}}"

    /// An app, and what it says.
    private struct App {
        let process: ManagedProcess
        let said = Transcript()

        func say(_ command: String, _ event: String, _ isRight: @escaping @Sendable (JSONValue) -> Bool) async throws {
            said.removeAll()
            try process.send(line: command)
            try await said.first(event, where: isRight)
        }
    }

    private func start(_ name: String, in fleet: TestFleet) async throws -> App {
        let app = App(process: try await fleet.startApp(name, on: "till-1"))
        // Ends with the process' output, and so with the fixture.
        Task { for await line in app.process.lines { app.said.add(line) } }
        try await app.said.first("auth") { $0["state"]?.stringValue == "authorized" }
        return app
    }

    @Test("what is copied under secureCopy is pasted in authorized apps alone, and gone with its app")
    func confined() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet.running(fixture, "till-1")
            for name in ["app.mail", "app.notes"] { try await fleet.apply(name, "all", Self.spec, []) }
            try await fleet.apply("app.game", "all", "{auth: {state: authorized}, dlp: {pasteboard: authorized}}", [])
            let (mail, notes) = (try await start("app.mail", in: fleet), try await start("app.notes", in: fleet))
            let game = try await start("app.game", in: fleet)

            try await mail.say("copy", "request") { $0["allowed"] == false }
            try await mail.say("copy account 4711", "copied") { $0["ok"] == true }
            try await notes.say("paste", "pasted") { $0["text"]?.stringValue == "account 4711" }
            // Whoever is authorized may read it; whoever is not any more has lost it.
            try await fleet.apply("app.game", "all", "{auth: {state: unauthorized}}", ["--wait=2m"])
            try await game.say("paste", "pasted") { $0["text"] == nil }
            try await game.say("copy from a game", "copied") { $0["ok"] == false }
            try await notes.say("drag app.mail", "request") { $0["allowed"] == true }
            try await notes.say("drag app.game", "request") { $0["allowed"] == false }

            try await fleet.apply("app.mail", "all", "{auth: {state: retired}}", ["--wait=2m"])
            try await notes.say("paste", "pasted") { $0["text"] == nil }
            try await notes.say("drag app.mail", "request") { $0["allowed"] == false }

            try await fleet.apply("app.notes", "all", "{secure-services: {locked: true}}", ["--wait=2m"])
            try await notes.say("copy secret", "error") { $0["code"]?.stringValue == "noKeys" }
            // What anybody may read, anybody does.
            try await fleet.apply("app.game", "all", "{auth: {state: authorized}}", ["--wait=2m"])
            try await game.say("copy a score", "copied") { $0["ok"] == true }
            try await notes.say("paste", "pasted") { $0["text"]?.stringValue == "a score" }
            let events = try await fleet.fleetctl(["get", "events", "--kind", "blocked"])
            #expect(events.contains("copy") && events.contains("dragAndDrop"))
        }
    }

    @Test("an app in another language pastes what one on AppConnect has copied, and the other way round")
    func foreign() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet.running(fixture, "till-1")
            for name in ["app.mail", "app.foreign"] { try await fleet.apply(name, "all", Self.spec, []) }
            let mail = try await start("app.mail", in: fleet)
            let (process, said) = try await fleet.startForeignApp("app.foreign", on: "till-1")
            @Sendable func isAuthorized(_ event: JSONValue) -> Bool {
                event["what"] == "auth" && event["value"]?["state"] == "authorized"
            }
            try await said.first("callback", where: isAuthorized)
            try await mail.say("copy from Swift, é", "copied") { $0["ok"] == true }
            try process.send(line: "paste")
            try await said.first("pasted") { $0["text"] == "from Swift, é" }
            try process.send(line: "copy from Python")
            try await said.first("copied") { $0["ok"] == true }
            try await mail.say("paste", "pasted") { $0["text"] == "from Python" }
            // Neither of them is in the clear on its way.
            for event in ["sent", "received"] {
                for frame in said.all(event).compactMap({ $0["frame"] }) where frame["content"] != nil {
                    let content = Base64URL.decode((frame["content"]?.stringValue ?? "").utf8) ?? []
                    #expect(frame["secured"] == true && content.count > 28)
                    #expect(!String(decoding: content, as: UTF8.self).contains("from"))
                }
            }
            try await fleet.apply("app.foreign", "all", "{auth: {state: unauthorized}}", ["--wait=2m"])
            said.removeAll()
            try process.send(line: "paste")
            try await said.first("pasted") { $0["text"] == .null }
        }
    }
}
