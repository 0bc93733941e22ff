import FleetProtocol
import Foundation
import TestSupport
import Testing

@Suite("Processes killed during a stream of changes", .serialized)
struct CrashTests {
    private let app = "com.example.mail"

    @Test("kill -9 of each process in turn: the fleet converges, orders never go back, no event number is missing")
    func killEach() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet(fixture)
            var broker = try await fleet.startBroker()
            var controller = try await fleet.startController()
            try await fleet.enroll("till-1")
            var agent = try await fleet.startAgent("till-1")
            var process = try await fleet.startApp(app, on: "till-1")
            try await fleet.apply(app, "all", "{auth: {state: authorized}, config: {round: start}}")
            // Not by --wait, which waits for the apps that the controller knows of, and this one just starts.
            try await fleet.untilReported(app, on: "till-1", "config") { ($0["applied"]?.integerValue ?? 0) > 0 }
            var last = try await order(fleet)
            for round in 1...8 {
                try await fleet.apply(app, "all", "{config: {round: \"\(round) a\"}}")
                try process.send(line: "print")
                switch round % 4 {
                case 1:
                    await broker.killNow()
                    broker = try await fleet.startBroker()
                case 2:
                    await controller.killNow()
                    controller = try await fleet.startController()
                case 3:
                    await agent.killNow()
                    agent = try await fleet.startAgent("till-1")
                default:
                    await process.killNow()
                    process = try await fleet.startApp(app, on: "till-1")
                }
                try await fleet.apply(app, "all", "{config: {round: \"\(round) b\"}}")
                // Not by --wait, which does not wait for a device that is just offline.
                let revision = try await revision(of: "config", fleet)
                try await fleet.untilReported(app, on: "till-1", "config") {
                    $0["applied"]?.integerValue == revision
                }
                let next = try await order(fleet)
                #expect(next > last, "round \(round)")
                last = next
            }
            let devices = try await fleet.json(["get", "devices"])
            #expect(devices.arrayValue?.first?["state"]?.stringValue == "online")
            #expect(devices.arrayValue?.first?["warnings"]?.arrayValue?.isEmpty == true, "\(devices.jsonText)")
        }
    }

    @Test("a controller restored from yesterday's files stops, says how to go on, and goes on so")
    func restored() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet(fixture)
            _ = try await fleet.startBroker()
            var controller = try await fleet.startController()
            try await fleet.enroll("till-1")
            _ = try await fleet.startAgent("till-1")
            _ = try await fleet.startApp(app, on: "till-1")
            try await fleet.apply(app, "all", "{auth: {state: authorized}, config: {day: one}}", ["--wait=2m"])
            let copy = fleet.folder.appendingPathComponent("copy.db")
            let backedUp = try await run(
                program(named: "fleet-controller"), ["backup", "--home", fleet.home.path, "--out", copy.path])
            #expect(backedUp.status == 0 && backedUp.output == "" && backedUp.errors == "", "\(backedUp)")
            await controller.terminate()
            let files = FileManager.default
            // With what is noted of it: only the broker and the device know better.
            let databases = ["fleet.db", "fleet.db-wal", "fleet.db-shm", "controller.lock"]
            for name in databases {
                let file = fleet.home.appendingPathComponent(name)
                if files.fileExists(atPath: file.path) {
                    try files.copyItem(at: file, to: fleet.folder.appendingPathComponent(name))
                }
            }
            controller = try await fleet.startController()
            try await fleet.apply(app, "all", "{config: {day: two}}", ["--wait=2m"])
            await controller.terminate()
            for name in databases {
                let file = fleet.home.appendingPathComponent(name)
                try? files.removeItem(at: file)
                let backup = fleet.folder.appendingPathComponent(name)
                if files.fileExists(atPath: backup.path) { try files.copyItem(at: backup, to: file) }
            }
            let stopped = try await fleet.startController()
            #expect(try await within { await stopped.exited() } != 0)
            let reason = await stopped.allErrors()
            #expect(reason.contains("--restored"), "\(reason)")
            // The same of a copy that was made while it ran.
            for name in databases.dropLast() {
                try? files.removeItem(at: fleet.home.appendingPathComponent(name))
            }
            try files.moveItem(at: copy, to: fleet.home.appendingPathComponent("fleet.db"))
            let again = try await fleet.startController()
            #expect(try await within { await again.exited() } != 0)
            let sameReason = await again.allErrors()
            #expect(sameReason.contains("--restored"), "\(sameReason)")
            _ = try await fleet.startController(["--restored"])
            let history = try await fleet.json(["get", "history"])
            #expect(history.arrayValue?.contains { $0["new"]?["values"]?["day"] == "one" } == true)
            #expect(history.arrayValue?.contains { $0["new"]?["values"]?["day"] == "two" } == false)
            try await fleet.apply(app, "all", "{config: {day: three}}", ["--wait=2m"])
            try await fleet.untilReported(app, on: "till-1", "config") {
                $0["attempt"]?["outcome"]?.stringValue == "applied"
            }
        }
    }

    @Test(
        "keys are rotated and withdrawn while a device is away; everyone follows, and a home from before them is noticed"
    )
    func keys() async throws {
        try await withFixture { fixture in
            let fleet = try await TestFleet(fixture)
            _ = try await fleet.startBroker()
            var controller = try await fleet.startController()
            var agents: [ManagedProcess] = []
            for device in ["till-1", "till-2"] {
                try await fleet.enroll(device)
                agents.append(try await fleet.startAgent(device))
                _ = try await fleet.startApp(app, on: device)
            }
            try await fleet.apply(app, "all", "{auth: {state: authorized}, config: {day: one}}")
            for device in ["till-1", "till-2"] { try await untilApplied("config", on: device, fleet) }
            let backup = fleet.folder.appending(path: "backup")
            for name in ["keys", "trust.json"] {
                try FileManager.default.createDirectory(at: backup, withIntermediateDirectories: true)
                try FileManager.default.copyItem(
                    at: fleet.home.appending(path: name), to: backup.appending(path: name))
            }
            await agents[1].terminate()
            func restart() async throws {
                await controller.terminate()
                controller = try await fleet.startController()
            }
            let rotated = try await fleet.attempt(["key", "rotate", "-o", "json"])
            #expect(rotated.errors.contains("start the controller again"), "\(rotated.errors)")
            let keys = try JSONValue(json: Array(rotated.output.utf8), limit: 4_096).arrayValue ?? []
            #expect(keys.map { $0["signs"] } == [false, true])
            let old = try #require(keys.first?["key"]?.stringValue)
            try await restart()
            try await fleet.apply(app, "all", "{config: {day: two}}")
            try await untilApplied("config", on: "till-1", fleet)
            _ = try await fleet.fleetctl(["key", "withdraw", old])
            try await restart()
            try await fleet.apply(app, "all", "{config: {day: three}}")
            try await untilApplied("config", on: "till-1", fleet)
            // The old key has signed what authorizes the app: it is signed again. Who was away gets all of it at once.
            _ = try await fleet.startAgent("till-2")
            for device in ["till-1", "till-2"] {
                for policy in ["auth", "config"] { try await untilApplied(policy, on: device, fleet) }
            }
            for device in ["till-1", "till-2"] {
                let status = try await fleet.reported(app, on: device)
                #expect(status["refusals"] == [], "\(status.jsonText)")
            }

            await controller.terminate()
            for name in ["keys", "trust.json"] {
                try FileManager.default.removeItem(at: fleet.home.appending(path: name))
                try FileManager.default.copyItem(
                    at: backup.appending(path: name), to: fleet.home.appending(path: name))
            }
            let stopped = try await fleet.startController()
            #expect(try await within { await stopped.exited() } != 0)
            let reason = await stopped.allErrors()
            #expect(reason.contains("fleetctl key rotate"), "\(reason)")
            let again = try await fleet.attempt(["key", "rotate", "--withdraw-others"])
            #expect(again.status == 0 && again.errors.contains("when the controller starts"), "\(again.errors)")
            controller = try await fleet.startController()
            try await fleet.apply(app, "all", "{config: {day: four}}")
            for device in ["till-1", "till-2"] { try await untilApplied("config", on: device, fleet) }
        }
    }

    private func untilApplied(_ policy: String, on device: String, _ fleet: TestFleet) async throws {
        let revision = try await revision(of: policy, fleet)
        try await fleet.untilReported(app, on: device, policy) {
            $0["applied"]?.integerValue == revision
        }
    }

    private func revision(of aspect: String, _ fleet: TestFleet) async throws -> Int64 {
        let policies = try await fleet.json(["get", "policies"])
        let document = policies.arrayValue?.first { $0["aspect"]?.stringValue == aspect }
        guard let revision = document?["revision"]?.integerValue else {
            throw TestFailure("no \(aspect) in \(policies.jsonText)")
        }
        return revision
    }

    private func order(_ fleet: TestFleet) async throws -> ReportOrder {
        let status = try await fleet.reported(app, on: "till-1")
        guard let incarnation = status["incarnation"]?.integerValue, let boot = status["boot"]?.integerValue,
            let sequence = status["seq"]?.integerValue
        else { throw TestFailure("no order in \(status.jsonText)") }
        return ReportOrder(incarnation: incarnation, boot: boot, sequence: sequence)
    }
}
