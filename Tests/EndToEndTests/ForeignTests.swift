import FleetProtocol
import Foundation
import Mosquitto
import TestSupport
import Testing

@Suite("Programs in another language, written from schemas/ alone", .serialized)
struct ForeignTests {
    private let app = "com.example.mail"
    private let everything = """
        {auth: {state: authorized, message: "%"},
         dlp: {openIn: {policy: appConnectApps}, openFrom: {policy: authorized}, pasteboard: secureCopy, print: authorized,
               dragAndDrop: appConnectApps},
         config: {layer: "%"}, secure-services: {passcode: {required: false}, autoLock: 5m}, log-level: {level: info}}
        """

    @Test("their verification agrees with every vector")
    func vectors() async throws {
        let vectors = TestFleet.schemas.appending(path: "vectors").path()
        let result = try await run(try TestFleet.python(), [TestFleet.script("signed.py"), vectors])
        #expect(result.status == 0, "\(result.errors)")
    }

    @Test("an app in Python gets all three layers, answers for each policy, and comes back to a restarted agent")
    func app() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet(fixture)
            _ = try await fleet.startBroker()
            _ = try await fleet.startController()
            try await fleet.enroll("till-1")
            let agent = try await fleet.startAgent("till-1")
            let (process, said) = try await fleet.startForeignApp(app, on: "till-1")
            let (_, other) = try await fleet.startForeignApp(
                "com.example.notes", on: "till-1", ["--without", "print", "--answer", "error"])
            try await said.first("ready")
            try await other.first("ready")
            try await fleet.fleetctl(["group", "set", "kiosk", "--add", "till-1"])
            for layer in ["all", "group/kiosk", "device/till-1"] {
                try await applyEverything(fleet, layer)
                try await said.first("callback") {
                    $0["what"] == "auth" && $0["value"]?["message"]?.stringValue == layer
                }
                try await untilAllApplied(fleet, [app])
            }
            try await fleet.apply("com.example.notes", "all", "{auth: {state: authorized}, dlp: {print: authorized}}")
            for (policy, outcome) in [("auth", "error"), ("openIn", "error"), ("print", "unsupported")] {
                try await fleet.untilReported("com.example.notes", on: "till-1", policy) {
                    $0["attempt"]?["outcome"]?.stringValue == outcome
                }
            }
            try process.send(line: "blocked copy")

            await agent.killNow()
            said.removeAll()
            _ = try await fleet.startAgent("till-1")
            let welcome: @Sendable (JSONValue) -> Bool = { $0["frame"]?["type"] == "welcome" }
            try await said.first("received", where: welcome)
            let registration = try await said.first("sent") { $0["frame"]?["type"] == "register" }
            #expect(registration["frame"]?["resume"]?["acknowledgements"]?.arrayValue?.count == 7)
            try await fleet.apply(app, "device/till-1", "{config: {after: restart}}", ["--wait=2m"])
            try await said.first("callback") { $0["value"]?["after"] == "restart" }
            #expect(said.all("ready").isEmpty, "one ready a launch")

            try await fleet.apply(app, "all", "{auth: {state: retired, message: gone}}", ["--wait=2m"])
            try await said.first("callback") { $0["value"]?["state"] == "retired" }
            #expect(try await fleet.reported(app, on: "till-1")["keys"] == "destroyed")

