import FleetProtocol
import Foundation
import Mosquitto
import TestSupport
import Testing

@testable import FleetHome

/// Who is made to be the broker's user, and whether it can be tried here.
enum BrokerUser: String, CaseIterable {
    case caller, mosquitto
    var canBeTried: Bool { self == .caller || geteuid() == 0 }
}

@Suite("Mosquitto with a fleet's configuration")
struct BrokerTests {
    private static let till = DeviceID(unchecked: "till-1")
    private static let prefix = "fleet/v1/demo"

    private func client(
        _ fixture: Fixture, _ home: FleetHome, _ credentials: Credentials, password: String? = nil
    ) throws -> MQTTClient {
        let loop = try EventLoop()
        fixture.onEnd { await loop.shutdown() }
        var options = ClientOptions(host: home.context.host, port: home.context.port, clientID: credentials.user.text)
        options.userName = credentials.user.text
        options.password = Password(Array((password ?? credentials.password).utf8))
        let client = try MQTTClient(options, on: loop)
        fixture.onEnd { await client.close() }
        return client
    }

    /// Adds a viewer, and waits until the broker knows him: by then it has read all its files again.
    private func addViewer(_ name: String, _ fixture: Fixture, _ home: FleetHome) async throws {
        let viewer = User.viewer(Name(unchecked: name))
        try home.addUser(viewer)
        let client = try client(fixture, home, try home.credentials(for: viewer))
        try await until("the broker has read its files again") {
            do {
                try await client.connect()
                return true
            } catch let error as MosquittoError where error.code == .authenticationRefused {
                return false
            }
        }
        await client.close()
    }

    private func deviceCredentials(_ folder: URL) throws -> Credentials {
        try Credentials(
            json: Array(Data(contentsOf: folder.appendingPathComponent("till-1/credentials.json"))), limit: 1_024)
    }

    @Test(
        "knows users by password, gives each its rights, learns new ones while it runs", arguments: BrokerUser.allCases)
    func rights(user: BrokerUser) async throws {
        guard user.canBeTried else { return }
        try await withFixture { fixture in
            let folder = try fixture.temporaryFolder()
            chmod(folder.path, 0o755)
            let home = try FleetHome.create(
                at: folder.path + "/home", fleet: FleetID(unchecked: "demo"), port: try freePort(),
                brokerUser: user == .mosquitto ? "mosquitto" : "root")
            let broker = TestBroker(
                configuration: URL(fileURLWithPath: home.brokerConfigurationPath), port: home.context.port)
            try await broker.start()
            fixture.onEnd { await broker.stop() }
            let controller = try client(fixture, home, try home.credentials(for: .controller))
            try await controller.connect()

            let reload = try home.enroll(
                [.init(device: Self.till, folder: folder.path + "/till-1")], floors: Floors(trust: try home.trust()))
            let pid = try #require(broker.pid)
            #expect(reload == .signalled(pids: [pid]))
            let credentials = try deviceCredentials(folder)
            let device = try client(fixture, home, credentials)
            try await until("the broker has read its files again") {
                do {
                    try await device.connect()
                    return true
                } catch let error as MosquittoError where error.code == .authenticationRefused {
                    return false
                }
            }
            let own = try await device.publish("{}", to: "\(Self.prefix)/reply/till-1/com.example.mail/status")
            #expect(!own.isError)
            for topic in [
                "reply/till-2/com.example.mail/status", "desired/all/com.example.mail/auth", "presence/till-2",
            ] {
                #expect(try await device.publish("{}", to: "\(Self.prefix)/\(topic)") == .notAuthorized)
            }
            #expect(try await controller.publish("{}", to: "\(Self.prefix)/desired/all/a/auth").isError == false)

            let wrong = try client(fixture, home, credentials, password: "wrong")
            let error = await #expect(throws: MosquittoError.self) { try await wrong.connect() }
            #expect(error?.code == .authenticationRefused)
        }
    }

