import Mosquitto
import Synchronization
import TestSupport
import Testing

@Suite("Beginning and end")
struct LifeCycleTests {
    @Test("closing twice, closing one that never started, and using one that is closed")
    func close() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            let client = try fixture.client("short", of: broker, on: loop)
            try await client.connect()
            await client.close()
            await client.close()
            #expect(client.state == .closed(cause: nil))
            let publishing = try await #require(throws: MosquittoError.self) { try await client.publish("x", to: "a") }
            #expect(publishing.code == .closed)
            let connecting = try await #require(throws: MosquittoError.self) { try await client.connect() }
            #expect(connecting.code == .closed)
            for await message in client.messages { Issue.record("\(message)") }
            for await state in client.states { #expect(state == .closed(cause: nil)) }
            let idle = try fixture.client("idle", of: broker, on: loop)
            await idle.close()
            #expect(idle.state == .closed(cause: nil))
        }
    }

    @Test("what was published before a graceful close arrives, without waiting for its answers")
    func closeFlushes() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            let reader = try fixture.client("reader", of: broker, on: loop)
            try await reader.connect()
            try await reader.subscribe(to: ["#"])
            let handled = AsyncStream.makeStream(of: Void.self)
            let writer = try loop.makeClient(options("writer", of: broker)) { client, event in
                switch event {
                case .connected:
                    for number in 0..<500 { _ = try? client.publish(Array("\(number)".utf8), to: "n") }
                    client.close()
                case .disconnected(let error, let delay):
                    #expect(error == nil && delay == nil)
                    handled.continuation.finish()
                default:
                    break
                }
            }
            writer.start()
            for await _ in handled.stream {}
            #expect(try await collect(500, from: reader).map(\.text) == (0..<500).map(String.init))
        }
    }

    @Test("a client that nobody holds any more leaves")
    func dropped() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            do {
                let client = try MQTTClient(options("forgotten", of: broker), on: loop)
                try await client.connect()
            }
            try await until("the broker has seen the DISCONNECT") {
                broker.log.contains("Received DISCONNECT from forgotten")
            }
        }
    }

    @Test("a loop that is shut down answers everybody: those who connect, those who publish, those who come late")
    func shutdown() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try EventLoop(name: "brief")
            let publisher = try fixture.client("publisher", of: broker, on: loop)
            try await publisher.connect()
            broker.pause()
            let connector = try fixture.client("connector", of: broker, on: loop)
            let connecting = Task { try await connector.connect() }
            let publishing = (0..<20).map { number in Task { try await publisher.publish("x", to: "t/\(number)") } }
            try await until("all are under way") { publisher.unanswered == 20 }
            try await within { await loop.shutdown() }
            await loop.shutdown()
            await #expect(throws: MosquittoError.self) { try await within { try await connecting.value } }
            for task in publishing {
                let error = try await #require(throws: MosquittoError.self) {
                    try await within { try await task.value }
                }
                #expect(error.code == .closed)
            }
            let late = try await #require(throws: MosquittoError.self) {
                try await within { try await publisher.publish("x", to: "a") }
            }
            #expect(late.code == .closed)
            try await within { await withCheckedContinuation { done in loop.execute { done.resume() } } }
            let stillborn = try MQTTClient(options("stillborn", of: broker), on: loop)
            await #expect(throws: MosquittoError.self) { try await within { try await stillborn.connect() } }
            try await within { await stillborn.close() }
        }
    }

    @Test("shutting down at any moment of many connections' beginning ends cleanly", arguments: 0..<8)
    func shutdownWhileConnecting(round: Int) async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try EventLoop(name: "storm")
            let clients = try (0..<30).map {
                try MQTTClient(
                    options("c\($0)", of: broker) { $0.host = round.isMultiple(of: 2) ? "127.0.0.1" : "localhost" },
                    on: loop)
            }
            let tasks = clients.map { client in
                Task {
                    try await client.connect()
                    try await client.publish("x", to: "a")
                }
            }
            for _ in 0..<(round * 50) { await Task.yield() }
            try await within { await loop.shutdown() }
            for task in tasks { try await within { _ = await task.result } }
            for client in clients { try await within { await client.close() } }
        }
    }
}
