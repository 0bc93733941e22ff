import DeviceAgent
import FleetProtocol

/// A fleet's keys and a revision counter: makes the signed documents that a controller would.
struct TestFleet {
    let id = FleetID(unchecked: "demo")
    let uuid = RandomID.random()
    let root: SigningKey
    var signing: SigningKey
    var trustVersion: Int64 = 1
    var epoch: Int64 = 1
    var revision: Int64 = 0
    /// The controller's clock, one second further at each use.
    var time = Timestamp(milliseconds: 1_800_000_000_000)

    init() throws {
        root = try SigningKey()
        signing = try SigningKey()
    }

    func trust(_ keys: [SigningKey]? = nil, version: Int64? = nil) throws -> SignedDocument {
        let document = TrustDocument(
            fleet: uuid, fleetID: id, version: version ?? trustVersion, issuedAt: time,
            keys: (keys ?? [signing]).map(\.publicKey))
        return try SignedDocument(signing: document.json, as: .trust, with: root)
    }

    func enrollment(_ device: String = "till-1") throws -> Enrollment {
        Enrollment(
            device: try DeviceID(checking: device), fleet: id, fleetUUID: uuid, incarnation: 1,
            rootKey: root.publicKey, trust: try trust(), epoch: epoch, floors: [:])
    }

    mutating func document(
        _ address: Address, _ content: DesiredDocument.Content, revision: Int64? = nil, change: Int64? = nil
    ) throws -> [UInt8] {
        self.revision += 1
        let number = revision ?? self.revision
        let document = DesiredDocument(
            fleet: uuid, fleetID: id, address: address, revision: Revision(epoch: epoch, number: number),
            change: Revision(epoch: epoch, number: change ?? number), issuedAt: time, content: content)
        return try SignedDocument(signing: document.json, as: .desired, with: signing).wire
    }

    /// One whose value is written by a newer controller, which this code could not write.
    mutating func document(_ address: Address, value: String) throws -> [UInt8] {
        let tombstone = try SignedDocument(wire: document(address, .tombstone))
        let text = String(decoding: tombstone.payload, as: UTF8.self)
            .replacing("\"deleted\":true", with: "\"value\":\(value)")
        return try SignedDocument(signing: Array(text.utf8), as: .desired, with: signing).wire
    }

    mutating func clock(_ address: Address) -> ControllerClock {
        time = time.advanced(bySeconds: 1)
        return ControllerClock(
            fleet: uuid, topic: address.topic(in: id), epoch: epoch, revision: revision, at: time)
    }

    mutating func hello(
        _ device: DeviceID, _ connection: RandomID, nonce: RandomID? = nil, received: EventMark? = nil,
        lost: Set<Hello.Lost> = [],
        documents: Digest? = nil
    ) throws -> [UInt8] {
        let hello = Hello(
            clock: clock(.hello(device)), device: device, connection: connection, nonce: nonce ?? connection,
            received: received, lost: lost,
            documents: documents)
        return try SignedDocument(signing: hello.json, as: .hello, with: signing).wire
    }

    mutating func heartbeat() throws -> [UInt8] {
        try SignedDocument(signing: Heartbeat(clock: clock(.heartbeat)).json, as: .heartbeat, with: signing).wire
    }

    func received(_ device: DeviceID, _ mark: EventMark) throws -> [UInt8] {
        let received = Received(fleet: uuid, topic: Address.received(device).topic(in: id), mark: mark)
        return try SignedDocument(signing: received.json, as: .received, with: signing).wire
    }
}

extension DesiredDocument.Content {
    static func auth(_ state: AuthState, _ message: String = "m") -> Self {
        .aspect(DesiredValue(.auth(state, message: message)))
    }

    static func config(_ values: [String: String]) -> Self { .aspect(DesiredValue(.config(values))) }

    static func level(_ wish: LogLevelWish) -> Self { .aspect(DesiredValue(.logLevel(wish))) }
}
