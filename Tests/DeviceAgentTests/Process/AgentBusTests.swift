import DeviceAgent
import FleetProtocol
import Foundation
import TestSupport
import Testing

@Suite("An agent at a real broker")
struct AgentBusTests {
    private let config = Address.desired(.all, mail, .config)
    private let auth = Address.desired(.all, mail, .auth)

    private func app(_ agent: AgentFolder, _ fixture: Fixture, as id: AppID = mail) throws -> LinkClient {
        let client = try LinkClient(agent.socket)
        client.register(id)
        let answering = Task { try await answerAll(client) }  // ends with the connection
        fixture.onEnd {
            client.end()
            _ = try? await answering.value
        }
        return client
    }

    @Test("killed again and again during a stream of changes, it never goes back and forgets no event")
    func killed() async throws {
        try await withFixture { fixture in
            let fleet = try TestFleet()
            let broker = try await fixture.broker()
            let agent = try AgentFolder(fixture, fleet: fleet, port: broker.port)
            let controller = try await StubController(fixture, fleet: fleet, broker: broker)
            try await controller.apply(auth, .auth(.authorized))
            var revision: Int64 = 1
            for _ in 0..<4 {
                let process = try await agent.start(fixture)
                let client = try app(agent, fixture)
                for _ in 0..<10 {
                    revision += 1
                    try await controller.apply(config, .config(["n": "\(revision)"]))
                    client.send(.blocked(.copy, target: nil))
                }
                try await controller.status(mail, "a status of this boot") { $0[.config].received == revision }
                await process.killNow()
                client.end()
            }
            let earlier = controller.heard.withLock { $0.statuses.map(\.order.boot).max() ?? 0 }
            let process = try await agent.start(fixture)
            _ = try app(agent, fixture)
            try await controller.status(mail, "the last change is applied") {
                $0.order.boot > earlier && $0.isReady && $0[.config].applied == revision
                    && $0[.config].attempt.outcome == .applied
            }
            let heard = controller.heard.withLock { $0 }
            for (before, next) in zip(heard.statuses, heard.statuses.dropFirst()) {
                #expect(before.order < next.order)
            }
            for (boot, numbers) in Dictionary(grouping: heard.numbers, by: { $0[0] }) {
                #expect(numbers.map { $0[1] }.max() == Int64(numbers.count), "events of boot \(boot)")
            }
            #expect(Set(heard.statuses.map(\.order.boot)).count == 5)
            #expect(await process.terminate() == 0)
            try await until("it has said goodbye") {
                controller.heard.withLock { $0.presences.last?.state == .offline }
            }
            let last = try await controller.status(mail, "a last status") { !$0.isRunning }
            #expect(last[.config].applied == revision)
        }
    }

    @Test("a broker that is killed and forgets everything is told everything again")
    func brokerKilled() async throws {
        try await withFixture { fixture in
            let fleet = try TestFleet()
            let broker = try await fixture.broker()
            let agent = try AgentFolder(fixture, fleet: fleet, port: broker.port)
            let controller = try await StubController(fixture, fleet: fleet, broker: broker)
            try await controller.apply(config, .config(["n": "1"]))
            _ = try await agent.start(fixture)
            _ = try app(agent, fixture)
            try await controller.status(mail, "the change is applied") { $0[.config].applied == 1 }
            await broker.kill()
            controller.heard.withLock { $0 = StubController.Heard() }
            try await broker.start()
            try await until("the controller is back") {
                do {
                    try await controller.subscribe()
                    return true
                } catch { return false }
            }
            try await controller.status(mail, "the status is told again") { $0[.config].applied == 1 }
            try await controller.apply(config, .config(["n": "2"]))
            try await controller.status(mail, "a change arrives") { $0[.config].attempt.outcome == .applied }
        }
    }

    @Test("a wrong password is named in the log, and the agent goes on trying")
    func wrongPassword() async throws {
        try await withFixture { fixture in
            let fleet = try TestFleet()
            let folder = try fixture.temporaryFolder()
            let passwords = folder.appendingPathComponent("passwords").path
            _ = try await run(program(named: "mosquitto_passwd"), ["-b", "-c", passwords, "till-1", "other"])
            let broker = try await fixture.broker(["password_file \(passwords)"], anonymous: false)
            let agent = try AgentFolder(fixture, fleet: fleet, port: broker.port)
            let process = try await agent.start(fixture)
            try await until("it has been told twice") {
                process.errors.components(separatedBy: "no connection to the broker").count > 2
            }
            #expect(process.errors.lowercased().contains("authori"), "\(process.errors)")
            _ = try await run(program(named: "mosquitto_passwd"), ["-b", passwords, "till-1", "secret"])
            broker.reload()
            try await until("it connects with the right one") {
                process.errors.contains("connected to the broker")
            }
        }
    }

