import DeviceAgent
import FleetProtocol
import Mosquitto
import TestSupport

/// Plays the controller for one device: greets it, publishes documents, and keeps what the device says.
final class StubController: Sendable {
    struct Heard: Sendable {
        var presences: [Presence] = []
        var statuses: [Status] = []
        var events: [EventHeader] = []
        /// Events by boot and number.
        var numbers: Set<[Int64]> = []
    }

    let heard = Locked(Heard())
    private let fleet: Locked<TestFleet>
    private let device = DeviceID(unchecked: "till-1")
    private let client: MQTTClient
    /// Whether events are confirmed.
    private let confirms: Bool

    init(_ fixture: Fixture, fleet: TestFleet, broker: TestBroker, confirms: Bool = false) async throws {
        self.fleet = Locked(fleet)
        self.confirms = confirms
        let loop = try EventLoop(name: "controller")
        fixture.onEnd { await loop.shutdown() }
        var options = ClientOptions(host: broker.host, port: broker.port, clientID: "controller")
        options.backoff = Backoff(minimum: .milliseconds(20), maximum: .milliseconds(200))
        let client = try MQTTClient(options, on: loop)
        self.client = client
        fixture.onEnd { await client.close() }
        try await client.connect()
        try await subscribe()
        let listening = Task { try await listen() }  // ended by the fixture
        fixture.onEnd { listening.cancel() }
    }

    func subscribe() async throws {
        let id = fleet.withLock { $0.id }
        try await client.subscribe(to: ["fleet/v1/\(id)/reply/#", "fleet/v1/\(id)/presence/#"])
    }

    private func listen() async throws {
        for await message in client.messages {
            guard let address = Address(topic: message.topic, in: fleet.withLock { $0.id }), !message.payload.isEmpty
            else { continue }
            switch address {
            case .presence:
                let presence = try Presence(json: message.payload, limit: Presence.maximumSize)
                heard.withLock { $0.presences.append(presence) }
                guard presence.state == .online else { continue }
                let hello = try fleet.withLock { try $0.hello(device, presence.connection) }
                _ = try? await publish(.hello(device), hello, retain: false)
            case .reply(_, let app, .status):
                let status = try Status(
                    wire: message.payload, fleet: fleet.withLock { $0.id }, device: device, app: app)
                heard.withLock { $0.statuses.append(status) }
            case .reply(_, let app, .event):
                let event = try AppEvent(wire: message.payload, device: device, app: app)
                heard.withLock {
                    $0.events.append(event.header)
                    $0.numbers.insert([event.header.boot, event.header.number])
                }
            case .reply(_, let app, .logLevel):
                let change = try LogLevelChange(wire: message.payload, device: device, app: app)
                heard.withLock {
                    $0.events.append(change.header)
                    $0.numbers.insert([change.header.boot, change.header.number])
                }
            default: break
            }
        }
    }

    @discardableResult
    func publish(_ address: Address, _ payload: [UInt8], retain: Bool = true) async throws -> ReasonCode {
        try await client.publish(payload, to: address.topic(in: fleet.withLock { $0.id }), retain: retain)
    }

    func apply(_ address: Address, _ content: DesiredDocument.Content) async throws {
        try await publish(address, fleet.withLock { try $0.document(address, content) })
    }

    /// Waits for a status of `app`.
    @discardableResult
    func status(_ app: AppID, _ what: String, _ match: (Status) -> Bool) async throws -> Status {
        var found: Status?
        try await until(what) {
            found = heard.withLock { $0.statuses }.last { $0.app == app }
            return found.map(match) ?? false
        }
        guard let found else { throw TestFailure(what) }
        return found
    }
}
