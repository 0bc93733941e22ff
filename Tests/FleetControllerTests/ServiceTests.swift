import FleetHome
import FleetProtocol
import Foundation
import Mosquitto
import ServiceLifecycle
import TestSupport
import Testing

@testable import FleetController

@Suite("The controller on a real Mosquitto", .serialized)
struct ServiceTests {
    private static let change =
        #"{"changes":[{"app":"com.example.mail","target":"all","aspect":"config","value":{"values":{"a":"1"}}}]}"#
    private static let config = Address.desired(.all, mail, .config)

    @Test("a change goes to a device, its answer into the summary, and the controller says good-bye")
    func roundTrip() async throws {
        try await withFixture { fixture in
            let fleet = try await Fleet(fixture)
            let device = try await fleet.device(till)
            let inbox = Inbox(device)
            try await device.subscribe(to: [Self.config, .presence(.controller), .hello(till)].map(fleet.topic))
            try await fleet.withController {
                let ask = try await Asker(fleet)
                let answer = try await ask(.apply, Self.change)
                let revision = try #require(answer["results"]?.arrayValue?.first?["revision"]?.integerValue)
                try await until("the document is there") { inbox.last(fleet.topic(Self.config)) != nil }
                let signed = try SignedDocument(wire: #require(inbox.last(fleet.topic(Self.config))).payload)
                #expect(signed.isSigned(by: try fleet.home.signingKey().publicKey))

                let presence = Presence(
                    state: .online, incarnation: 1, boot: 1, connection: .random(), since: .now, agent: "1.0",
                    apps: [])
                try await device.publish(presence.json, to: fleet.topic(.presence(.device(till))), retain: true)
                try await until("the hello is there") { inbox.last(fleet.topic(.hello(till))) != nil }
                let status = Status.fresh(till, mail, at: .now).then(.config, from: .all, revision, .applied)
                try await device.publish(status.wire, to: fleet.topic(.reply(till, mail, .status)), retain: true)
                try await until("the status is counted") {
                    let rows = try await ask(.status, "{}")["rows"]?.arrayValue ?? []
                    return rows.first { $0["policy"] == "config" }?["counts"]?["applied"] == 1
                }
            }
            try await until("the controller has said that it is gone") {
                let last = try inbox.last(fleet.topic(.presence(.controller))).map {
                    try Presence(json: $0.payload, limit: 4_096)
                }
                return last?.state == .offline
            }
        }
    }

    @Test("a broker that is killed and has lost everything is repaired, without anybody doing anything")
    func brokerKilled() async throws {
        try await withFixture { fixture in
            let fleet = try await Fleet(fixture)
            try await fleet.withController {
                let ask = try await Asker(fleet)
                _ = try await ask(.apply, Self.change)
                await fleet.broker.kill()
                try? FileManager.default.removeItem(
                    atPath: fleet.home.path + "/broker/data/mosquitto.db")
                try await fleet.broker.start()
                let device = try await fleet.device(till)
                let inbox = Inbox(device)
                try await device.subscribe(to: [Self.config, .trust, .presence(.controller)].map(fleet.topic))
                try await until("everything is there again") {
                    inbox.last(fleet.topic(Self.config)) != nil
                        && inbox.last(fleet.topic(.presence(.controller))) != nil
                }
                #expect(inbox.last(fleet.topic(.trust))?.payload == (try fleet.home.trust().wire))
            }
        }
    }

    @Test("a second controller on the same home refuses to start; one on a copy of it gives up")
    func twoControllers() async throws {
        try await withFixture { fixture in
            let fleet = try await Fleet(fixture)
            let copy = fleet.home.path + "-copy"
            try FileManager.default.copyItem(atPath: fleet.home.path, toPath: copy)
            try await fleet.withController {
                let ask = try await Asker(fleet)
                _ = try await ask(.status, "{}")
                let second = ControllerService(home: fleet.home, logger: Fleet.logger)
                let error = await #expect(throws: FleetHomeError.self) { try await second.run() }
                #expect(error?.message.contains("already runs") == true)
            }
            // Two copies throw each other off until one of them gives up.
            let services = try [fleet.home.path, copy].map {
                ControllerService(home: try FleetHome(opening: $0), logger: Fleet.logger)
            }
            let message = try await within("one gives up") {
                await withTaskGroup(of: String?.self) { tasks in
                    for service in services {
                        tasks.addTask {
                            do {
                                try await service.run()
                                return nil
                            } catch {
                                return "\(error)"
                            }
                        }
                    }
                    let first = await tasks.next() ?? nil
                    tasks.cancelAll()
                    return first
                }
            }
            #expect(message?.contains("another controller of this fleet") == true, "\(message ?? "ended")")
        }
    }

    @Test("a controller put back from a backup stops, and goes on in a new epoch when it is told so")
    func restored() async throws {
        try await withFixture { fixture in
            let fleet = try await Fleet(fixture)
            try await fleet.withController {
                let ask = try await Asker(fleet)
                _ = try await ask(.apply, Self.change)
            }
            let backup = fleet.home.path + "/backup.db"
            try FileManager.default.copyItem(atPath: fleet.home.databasePath, toPath: backup)
            try await fleet.withController {
                let ask = try await Asker(fleet)
                _ = try await ask(.apply, Self.change.replacingOccurrences(of: "\"1\"", with: "\"2\""))
            }
            for suffix in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: fleet.home.databasePath + suffix)
            }
            try FileManager.default.copyItem(atPath: backup, toPath: fleet.home.databasePath)
            let home = fleet.home
            let error = await #expect(throws: FleetControllerError.self) {
                try await within {
                    try await ControllerService(home: home, logger: Fleet.logger).run()
                }
            }
            #expect(error?.message.contains("--restored") == true)
            try await fleet.withController(isRestoring: true) {
                let ask = try await Asker(fleet)
                let policies = try await ask(.policies, "{}")["policies"]?.arrayValue ?? []
                #expect(policies.first?["epoch"]?.integerValue ?? 0 > 1_700_000_000)
                #expect(policies.first?["change"] == 1)
                #expect(policies.first?["value"]?["values"]?["a"] == "1")
            }
        }
    }

    @Test("the program is killed and started again, keeps its word, and ends on SIGTERM")
    func program() async throws {
        try await withFixture { fixture in
            let fleet = try await Fleet(fixture)
            _ = try await fleet.device(till)
            let arguments = ["run", "--home", fleet.home.path]
            let program = try productsFolder().appendingPathComponent("fleet-controller")
            let first = try await ManagedProcess.start(program, arguments, in: fixture.temporaryFolder())
            let ask = try await Asker(fleet)
            let answer = try await ask(.apply, Self.change)
            await first.killNow()
            let second = try await ManagedProcess.start(
                program, arguments + ["--disregard", "nobody", "--disregard", till.text], in: fixture.temporaryFolder())
            let policies = try await ask(.policies, "{}")["policies"]?.arrayValue ?? []
            #expect(policies.first?["revision"] == answer["results"]?.arrayValue?.first?["revision"])
            #expect(await second.terminate() == 0)
            let errors = await second.allErrors()
            #expect(errors.contains("repaired"))
            #expect(errors.contains("not enrolled") && errors.contains("device=nobody"))
            #expect(!errors.contains("device=\(till)"))
        }
    }
}
