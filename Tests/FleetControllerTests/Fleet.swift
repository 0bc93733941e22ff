import FleetHome
import FleetProtocol
import Foundation
import Logging
import Mosquitto
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import FleetController

/// A fleet's home with a running broker, and those who connect to it.
struct Fleet {
    let fixture: Fixture
    let home: FleetHome
    let broker: TestBroker
    let operatorUser: User

    init(_ fixture: Fixture) async throws {
        self.fixture = fixture
        let folder = try fixture.temporaryFolder()
        home = try FleetHome.create(
            at: folder.path + "/home", fleet: World.fleetID, port: try freePort(),
            brokerUser: geteuid() == 0 ? "root" : nil)
        broker = TestBroker(
            configuration: URL(fileURLWithPath: home.brokerConfigurationPath), port: home.context.port)
        try await broker.start()
        let broker = broker
        fixture.onEnd { await broker.stop() }
        operatorUser = try #require(try home.users().first { if case .operator = $0 { true } else { false } })
    }

    func topic(_ address: Address) -> String { address.topic(in: home.context.fleet) }

    func client(as user: User) async throws -> MQTTClient {
        try await client(home.credentials(for: user))
    }

    /// Enrols a device, and connects as it.
    func device(_ id: DeviceID) async throws -> MQTTClient {
        let folder = try fixture.temporaryFolder().path + "/out"
        try home.enroll([.init(device: id, folder: folder)], floors: Floors(trust: home.trust()))
        let bytes = try Data(contentsOf: URL(fileURLWithPath: folder + "/credentials.json"))
        return try await client(Credentials(json: Array(bytes), limit: 1_024))
    }

    private func client(_ credentials: Credentials) async throws -> MQTTClient {
        let loop = try EventLoop()
        fixture.onEnd { await loop.shutdown() }
        var options = ClientOptions(
            host: home.context.host, port: home.context.port, clientID: "\(credentials.user.text)~\(RandomID.random())")
        options.userName = credentials.user.text
        options.password = Password(Array(credentials.password.utf8))
        options.backoff.maximum = .milliseconds(200)
        let client = try MQTTClient(options, on: loop)
        fixture.onEnd { await client.close() }
        try await until("\(credentials.user.text) is connected") {
            do {
                try await client.connect()
                return true
            } catch is MosquittoError {
                return false
            }
        }
        return client
    }

    /// Runs a controller for the time of `body`, and ends it gracefully.
    func withController<Value: Sendable>(
        isRestoring: Bool = false, metricsAddress: MetricsAddress? = nil,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let service = ControllerService(
            home: home, isRestoring: isRestoring, metricsAddress: metricsAddress, logger: Self.logger)
        let group = ServiceGroup(services: [service], logger: Self.logger)
        return try await withThrowingTaskGroup(of: Value?.self) { tasks in
            tasks.addTask {
                try await group.run()
                return nil
            }
            tasks.addTask { try await body() }
            do {
                // One that ends before it is asked to keeps nobody waiting.
                guard let value = try await tasks.next() ?? nil else { throw TestFailure("the controller has ended") }
                await group.triggerGracefulShutdown()
                try await tasks.waitForAll()
                return value
            } catch {
                tasks.cancelAll()
                await group.triggerGracefulShutdown()
                while let _ = await tasks.nextResult() {}
                throw error
            }
        }
    }

    static let logger = {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return logger
    }()
}

/// Asks the controller as `fleetctl` does: the same bytes again until there is an answer.
struct Asker: Sendable {
    let fleet: Fleet
    let client: MQTTClient
    let inbox: Inbox

    init(_ fleet: Fleet) async throws {
        self.fleet = fleet
        client = try await fleet.client(as: fleet.operatorUser)
        inbox = Inbox(client)
        try await client.subscribe(to: [TopicFilter.responses(fleet.operatorUser).text(in: fleet.home.context.fleet)])
    }

    func callAsFunction(_ verb: Verb, _ body: String) async throws -> JSONValue {
        let id = RandomID.random()
        let notAfter = Timestamp.now.advanced(bySeconds: 30)
        let text = #"{"v":1,"id":"\#(id)","replyTo":"r","notAfter":"\#(notAfter)","body":\#(body)}"#
        var result: JSONValue?
        // Said again as fleetctl does, until it is answered: the controller acts once.
        try await until("an answer to \(verb.rawValue)") {
            _ = try? await client.publish(text, to: fleet.topic(.request(fleet.operatorUser, verb)))
            let answers = inbox.messages.compactMap { try? Response(json: $0.payload, limit: 1 << 20) }
            guard let found = answers.last(where: { $0.id == id }) else { return false }
            guard case .success(let body, _) = found.result else { throw TestFailure("\(found.result)") }
            result = body
            return true
        }
        return try #require(result)
    }
}

/// Everything that a client has got.
final class Inbox: Sendable {
    private let store = Mutex<[Message]>([])

    var messages: [Message] { store.withLock { $0 } }

    init(_ client: MQTTClient) {
        let messages = client.messages
        // Ends with the client, which the fixture closes.
        Task { for await message in messages { store.withLock { $0.append(message) } } }
    }

    func last(_ topic: String) -> Message? { messages.last { $0.topic == topic } }
}
