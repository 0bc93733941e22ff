import Mosquitto
import TestSupport
import Testing

@Suite("A client and a broker")
struct RoundTripTests {
    @Test("a message comes back with its topic, payload, QoS and flags", arguments: QoS.allCases)
    func roundTrip(qos: QoS) async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let client = try fixture.client("round", of: broker, on: fixture.loop())
            try await client.connect()
            try await client.subscribe(to: ["a/+"], qos: .exactlyOnce)
            let payload = [0, 255, 10, 13] + Array("žluťoučký".utf8)
            let reason = try await client.publish(payload, to: "a/ž", qos: qos)
            #expect(reason == .success)
            let message = try #require(try await collect(1, from: client).first)
            #expect(message == Message(topic: "a/ž", payload: payload, qos: qos, retained: false, connection: 1))
        }
    }

    @Test("an empty payload is delivered, and clears a retained message")
    func emptyPayload() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            let client = try fixture.client("empty", of: broker, on: loop)
            try await client.connect()
            try await client.publish("kept", to: "r", retain: true)
            try await client.subscribe(to: ["r"])
            try await client.publish([], to: "r", retain: true)
            let messages = try await collect(2, from: client)
            #expect(messages.map(\.text) == ["kept", ""])
            #expect(messages.map(\.retained) == [true, false])
            try await client.unsubscribe(from: ["r"])
            try await client.subscribe(to: ["r"])
            try await client.publish("marker", to: "r")
            #expect(try await collect(1, from: client).map(\.text) == ["marker"])
        }
    }

    @Test("a publish that nobody receives says so")
    func noSubscribers() async throws {
        try await withFixture { fixture in
            let client = try fixture.client("lonely", of: await fixture.broker(), on: fixture.loop())
            try await client.connect()
            #expect(try await client.publish("x", to: "nobody/here") == .noMatchingSubscribers)
        }
    }

    @Test("host names are resolved, also one that has addresses of both families")
    func hostName() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let client = try fixture.client("named", of: broker, on: fixture.loop()) { $0.host = "localhost" }
            client.start()
            try await reach(client, "connected by name") { if case .connected = $0 { true } else { false } }
        }
    }
}
