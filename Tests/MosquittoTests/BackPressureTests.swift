import TestSupport
import Testing

@testable import Mosquitto

@Suite("Back-pressure")
struct BackPressureTests {
    @Test("20,000 messages reach a slow consumer in order and in full, and never more than the bound are held")
    func slowConsumer() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            let bound = 100
            let reader = try fixture.client("reader", of: broker, on: loop, messageBuffer: bound)
            try await reader.connect()
            try await reader.subscribe(to: ["flood/#"])
            let writer = try fixture.client("writer", of: broker, on: loop)
            try await writer.connect()
            let total = 20_000
            let writers = 20
            try await within("publishing") {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for index in 0..<writers {
                        group.addTask {
                            for number in 0..<(total / writers) {
                                let reason = try await writer.publish("\(number)", to: "flood/\(index)")
                                guard reason == .success else { throw TestFailure("refused with \(reason)") }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            // Nothing was consumed yet, so the reader has been stopped at its bound, on a connection that stands.
            #expect(reader.ledger.buffer.peak == bound)
            #expect(reader.state == .connected(number: 1))
            var next = [String: Int]()
            let messages = try await collect(total, from: reader)
            for message in messages {
                let expected = next[message.topic, default: 0]
                guard message.text == "\(expected)" else {
                    Issue.record("\(message.topic): \(message.text) instead of \(expected)")
                    break
                }
                next[message.topic] = expected + 1
            }
            #expect(next.values.reduce(0, +) == total)
            #expect(reader.ledger.buffer.peak <= bound)
            #expect(reader.state == .connected(number: 1))
        }
    }

    @Test("a bound of one still delivers everything, by batches too")
    func boundOfOne() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            let reader = try fixture.client("reader", of: broker, on: loop, messageBuffer: 1)
            try await reader.connect()
            try await reader.subscribe(to: ["n"])
            let writer = try fixture.client("writer", of: broker, on: loop)
            try await writer.connect()
            for number in 0..<50 { try await writer.publish("\(number)", to: "n") }
            #expect(try await collect(25, from: reader).map(\.text) == (0..<25).map(String.init))
            let messages = reader.messages
            let rest = try await within {
                var rest: [Message] = []
                for await batch in messages.batches() {
                    rest += batch
                    if rest.count == 25 { break }
                }
                return rest
            }
            #expect(rest.map(\.text) == (25..<50).map(String.init))
            #expect(reader.ledger.buffer.peak == 1)
        }
    }

    @Test("an answer that a full queue of the broker has dropped ends the connection, and the next one works")
    func answerDropped() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker(["max_queued_messages 10"])
            let loop = try fixture.loop()
            let readers = try ["first", "second"].map { name in
                try fixture.client(name, of: broker, on: loop, messageBuffer: 1) { $0.answerTimeout = .seconds(3) }
            }
            for reader in readers {
                try await reader.connect()
                try await reader.subscribe(to: ["flood"])
            }
            let writer = try fixture.client("writer", of: broker, on: loop)
            try await writer.connect()
            // More than the kernel takes for a reader that does not read.
            let payload = [UInt8](repeating: 1, count: 200_000)
            for _ in 0..<200 { try await writer.publish(payload, to: "flood", qos: .atMostOnce) }
            try await writer.subscribe(to: ["nowhere"])
            // Nor does a queue get any room while it answers, of which the writer hears.
            let flood = Task {
                while !Task.isCancelled { try await writer.publish(payload, to: "flood", qos: .atMostOnce) }
            }
            fixture.onEnd { flood.cancel() }
            let dropped = readers.map { reader in Task { try await reader.publish("x", to: "nowhere") } }
            #expect(try await collect(2, from: writer).count == 2)
            flood.cancel()
            for (reader, dropped) in zip(readers, dropped) {
                // The second one does not read for longer than its patience, and stays: answers may wait behind messages.
                #expect(reader.state == .connected(number: 1))
                let messages = reader.messages
                let reading = Task { for await _ in messages {} }
                fixture.onEnd { reading.cancel() }
                await #expect(throws: MosquittoError.self) {
                    try await within("the end of the connection") { try await dropped.value }
                }
                try await reach(reader, "the next connection") { $0 == .connected(number: 2) }
                #expect(try await !reader.publish("x", to: "nowhere").isError)
            }
        }
    }

    @Test("the bound holds for a client that floods itself, whose answers come among the messages")
    func selfMade() async throws {
        try await withFixture { fixture in
            let client = try fixture.client("echo", of: await fixture.broker(), on: fixture.loop(), messageBuffer: 10)
            try await client.connect()
            try await client.subscribe(to: ["#"])
            let count = 2000
            let reasons = Task {
                try await withThrowingTaskGroup(of: ReasonCode.self) { group in
                    for number in 0..<count { group.addTask { try await client.publish("x", to: "n/\(number)") } }
                    return try await group.reduce(into: Set()) { $0.insert($1) }
                }
            }
            #expect(Set(try await collect(count, from: client).map(\.topic)).count == count)
            #expect(try await within { try await reasons.value } == [.success])
            #expect(client.ledger.buffer.peak <= 10)
        }
    }

    @Test(
        "a QoS 1 marker published after the subscription comes behind all retained documents, of whatever QoS",
        arguments: [UInt16(1), 20, 1000], [QoS.atMostOnce, .atLeastOnce])
    func barrier(receiveMaximum: UInt16, qos: QoS) async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            let writer = try fixture.client("writer", of: broker, on: loop)
            try await writer.connect()
            try await withThrowingTaskGroup(of: ReasonCode.self) { group in
                for number in 0..<1500 {
                    group.addTask { try await writer.publish("document", to: "doc/\(number)", retain: true) }
                }
                for try await reason in group where reason.isError { throw TestFailure("refused with \(reason)") }
            }
            let reader = try fixture.client("reader", of: broker, on: loop, messageBuffer: 50) {
                $0.receiveMaximum = receiveMaximum
            }
            try await reader.connect()
            try await reader.subscribe(to: ["barrier"])
            try await reader.subscribe(to: ["doc/#"], qos: qos)
            async let marked = reader.publish("marker", to: "barrier")
            let messages = try await collect(1501, from: reader)
            #expect(messages.last?.text == "marker")
            #expect(Set(messages.map(\.topic)).count == 1501)
            #expect(messages.dropLast().allSatisfy { $0.retained })
            #expect(try await marked == .success)
        }
    }

    @Test("news alone come when retained messages are not asked for")
    func retainHandling() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let client = try fixture.client("live", of: broker, on: fixture.loop())
            try await client.connect()
            try await client.publish("old", to: "a", retain: true)
            try await client.subscribe(to: ["a"], options: SubscribeOptions(retained: .skip))
            try await client.publish("new", to: "a", retain: true)
            #expect(try await collect(1, from: client).map(\.text) == ["new"])
        }
    }
}
