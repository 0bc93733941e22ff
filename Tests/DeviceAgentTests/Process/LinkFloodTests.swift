import FleetProtocol
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import DeviceAgent

@Suite("An app that says more than it hears")
struct LinkFloodTests {
    /// The frames that the server has passed on, in order.
    private final class Passed: Sendable {
        private let all = Mutex<[AppFrame]>([])
        var frames: [AppFrame] { all.withLock { $0 } }
        func add(_ frame: AppFrame) { all.withLock { $0.append(frame) } }
    }

    /// Serves with an agent that answers each paste with as much as there can be, and deals with all else at once.
    private func withServer(_ body: (LinkClient, Passed, String) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let passed = Passed()
            let (events, coming) = AsyncStream.makeStream(of: DeviceEvent.self)
            let server = LinkServer(
                access: LinkAccess(folder: folder.path + "/apps.d"), logger: Logger(label: "test")
            ) { coming.yield($0) }
            let item = PasteboardItem(Array(repeating: 7, count: PasteboardItem.maximumSize), isSecured: false)
            let agent = Task {
                for await event in events {
                    switch event {
                    case .registered(let link, _): server.handled(link)
                    case .frame(let link, let frame):
                        passed.add(frame)
                        if case .paste(let id) = frame { server.send(.pasted(id: id, item), to: link) }
                        server.handled(link)
                    default: break
                    }
                }
            }
            try await server.start(at: folder.path + "/s")
            let client = try LinkClient(folder.path + "/s")
            client.register(mail)
            do {
                try await body(client, passed, folder.path + "/s")
            } catch {
                coming.finish()
                await server.stop()
                throw error
            }
            client.end()
            await server.stop()
            coming.finish()
            await agent.value
        }
    }

    @Test("is answered at length as it reads, and not all at once")
    func pastes() async throws {
        try await withServer { client, passed, path in
            let count: Int64 = 24
            client.send((1...count).flatMap { AppFrame.paste(id: $0).json + [UInt8(ascii: "\n")] })
            try await until("the first are answered") { !passed.frames.isEmpty }
            // It reads nothing: what the socket does not take waits in the agent, which answers others as often as they ask.
            let other = try LinkClient(path)
            other.register(notes)
            for id in 1_001...1_020 {
                other.send(.paste(id: Int64(id)))
                guard case .pasted(Int64(id), _?) = try await other.next() else {
                    Issue.record("no answer to \(id)")
                    return
                }
            }
            let waiting = passed.frames.count - 20
            #expect(waiting < 8, "\(waiting) answers of 218 KB wait")
            for id in 1...count {
                guard case .pasted(id, _?) = try await client.next() else {
                    Issue.record("no answer to \(id)")
                    return
                }
            }
        }
    }

    @Test("is heard in order, also what it said before it went, but for questions")
    func order() async throws {
        try await withServer { client, passed, _ in
            let said: [AppFrame] =
                [.paste(id: 1), .paste(id: 2)] + (1...300).map { .delivered($0) }
                + [.copy(id: 3, nil), .paste(id: 4), .delivered(301), .retire(number: 1)]
            client.send(said.flatMap { $0.json + [UInt8(ascii: "\n")] })
            try await until("it is heard") { passed.frames.first == .paste(id: 1) }
            client.end()
            try await until("all is heard") { passed.frames.last == .retire(number: 1) }
            let heard = passed.frames.filter { if case .paste = $0 { false } else { true } }
            #expect(heard == said.filter { if case .paste = $0 { false } else { true } })
        }
    }

    @Test("is heard to its end, also when the agent writes to it first, and it is gone")
    func lastWords() async throws {
        try await withTemporaryFolder { folder in
            let passed = Passed()
            let links = Locked<[LinkID]>([])
            let goOn = DispatchSemaphore(value: 0)
            let server = LinkServer(
                access: LinkAccess(folder: folder.path + "/apps.d"), logger: Logger(label: "test")
            ) { event in
                switch event {
                case .frame(_, let frame): passed.add(frame)
                case .registered(let link, let registration):
                    links.withLock { $0.append(link) }
                    if registration.app == notes { goOn.wait() }
                default: break
                }
            }
            try await server.start(at: folder.path + "/s")
            let client = try LinkClient(folder.path + "/s")
            client.register(mail)
            // More than may wait: nothing more is read.
            client.send((1...80).flatMap { AppFrame.delivered($0).json + [UInt8(ascii: "\n")] })
            try await until("the agent is busy with them") { passed.frames.count == 63 }
            // The one thread of all connections finds that there is something to write, and no reader, before anything else.
            let other = try LinkClient(folder.path + "/s")
            other.register(notes)
            try await until("it is held up") { links.withLock { $0.count } == 2 }
            client.send((81...90).flatMap { AppFrame.delivered($0).json + [UInt8(ascii: "\n")] })
            client.end()
            server.send(.keys(nil), to: links.withLock { $0[0] })
            goOn.signal()
            try await until("the rest is heard") { passed.frames.count == 90 }
            other.end()
            await server.stop()
        }
    }

    @Test("without a registration is not listened to")
    func unregistered() async throws {
        try await withTemporaryFolder { folder in
            let passed = Passed()
            let server = LinkServer(
                access: LinkAccess(folder: folder.path + "/apps.d"), logger: Logger(label: "test")
            ) { event in
                if case .frame(_, let frame) = event { passed.add(frame) }
            }
            try await server.start(at: folder.path + "/s")
            let client = try LinkClient(folder.path + "/s")
            client.send(.copy(id: 1, PasteboardItem(Array(repeating: 1, count: 100_000), isSecured: false)))
            guard case .refused(.invalid, _)? = try await client.next() else {
                Issue.record("it is listened to")
                return
            }
            await server.stop()
            #expect(passed.frames.isEmpty)
        }
    }
}