    @Test(
        "on a full disk it starts, hears that an app is retired, destroys its keys and says so; then there is room again",
        .enabled(if: SmallDisk.isPossible))
    func retiredOnFullDisk() async throws {
        try await withFixture { fixture in
            let fleet = try TestFleet()
            let broker = try await fixture.broker()
            let agent = try AgentFolder(fixture, fleet: fleet, port: broker.port)
            let disk = try SmallDisk(fixture, at: agent.state, kilobytes: 3_000)
            let controller = try await StubController(fixture, fleet: fleet, broker: broker)
            let first = try await agent.start(fixture)
            let process = try app(agent, fixture)
            try await controller.status(mail, "the first status") { $0.isReady }
            try disk.fill()
            await first.killNow()
            process.end()
            try disk.fill()

            let second = try await agent.start(fixture)
            try await controller.apply(.desired(.all, mail, .auth), .auth(.retired, "gone"))
            try await controller.status(mail, "the keys are destroyed") { $0.keys == .destroyed }
            #expect(try FileManager.default.contentsOfDirectory(atPath: agent.state.path + "/keys") == [])
            // Longer than what was kept lasts, if nothing of it came back.
            for number in 0..<60 {
                let value = "\(number)" + String(repeating: "x", count: 30_000)
                try await controller.apply(config, .config(["k": value]))
            }
            let last = try await controller.status(mail, "the last change") { $0[.config].received == 61 }
            #expect(last.isRunning == false && second.status == nil)

            await second.killNow()
            let said = await second.allErrors()
            #expect(said.contains("the disk is full: the agent goes on"), "\(said)")
            try disk.makeRoom()
            let third = try await agent.start(fixture)
            #expect(!third.errors.contains("the disk is full"), "\(third.errors)")
            let names = try FileManager.default.contentsOfDirectory(atPath: agent.state.path)
            #expect(names.contains("agent.db-reserve"))
        }
    }

    @Test("on a full disk an app that comes gets its keys", .enabled(if: SmallDisk.isPossible))
    func keysOnFullDisk() async throws {
        try await withFixture { fixture in
            let fleet = try TestFleet()
            let broker = try await fixture.broker()
            let agent = try AgentFolder(fixture, fleet: fleet, port: broker.port)
            let disk = try SmallDisk(fixture, at: agent.state, kilobytes: 3_000)
            let controller = try await StubController(fixture, fleet: fleet, broker: broker)
            let process = try await agent.start(fixture)
            _ = try app(agent, fixture)
            try await controller.status(mail, "an app is ready") {
                $0.isReady && $0[.print].attempt.outcome != .pending
            }
            try disk.fill()
            _ = try app(agent, fixture, as: notes)
            try await controller.status(notes, "another is ready") { $0.isReady && $0.keys == .present }
            #expect(process.status == nil)
            #expect(process.errors.contains("the disk is full: the agent goes on"), "\(process.errors)")
            try disk.makeRoom()
        }
    }

    @Test("one that cannot destroy the keys of a retired app ends, and the app has them no more; so has another")
    func keysThatStay() async throws {
        try await withFixture { fixture in
            let fleet = try TestFleet()
            let broker = try await fixture.broker()
            let agent = try AgentFolder(fixture, fleet: fleet, port: broker.port)
            let controller = try await StubController(fixture, fleet: fleet, broker: broker)
            let process = try await agent.start(fixture)
            let heard = Locked<[AppID: Bool]>([:])
            for id in [mail, notes] {
                try await controller.apply(.desired(.all, id, .auth), .auth(.authorized))
                let client = try LinkClient(agent.socket)
                client.register(id)
                let answering = Task {
                    try await answerAll(client) { frame in
                        if case .keys(let keys) = frame { heard.withLock { $0[id] = keys != nil } }
                    }
                }
                fixture.onEnd {
                    client.end()
                    _ = try? await answering.value
                }
            }
            try await until("they have keys") { heard.withLock { $0[mail] == true && $0[notes] == true } }
            // What stands there cannot be destroyed.
            let key = agent.state.appendingPathComponent("keys/\(mail).key")
            try FileManager.default.removeItem(at: key)
            try FileManager.default.createDirectory(
                at: key.appendingPathComponent("x"), withIntermediateDirectories: true)
            try await controller.apply(.desired(.all, mail, .auth), .auth(.retired))
            #expect(try await within("the agent ends") { await process.exited() } == 1)
            try await until("they have none") { heard.withLock { $0[mail] == false && $0[notes] == false } }
        }
    }

    @Test("when the disk is full it ends with the reason, and nothing was said that is not stored")
    func diskFull() async throws {
        try await withFixture { fixture in
            let fleet = try TestFleet()
            let broker = try await fixture.broker()
            let agent = try AgentFolder(fixture, fleet: fleet, port: broker.port)
            let controller = try await StubController(fixture, fleet: fleet, broker: broker)
            let process = try await fixture.process(
                URL(fileURLWithPath: "/usr/bin/env"),
                [
                    "--ignore-signal=XFSZ", "prlimit", "--fsize=400000", "--", program(named: "fleet-agent").path,
                    "run",
                    "--config", agent.configuration.path,
                ])
            try await until("the agent listens") {
                if process.status != nil { throw TestFailure(process.errors) }
                return process.errors.contains("agent started")
            }
            _ = try app(agent, fixture)
            try await controller.status(mail, "the first status") { $0.isReady }
            for number in 0..<100 where process.status == nil {
                try await controller.apply(
                    config, .config(["k": "\(number)" + String(repeating: "x", count: 30_000)]))
            }
            #expect(try await within("the agent ends") { await process.exited() } == 1)
            let errors = await process.allErrors()
            #expect(errors.contains("cannot write to the agent's store"), "\(errors.suffix(2_000))")
            try await until("the broker says its will") {
                controller.heard.withLock { $0.presences.last?.state == .offline }
            }
            let stored = try DeviceStore(path: agent.state.appendingPathComponent("agent.db").path).load()
            let said = try await controller.status(mail, "a status") { _ in true }
            #expect(stored.apps[mail]?[.config].report.received == said[.config].received)
            let will = try #require(controller.heard.withLock { $0.presences.last })
            #expect(will.disk == stored.disk && stored.disk != 0 && will.boot == stored.boot)
        }
    }
}