            // Every frame that it wrote, and every one that it was given, is what schemas/link says.
            let frames = Transcript()
            for (event, schema) in [("sent", "link/app-frame"), ("received", "link/agent-frame")] {
                for one in said.all(event) + other.all(event) { frames.add(one["frame"]?.jsonText ?? "", as: schema) }
            }
            let folder = fleet.folder.appending(path: "frames")
            try frames.write(to: folder)
            let result = try await fleet.validate(folder)
            #expect(result.isValid, "\(result.said)")
        }
    }

    @Test("a device in Python gets all three layers, and fleetctl counts them as applied")
    func device() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet(fixture)
            var broker = try await fleet.startBroker()
            var controller = try await fleet.startController()
            try await fleet.apply(app, "all", "{config: {before: enrolment}}")
            try await fleet.enroll("till-1")
            let published = try await observe(fleet, "till-1")
            let (process, said) = try await fleet.startForeignDevice("till-1")
            try await said.first("contact")
            try await fleet.fleetctl(["group", "set", "kiosk", "--add", "till-1"])
            for layer in ["all", "group/kiosk", "device/till-1"] {
                try await applyEverything(fleet, layer)
                try await untilAllApplied(fleet, [app])
                let status = try await fleet.reported(app, on: "till-1")
                #expect(status["auth"]?["message"]?.stringValue == layer)
                for policy in Policy.allCases where policy != .secureFileIO {
                    let source = status["policies"]?[policy.rawValue]?["source"]?.stringValue
                    #expect(source?.contains("desired/\(layer)/") == true, "\(policy) on \(layer): \(source ?? "")")
                }
            }
            // Deleting an override, leaving a group: back to what the layers below say.
            try await fleet.fleetctl(["delete", app, "--target", "device/till-1", "--wait=2m"])
            #expect(try await fleet.reported(app, on: "till-1")["auth"]?["message"] == "group/kiosk")
            try await fleet.fleetctl(["group", "set", "kiosk", "--remove", "till-1"])
            try await fleet.untilReported(app, on: "till-1", "auth") {
                $0["source"]?.stringValue?.contains("desired/all/") == true
            }

            // An event of a time without a controller is sent until it is stored.
            try await until("all events stored") { said.all("stored").last?["left"] == 0 }
            await controller.terminate()
            try process.send(line: "blocked \(app) openIn com.example.foreign")
            controller = try await fleet.startController()
            try await until("the event stored") {
                guard let sent = published.all("event").last, sent["action"] == "openIn" else { return false }
                return said.all("stored").last?["number"] == sent["number"] && said.all("stored").last?["left"] == 0
            }

            try await fleet.apply(app, "all", "{auth: {state: retired, message: gone}}", ["--wait=2m"])
            let retired = try await fleet.reported(app, on: "till-1")
            #expect(retired["auth"]?["state"] == "retired")
            #expect(retired["keys"] == "destroyed")
            try await fleet.fleetctl(["delete", app, "--target", "all", "--wait=2m"])
            #expect(
                try await fleet.reported(app, on: "till-1")["auth"]?["state"] == "retired", "a tombstone ends nothing")

            // It goes in order, and comes back with what it knows, under its next boot.
            await process.terminate()
            try await published.first("presence") { $0["state"] == "offline" }
            let (_, again) = try await fleet.startForeignDevice("till-1")
            try await again.first("contact")
            try await fleet.apply(app, "all", "{auth: {state: authorized, message: back}}", ["--wait=2m"])
            let back = try await fleet.reported(app, on: "till-1")
            #expect(back["boot"] == 2)
            #expect(back["keys"] == "present")
            #expect(back["refusals"] == [])
            // It comes back to a broker that was killed.
            await broker.killNow()
            broker = try await fleet.startBroker()
            try await fleet.apply(app, "all", "{config: {after: crash}}", ["--wait=2m"])
            let devices = try await fleet.json(["get", "devices"])
            #expect(devices.arrayValue?.first?["warnings"] == [])

            let folder = fleet.folder.appending(path: "published")
            try published.write(to: folder)
            try copyEnrolment(of: "till-1", in: fleet, to: folder)
            let result = try await fleet.validate(folder)
            #expect(result.isValid, "\(result.said)")
        }
    }

    @Test("the device in Python refuses what is forged, moved, rolled back, or equal with other bytes")
    func refusals() async throws {
        try await withFixture { fixture in
            // The guard would let none of it come so far.
            let fleet = try await TestFleet(fixture, ["--without-guard"])
            _ = try await fleet.startBroker()
            let controller = try await fleet.startController()
            try await fleet.enroll("till-1")
            try await fleet.enroll("thief")
            let stolen = Transcript()
            let thief = try await fleet.client(
                fleet.agentFolder("thief").appending(path: "credentials.json"), as: "thief")
            let topic = "fleet/v1/demo/desired/all/\(app)/config"
            try await thief.subscribe(to: [topic])
            let reading = Task { for await message in thief.messages { stolen.add(message.text, as: "wire") } }
            defer { reading.cancel() }
            let (_, said) = try await fleet.startForeignDevice("till-1")
            try await said.first("contact")
            for value in ["old", "new"] {
                try await fleet.apply(app, "all", "{config: {is: \(value)}}", ["--wait=2m"])
            }
            try await until("both documents") { stolen.all("wire").count == 2 }
            await controller.terminate()

            let wires = stolen.all("wire").map(\.jsonText)
            let forged = try await forge(wires[1])
            let reordered = try reorder(wires[1])
            let moved = "fleet/v1/demo/desired/all/com.example.notes/config"
            let intruder = try await fleet.client(fleet.credentials(of: "@controller"), as: "@controller")
            for (wire, place, reason) in [
                (forged, topic, "signature is wrong"), (wires[1], moved, "belongs to"),
                (wires[0], topic, "was here already"),
                (reordered, topic, "with other bytes"),
            ] {
                said.removeAll()
                let code = try await intruder.publish(wire, to: place, retain: true)
                #expect(!code.isError)
                try await said.first("refused") {
                    $0["topic"]?.stringValue == place && $0["reason"]?.stringValue?.contains(reason) == true
                }
            }
            await intruder.close()

            // The controller puts right what it finds, the same text in another envelope included.
            _ = try await fleet.startController()
            try await fleet.apply(app, "all", "{config: {is: newest}}", ["--wait=2m"])
            let status = try await fleet.reported(app, on: "till-1")
            let reasons = (status["refusals"]?.arrayValue ?? []).compactMap { $0["reason"]?.stringValue }
            #expect(reasons.count == 4, "\(reasons)")
            #expect(status["policies"]?["config"]?["attempt"]?["outcome"] == "applied")
            let notes = try await fleet.reported("com.example.notes", on: "till-1")
            #expect(notes["policies"]?["config"]?["source"] == "default", "nothing came of it")
        }
    }

    // MARK: Steps

    private func applyEverything(_ fleet: TestFleet, _ layer: String) async throws {
        try await fleet.apply(app, layer, everything.replacing("%", with: layer), ["--wait=2m"])
    }

    /// Every policy of the apps is counted as applied on one device, and nothing else is counted.
    private func untilAllApplied(_ fleet: TestFleet, _ apps: [String]) async throws {
        for app in apps {
            try await until("all policies of \(app) applied") {
                let rows = try await fleet.json(["status", app]).arrayValue ?? []
                return rows.count == Policy.allCases.count
                    && rows.allSatisfy { $0["counts"]?["applied"] == 1 && $0["counts"]?["pending"] == 0 }
            }
        }
    }

    /// What a device publishes, as an operator sees it, each under the name of its schema.
    private func observe(_ fleet: TestFleet, _ device: String) async throws -> Transcript {
        let operatorClient = try await fleet.client(
            fleet.credentials(of: "@operator.admin"), as: "@operator.admin~watch")
        let transcript = Transcript()
        try await operatorClient.subscribe(
            to: ["fleet/v1/demo/reply/\(device)/#", "fleet/v1/demo/presence/\(device)"])
        // Ends with the client, and so with the fixture.
        Task {
            for await message in operatorClient.messages {
                let last = message.topic.split(separator: "/").last.map(String.init) ?? ""
                let kind = last == "log-level" ? "log-level-change" : last == device ? "presence" : last
                transcript.add(message.text, as: kind)
            }
        }
        return transcript
    }

    private func copyEnrolment(of device: String, in fleet: TestFleet, to folder: URL) throws {
        for (file, schema) in [("agent", "enrolment/agent"), ("credentials", "enrolment/credentials")] {
            let place = folder.appending(path: schema)
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            try FileManager.default.copyItem(
                at: fleet.agentFolder(device).appending(path: "\(file).json"), to: place.appending(path: "\(file).json")
            )
        }
    }

    /// The same document with the next revision, under the same key id, signed by somebody else.
    private func forge(_ wire: String) async throws -> String {
        let result = try await run(
            try TestFleet.python(), [TestFleet.script("forge.py")], input: wire)
        try #require(result.status == 0, "\(result.errors)")
        return result.output
    }

    /// The same document, validly signed, in other bytes.
    private func reorder(_ wire: String) throws -> String {
        let envelope = try JSONValue(json: Array(wire.utf8), limit: 1 << 17)
        let members = ["signature", "payload", "protected"].map { name in
            "\(JSONValue.string(name).jsonText):\(envelope[name]?.jsonText ?? "")"
        }
        return "{\(members.joined(separator: ","))}"
    }
}
