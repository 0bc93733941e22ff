import Dispatch
import FleetProtocol
import Synchronization
import TestSupport
import Testing

@testable import AppConnect

/// The pasteboard that the programs of a device have.
private final class Clipboard: DevicePasteboard {
    private let content = Mutex<PasteboardContent?>(nil)
    func write(_ content: PasteboardContent?) { self.content.withLock { $0 = content } }
    func read() -> PasteboardContent? { content.withLock { $0 } }
}

/// What comes of something that an app waits for, while the test plays its agent.
private final class Outcome<Value: Sendable>: Sendable {
    private let result = Mutex<Result<Value, any Error>?>(nil)
    private let done = DispatchSemaphore(value: 0)

    init(_ body: @escaping @Sendable () async throws -> Value) {
        Task {  // ends with what it waits for, which the test sees to
            do {
                let value = try await body()
                result.withLock { $0 = .success(value) }
            } catch {
                result.withLock { $0 = .failure(error) }
            }
            done.signal()
        }
    }

    func get() throws -> Value {
        guard done.wait(timeout: .now() + 120) == .success, let result = result.withLock({ $0 }) else {
            throw TestFailure("nothing came of it")
        }
        return try result.get()
    }
}

extension LinkTests {
    private static let keys = AppKeys(app: Array(repeating: 1, count: 32), shared: Array(repeating: 2, count: 32))
    private static let text = PasteboardContent(text: "4711")
    private static let older = PasteboardContent(text: "older")

    /// The next app that comes, ready, authorized and with its keys.
    private func ready(_ agent: ScriptedAgent, _ policy: PasteboardPolicy) throws -> ScriptedAgent.Peer {
        var properties = AppProperties.initial
        properties.availability = .available
        properties[.auth] = .auth(.authorized, message: "")
        properties[.pasteboard] = .pasteboard(policy)
        let (peer, _) = try agent.welcome()
        try peer.send(.keys(Self.keys))
        try peer.send(.ready(properties))
        guard try peer.next() == .ready else { throw TestFailure("no answer to ready") }
        return peer
    }

    private func copy(_ appConnect: AppConnect) -> Outcome<Bool> { Outcome { try await appConnect.copy(Self.text) } }
    private func paste(_ appConnect: AppConnect) -> Outcome<PasteboardContent?> {
        Outcome { try await appConnect.paste() }
    }

    /// The next frame, which copies; nil for one that empties.
    private func copied(_ peer: ScriptedAgent.Peer) throws -> (id: Int64, item: PasteboardItem?) {
        let frame = try peer.next()
        guard case .copy(let id, let item) = frame else { throw TestFailure("\(String(describing: frame))") }
        return (id, item)
    }

    @Test(
        "what anybody may paste goes to the device's own pasteboard, and empties the agent's; to it where there is none"
    )
    func copiedFreely() async throws {
        let clipboard = Clipboard()
        try await withApp(change: { $0.pasteboard = clipboard }) { appConnect, agent in
            let peer = try ready(agent, .authorized)
            // Nobody waits for the agent, which only forgets.
            #expect(try copy(appConnect).get())
            #expect(clipboard.read() == Self.text)
            #expect(try copied(peer).item == nil)
            #expect(try paste(appConnect).get() == Self.text)
        }
        try await withApp { appConnect, agent in
            let peer = try ready(agent, .authorized)
            let copying = copy(appConnect)
            let (id, item) = try copied(peer)
            #expect(item == PasteboardItem(try Self.text.encoded(), isSecured: false))
            try peer.send(.copied(id: id, true))
            #expect(try copying.get())
        }
    }

