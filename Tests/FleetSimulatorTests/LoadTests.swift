import DeviceAgent
import FleetCommands
import FleetHome
import FleetProtocol
import FleetWorld
import Foundation
import Mosquitto
import TestSupport
import Testing

@testable import FleetSimulator

@Suite("A load of simulated devices")
struct LoadTests {
    @Test("50 devices with 2 apps each converge on a change, and nothing is lost, doubled or out of order")
    func converge() async throws {
        try await withFixture { fixture in
            let home = try await startFleet(fixture)
            var plan = LoadPlan()
            plan.devices = 50
            plan.apps = 2
            plan.groups = 2
            let fleet = try await LoadFleet(plan, home: home)
            fixture.onEnd { await fleet.end() }
            try await LoadGroups(plan).set(in: home)
            await fleet.connect()
            try await fleet.wait(for: "every app's ready", within: patience) { $0.ready == 100 }
            try await FleetCommands.Controller.reach(home, as: .operator(Name(unchecked: "admin"))) { controller in
                for layer in [Layer.all, .group(LoadPlan.groupID(1))] {
                    for app in plan.appIDs {
                        let value = DesiredValue(.config(["for": "\(layer)"]))
                        let change = ApplyRequest.Change(app: app, layer: layer, aspect: .config, value: value)
                        _ = try await controller.ask(.apply, ApplyRequest(changes: [change]))
                    }
                }
                for app in plan.appIDs {
                    try await until("the summary of \(app)") {
                        let body = try await controller.ask(.status, ListRequest(app: app))
                        let row = body["rows"]?.arrayValue?.first { $0["policy"]?.stringValue == "config" }
                        return row?["counts"]?["applied"] == 50
                    }
                }
            }
            let counters = await fleet.counters
            #expect(counters.connected == 50)
            // All that the apps were told at first, and each change; one status may tell of several.
            #expect(counters.answered == 100 * Int64(Policy.allCases.count { $0.isAcknowledgedByApp }) + 150)
            #expect(counters.acknowledged >= 100)
            #expect(counters.duplicated == 0)
            #expect(counters.reordered == 0)
            #expect(counters.errors == 0, "\(counters.lastError ?? "")")
        }
    }

    @Test("devices whose connections are cut again and again follow all the same")
    func flapping() async throws {
        try await withFixture { fixture in
            let home = try await startFleet(fixture)
            var plan = LoadPlan()
            plan.devices = 10
            plan.flapping.connected = .uniform(1...3)
            plan.flapping.offline = .constant(0.3)
            let fleet = try await LoadFleet(plan, home: home)
            fixture.onEnd { await fleet.end() }
            await fleet.connect()
            try await fleet.wait(for: "every app's ready", within: patience) { $0.ready == 10 }
            try await FleetCommands.Controller.reach(home, as: .operator(Name(unchecked: "admin"))) { controller in
                let app = LoadPlan.appID(1)
                let change = ApplyRequest.Change(
                    app: app, layer: .all, aspect: .config, value: DesiredValue(.config(["a": "b"])))
                _ = try await controller.ask(.apply, ApplyRequest(changes: [change]))
                try await until("the summary") {
                    let rows = try await controller.ask(.status, ListRequest(app: app))["rows"]?.arrayValue ?? []
                    return rows.first { $0["policy"]?.stringValue == "config" }?["counts"]?["applied"] == 10
                }
            }
            let counters = try await fleet.wait(for: "cuts", within: patience) { $0.cut >= 10 }
            #expect(counters.duplicated == 0)
            #expect(counters.reordered == 0)
            #expect(counters.errors == 0, "\(counters.lastError ?? "")")
        }
    }

    @Test("without cuts, a part of the devices never connects")
    func offline() async throws {
        try await withFixture { fixture in
            let home = try await startFleet(fixture)
            var plan = LoadPlan()
            plan.devices = 40
            plan.flapping.offline = .constant(0.5)
            let fleet = try await LoadFleet(plan, home: home)
            fixture.onEnd { await fleet.end() }
            await fleet.connect()
            // All that will connect have begun to long before the first has reported.
            let counters = try await fleet.wait(for: "the others", within: patience) {
                $0.reported > 0 && $0.reported == $0.connected
            }
            #expect((8...32).contains(counters.connected))
        }
    }

