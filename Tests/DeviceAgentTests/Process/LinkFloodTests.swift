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

    @Test("is sent away when apps.d takes it back while it is connected")
    func takenBack() async throws {
        try await withTemporaryFolder { folder in
            let refused = Locked<[AppID]>([])
            let isRegistered = Locked(false)
            let server = LinkServer(
                access: LinkAccess(folder: folder.path + "/apps.d"), recheck: .milliseconds(20),
                logger: Logger(label: "test")
            ) { event in
                switch event {
                case .registered: isRegistered.withLock { $0 = true }
                case .registrationRefused(let app, _): refused.withLock { $0.append(app) }
                default: break
                }
            }
            try await server.start(at: folder.path + "/s")
            let client = try LinkClient(folder.path + "/s")
            client.register(mail)
            try await until("it is registered") { isRegistered.withLock { $0 } }
            // Not the first look alone counts.
            try await Task.sleep(for: .milliseconds(200))
            mkdir(folder.path + "/apps.d", 0o700)
            try Data(#"{"v":1,"app":"\#(mail)","uid":\#(geteuid() + 1)}"#.utf8)
                .write(to: folder.appending(path: "apps.d/mail.json"))
            let answer = try await client.next()
            guard case .refused(.notAllowed, _)? = answer else {
                Issue.record("it hears \(String(describing: answer))")
                return await server.stop()
            }
            #expect(try await client.next() == nil)
            #expect(refused.withLock { $0 } == [mail])
            await server.stop()
        }
    }

    @Test("that it may not be an app is passed on once, however often it comes")
    func refusals() async throws {
        try await withTemporaryFolder { folder in
            mkdir(folder.path + "/apps.d", 0o700)
            try Data(#"{"v":1,"app":"\#(notes)","uid":\#(geteuid() + 1)}"#.utf8)
                .write(to: folder.appending(path: "apps.d/notes.json"))
            let refused = Locked<[AppID]>([])
            let server = LinkServer(
                access: LinkAccess(folder: folder.path + "/apps.d"), logger: Logger(label: "test")
            ) { event in
                if case .registrationRefused(let app, _) = event { refused.withLock { $0.append(app) } }
            }
            try await server.start(at: folder.path + "/s")
            for app in [mail, mail, notes, mail, notes] {
                let client = try LinkClient(folder.path + "/s")
                client.register(app)
                guard case .refused(.notAllowed, _)? = try await client.next() else {
                    Issue.record("\(app) is not refused")
                    continue
                }
            }
            #expect(refused.withLock { $0 } == [mail, notes])
            await server.stop()
        }
    }

    @Test("under ever new names, or ever again, is told of no more often than a log can bear")
    func refusedApps() {
        var refused = RefusedApps()
        let begin = ContinuousClock.now
        func count(_ apps: [AppID], after seconds: Int) -> Int {
            apps.filter { refused.isDue($0, at: begin + .seconds(seconds)) }.count
        }
        let many = (0..<1_000).map { AppID(unchecked: "app-\($0)") }
        #expect(count([mail, notes, mail], after: 0) == 2)
        #expect(count([mail, notes], after: 59) == 0)
        #expect(count([mail, notes], after: 60) == 2)
        #expect(count(many, after: 60) == RefusedApps.maximumApps - 2)
        #expect(count([mail], after: 120) == 1)
        #expect(count(many, after: 120) == RefusedApps.maximumApps - 1)
        let nobody = [AppID?](repeating: nil, count: 100)
        func others(after seconds: Int) -> Int {
            nobody.filter { refused.isDue($0, at: begin + .seconds(seconds)) }.count
        }
        #expect([0, 59, 60].map(others) == [20, 0, 20])
    }

    @Test("a budget of a minute begins anew with the first that is asked for behind it")
    func minuteBudget() {
        var budget = MinuteBudget(20)
        let begin = ContinuousClock.now
        func taken(after seconds: Int) -> Int {
            (0..<100).filter { _ in budget.take(at: begin + .seconds(seconds)) }.count
        }
        #expect([0, 59, 60, 119, 180].map(taken) == [20, 0, 20, 0, 20])
    }
}
