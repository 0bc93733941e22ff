import AppConnect
import Dispatch
import FleetProtocol
import Foundation
import Synchronization
import TestSupport
import Testing

/// Runs a task's jobs on a queue of its own.
private final class OwnThread: TaskExecutor {
    private let queue = DispatchQueue(label: "test")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

@Suite("Over a real socket", .serialized)
struct LinkTests {
    /// A started app with an agent in a folder of its own, both ended afterwards.
    func withApp(
        _ app: RecordingApp = RecordingApp(), _ change: (inout AppConnect.Options) -> Void = { _ in },
        _ body: (AppConnect, ScriptedAgent) throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let agent = try ScriptedAgent(at: folder.appending(path: "agent.sock").path)
            var options = AppConnect.Options(app: AppID(unchecked: "com.example.mail"), socket: agent.path)
            options.dataFolder = folder.appending(path: "data").path
            change(&options)
            let appConnect = AppConnect()
            appConnect.delegate = app
            try appConnect.start(options: options)
            defer { appConnect.stop() }
            // The body waits at sockets: on a thread of its own, since the tasks that it waits for, and those of other
            // tests, need the few threads there are for tasks.
            try await withTaskExecutorPreference(OwnThread()) { try body(appConnect, agent) }
            withExtendedLifetime(app) {}
        }
    }

    private func config(_ number: Int64, _ text: String) -> AgentFrame {
        .deliver(number: number, .policy(.config(["n": text]), reason: .none))
    }

    @Test("keys that an agent takes back before it goes are gone, also when nothing can be written to it any more")
    func lastWord() async throws {
        let (isCalled, isGone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let isLost = DispatchSemaphore(value: 0)
        let app = RecordingApp { _, what in
            guard what == "config first" else { return }
            isCalled.signal()
            isGone.wait()
        }
        @Sendable func note(_ state: ConnectionState) { if case .disconnected = state { isLost.signal() } }
        try await withApp(app, { $0.connectionChanged = note }) { appConnect, agent in
            var properties = AppProperties.initial
            properties.availability = .available
            properties[.auth] = .auth(.authorized, message: "")
            let (peer, _) = try agent.welcome()
            let key = [UInt8](repeating: 7, count: AppKeys.size)
            try peer.send(.keys(AppKeys(app: key, shared: key)))
            try peer.send(.ready(properties))
            guard try peer.next() == .ready else { throw TestFailure("no answer to ready") }
            try peer.send(config(1, "first"))
            isCalled.wait()
            #expect(try appConnect.derivedAppKey(identifier: "database").count == 32)
            // What comes is read while answers to it can be written to nobody.
            for number in 2..<60 { try peer.send(config(Int64(number), String(repeating: "x", count: 2_000))) }
            try peer.send(.keys(nil))
            peer.close()
            isGone.signal()
            #expect(isLost.wait(timeout: .now() + 120) == .success)
            #expect(throws: SecureFileError.self) { try appConnect.derivedAppKey(identifier: "database") }
        }
    }

    @Test("an app registers, gets ready and its policies, and acknowledges")
    func session() async throws {
        let app = RecordingApp { appConnect, what in
            if what.hasPrefix("config") { try? appConnect.configApplied(.applied, message: "done") }
        }
        try await withApp(app) { appConnect, agent in
            let (peer, registration) = try agent.welcome()
            #expect(registration.implements == [.config, .print, .attempts])
            #expect(registration.resume == nil)
            #expect(!appConnect.isReady)
            #expect(throws: AppConnectError.self) { try appConnect.authState }
            try peer.send(.ready(.initial))
            #expect(try peer.next() == .ready)
            try peer.send(config(1, "a"))
            #expect(
                try peer.next()
                    == .acknowledge(
                        Acknowledgement(delivery: 1, policy: .config, state: .applied, message: "done")))
            #expect(try peer.next() == .delivered(1))
            try peer.send(.deliver(number: 2, .policy(.pasteboard(.authorized), reason: .none)))
            guard case .acknowledge(let answer) = try peer.next() else {
                Issue.record("no acknowledgement")
                return
            }
            #expect(answer.state == .unsupported)
            #expect(app.all == ["ready", "config a"])
            #expect(appConnect.connectionState == .connected(device: "till-0042", agent: "scripted/1"))
        }
    }

