import FleetProtocol
import Foundation
import Mosquitto
import TestSupport
import Testing

@Suite("A guarded broker")
struct GuardTests {
    private let app = "com.example.mail"
    private let prefix = "fleet/v1/demo"

    @Test("a device follows its groups through killed brokers, and no other device reads along")
    func groups() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet(fixture)
            var broker = try await fleet.startBroker()
            _ = try await fleet.startController()
            for device in ["till-1", "thief"] { try await fleet.enroll(device) }
            _ = try await fleet.startAgent("till-1")
            _ = try await fleet.startApp(app, on: "till-1")
            try await fleet.fleetctl(["group", "set", "kiosk", "--priority", "10", "--add", "till-1"])
            try await fleet.apply(app, "group/kiosk", "{config: {round: first}}", ["--wait=2m"])

            // One that has its messages still knows keys and groups again from delivering them; to one that was killed
            // and has lost all of them they are said again.
            for (isKilled, round) in [(false, "second"), (true, "third")] {
                if isKilled { await broker.killNow() } else { await broker.terminate() }
                broker = try await fleet.startBroker()
                try await fleet.apply(app, "group/kiosk", "{config: {round: \(round)}}", ["--wait=2m"])
            }
            try await fleet.untilReported(app, on: "till-1", "config") {
                $0["source"]?.stringValue == "\(prefix)/desired/group/kiosk/\(app)/config"
                    && $0["attempt"]?["outcome"] == "applied"
            }

            let thief = try await fleet.client(
                fleet.agentFolder("thief").appending(path: "credentials.json"), as: "thief")
            for filter in ["\(prefix)/desired/group/+/\(app)/+", "\(prefix)/#", "\(prefix)/reply/#", "#"] {
                let error = await #expect(throws: MosquittoError.self) { try await thief.subscribe(to: [filter]) }
                #expect(error?.reason == .notAuthorized)
            }
            // It may ask for the group, and is shown what is for all alone.
            try await fleet.apply(app, "all", "{log-level: {level: debug, for: 600}}")
            let kiosk = "\(prefix)/desired/group/kiosk/\(app)/+"
            try await thief.subscribe(to: [kiosk, "\(prefix)/desired/all/\(app)/+"])
            var messages = thief.messages.makeAsyncIterator()
            #expect(await messages.next()?.topic == "\(prefix)/desired/all/\(app)/log-level")

            // Whoever leaves a group reads it no more.
            try await fleet.fleetctl(["group", "set", "kiosk", "--remove", "till-1"])
            try await fleet.untilReported(app, on: "till-1", "config") { $0["source"] == "default" }
        }
    }

    @Test("who has the controller's password, and none of its keys, forges nothing")
    func forger() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet(fixture)
            let broker = try await fleet.startBroker()
            let controller = try await fleet.startController()
            for device in ["till-1", "thief"] { try await fleet.enroll(device) }
            _ = try await fleet.startAgent("till-1")
            _ = try await fleet.startApp(app, on: "till-1")
            try await fleet.apply(app, "all", "{config: {is: good}}", ["--wait=2m"])

            // Nobody takes another's client id, and so nobody throws another off.
            let device = fleet.agentFolder("thief").appending(path: "credentials.json")
            for id in ["till-1", "@controller", "thief~1"] {
                let error = await #expect(throws: MosquittoError.self) { try await fleet.client(device, as: id) }
                #expect(error?.code == .authenticationRefused, "\(id)")
            }
            let thief = try await fleet.client(device, as: "thief")
            let spoken = #"{"v":1,"device":"till-1","app":"\#(app)"}"#
            for topic in ["reply/till-1/\(app)/status", "reply/thief/\(app)/status", "presence/till-1"] {
                let code = try await thief.publish(spoken, to: "\(prefix)/\(topic)", retain: true)
                #expect(code == .notAuthorized, "\(topic)")
            }

            await controller.terminate()
            let forger = try await fleet.client(fleet.credentials(of: "@controller"), as: "@controller")
            let config = "\(prefix)/desired/all/\(app)/config"
            for (topic, payload) in [
                (config, #"{"protected":"e30","payload":"{}","signature":"AAAA"}"#), (config, "nonsense"),
                ("\(prefix)/desired/all/_fleet/trust", #"{"keys":[]}"#),
                ("\(prefix)/desired/all/_fleet/trust", ""),
                ("\(prefix)/reply/till-1/\(app)/status", #"{"v":1}"#),
            ] {
                #expect(try await forger.publish(payload, to: topic, retain: true) == .notAuthorized, "\(topic)")
            }
            await forger.close()
            try await until("the refusals in the broker's log") {
                broker.errors.contains("fleetbus guard: refused thief (client id till-1) connecting")
                    && broker.errors.contains("fleetbus guard: refused @controller publishing to \(config)")
            }

            _ = try await fleet.startController()
            try await fleet.apply(app, "all", "{config: {is: better}}", ["--wait=2m"])
            #expect(try await fleet.reported(app, on: "till-1")["refusals"] == [], "nothing of it reached the device")
        }
    }

    @Test("nothing passes beside a published message's body, where its size would not be bounded")
    func properties() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet(fixture)
            _ = try await fleet.startBroker()
            try await fleet.enroll("till-1")
            let body = #"{"v":1,"device":"till-1","app":"\#(app)"}"#
            let result = try await run(
                try TestFleet.python(),
                [
                    TestFleet.script("properties.py"), "\(fleet.port)",
                    fleet.agentFolder("till-1").appending(path: "credentials.json").path(),
                    fleet.credentials(of: "@operator.admin").path(), "\(prefix)/reply/till-1/\(app)/status", body,
                ], environment: ["PYTHONDONTWRITEBYTECODE": "1"])
            let heard = try JSONValue(json: Array(result.output.utf8), limit: .max)
            #expect(heard["body"]?.stringValue == body, "\(result.errors)")
            #expect(heard["properties"] == .object([]), "\(heard.jsonText.prefix(200))")
        }
    }
}