    @Test("more connections than a source address has ports come from several addresses")
    func sourceAddresses() {
        #expect(FileLimit.sourceAddress(of: 27_999, to: "127.0.0.1") == nil)
        #expect(FileLimit.sourceAddress(of: 28_000, to: "127.0.0.1") == "127.0.0.2")
        #expect(FileLimit.sourceAddress(of: 28_000 * 300, to: "127.0.0.1") == "127.0.1.45")
        #expect(FileLimit.sourceAddress(of: 28_000, to: "10.0.0.1") == nil)
    }

    @Test("what cannot be connected is said before anything is connected, with what helps")
    func fileLimit() {
        #expect(throws: LoadError.self) { try FileLimit.ensure(connections: 1 << 40) }
    }

    @Test("a verification that is shared holds for that document and key alone")
    func sharedVerification() throws {
        let (key, other, fleet, uuid) = (try SigningKey(), try SigningKey(), FleetID(unchecked: "f"), RandomID.random())
        let revision = Revision(epoch: 1, number: 1)
        let now = Timestamp(milliseconds: 0)
        let document = DesiredDocument(
            fleet: uuid, fleetID: fleet, address: .desired(.all, AppID(unchecked: "a"), .config), revision: revision,
            change: revision, issuedAt: now, content: .aspect(DesiredValue(.config(["k": "good"]))))
        let wire = try SignedDocument(signing: document.json, as: .desired, with: key).wire
        let forged = Array(String(decoding: wire, as: UTF8.self).replacing("good", with: "evil").utf8)
        func trust(_ keys: VerifyingKey...) -> TrustDocument {
            TrustDocument(fleet: uuid, fleetID: fleet, version: 1, issuedAt: now, keys: keys)
        }
        let check = SharedVerification().check
        for _ in 0..<2 {
            #expect(try check.desired(wire, trust(key.publicKey), fleet).document == document)
            #expect(throws: FleetProtocolError.self) {
                try check.desired(wire, trust(other.publicKey), fleet)
            }
            #expect(throws: FleetProtocolError.self) {
                try check.desired(forged, trust(key.publicKey), fleet)
            }
        }
    }

    @Test("the revision of a document on the wire is found without reading it, at desired topics alone")
    func desiredRevision() throws {
        let payload = Array(#"{"v":1,"topic":"\\a","epoch":1,"revision":4711,"change":42}"#.utf8)
        let wire = try SignedDocument(signing: payload, as: .desired, with: SigningKey()).wire
        #expect(DesiredRevision.find(in: Message(topic: "fleet/v1/f/desired/all/a/config", payload: wire)) == 4711)
        #expect(DesiredRevision.find(in: Message(topic: "fleet/v1/f/control/heartbeat", payload: wire)) == nil)
        #expect(DesiredRevision.find(in: Message(topic: "fleet/v1/f/desired/all/a/config", payload: [])) == nil)
    }

    @Test("delays are read as they are written", arguments: ["50ms": 0.05, "2s": 2, "1.5m": 90])
    func durations(text: String, seconds: Double) {
        #expect(Duration(text: text)?.inSeconds == seconds)
        #expect(Duration(text: text.dropLast(1) + "h") == nil)
    }

    private func startFleet(_ fixture: Fixture) async throws -> FleetHome {
        let folder = try fixture.temporaryFolder()
        let port = try freePort()
        let home = try FleetHome.create(
            at: folder.appendingPathComponent("home").path, fleet: FleetID(unchecked: "demo"), port: port,
            brokerUser: NSUserName())
        let broker = try await fixture.process(program(named: "mosquitto"), ["-c", home.brokerConfigurationPath])
        try await until("the broker") {
            if let status = broker.status { throw TestFailure("mosquitto ended with \(status): \(broker.errors)") }
            return accepts(port: port)
        }
        _ = try await fixture.process(program(named: "fleet-controller"), ["run", "--home", home.path])
        return home
    }
}
