import DeviceAgent
import FleetProtocol
import Foundation
import TestSupport
import Testing

@Suite("The key files of apps")
struct KeystoreTests {
    private func names(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    }

    @Test("a key is 32 random bytes that only the agent can read; making it again changes nothing")
    func create() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/keys"
            let keystore = try Keystore(folder: path)
            try keystore.create(for: mail)
            try keystore.create(for: notes)
            let key = URL(fileURLWithPath: "\(path)/\(mail).key")
            let content = try Data(contentsOf: key)
            #expect(content.count == 32)
            #expect(try content != Data(contentsOf: URL(fileURLWithPath: "\(path)/\(notes).key")))
            try keystore.create(for: mail)
            #expect(try Data(contentsOf: key) == content)
            for (name, mode) in [(path, 0o700), (key.path, 0o600)] {
                #expect(try FileManager.default.attributesOfItem(atPath: name)[.posixPermissions] as? Int == mode)
            }
        }
    }

    @Test("a key that is destroyed is gone from the disk, and destroying it again is well")
    func destroy() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/keys"
            let keystore = try Keystore(folder: path)
            try keystore.create(for: mail)
            let linked = folder.path + "/link"
            #expect(link("\(path)/\(mail).key", linked) == 0)
            try keystore.destroy(for: mail)
            try keystore.destroy(for: mail)
            #expect(try names(path).isEmpty)
            #expect(try !keystore.exists(for: mail))
            // What another link or an undeleting tool would find.
            #expect(try Data(contentsOf: URL(fileURLWithPath: linked)) == Data(repeating: 0, count: 32))
        }
    }

    @Test("a key that is a link is none: what it leads to would outlive it")
    func linkedKey() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/keys"
            let keystore = try Keystore(folder: path)
            try keystore.create(for: mail)
            try FileManager.default.moveItem(atPath: "\(path)/\(mail).key", toPath: folder.path + "/elsewhere")
            #expect(symlink(folder.path + "/elsewhere", "\(path)/\(mail).key") == 0)
            let error = #expect(throws: DeviceAgentError.self) { try keystore.exists(for: mail) }
            #expect(error?.message.contains("is a link") == true)
        }
    }

    @Test("what a crash has left half made or half destroyed is gone at the next start, and never taken for a key")
    func leftovers() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/keys"
            let keystore = try Keystore(folder: path)
            // Half made and half destroyed keys stand under another name.
            for (app, bytes) in [(mail, 5), (notes, 32)] {
                try Data(repeating: 0, count: bytes).write(to: URL(fileURLWithPath: "\(path)/.\(app).key"))
            }
            #expect(try !keystore.exists(for: mail))
            try keystore.create(for: mail)
            #expect(try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(mail).key")).count == 32)
            try keystore.tidy(keeping: [mail]) { Issue.record("\($0) has its key") }
            #expect(try names(path) == ["_shared.key", "\(mail).key"])
        }
    }

    @Test("a key that was made before its transaction is destroyed, one that was destroyed before it is told of")
    func betweenKeyAndStore() async throws {
        try await withTemporaryFolder { folder in
            let keystore = try Keystore(folder: folder.path + "/keys")
            try keystore.create(for: mail)
            var missing: [AppID] = []
            try keystore.tidy(keeping: [notes]) { missing.append($0) }
            #expect(missing == [notes])
            #expect(try names(folder.path + "/keys") == ["_shared.key"])
        }
    }

    @Test("apps of a device share a key, which goes with the last app that has one of its own")
    func shared() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/keys"
            let keystore = try Keystore(folder: path)
            for app in [mail, notes] { try keystore.create(for: app) }
            let (first, second) = (try keystore.keys(of: mail), try keystore.keys(of: notes))
            #expect(first.shared == second.shared)
            #expect(first.app != second.app && first.app != first.shared)
            try keystore.destroy(for: mail)
            #expect(throws: DeviceAgentError.self) { try keystore.keys(of: mail) }
            #expect(try keystore.keys(of: notes) == second)
            try keystore.create(for: mail)
            #expect(try keystore.keys(of: mail).app != first.app)
            #expect(try keystore.keys(of: mail).shared == second.shared)
            for app in [mail, notes] { try keystore.destroy(for: app) }
            #expect(try names(path).isEmpty)
            try keystore.create(for: mail)
            #expect(try keystore.keys(of: mail).shared != second.shared)
        }
    }

    @Test("an agent that has to make a key again keeps what all apps share")
    func sharedAtStart() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/keys"
            let keystore = try Keystore(folder: path)
            for app in [mail, notes] { try keystore.create(for: app) }
            let shared = try keystore.keys(of: notes).shared
            // The one is not to have keys any more, that of the other was damaged and taken away.
            unlink("\(path)/\(notes).key")
            try keystore.tidy(keeping: [notes]) { #expect($0 == notes) }
            try keystore.create(for: notes)
            #expect(try keystore.keys(of: notes).shared == shared)
            try Data([1]).write(to: URL(fileURLWithPath: path + "/_shared.key"))
            #expect(throws: DeviceAgentError.self) { try keystore.tidy(keeping: [notes]) { _ in } }
        }
    }

    @Test("at a start keys are made before others are destroyed")
    func startOrder() throws {
        var device = try TestDevice()
        try device.connect()
        for app in [mail, notes] { try device.answer(device.launch(app)) }
        try device.apply(.all, mail, .auth, .auth(.retired))
        var core = try DeviceCore(
            enrollment: device.core.enrollment, agentVersion: "test", state: device.store.load(), secret: .random(),
            at: device.now)
        let names = core.takeEffects(at: device.now).compactMap { effect -> String? in
            switch effect {
            case .createKeys(let app): "create \(app)"
            case .destroyKeys(let app): "destroy \(app)"
            default: nil
            }
        }
        #expect(names == ["create \(notes)", "destroy \(mail)"])
    }

    @Test(
        "an agent that ends between a key and its transaction ends up with what its layers say",
        arguments: [false, true])
    func core(isRetiring: Bool) throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.apply(.all, mail, .auth, .auth(isRetiring ? .authorized : .retired))
        try device.answer(link)
        let stored = try device.store.load()
        let wish: AuthState = isRetiring ? .retired : .authorized
        try device.apply(.all, mail, .auth, .auth(wish))
        #expect(device.keys.contains(mail) == !isRetiring)
        // The keys have reached the disk, the transaction has not.
        var again = try TestDevice(
            fleet: device.fleet, enrollment: device.core.enrollment, store: DeviceStore.inMemory(holding: stored))
        again.keys = device.keys
        again.retained = device.retained
        try again.restart()
        #expect(again.keys.contains(mail) == isRetiring)
        try again.connect()
        #expect(again.keys.contains(mail) == !isRetiring)
        #expect(try again.status(mail).authState == wish)
    }
}

extension DeviceStore {
    /// A store in memory with this state.
    static func inMemory(holding state: DeviceState) throws -> DeviceStore {
        let store = try DeviceStore.inMemory()
        var changes: [StoreChange] = state.documents.map { .document($0, $1) } + state.marks.map { .mark($0, $1) }
        changes += state.apps.values.map { .app($0) } + state.events.map { .event($0) }
        if let owner = state.owner { changes.append(.started(boot: state.boot, disk: state.disk, owner)) }
        if let trust = state.trust { changes.append(.trust(trust)) }
        changes += [.groups(state.groups), .clock(state.running, state.contact, highest: state.highest)]
        try store.apply(changes)
        return store
    }
}