    @Test("loads the guard, also as another user, who gets a copy that it can read", arguments: BrokerUser.allCases)
    func guarded(user: BrokerUser) async throws {
        guard user.canBeTried else { return }
        try await withFixture { fixture in
            let folder = try fixture.temporaryFolder()
            chmod(folder.path, 0o755)
            let library = try productsFolder().appendingPathComponent("libFleetBrokerPlugin.so").path
            var home = try FleetHome.create(
                at: folder.path + "/home", fleet: FleetID(unchecked: "demo"), port: try freePort(),
                brokerUser: user == .mosquitto ? "mosquitto" : "root", guardLibrary: library)
            let installed = try #require(home.context.guardLibrary)
            #expect(installed == (user == .mosquitto ? home.path + "/broker/guard.so" : library))
            let broker = TestBroker(
                configuration: URL(fileURLWithPath: home.brokerConfigurationPath), port: home.context.port)
            try await broker.start()
            fixture.onEnd { await broker.stop() }
            let controller = try client(fixture, home, try home.credentials(for: .controller))
            try await controller.connect()
            let trust = try home.trust().wire
            let unsigned = try await controller.publish("{}", to: "\(Self.prefix)/desired/all/a/auth", retain: true)
            #expect(unsigned == .notAuthorized)
            let signed = try await controller.publish(
                trust, to: "\(Self.prefix)/desired/all/_fleet/trust", retain: true)
            #expect(!signed.isError)
            try await until("the refusal in the broker's log") {
                broker.log.contains(
                    "fleetbus guard: refused @controller publishing to \(Self.prefix)/desired/all/a/auth")
            }
            await controller.close()

            // Without it again: what stood there is kept, and the broker starts with the ACL file.
            let before = try String(contentsOfFile: home.brokerConfigurationPath, encoding: .utf8)
            try home.configureBroker(guardLibrary: nil)
            try await addViewer("ann", fixture, home)
            let still = try client(fixture, home, try home.credentials(for: .controller))
            try await still.connect()
            #expect(try await still.publish("{}", to: "\(Self.prefix)/desired/all/a/auth") == .notAuthorized)
            await still.close()
            #expect(try String(contentsOfFile: home.brokerConfigurationPath + ".old", encoding: .utf8) == before)
            let again = try FleetHome(opening: home.path)
            #expect(again.context.guardLibrary == nil)
            try await broker.restart()
            let free = try client(fixture, again, try again.credentials(for: .controller))
            try await free.connect()
            #expect(try await free.publish("{}", to: "\(Self.prefix)/desired/all/a/auth").isError == false)
            try home.configureBroker(guardLibrary: library)
            // It does not load the guard now, and must not forget the rights.
            try await addViewer("bob", fixture, home)
            let foreign = try await free.publish("{}", to: "\(Self.prefix)/control/request/@operator.x/list")
            #expect(foreign == .notAuthorized)
            #expect(try String(contentsOfFile: home.brokerConfigurationPath, encoding: .utf8) == before)
        }
    }

    @Test("a guard that cannot be one is refused before anything is written")
    func noGuard() async throws {
        try await withTemporaryFolder { folder in
            let text = folder.appendingPathComponent("guard.so")
            try Data("text".utf8).write(to: text)
            var home = try HomeTests.makeHome(in: folder)
            let before = try String(contentsOfFile: home.brokerConfigurationPath, encoding: .utf8)
            for (library, reason) in [(text.path, "no plugin"), (folder.path + "/none.so", "is missing")] {
                let error = #expect(throws: FleetHomeError.self) { try home.configureBroker(guardLibrary: library) }
                #expect("\(try #require(error))".contains(reason))
                let fresh = folder.path + "/fresh"
                #expect(throws: FleetHomeError.self) {
                    try FleetHome.create(
                        at: fresh, fleet: FleetID(unchecked: "demo"), brokerUser: "root", guardLibrary: library)
                }
                #expect(!FileManager.default.fileExists(atPath: fresh), "it can be tried again")
                #expect(try String(contentsOfFile: home.brokerConfigurationPath, encoding: .utf8) == before)
            }
        }
    }

    @Test("a removed user is thrown off")
    func removal() async throws {
        try await withFixture { fixture in
            let folder = try fixture.temporaryFolder()
            let home = try HomeTests.makeHome(in: folder, port: try freePort())
            let viewer = User.viewer(Name(unchecked: "eve"))
            try home.addUser(viewer)
            let broker = TestBroker(
                configuration: URL(fileURLWithPath: home.brokerConfigurationPath), port: home.context.port)
            try await broker.start()
            fixture.onEnd { await broker.stop() }
            let client = try client(fixture, home, try home.credentials(for: viewer))
            try await client.connect()
            try home.removeUser(viewer)
            try await within {
                for await state in client.states {
                    if case .waiting = state { return }
                }
            }
        }
    }

    @Test("a broker whose pid file is empty, as on a full disk, is found all the same")
    func withoutProcessNumber() async throws {
        try await withFixture { fixture in
            let home = try HomeTests.makeHome(in: try fixture.temporaryFolder(), port: try freePort())
            let broker = TestBroker(
                configuration: URL(fileURLWithPath: home.brokerConfigurationPath), port: home.context.port)
            try await broker.start()
            fixture.onEnd { await broker.stop() }
            let pid = try #require(broker.pid)
            try Data().write(to: URL(fileURLWithPath: home.path + "/broker/data/mosquitto.pid"))
            #expect(try home.reloadBroker() == .signalled(pids: [pid]))
        }
    }

    @Test("a broker that is just starting is told when it can hear it, and goes on")
    func whileStarting() async throws {
        try await withFixture { fixture in
            let home = try HomeTests.makeHome(in: try fixture.temporaryFolder(), port: try freePort())
            for _ in 0..<10 {
                let broker = TestBroker(
                    configuration: URL(fileURLWithPath: home.brokerConfigurationPath), port: home.context.port)
                fixture.onEnd { await broker.stop() }
                async let started: Void = broker.start()
                let reload = try await within {
                    while true {
                        let reload = try home.reloadBroker()
                        if reload != .notRunning { return reload }
                        await Task.yield()
                    }
                }
                try await started
                #expect(reload == .signalled(pids: [try #require(broker.pid)]))
                await broker.stop()
            }
        }
    }

    @Test("a process that is no Mosquitto gets no signal")
    func foreignProcess() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            try "\(getpid())\n".write(
                toFile: home.path + "/broker/data/mosquitto.pid", atomically: false, encoding: .utf8)
            #expect(try home.reloadBroker() == .notRunning)
        }
    }
}
