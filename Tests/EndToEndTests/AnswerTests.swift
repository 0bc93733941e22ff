import FleetProtocol
import Foundation
import Mosquitto
import TestSupport
import Testing

/// What operators are told, by the real programs.
@Suite("Answers to operators")
struct AnswerTests {
    private let app = "com.example.mail"

    @Test("a retirement ends with 0 when all have destroyed the keys, also who was offline, and whose app does not run")
    func retirement() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet(fixture)
            _ = try await fleet.startBroker()
            _ = try await fleet.startController()
            var agents: [ManagedProcess] = []
            for device in ["till-1", "till-2"] {
                try await fleet.enroll(device)
                agents.append(try await fleet.startAgent(device))
                let process = try await fleet.startApp(app, on: device)
                try await fleet.untilReported(app, on: device, "auth") { $0["attempt"]?["outcome"] == "applied" }
                await process.terminate()
            }
            await agents[1].killNow()
            let file = fleet.folder.appending(path: "retire.yaml")
            try Data(
                """
                apiVersion: fleetbus/v1
                kind: AppPolicy
                metadata: {app: \(app), target: all}
                spec: {auth: {state: retired}}
                """.utf8
            ).write(to: file)
            try await fleet.fleetctl(["apply", "-f", file.path()])
            try await until("till-1 has destroyed them") {
                try await fleet.reported(app, on: "till-1")["keys"] == "destroyed"
            }
            let waited = try await fleet.attempt(["apply", "-f", file.path(), "--wait=3s"])
            #expect(waited.status == 3, "\(waited.output)\(waited.errors)")
            let keys = "the keys of \(app): destroyed on"
            #expect(waited.output.hasSuffix("\n\(keys) 1 of 2 devices"), "\(waited.output)")
            #expect(
                waited.errors.contains("\(keys) 1 of 2 devices within 3s, not yet on\n  till-2"), "\(waited.errors)")
            let status = try await fleet.fleetctl(["status", app])
            #expect(status.contains("\n\(keys) 1 of 2 devices: fleetctl get apps"), "\(status)")
            let outstanding = try await fleet.json(["get", "apps", "--retirement", "outstanding"])
            #expect(outstanding.arrayValue?.map { $0["device"] } == ["till-2"])
            #expect(FileManager.default.fileExists(atPath: key(fleet, "till-2")))

            _ = try await fleet.startAgent("till-2")
            let ended = try await fleet.attempt(["apply", "-f", file.path(), "--wait=2m"])
            #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
            #expect(ended.output.hasSuffix("\n\(keys) 2 of 2 devices"), "\(ended.output)")
            for device in ["till-1", "till-2"] { #expect(!FileManager.default.fileExists(atPath: key(fleet, device))) }
        }
    }

    private func key(_ fleet: TestFleet, _ device: String) -> String {
        fleet.agentFolder(device).appending(path: "state/keys/\(app).key").path()
    }

    @Test("every answer is as the schemas say, on the bus, for each verb")
    func answers() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet.running(fixture, "till-1")
            _ = try await fleet.startApp(app, on: "till-1")
            try await fleet.untilReported(app, on: "till-1", "auth") { $0["attempt"]?["outcome"] == "applied" }
            let user = try #require(
                try FileManager.default.contentsOfDirectory(atPath: fleet.credentials(of: "").path())
                    .first { $0.hasPrefix("@operator.") })
            let client = try await fleet.client(fleet.credentials(of: user), as: "\(user)~test")
            try await client.subscribe(to: ["fleet/v1/demo/control/response/\(user)/+"])
            var answers = client.messages.makeAsyncIterator()
            let place = #""app":"\#(app)","target":"all""#
            let change = #"{"changes":[{\#(place),"aspect":"auth","value":{"state":"retired"}}],"why":"a test"}"#
            let requests: [(verb: String, body: String)] = [
                ("plan", #"{"verb":"apply","body":\#(change)}"#), ("apply", change),
                ("progress", #"{"documents":[{\#(place)}]}"#),
                ("group-set", #"{"group":"kiosk","priority":2,"add":["till-1"]}"#),
                ("groups", "{}"), ("devices", "{}"), ("apps", "{}"), ("apps", #"{"retirement":"confirmed"}"#),
                ("events", "{}"), ("events", #"{"kind":"ready","device":"till-1"}"#),
                ("policies", "{}"), ("policies", #"{"device":"till-1"}"#), ("status", "{}"),
                ("plan", #"{"verb":"group-delete","body":{"group":"kiosk"}}"#),
                ("delete", #"{"documents":[{\#(place)}]}"#), ("history", "{}"), ("group-delete", #"{"group":"kiosk"}"#),
                ("enroll", #"{"device":"till-1"}"#), ("device-remove", #"{"device":"till-1","why":"sold"}"#),
                ("history", #"{"target":"device/till-1"}"#),
            ]
            let folder = fleet.folder.appending(path: "answers")
            for (number, (verb, body)) in requests.enumerated() {
                let request = Request(
                    id: .random(), replyTo: Name(unchecked: "r\(number)"),
                    notAfter: Timestamp(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1_000) + 30_000),
                    body: try JSONValue(json: Array(body.utf8), limit: 4_096))
                try await client.publish(
                    String(decoding: request.json, as: UTF8.self), to: "fleet/v1/demo/control/request/\(user)/\(verb)")
                let message = try #require(await answers.next())
                let response = try Response(json: Array(message.text.utf8), limit: Response.maximumSize)
                guard case .success(let answer, nil) = response.result else {
                    Issue.record("\(verb): \(message.text)")
                    continue
                }
                for (schema, json) in [("response", message.text), ("answers/\(verb)", answer.jsonText)] {
                    let place = folder.appending(path: schema)
                    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
                    try Data(json.utf8).write(to: place.appending(path: "\(number).json"))
                }
            }
            await client.close()
            let verbs = try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "answers").path())
            #expect(Set(verbs) == Set(Verb.allCases.map(\.rawValue)), "each has a schema, and is asked here")
            let result = try await fleet.validate(folder)
            #expect(result.isValid, "\(result.said)")
        }
    }
}