    @Test("an app comes back to a restarted agent and says what it has")
    func reconnect() async throws {
        try await withApp { appConnect, agent in
            let peer = try agent.ready()
            try peer.send(config(1, "a"))
            #expect(try peer.next() == .delivered(1))
            peer.close()
            try appConnect.configApplied(.error, message: "later")
            let (again, registration) = try agent.welcome()
            #expect(registration.resume?.delivered == [1])
            // Answered before or after the loss was seen: either way the newest word arrives.
            var answers = registration.resume?.acknowledgements ?? []
            try again.send(config(2, "b"))
            while let frame = try again.next() {
                if case .acknowledge(let answer) = frame { answers.append(answer) }
                if frame == .delivered(2) { break }
            }
            #expect(
                answers == [Acknowledgement(delivery: 1, policy: .config, state: .error, message: "later")])
            #expect(try appConnect.config == ["n": "b"])
        }
    }

    @Test("a line without end, or of garbage, costs the connection and nothing else")
    func hostile() async throws {
        try await withApp { appConnect, agent in
            let peer = try agent.ready()
            try peer.send(bytes: [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20))
            let (second, registration) = try agent.welcome()
            #expect(registration.resume != nil)
            try second.send(bytes: Array("\u{1}\u{2} garbage\n".utf8))
            let (third, _) = try agent.welcome()
            try third.send(config(1, "a"))
            #expect(try third.next() == .delivered(1))
        }
    }

    @Test("a refusal is kept for the developer, and the app tries again")
    func refused() async throws {
        let changes = Mutex<[ConnectionState]>([])
        try await withApp(
            RecordingApp(), { $0.connectionChanged = { state in changes.withLock { $0.append(state) } } }
        ) { appConnect, agent in
            let peer = try agent.accept()
            _ = try peer.next()
            try peer.send(.refused(.inUse, message: "another process is connected"))
            #expect(try peer.next() == nil)
            _ = try agent.ready()
            guard case .disconnected(let error) = changes.withLock({ $0 }).first else {
                Issue.record("\(changes.withLock { $0 })")
                return
            }
            #expect(error.code == .inUse)
        }
    }

    @Test("what an app says while its agent does not read arrives as soon as it does")
    func stalledAgent() async throws {
        try await withApp { appConnect, agent in
            let peer = try agent.ready()
            try peer.send(config(1, "a"))
            #expect(try peer.next() == .delivered(1))
            // More than the socket takes, so that some of it waits behind what waits to be written.
            for _ in 0..<8_000 { _ = try appConnect.requestCopy() }
            try appConnect.configApplied(.applied, message: "last")
            var blocked = 0
            while true {
                guard case .blocked = try peer.next() else { break }
                blocked += 1
            }
            #expect(blocked == 8_000)
        }
    }

    @Test("stop ends the connection also when the agent reads nothing any more")
    func stopWithStalledAgent() async throws {
        try await withApp { appConnect, agent in
            let peer = try agent.ready()
            for _ in 0..<8_000 { _ = try appConnect.requestCopy() }
            appConnect.stop()
            #expect(peer.isClosedByApp())
        }
    }

    @Test("stop waits for a callback that runs, and none begins after it")
    func stop() async throws {
        let entered = DispatchSemaphore(value: 0)
        let leave = DispatchSemaphore(value: 0)
        let hasLeft = Mutex(false)
        let app = RecordingApp { _, what in
            guard what == "config a" else { return }
            entered.signal()
            leave.wait()
            hasLeft.withLock { $0 = true }
        }
        try await withApp(app) { appConnect, agent in
            let peer = try agent.ready()
            try peer.send(config(1, "a"))
            try peer.send(.deliver(number: 2, .policy(.print(.authorized), reason: .none)))
            entered.wait()
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(20)) { leave.signal() }
            appConnect.stop()
            #expect(hasLeft.withLock { $0 })
            #expect(app.all == ["ready", "config a"])
            #expect(try peer.next() == .stop)
            #expect(try peer.next() == nil)
            #expect(throws: AppConnectError.self) { try appConnect.config }
            #expect(throws: AppConnectError.self) { try appConnect.retire() }
            #expect(appConnect.isReady)
            #expect(appConnect.logLevel == .status)
            #expect(appConnect.secureServicesAvailability == .unavailable)
        }
    }

    @Test("what an app asked for before it stopped is said to an agent that welcomes it only then")
    func stopBeforeWelcome() async throws {
        try await withApp { appConnect, agent in
            try agent.ready().close()
            let peer = try agent.accept()
            guard case .register = try peer.next() else {
                Issue.record("no registration")
                return
            }
            try appConnect.retire()
            Thread.detachNewThread { appConnect.stop() }
            while (try? appConnect.authState) != nil {}
            try peer.send(.welcome(agent: "scripted/1", device: DeviceID(unchecked: "till-0042"), kept: 0))
            #expect(try peer.next() == .retire(number: 1))
            #expect(try peer.next() == .stop)
            #expect(try peer.next() == nil)
        }
    }

    @Test("stop ends the connection also when the agent never welcomes what there is to say")
    func stopWithoutWelcome() async throws {
        try await withApp { appConnect, agent in
            try agent.ready().close()
            let peer = try agent.accept()
            _ = try peer.next()
            try appConnect.retire()
            appConnect.stop()
            #expect(try peer.next() == nil)
        }
    }

    @Test("an app that has retired itself without an agent, and ended, is retired at its next launch, and asks again")
    func retiredBefore() async throws {
        try await withTemporaryFolder { folder in
            let mark = folder.appending(path: "self-retired").path
            let agent = try ScriptedAgent(at: folder.appending(path: "agent.sock").path)
            var options = AppConnect.Options(app: AppID(unchecked: "com.example.mail"), socket: agent.path)
            options.dataFolder = folder.path
            let app = RecordingApp()
            let (first, second) = (AppConnect(), AppConnect())
            defer {
                first.stop()
                second.stop()
            }
            first.delegate = app
            try first.start(options: options)
            try agent.ready().close()
            let silent = try agent.accept()
            _ = try silent.next()
            try first.retire()
            #expect(FileManager.default.fileExists(atPath: mark))
            first.stop()
            silent.close()

            second.delegate = app
            try second.start(options: options)
            let (peer, _) = try agent.welcome()
            var properties = AppProperties.initial
            properties[.auth] = .auth(.authorized, message: "")
            try peer.send(.ready(properties))
            #expect(try peer.next() == .retire(number: 1))
            #expect(try peer.next() == .ready)
            #expect(try second.authState == .retired)
            let retired = PolicyValue.auth(.retired, message: PolicyValue.selfRetiredMessage)
            try peer.send(.deliver(number: 1, .policy(retired, reason: .selfRetired)))
            #expect(try peer.next() == .delivered(1))
            #expect(!FileManager.default.fileExists(atPath: mark))
            withExtendedLifetime(app) {}
        }
    }

    @Test("stop within a callback makes it the last")
    func stopWithin() async throws {
        let app = RecordingApp { appConnect, what in
            if what == "config a" { appConnect.stop() }
        }
        try await withApp(app) { appConnect, agent in
            let peer = try agent.ready()
            try peer.send(config(1, "a"))
            try peer.send(.deliver(number: 2, .policy(.print(.authorized), reason: .none)))
            #expect(try peer.next() == .stop)
            #expect(try peer.next() == nil)
            appConnect.stop()
            #expect(app.all == ["ready", "config a"])
        }
    }

    @Test("the delegate is called on the queue of the options, one call at a time even if that is concurrent")
    func queue() async throws {
        let key = DispatchSpecificKey<Bool>()
        let queue = DispatchQueue(label: "app", attributes: .concurrent)
        queue.setSpecific(key: key, value: true)
        let running = Mutex(0)
        let problems = Mutex<[String]>([])
        let app = RecordingApp { _, what in
            let count = running.withLock { count in
                count += 1
                return count
            }
            if count > 1 { problems.withLock { $0.append("\(what) overlaps") } }
            if DispatchQueue.getSpecific(key: key) != true { problems.withLock { $0.append("\(what) elsewhere") } }
            running.withLock { $0 -= 1 }
        }
        try await withApp(app, { $0.queue = queue }) { _, agent in
            let peer = try agent.ready()
            for number in stride(from: Int64(1), to: 100, by: 2) {
                try peer.send(config(number, "\(number)"))
                let policy: PrintPolicy = number % 4 == 1 ? .authorized : .unauthorized
                try peer.send(.deliver(number: number + 1, .policy(.print(policy), reason: .none)))
                #expect(try peer.next() == .delivered(number))
                #expect(try peer.next() == .delivered(number + 1))
            }
            #expect(problems.withLock { $0 } == [])
            #expect(app.all.count == 101)
        }
    }

    @Test("what comes while the delegate's queue is blocked is called when it is free again")
    func blockedQueue() async throws {
        let queue = DispatchQueue(label: "app")
        let app = RecordingApp()
        try await withApp(app, { $0.queue = queue }) { appConnect, agent in
            let peer = try agent.ready()
            queue.suspend()
            for number in 1...Int64(1_000) { try peer.send(config(number, "\(number)")) }
            queue.resume()
            while let frame = try peer.next() { if frame == .delivered(1_000) { break } }
            #expect(app.all.last == "config 1000")
            try peer.send(config(1_001, "again"))
            #expect(try peer.next() == .delivered(1_001))
        }
    }

    @Test("acknowledgements, requests and reads from many threads all arrive, in whole lines")
    func threads() async throws {
        try await withApp { appConnect, agent in
            let peer = try agent.ready()
            try peer.send(config(1, "a"))
            #expect(try peer.next() == .delivered(1))
            Thread.detachNewThread {
                DispatchQueue.concurrentPerform(iterations: 8) { thread in
                    for round in 0..<50 {
                        try? appConnect.configApplied(.error, message: "\(thread).\(round)")
                        _ = try? appConnect.config
                        _ = try? appConnect.requestCopy()
                    }
                }
            }
            var answers = 0
            var blocked = 0
            while answers < 400 || blocked < 400 {
                switch try peer.next() {
                case .acknowledge: answers += 1
                case .blocked: blocked += 1
                case let other: Issue.record("\(String(describing: other))")
                }
            }
        }
    }

    @Test("the first line of every connection is the registration, whatever other threads write meanwhile")
    func registrationFirst() async throws {
        try await withApp { appConnect, agent in
            var peer = try agent.ready()
            let isOver = Flag()
            defer { isOver.set() }
            for _ in 0..<3 {
                Thread.detachNewThread {
                    while !isOver.isSet { _ = try? appConnect.requestCopy() }
                }
            }
            for _ in 0..<5 {
                peer.close()
                peer = try agent.welcome().0
                while let frame = try peer.next() { if case .blocked = frame { break } }
            }
        }
    }

    private final class Flag: Sendable {
        private let value = Mutex(false)
        var isSet: Bool { value.withLock { $0 } }
        func set() { value.withLock { $0 = true } }
    }

    @Test("a message is displayed by the agent, or not")
    func display() async throws {
        let answers = Answers()
        try await withApp { appConnect, agent in
            let peer = try agent.ready()
            for isOK in [true, false] {
                answers.ask(appConnect, "hello")
                guard case .display(let id, "hello") = try peer.next() else {
                    Issue.record("no display")
                    return
                }
                try peer.send(.displayed(id: id, isOK))
                answers.wait()
            }
            answers.ask(appConnect, "nobody there")
            _ = try peer.next()
            peer.close()
            answers.wait()
            #expect(answers.all == [true, false, false])
        }
    }

    private final class Answers: Sendable {
        private let answers = Mutex<[Bool]>([])
        private let count = DispatchSemaphore(value: 0)

        var all: [Bool] { answers.withLock { $0 } }
        func wait() { count.wait() }

        func ask(_ appConnect: AppConnect, _ text: String) {
            Task {
                let isShown = await appConnect.displayMessage(text)
                answers.withLock { $0.append(isShown) }
                count.signal()
            }
        }
    }

    @Test("a delegate that has gone is not called; the next one gets what was due")
    func delegateGone() async throws {
        try await withTemporaryFolder { folder in
            let agent = try ScriptedAgent(at: folder.appending(path: "agent.sock").path)
            var options = AppConnect.Options(app: AppID(unchecked: "com.example.mail"), socket: agent.path)
            options.dataFolder = folder.path
            let appConnect = AppConnect()
            defer { appConnect.stop() }
            var first: RecordingApp? = RecordingApp()
            appConnect.delegate = first
            try appConnect.start(options: options)
            #expect(throws: AppConnectError.self) { try appConnect.start(options: options) }
            let peer = try agent.ready()
            #expect(first?.all == ["ready"])
            first = nil
            // The call of its ready may hold it for a moment more.
            try await until("the delegate has gone") { appConnect.delegate == nil }
            try peer.send(config(1, "a"))
            #expect(try peer.next() == .taken(1))
            let second = RecordingApp()
            appConnect.delegate = second
            #expect(try peer.next() == .delivered(1))
            #expect(second.all == ["config a"])
        }
    }

    @Test("a start that cannot work throws")
    func invalidStart() throws {
        let app = AppID(unchecked: "com.example.mail")
        let appConnect = AppConnect()
        let none = #expect(throws: AppConnectError.self) {
            try appConnect.start(options: .init(app: app, socket: "/tmp/agent.sock"))
        }
        #expect(none?.code == .noDelegate)
        let delegate = RecordingApp()
        appConnect.delegate = delegate
        let path = #expect(throws: AppConnectError.self) {
            try appConnect.start(options: .init(app: app, socket: "/" + String(repeating: "x", count: 107)))
        }
        #expect(path?.code == .invalidOptions)
        var options = AppConnect.Options(app: app, socket: "/tmp/agent.sock")
        options.dataFolder = "/proc/none"
        let folder = #expect(throws: AppConnectError.self) { try appConnect.start(options: options) }
        #expect(folder?.code == .dataFolder)
        withExtendedLifetime(delegate) {}
    }
}
