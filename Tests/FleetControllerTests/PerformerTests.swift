import FleetHome
import FleetProtocol
import Mosquitto
import TestSupport
import Testing

@testable import FleetController

@Suite("What the core has decided, on a real Mosquitto")
struct PerformerTests {
    @Test("what was decided for an earlier connection is not said on the next one")
    func earlierConnection() async throws {
        try await withFixture { fixture in
            let fleet = try await Fleet(fixture)
            let lock = try fleet.home.lock()
            let outbox = Outbox()
            let engine = try ControllerEngine(
                home: fleet.home, lock: lock, isRestoring: false, disregarded: [], eventLife: nil, outbox: outbox)
            let loop = try EventLoop()
            fixture.onEnd { await loop.shutdown() }
            let device = try await fleet.device(till)
            let inbox = Inbox(device)
            let topic = fleet.topic(.heartbeat)
            try await device.subscribe(to: [topic])
            let client = try await fleet.client(as: .controller)
            guard case .connected(let number) = client.state else { throw TestFailure("\(client.state)") }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await Performer(client, engine, lock, Alarm(loop), Fleet.logger).run(outbox) }
                for (text, connection) in [("earlier", number - 1), ("now", number)] {
                    outbox.put([.publish(topic: topic, payload: Array(text.utf8), retain: false)], for: connection)
                }
                try await until("it has come") { inbox.last(topic) != nil }
                group.cancelAll()
            }
            #expect(inbox.messages.map { String(decoding: $0.payload, as: UTF8.self) } == ["now"])
            try await engine.close()
        }
    }
}
