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
            try await until("it is connected again", within: .seconds(60)) { connections.withLock { $0.count } >= 2 }
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
}
