import FleetHome
import FleetProtocol
import Foundation
import Mosquitto
import Synchronization
import TestSupport

/// A controller that answers as a test says, and remembers what it was asked.
final class ScriptedController: Sendable {
    struct Asked: Sendable {
        let verb: Verb
        let user: User
        let bytes: [UInt8]
        let body: JSONValue
    }

    /// The answer to a request; nil for none. `count` is how many requests came before.
    typealias Script = @Sendable (_ asked: Asked, _ count: Int) -> Response.Result?

    private let log = Mutex<[Asked]>([])
    /// As the real one, it does nothing twice: what is asked again, since the answer took its time, has the same answer.
    private let answers = Mutex<[[UInt8]: Response.Result]>([:])
    var asked: [Asked] { log.withLock { $0 } }

    fileprivate func answer(_ asked: Asked, _ script: Script) -> Response.Result? {
        if let answer = answers.withLock({ $0[asked.bytes] }) { return answer }
        let count = log.withLock { log in
            log.append(asked)
            return log.count - 1
        }
        let answer = script(asked, count)
        answers.withLock { $0[asked.bytes] = answer }
        return answer
    }
}

/// A fleet with a real broker, for the commands to be tried on.
struct CommandFleet {
    let fixture: Fixture
    let folder: URL
    let home: FleetHome
    let broker: TestBroker

    /// - Parameter isBrokerElsewhere: Whether it looks as if the broker ran in another container.
    static func start(_ fixture: Fixture, isBrokerElsewhere: Bool = false) async throws -> CommandFleet {
        let folder = try fixture.temporaryFolder()
        let home = try FleetHome.create(
            at: folder.path + "/home", fleet: FleetID(unchecked: "demo"), port: try freePort(), brokerUser: "root")
        var configuration = URL(fileURLWithPath: home.brokerConfigurationPath)
        if isBrokerElsewhere {
            let copy = folder.appendingPathComponent("elsewhere.conf")
            try FileManager.default.copyItem(at: configuration, to: copy)
            configuration = copy
        }
        let broker = TestBroker(configuration: configuration, port: home.context.port)
        try await broker.start()
        fixture.onEnd { await broker.stop() }
        if isBrokerElsewhere { try FileManager.default.removeItem(atPath: home.path + "/broker/data/mosquitto.pid") }
        return CommandFleet(fixture: fixture, folder: folder, home: home, broker: broker)
    }

    /// Runs fleetctl itself.
    func fleetctl(_ arguments: String..., input: String? = nil) async throws -> (
        status: Int32, output: String, errors: String
    ) {
        try await fleetctl(arguments, input: input)
    }

    func fleetctl(_ arguments: [String], input: String? = nil) async throws -> (
        status: Int32, output: String, errors: String
    ) {
        try await run(
            try program(named: "fleetctl"), arguments, environment: ["FLEETCTL_HOME": home.path], input: input,
            in: folder)
    }

    func write(_ text: String, to name: String) throws -> String {
        let file = folder.appendingPathComponent(name)
        try Data(text.utf8).write(to: file)
        return file.path
    }

    /// Connects as the controller.
    func client() async throws -> MQTTClient {
        let loop = try EventLoop()
        fixture.onEnd { await loop.shutdown() }
        let credentials = try home.credentials(for: .controller)
        var options = ClientOptions(host: home.context.host, port: home.context.port, clientID: "@controller")
        options.userName = credentials.user.text
        options.password = Password(Array(credentials.password.utf8))
        let client = try MQTTClient(options, on: loop)
        fixture.onEnd { await client.close() }
        try await client.connect()
        return client
    }

    func controller(_ script: @escaping ScriptedController.Script) async throws -> ScriptedController {
        let controller = ScriptedController()
        let client = try await client()
        let fleet = home.context.fleet
        try await client.subscribe(to: [Address.prefix(of: fleet) + "control/request/#"])
        let answering = Task {  // ends with the client's messages, at the end of the test
            for await message in client.messages {
                guard case .request(let user, let verb) = Address(topic: message.topic, in: fleet),
                    let request = try? Request(json: message.payload, limit: Request.maximumSize)
                else { continue }
                let asked = ScriptedController.Asked(verb: verb, user: user, bytes: message.payload, body: request.body)
                guard let result = controller.answer(asked, script) else { continue }
                let topic = Address.response(user, request.replyTo).topic(in: fleet)
                _ = try? await client.publish(Response(id: request.id, result: result).json, to: topic)
            }
        }
        fixture.onEnd { answering.cancel() }
        return controller
    }
}
