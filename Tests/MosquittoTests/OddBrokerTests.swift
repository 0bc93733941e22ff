import Mosquitto
import TestSupport
import Testing

@Suite("A broker that does what it should not")
struct OddBrokerTests {
    private func clientOptions(for broker: RawBroker) -> ClientOptions {
        var options = ClientOptions(host: "127.0.0.1", port: broker.port, clientID: "trusting")
        options.keepAlive = .zero
        options.connectTimeout = .seconds(120)
        options.backoff = Backoff(minimum: .milliseconds(20), maximum: .milliseconds(200))
        return options
    }

    /// A PUBLISH at QoS 0 to `t`, of 128 bytes to 16 KiB.
    private func message(_ payload: [UInt8]) -> [UInt8] {
        let size = payload.count + 4
        return [0x30, UInt8(size % 128) | 0x80, UInt8(size / 128), 0, 1, UInt8(ascii: "t"), 0] + payload
    }

    @Test("one that sends more than it may is left, and nothing is delivered of that, nor of what comes behind it")
    func oversize() async throws {
        try await withFixture { fixture in
            let broker = try RawBroker()
            fixture.onEnd { broker.close() }
            var options = clientOptions(for: broker)
            options.maximumPacketSize = 1_000
            let events = AsyncStream.makeStream(of: LoopClient.Event.self)
            let client = try fixture.loop().makeClient(options) { _, event in events.continuation.yield(event) }
            fixture.onEnd { client.close(.abrupt) }
            client.start()
            let peer = try await broker.accept()
            fixture.onEnd { peer.close() }
            let small = [UInt8](repeating: 1, count: 999)
            let large = [UInt8](repeating: 2, count: 1_000)
            peer.send(RawBroker.accepted + message(small) + message(large) + message(small))
            let (heard, cause) = try await within { () async throws -> ([[UInt8]], MosquittoError?) in
                var heard: [[UInt8]] = []
                for await event in events.stream {
                    switch event {
                    case .message(let message): heard.append(message.payload)
                    case .disconnected(let cause, _): return (heard, cause)
                    case .connecting, .connected, .published, .subscribed, .unsubscribed: break
                    }
                }
                return (heard, nil)
            }
            #expect(heard == [small])
            #expect(cause?.code == .connectionLost)
            #expect(cause?.message.contains("larger than the 1000 bytes") == true, "\(String(describing: cause))")
        }
    }

    @Test("one that answers nothing is left, whatever is written meanwhile that nobody answers")
    func silent() async throws {
        try await withFixture { fixture in
            let broker = try RawBroker()
            fixture.onEnd { broker.close() }
            var options = clientOptions(for: broker)
            options.answerTimeout = .seconds(2)
            let client = try MQTTClient(options, on: fixture.loop())
            fixture.onEnd { await client.close(.abrupt) }
            async let connecting: Void = client.connect()
            let peer = try await broker.accept()
            fixture.onEnd { peer.close() }
            peer.send(RawBroker.accepted)
            try await connecting
            let asked = Task { try await within { try await client.subscribe(to: ["t"]) } }
            let speaking = Task {
                while !Task.isCancelled {
                    try await client.publish("x", to: "t", qos: .atMostOnce)
                    peer.drain()
                    try await Task.sleep(for: .milliseconds(50))
                }
            }
            fixture.onEnd { speaking.cancel() }
            let error = try await #require(throws: MosquittoError.self) { try await asked.value }
            #expect(error.message.contains("has left 1 requests without an answer"), "\(error.message)")
        }
    }

    @Test("a publish that one has not answered when another one bears the same number fails")
    func sameNumber() async throws {
        try await withFixture { fixture in
            let broker = try RawBroker()
            fixture.onEnd { broker.close() }
            let client = try MQTTClient(clientOptions(for: broker), on: fixture.loop())
            fixture.onEnd { await client.close(.abrupt) }
            async let connecting: Void = client.connect()
            let peer = try await broker.accept()
            fixture.onEnd { peer.close() }
            peer.send(RawBroker.accepted)
            try await connecting
            let first = Task { try await within { try await client.publish("x", to: "t") } }
            try await until("it is under way") { client.unanswered == 1 }
            // Those of QoS 0 have numbers, too.
            for number in 2...65_535 {
                try await client.publish([], to: "t", qos: .atMostOnce)
                if number % 1_000 == 0 { peer.drain() }
            }
            let second = Task { try await within { try await client.publish("y", to: "t") } }
            let error = try await #require(throws: MosquittoError.self) { try await first.value }
            #expect(error.code == .connectionLost)
            peer.send([0x40, 2, 0, 1])
            #expect(try await second.value == .success)
        }
    }
}
