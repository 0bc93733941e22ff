import Mosquitto
import TestSupport
import Testing

@Suite("Wills")
struct WillTests {
    @Test(
        "the will is published unless the client takes leave",
        arguments: [
            (LoopClient.Farewell.abrupt, ["gone", "marker"]), (.publishingWill, ["gone", "marker"]),
            (.graceful, ["marker"]),
        ])
    func farewell(farewell: LoopClient.Farewell, expected: [String]) async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            let watcher = try fixture.client("watcher", of: broker, on: loop)
            try await watcher.connect()
            try await watcher.subscribe(to: ["presence/#"])
            let mortal = try fixture.client("mortal", of: broker, on: loop) {
                $0.will = .init(topic: "presence/mortal", payload: Array("gone".utf8))
            }
            try await mortal.connect()
            await mortal.close(farewell)
            try await until("the broker has noticed") {
                broker.log.contains("Client mortal ") || broker.log.contains("DISCONNECT from mortal")
            }
            // An abrupt end is noticed a moment later than a spoken one.
            if expected.count == 2 {
                let will = try #require(try await collect(1, from: watcher).first)
                #expect(will.text == "gone")
            }
            try await watcher.publish("marker", to: "presence/marker")
            #expect(try await collect(1, from: watcher).map(\.text) == ["marker"])
        }
    }

    @Test("a retained will is kept by the broker")
    func retained() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            let mortal = try fixture.client("mortal", of: broker, on: loop) {
                $0.will = .init(topic: "p", payload: Array("gone".utf8), retain: true)
            }
            try await mortal.connect()
            let watcher = try fixture.client("watcher", of: broker, on: loop)
            try await watcher.connect()
            try await watcher.subscribe(to: ["p"])
            await mortal.close(.abrupt)
            #expect(try await collect(1, from: watcher).map(\.text) == ["gone"])
            try await watcher.unsubscribe(from: ["p"])
            try await watcher.subscribe(to: ["p"])
            let again = try #require(try await collect(1, from: watcher).first)
            #expect(again.retained && again.text == "gone")
        }
    }
}
