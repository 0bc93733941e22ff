import DeviceAgent
import FleetProtocol
import Foundation
import Logging
import Mosquitto
import TestSupport
import Testing

@Suite("The agent's client of a real broker")
struct BusSessionTests {
    @Test("what was decided for a connection that is gone is not said on the next one")
    func gone() async throws {
        try await withFixture { fixture in
            let fleet = try TestFleet()
            let broker = try await fixture.broker()
            let agent = try AgentFolder(fixture, fleet: fleet, port: broker.port)
            let configuration = try AgentConfiguration.read(agent.configuration.path)
            let loop = try EventLoop(name: "agent")
            fixture.onEnd { await loop.shutdown() }
            let connections = Locked<[RandomID]>([])
            let bus = try BusSession(
                configuration, will: TestDevice().core.will, loop: loop, logger: Logger(label: "test")
            ) { event in
                if case .connected(let name) = event { connections.withLock { $0.append(name) } }
            }
            fixture.onEnd { await bus.close(hasFailed: false) }
            bus.start()
            try await until("it is connected") { connections.withLock { $0.count } == 1 }
            await broker.kill()
            try await broker.start()
            try await until("it is connected again") { connections.withLock { $0.count } >= 2 }
            let controller = try await StubController(fixture, fleet: fleet, broker: broker)
            let names = connections.withLock { $0 }
            let device = configuration.enrollment.device
            for name in names {
                let presence = Presence(
                    state: .online, incarnation: 1, boot: 1, connection: name, since: .now, agent: "fleet-agent/test",
                    apps: [])
                bus.publish(.presence(.device(device)), presence.json, retain: true, on: name)
            }
            try await until("a presence comes") { controller.heard.withLock { !$0.presences.isEmpty } }
            #expect(controller.heard.withLock { $0.presences.map(\.connection) } == names.suffix(1))
        }
    }

    /// An agent's session that is connected, and the name of its connection.
    private func session(
        _ fixture: Fixture, _ fleet: TestFleet, _ broker: TestBroker
    ) async throws -> (bus: BusSession, connection: RandomID) {
        let agent = try AgentFolder(fixture, fleet: fleet, port: broker.port)
        let configuration = try AgentConfiguration.read(agent.configuration.path)
        let loop = try EventLoop(name: "agent")
        fixture.onEnd { await loop.shutdown() }
        let connection = Locked<RandomID?>(nil)
        let bus = try BusSession(
            configuration, will: TestDevice().core.will, loop: loop, logger: Logger(label: "test")
        ) { event in
            if case .connected(let name) = event { connection.withLock { $0 = name } }
        }
        fixture.onEnd { await bus.close(hasFailed: false) }
        bus.start()
        try await until("it is connected") { connection.withLock { $0 != nil } }
        return (bus, try #require(connection.withLock { $0 }))
    }

    /// Hears all that is said in the fleet from now on.
    private func listen(_ fixture: Fixture, _ fleet: TestFleet, _ broker: TestBroker) async throws -> MQTTClient {
        let loop = try EventLoop(name: "reader")
        fixture.onEnd { await loop.shutdown() }
        let reader = try MQTTClient(
            ClientOptions(host: broker.host, port: broker.port, clientID: "reader"), on: loop)
        fixture.onEnd { await reader.close() }
        try await reader.connect()
        try await reader.subscribe(to: ["fleet/v1/\(fleet.id)/#"])
        return reader
    }

    private func hear(_ count: Int, by reader: MQTTClient) async throws -> [[UInt8]] {
        try await within("\(count) messages") {
            var heard: [[UInt8]] = []
            for await message in reader.messages {
                heard.append(message.payload)
                if heard.count == count { break }
            }
            return heard
        }
    }

    private static let till = DeviceID(unchecked: "till-1")

    @Test("an app that causes events without end keeps back neither presence nor more than 100 of them a second")
    func reports() async throws {
        try await withFixture { fixture in
            let fleet = try TestFleet()
            let broker = try await fixture.broker()
            let reader = try await listen(fixture, fleet, broker)
            let (bus, connection) = try await session(fixture, fleet, broker)
            let begin = ContinuousClock.now
            for number in 0..<150 {
                bus.publish(.reply(Self.till, mail, .event), [UInt8(number)], retain: false, on: connection)
            }
            bus.publish(.presence(.device(Self.till)), [200], retain: true, on: connection)
            let heard = try await hear(151, by: reader)
            let expected: [UInt8] = Array(0..<100) + [200] + Array(100..<150)
            #expect(heard.flatMap(\.self) == expected)
            #expect(ContinuousClock.now - begin >= .seconds(1))
        }
    }

    @Test("a session that ends says all its events first")
    func lastReports() async throws {
        try await withFixture { fixture in
            let fleet = try TestFleet()
            let broker = try await fixture.broker()
            let reader = try await listen(fixture, fleet, broker)
            let (bus, connection) = try await session(fixture, fleet, broker)
            for number in 0..<250 {
                bus.publish(.reply(Self.till, mail, .event), [UInt8(number)], retain: false, on: connection)
            }
            await bus.close(hasFailed: false)
            #expect(try await hear(250, by: reader) == (0..<250).map { [UInt8($0)] })
        }
    }

    @Test("a session that ends without an answer to its last presence has its will said")
    func unanswered() async throws {
        try await withFixture { fixture in
            let fleet = try TestFleet()
            let broker = try await fixture.broker()
            let reader = try await listen(fixture, fleet, broker)
            let (bus, connection) = try await session(fixture, fleet, broker)
            broker.pause()
            bus.publish(.presence(.device(Self.till)), [1], retain: true, on: connection)
            await bus.close(hasFailed: false)
            broker.resume()
            // What the broker had not read yet may be lost with the connection.
            let will = try await within("the will") {
                for await message in reader.messages where message.payload != [1] { return message.payload }
                return []
            }
            let said = try Presence(json: will, limit: Presence.maximumSize)
            #expect(said.connection == connection && said.state == .offline)
        }
    }
}
