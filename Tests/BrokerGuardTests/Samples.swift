import BrokerGuard
import FleetProtocol

/// A fleet with its keys, and clients that ask its guard.
final class Samples {
    static let fleet = FleetID(unchecked: "demo")
    static let till = DeviceID(unchecked: "till-1")
    static let app = AppID(unchecked: "com.example.mail")
    static let kiosk = GroupID(unchecked: "kiosk")

    let uuid = RandomID.random()
    let root: SigningKey
    let signing: SigningKey
    var core: Guard

    init() throws {
        root = try SigningKey()
        signing = try SigningKey()
        core = Guard(GuardConfiguration(fleet: Self.fleet, uuid: uuid, root: root.publicKey))
    }

    static func topic(_ address: Address) -> String { address.topic(in: fleet) }

    // MARK: What the controller signs

    func trust(version: Int64 = 1, keys: [VerifyingKey]? = nil, by key: SigningKey? = nil) throws -> [UInt8] {
        let document = TrustDocument(
            fleet: uuid, fleetID: Self.fleet, version: version, issuedAt: Timestamp(milliseconds: 0),
            keys: keys ?? [signing.publicKey])
        return try SignedDocument(signing: document.json, as: .trust, with: key ?? root).wire
    }

    func document(
        _ address: Address, _ content: DesiredDocument.Content, revision: Int64 = 1, by key: SigningKey? = nil
    ) throws -> [UInt8] {
        let revision = Revision(epoch: 1, number: revision)
        let document = DesiredDocument(
            fleet: uuid, fleetID: Self.fleet, address: address, revision: revision, change: revision,
            issuedAt: Timestamp(milliseconds: 0), content: content)
        return try SignedDocument(signing: document.json, as: .desired, with: key ?? signing).wire
    }

    func membership(_ groups: [GroupID], of device: DeviceID = till, revision: Int64 = 1) throws -> [UInt8] {
        try document(.membership(device), .membership(groups), revision: revision)
    }

    func config(_ layer: Layer = .all, by key: SigningKey? = nil) throws -> (topic: String, wire: [UInt8]) {
        let address = Address.desired(layer, Self.app, .config)
        return (
            Self.topic(address),
            try document(address, .aspect(DesiredValue(.config(["server": "https://example.com"]))), by: key)
        )
    }

    static func status(of device: DeviceID = till, app: String = app.text) -> [UInt8] {
        Array(#"{"v":1,"device":"\#(device)","app":"\#(app)"}"#.utf8)
    }

    // MARK: What clients ask

    func connect(_ user: String, id: String? = nil) -> String? {
        Self.client(user, id) { core.refusalToConnect($0)?.reason }
    }

    func subscribe(_ user: String, _ filter: String, id: String? = nil, now: Int64 = 0) -> String? {
        Self.client(user, id) { client in
            Self.bytes(filter) { core.refusalToSubscribe(to: $0, client, now: now)?.reason }
        }
    }

    func publish(
        _ user: String, _ topic: String, _ payload: [UInt8], retained: Bool = true, id: String? = nil, now: Int64 = 0
    ) -> String? {
        Self.client(user, id) { client in
            Self.message(topic, payload, retained) { core.refusalToPublish($0, client, now: now)?.reason }
        }
    }

    func reads(_ user: String, _ topic: String, _ payload: [UInt8] = [], id: String? = nil) -> Bool {
        Self.client(user, id) { client in Self.message(topic, payload, true) { core.mayRead($0, client) } }
    }

    private static func bytes<Value>(_ text: String, _ body: (UnsafeBufferPointer<UInt8>) -> Value) -> Value {
        Array(text.utf8).withUnsafeBufferPointer(body)
    }

    private static func client<Value>(_ user: String, _ id: String?, _ body: (Client) -> Value) -> Value {
        bytes(user) { user in
            id.map { bytes($0) { body(Client(user: user, id: $0)) } } ?? body(Client(user: user, id: user))
        }
    }

    private static func message<Value>(
        _ topic: String, _ payload: [UInt8], _ isRetained: Bool, _ body: (Guard.Message) -> Value
    ) -> Value {
        bytes(topic) { topic in
            payload.withUnsafeBufferPointer {
                body(Guard.Message(topic: topic, payload: $0, isRetained: isRetained))
            }
        }
    }
}
