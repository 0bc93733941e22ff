import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Mosquitto

@Suite("The event loop")
struct LoopTests {
    @Test("300 clients on one loop each get one publish to all, and answer it from their handlers")
    func manyClients() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            let count = 300
            let collector = try fixture.client("collector", of: broker, on: loop)
            try await collector.connect()
            try await collector.subscribe(to: ["answer/#"])
            let ready = AsyncStream.makeStream(of: Void.self)
            let nesting = Atomic(0)
            for index in 0..<count {
                let client = try loop.makeClient(options("d\(index)", of: broker)) { client, event in
                    #expect(nesting.add(1, ordering: .relaxed).newValue == 1)
                    defer { nesting.subtract(1, ordering: .relaxed) }
                    switch event {
                    case .connected:
                        #expect(throws: Never.self) { try client.subscribe(to: ["all", "only/\(index)"]) }
                    case .subscribed: ready.continuation.yield()
                    case .message(let message):
                        #expect(throws: Never.self) { try client.publish(message.payload, to: "answer/\(index)") }
                    default: break
                    }
                }
                client.start()
            }
            try await within("300 subscriptions") {
                var seen = 0
                for await _ in ready.stream {
                    seen += 1
                    if seen == count { break }
                }
            }
            try await collector.publish("to all", to: "all")
            let answers = try await collect(count, from: collector)
            #expect(Set(answers.map(\.topic)) == Set((0..<count).map { "answer/\($0)" }))
            try await collector.publish("to one", to: "only/77")
            #expect(try await collect(1, from: collector).map(\.topic) == ["answer/77"])
        }
    }

    @Test("what arrives together is handed over first, then closures run that handlers gave meanwhile")
    func together() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            let publisher = try fixture.client("publisher", of: broker, on: fixture.loop())
            try await publisher.connect()
            let subscribed = AsyncStream.makeStream(of: Void.self)
            let seen = AsyncStream.makeStream(of: String.self)
            for index in 0..<3 {
                let client = try loop.makeClient(options("d\(index)", of: broker)) { client, event in
                    switch event {
                    case .connected: #expect(throws: Never.self) { try client.subscribe(to: ["all"]) }
                    case .subscribed: subscribed.continuation.yield()
                    case .message:
                        seen.continuation.yield("message")
                        loop.execute { seen.continuation.yield("closure") }
                    default: break
                    }
                }
                client.start()
            }
            let subscriptions = subscribed.stream
            try await within("three subscriptions") { for await _ in subscriptions.prefix(3) {} }
            let published = DispatchSemaphore(value: 0)
            await withCheckedContinuation { held in
                loop.execute {
                    held.resume()
                    published.wait()
                }
            }
            do {
                defer { published.signal() }
                // The broker answers when it has written to all three.
                try await publisher.publish("to all", to: "all")
            }
            let stream = seen.stream
            let order = try await within { await stream.prefix(6).reduce(into: []) { $0.append($1) } }
            #expect(order == Array(repeating: "message", count: 3) + Array(repeating: "closure", count: 3))
        }
    }

    @Test("many concurrent publishes each get one answer, within the window that the client keeps")
    func concurrentPublishes() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let client = try fixture.client("busy", of: broker, on: fixture.loop()) { $0.sendMaximum = 16 }
            try await client.connect()
            let reasons = try await within {
                try await withThrowingTaskGroup(of: ReasonCode.self) { group in
                    for number in 0..<5000 { group.addTask { try await client.publish("x", to: "t/\(number)") } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
            }
            #expect(reasons.count == 5000)
            #expect(reasons.allSatisfy { $0 == .noMatchingSubscribers })
            #expect(client.unanswered == 0)
        }
    }

    @Test("a client at its window refuses more from its handler, and takes them when answers have come")
    func window() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            let codes = AsyncStream.makeStream(of: MosquittoError.Code?.self)
            let client = try loop.makeClient(options("narrow", of: broker) { $0.sendMaximum = 2 }) { client, event in
                func attempt() {
                    do throws(MosquittoError) {
                        try client.publish([], to: "t")
                        codes.continuation.yield(nil)
                    } catch {
                        codes.continuation.yield(error.code)
                    }
                }
                switch event {
                case .connected: for _ in 0..<3 { attempt() }
                case .published where client.inFlight == 0: attempt()
                default: break
                }
            }
            client.start()
            let stream = codes.stream
            let seen = try await within { await stream.prefix(4).reduce(into: []) { $0.append($1) } }
            #expect(seen == [nil, nil, .bufferFull, nil])
            client.close()
        }
    }

    @Test("an actor of the loop is entered from a handler without a hop")
    func actorOnLoop() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker()
            let loop = try fixture.loop()
            let device = Device(loop)
            let client = try loop.makeClient(options("actor", of: broker)) { client, event in
                device.assumeIsolated { $0.handle(event, client) }
            }
            client.start()
            try await until("the actor has its message") { await device.received == ["hello"] }
            client.close()
        }
    }

    private actor Device {
        let loop: EventLoop
        var received: [String] = []
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

        init(_ loop: EventLoop) { self.loop = loop }

        func handle(_ event: LoopClient.Event, _ client: LoopClient) {
            switch event {
            case .connected: _ = try? client.subscribe(to: ["a"])
            case .subscribed: _ = try? client.publish(Array("hello".utf8), to: "a")
            case .message(let message): received.append(message.text)
            default: break
            }
        }
    }

    @Test("closures run in order, timers by their time, cancelled ones not at all")
    func order() async throws {
        try await withFixture { fixture in
            let loop = try fixture.loop()
            let (stream, seen) = AsyncStream.makeStream(of: Int.self)
            loop.execute {
                let never = loop.schedule(after: .milliseconds(1)) { seen.yield(-1) }
                loop.schedule(after: .milliseconds(30)) {
                    seen.yield(5)
                    seen.finish()
                }
                loop.schedule(after: .milliseconds(2)) { seen.yield(4) }
                loop.execute { seen.yield(3) }
                never.cancel()
                seen.yield(0)
            }
            loop.execute { seen.yield(1) }
            loop.execute { seen.yield(2) }
            let order = try await within { await stream.reduce(into: []) { $0.append($1) } }
            #expect(order.filter { $0 != 3 } == [0, 1, 2, 4, 5])
            #expect(order.contains(3))
        }
    }

    // In a process of its own, whose descriptors can be counted.
    @Test("clients without socket pairs use one descriptor each, and others open files meanwhile")
    func descriptors() async throws {
        await #expect(processExitsWith: .success) {
            try await withFixture { fixture in
                let broker = try await fixture.broker()
                let loop = try EventLoop(name: "lean", omitsSocketPairs: true)
                fixture.onEnd { await loop.shutdown() }
                let before = try sockets()
                let opener = FileOpener()
                var clients: [MQTTClient] = []
                for index in 0..<20 {
                    let client = try fixture.client("lean\(index)", of: broker, on: loop)
                    try await client.connect()
                    #expect(try await client.publish("x", to: "a") == .noMatchingSubscribers)
                    clients.append(client)
                }
                let failures = opener.end()
                #expect(failures == 0, "\(failures) files could not be opened")
                let more = try sockets().subtracting(before)
                #expect(more.count == clients.count, "\(clients.count) clients have \(more.sorted())")
            }
        }
    }
}

/// A thread that opens a file, and closes it, all the time.
private final class FileOpener: Sendable {
    private let isEnding = Atomic(false)
    private let failures = Atomic(0)
    private let ended = DispatchSemaphore(value: 0)

    init() {
        Thread.detachNewThread { [self] in
            while !isEnding.load(ordering: .relaxed) {
                let file = open("/dev/null", O_RDONLY)
                if file < 0 { failures.add(1, ordering: .relaxed) } else { close(file) }
            }
            ended.signal()
        }
    }

    /// How often no file could be opened.
    func end() -> Int {
        isEnding.store(true, ordering: .relaxed)
        ended.wait()
        return failures.load(ordering: .relaxed)
    }
}

/// The process's open sockets. Of other descriptors, Foundation and Dispatch open some at times of their own.
private func sockets() throws -> Set<String> {
    let folder = "/proc/self/fd"
    let files = try FileManager.default.contentsOfDirectory(atPath: folder)
    let targets = files.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)") }
    return Set(targets.filter { $0.hasPrefix("socket:") })
}
