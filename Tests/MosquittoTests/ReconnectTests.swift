import Mosquitto
import TestSupport
import Testing

@Suite("Connections that end")
struct ReconnectTests {
    @Test("a client whose broker is killed says why, and comes back by itself with a clean start")
    func killedBroker() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let client = try fixture.client("phoenix", of: broker, on: fixture.loop())
            try await client.connect()
            try await client.subscribe(to: ["a"])
            await broker.kill()
            try await reach(client, "waiting") {
                if case .waiting(_, let cause) = $0 { cause.code == .connectionFailed } else { false }
            }
            let error = try await #require(throws: MosquittoError.self) { try await client.publish("x", to: "a") }
            #expect(error.code == .notConnected)
            #expect(error.message.contains("to a"))
            try await broker.start()
            try await reach(client, "connected again") { $0 == .connected(number: 2) }
            #expect(try await client.publish("x", to: "a") == .noMatchingSubscribers)
            try await client.subscribe(to: ["a"])
            try await client.publish("y", to: "a")
            let message = try #require(try await collect(1, from: client).first)
            #expect(message.connection == 2)
        }
    }

    @Test("a connection that is given up ends as one that was lost, and another one follows")
    func givenUp() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let heir = try fixture.client("heir", of: broker, on: fixture.loop())
            try await heir.connect()
            try await heir.subscribe(to: ["wills"])
            let client = try fixture.client("leaver", of: broker, on: fixture.loop()) {
                $0.makeWill = { ClientOptions.Will(topic: "wills", payload: Array("gone".utf8)) }
            }
            client.reconnect()
            try await client.connect()
            try await client.subscribe(to: ["a"])
            client.reconnect()
            try await reach(client, "connected again") { $0 == .connected(number: 2) }
            #expect(try await collect(1, from: heir).first?.text == "gone")
            #expect(try await client.publish("x", to: "a") == .noMatchingSubscribers)
        }
    }

    @Test("a broker that accepts a connection twice has broken it: another one follows")
    func acceptedTwice() async throws {
        try await withFixture { fixture in
            let broker = try RawBroker()
            fixture.onEnd { broker.close() }
            let loop = try fixture.loop()
            var options = ClientOptions(host: "127.0.0.1", port: broker.port, clientID: "twice")
            options.backoff = Backoff(minimum: .milliseconds(20), maximum: .milliseconds(200))
            let client = try MQTTClient(options, on: loop)
            fixture.onEnd { await client.close(.abrupt) }
            async let connecting: Void = client.connect()
            let first = try await broker.accept()
            fixture.onEnd { first.close() }
            first.send(RawBroker.accepted)
            try await connecting
            first.send(RawBroker.accepted)
            let second = try await broker.accept()
            fixture.onEnd { second.close() }
            second.send(RawBroker.accepted)
            try await reach(client, "connected again") { $0 == .connected(number: 2) }
        }
    }

    @Test("a publish without an answer fails once when the connection goes down")
    func lostPublish() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let client = try fixture.client("unlucky", of: broker, on: fixture.loop()) { $0.sendMaximum = 10 }
            try await client.connect()
            broker.pause()
            let outcomes = try await within {
                try await withThrowingTaskGroup(of: MosquittoError.Code?.self) { group in
                    for index in 0..<50 {
                        group.addTask {
                            do {
                                try await client.publish("x", to: "t/\(index)")
                                return nil
                            } catch let error as MosquittoError {
                                return error.code
                            }
                        }
                    }
                    try await until("all are under way") { client.unanswered == 50 }
                    await broker.kill()
                    return try await group.reduce(into: []) { $0.append($1) }
                }
            }
            #expect(outcomes.count == 50)
            #expect(outcomes.allSatisfy { $0 == .connectionLost })
        }
    }

    @Test("a cancelled publish stops waiting at once, and harms no other")
    func cancelledPublish() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let client = try fixture.client("fickle", of: broker, on: fixture.loop())
            try await client.connect()
            broker.pause()
            let cancelled = Task { try await client.publish("x", to: "a") }
            let patient = Task { try await client.publish("y", to: "b") }
            try await until("both are under way") { client.unanswered == 2 }
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await within { try await cancelled.value } }
            broker.resume()
            #expect(try await within { try await patient.value } == .noMatchingSubscribers)
            #expect(try await client.publish("z", to: "c") == .noMatchingSubscribers)
        }
    }

    @Test("a task that is cancelled already publishes nothing")
    func cancelledBefore() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let client = try fixture.client("never", of: broker, on: fixture.loop())
            try await client.connect()
            try await client.subscribe(to: ["#"])
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await client.publish("never", to: "a")
            }
            await #expect(throws: CancellationError.self) { try await task.value }
            try await client.publish("marker", to: "b")
            #expect(try await collect(1, from: client).map(\.text) == ["marker"])
        }
    }

    @Test("an idle client pings, and one whose broker has frozen notices by its keep-alive")
    func keepAlive() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let client = try fixture.client("pinger", of: broker, on: fixture.loop()) { $0.keepAlive = .seconds(5) }
            try await client.connect()
            try await until("a ping is answered") {
                broker.log.contains("Sending PINGRESP to pinger")
            }
            #expect(client.state == .connected(number: 1))
            broker.pause()
            try await reach(client, "the loss noticed") {
                if case .waiting(_, let cause) = $0 { cause.code == .connectionLost } else { false }
            }
        }
    }

    @Test("two clients with one id throw each other off, and the first says that it lost its connection")
    func takenOver() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            let first = try fixture.client("same", of: broker, on: loop) {
                $0.backoff = Backoff(minimum: .seconds(60), maximum: .seconds(60))
            }
            try await first.connect()
            let second = try fixture.client("same", of: broker, on: loop)
            try await second.connect()
            try await reach(first, "thrown off") {
                if case .waiting(_, let cause) = $0 { cause.code == .connectionLost } else { false }
            }
        }
    }

    @Test("an attempt that gets no answer ends at its time limit, and an unreachable broker is named")
    func unreachable() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            broker.pause()
            let mute = try fixture.client("mute", of: broker, on: loop) { $0.connectTimeout = .milliseconds(100) }
            let timedOut = try await #require(throws: MosquittoError.self) { try await mute.connect() }
            #expect(timedOut.code == .timedOut)
            broker.resume()
            await broker.kill()
            let nobody = try fixture.client("nobody", of: broker, on: loop)
            let refused = try await #require(throws: MosquittoError.self) { try await nobody.connect() }
            #expect(refused.code == .connectionFailed)
            #expect(refused.message == "connecting to 127.0.0.1:\(broker.port): Connection refused")
            let nowhere = try fixture.client("nowhere", of: broker, on: loop) { $0.host = "no-such-host.invalid" }
            let unresolved = try await #require(throws: MosquittoError.self) { try await nowhere.connect() }
            #expect(unresolved.code == .connectionFailed)
            #expect(unresolved.message.contains("no-such-host.invalid"))
        }
    }
}