    @Test("what is confined goes to the agent, and empties the device's own pasteboard when it is there")
    func copiedConfined() async throws {
        let clipboard = Clipboard()
        clipboard.write(Self.older)
        try await withApp(change: { $0.pasteboard = clipboard }) { appConnect, agent in
            let peer = try ready(agent, .secureCopy)
            let copying = copy(appConnect)
            let (id, item) = try copied(peer)
            #expect(item?.isSecured == true)
            #expect(clipboard.read() == Self.older, "until the agent has it")
            try peer.send(.copied(id: id, true))
            #expect(try copying.get())
            #expect(clipboard.read() == nil)
            let pasting = paste(appConnect)
            guard case .paste(let number) = try peer.next() else { throw TestFailure("it does not ask") }
            try peer.send(.pasted(id: number, item))
            #expect(try pasting.get() == Self.text)
            // Somebody has copied elsewhere since.
            clipboard.write(Self.older)
            #expect(try paste(appConnect).get() == Self.older)
        }
    }

    @Test("what the agent refuses is not copied, is reported, and leaves the device's own pasteboard as it was")
    func copyRefused() async throws {
        let clipboard = Clipboard()
        clipboard.write(Self.older)
        let app = RecordingApp()
        try await withApp(app, { $0.pasteboard = clipboard }) { appConnect, agent in
            let peer = try ready(agent, .secureCopy)
            #expect(try app.next() == "ready")
            let copying = copy(appConnect)
            try peer.send(.copied(id: try copied(peer).id, false))
            #expect(try copying.get() == false)
            #expect(try peer.next() == .blocked(.copy, target: nil, number: 1))
            #expect(try app.next().contains("copy"))
            #expect(clipboard.read() == Self.older)
            // And where the keys have gone meanwhile, that is why.
            let other = copy(appConnect)
            let (id, _) = try copied(peer)
            try peer.send(.keys(nil))
            try peer.send(.copied(id: id, false))
            let error = #expect(throws: SecureFileError.self) { try other.get() }
            #expect(error?.code == .noKeys)
        }
    }

    @Test("without an agent, and with one that is older, what needs it throws, and the device's own pasteboard is used")
    func withoutPasteboard() async throws {
        func unreachable<Value>(_ outcome: Outcome<Value>) -> Bool {
            let error = #expect(throws: AppConnectError.self) { _ = try outcome.get() }
            return error?.code == .unreachable
        }
        let clipboard = Clipboard()
        try await withApp(change: { $0.pasteboard = clipboard }) { appConnect, agent in
            let peer = try ready(agent, .authorized)
            peer.close()
            let (other, _) = (try agent.accept(), 0)
            guard case .register = try other.next() else { throw TestFailure("it does not come back") }
            try other.send(.welcome(agent: "old/1", device: DeviceID(unchecked: "till-0042")))
            try other.send(.displayed(id: 99, true))
            #expect(try copy(appConnect).get())
            #expect(clipboard.read() == Self.text)
            clipboard.write(nil)
            #expect(unreachable(paste(appConnect)))
            try other.send(.deliver(number: 1, .policy(.pasteboard(.secureCopy), reason: .none)))
            // Nothing that an old agent does not know has been said to it.
            guard case .acknowledge = try other.next() else { throw TestFailure("another frame came first") }
            #expect(unreachable(copy(appConnect)))
            #expect(clipboard.read() == nil)
        }
    }

    @Test("an answer of another kind, and a connection that ends, are no answer")
    func copyUnanswered() async throws {
        try await withApp { appConnect, agent in
            let peer = try ready(agent, .authorized)
            for ending in [{ try peer.send(.pasted(id: $0, nil)) }, { _ in peer.close() }] as [(Int64) throws -> Void] {
                let copying = copy(appConnect)
                try ending(try copied(peer).id)
                let error = #expect(throws: AppConnectError.self) { try copying.get() }
                #expect(error?.code == .unreachable)
            }
        }
    }
}

extension LinkTests {
    private func withApp(
        change: @escaping (inout AppConnect.Options) -> Void, _ body: (AppConnect, ScriptedAgent) throws -> Void
    ) async throws { try await withApp(RecordingApp(), change, body) }
}
