import FleetProtocol
import Testing

@testable import FleetController

/// A controller over a store of its own, a broker that keeps what is retained, and a clock that is set by hand.
final class World {
    static let fleetID = FleetID(unchecked: "demo")
    static let start = Timestamp(milliseconds: 1_790_000_000_000)
    static let operatorName = User.operator(Name(unchecked: "alice"))
    static let viewerName = User.viewer(Name(unchecked: "bob"))

    let identity: FleetIdentity
    let rootKey: SigningKey
    var store: FleetStore
    var core: ControllerCore
    var now = World.start
    /// Nobody sets that.
    lazy var uptime = now.milliseconds
    /// What the broker keeps.
    var retained: [String: [UInt8]] = [:]
    /// Everything published since it was last emptied, in order.
    var published: [(topic: String, payload: [UInt8], retain: Bool)] = []
    var logs: [ControllerCore.LogLine] = []
    var stopped: String?
    /// The broker drops what is published below desired/.
    var dropsDocuments = false
    /// The broker shows the controller nothing of its own that it does not keep.
    var dropsMarkers = false
    /// How often the controller has asked for another connection.
    private(set) var reconnects = 0
    var asksForEnrolments = 0
    /// How far the store has come, as the home says.
    var noted: StorePosition?

    init(
        path: String? = nil, identity other: FleetIdentity? = nil, store given: FleetStore? = nil,
        noted: StorePosition? = nil, isRestoring: Bool = false, disregarded: Set<DeviceID> = [],
        eventLife: Int64? = nil, batches: ControllerCore.Batches = .init()
    ) throws {
        rootKey = try SigningKey()
        if let other {
            identity = other
        } else {
            let key = try SigningKey()
            let fleet = RandomID.random()
            identity = try Self.identity(of: fleet, 1, [key], rootKey)
        }
        store = try given ?? path.map { try FleetStore(path: $0) } ?? FleetStore()
        core = try ControllerCore(
            store: store, identity: identity, noted: noted, isRestoring: isRestoring,
            disregarded: disregarded, startedAt: Self.start, eventLife: eventLife, batches: batches)
    }

    /// Of which the first key signs, and all are trusted.
    private static func identity(
        of fleet: RandomID, _ version: Int64, _ keys: [SigningKey], _ rootKey: SigningKey
    ) throws -> FleetIdentity {
        let trust = TrustDocument(
            fleet: fleet, fleetID: fleetID, version: version, issuedAt: start, keys: keys.map(\.publicKey))
        return try FleetIdentity(
            fleetID: fleetID, fleet: fleet, signingKey: keys[0],
            trustWire: SignedDocument(signing: trust.json, as: .trust, with: rootKey).wire,
            rootKey: rootKey.publicKey)
    }

    /// The same controller, as it starts when the root key has said that from now on these are the fleet's keys.
    func renewed(_ version: Int64, _ keys: [SigningKey]) throws -> World {
        let world = try World(identity: Self.identity(of: identity.fleet, version, keys, rootKey), store: store)
        world.retained = retained
        world.now = now
        return world
    }

    /// The controller's process dies and comes back over the same file.
    func restart(path: String, isRestoring: Bool = false) throws {
        try store.close()
        store = try FleetStore(path: path)
        core = try ControllerCore(
            store: store, identity: identity, isRestoring: isRestoring, startedAt: now)
    }

    // MARK: Driving

    func handle(_ event: ControllerCore.Event) {
        perform(core.handle(event, at: now, uptime: uptime))
    }

    private func perform(_ effects: [ControllerCore.Effect]) {
        var echoes: [ControllerCore.Message] = []
        for effect in effects {
            switch effect {
            case .subscribe(let filters):
                #expect(filters.contains(.allDesired))
                echoes += retained.sorted { $0.key < $1.key }.map {
                    ControllerCore.Message(topic: $0.key, payload: $0.value, isRetained: true)
                }
            case .publish(let topic, let payload, let retain):
                published.append((topic, payload, retain))
                if dropsDocuments, topic.contains("/desired/") { continue }
                if retain { retained[topic] = payload.isEmpty ? nil : payload }
                let address = Address(topic: topic, in: Self.fleetID)
                switch address {
                case .response, .hello, .received, .heartbeat: break
                case .barrier where dropsMarkers: break
                default: echoes.append(ControllerCore.Message(topic: topic, payload: payload, isRetained: false))
                }
            case .reconnect: reconnects += 1
            case .readEnrolments: asksForEnrolments += 1
            case .wake: break
            case .note(let position): noted = position
            case .log(let line): logs.append(line)
            case .stop(let reason): stopped = reason
            }
        }
        if !echoes.isEmpty, stopped == nil { handle(.messages(echoes)) }
    }

    func connect() {
        handle(.disconnected)
        handle(.connected(.random()))
    }

    func pass(seconds: Int64) {
        now = now.advanced(bySeconds: seconds)
        uptime += max(0, seconds) * 1_000
        handle(.tick)
    }

    func receive(_ address: Address, _ payload: [UInt8], isRetained: Bool = false) {
        handle(.messages([.init(topic: identity.topic(address), payload: payload, isRetained: isRetained)]))
    }

    // MARK: Devices

    func online(
        _ device: DeviceID, incarnation: Int64 = 1, boot: Int64 = 1, after previousBoot: Int64? = nil,
        disk: Int64? = nil, connection: RandomID = .random(), apps: [Presence.App] = [], highest: Revision? = nil,
        documents: Presence.Documents? = nil,
        nonce: RandomID? = nil
    ) {
        let presence = Presence(
            state: .online, incarnation: incarnation, boot: boot, previousBoot: previousBoot, disk: disk,
            connection: connection,
            since: now, agent: "1.0", apps: apps, highest: highest, documents: documents, nonce: nonce)
        retained[identity.topic(.presence(.device(device)))] = presence.json
        receive(.presence(.device(device)), presence.json)
    }

    func offline(
        _ device: DeviceID, incarnation: Int64 = 1, boot: Int64 = 1, connection: RandomID, isRetained: Bool = false
    ) {
        let presence = Presence(
            state: .offline, incarnation: incarnation, boot: boot, connection: connection, since: now, agent: "1.0",
            apps: [])
        retained[identity.topic(.presence(.device(device)))] = presence.json
        receive(.presence(.device(device)), presence.json, isRetained: isRetained)
    }

    func report(_ status: Status, isRetained: Bool = false) {
        retained[identity.topic(.reply(status.device, status.app, .status))] = status.wire
        receive(.reply(status.device, status.app, .status), status.wire, isRetained: isRetained)
    }

    func event(
        _ device: DeviceID, _ app: AppID, _ kind: AppEvent.Kind = .ready, number: Int64, oldest: Int64 = 1,
        boot: Int64 = 1
    ) {
        let event = AppEvent(
            header: EventHeader(
                device: device, app: app, incarnation: 1, boot: boot, number: number, oldest: oldest, at: now),
            kind: kind)
        receive(.reply(device, app, .event), event.json)
    }

    // MARK: Operators

    @discardableResult
    func ask(
        _ verb: Verb, _ body: String, as user: User = World.operatorName, id: RandomID = .random(),
        notAfter: Timestamp? = nil
    ) throws -> Response {
        let text =
            "{\"v\":1,\"id\":\"\(id)\",\"replyTo\":\"here\",\"notAfter\":\"\(notAfter ?? now.advanced(bySeconds: 30))\","
            + "\"body\":\(body)}"
        return try Response(json: try #require(raw(verb, text, as: user)), limit: Response.maximumSize)
    }

    /// The bytes that come back, if any do.
    func raw(_ verb: Verb, _ text: String, as user: User = World.operatorName) -> [UInt8]? {
        let before = published.count
        receive(.request(user, verb), Array(text.utf8))
        let topic = identity.topic(.response(user, Name(unchecked: "here")))
        return published.dropFirst(before).last { $0.topic == topic }?.payload
    }

    /// The body of a success; fails the test for an error.
    @discardableResult
    func body(_ verb: Verb, _ body: String, as user: User = World.operatorName) throws -> JSONValue {
        switch try ask(verb, body, as: user).result {
        case .success(let body, _): return body
        case .failure(let failure):
            Issue.record("\(verb.rawValue): \(failure.message) at \(failure.location ?? "-")")
            return .null
        }
    }

    func failure(_ verb: Verb, _ body: String, as user: User = World.operatorName) throws -> Response.Failure {
        guard case .failure(let failure) = try ask(verb, body, as: user).result else {
            Issue.record("\(verb.rawValue) was not refused")
            return Response.Failure(.invalid, "")
        }
        return failure
    }

    /// Applies one document and answers its revision.
    @discardableResult
    func apply(_ app: AppID, _ target: String = "all", _ aspect: Aspect = .config, _ value: String) throws
        -> Int64
    {
        let answer = try body(
            .apply,
            "{\"changes\":[{\"app\":\"\(app)\",\"target\":\"\(target)\",\"aspect\":\"\(aspect.text)\",\"value\":\(value)}]}"
        )
        return answer["results"]?.arrayValue?.first?["revision"]?.integerValue ?? -1
    }

    func counts(_ app: AppID, _ policy: Policy) throws -> StatusRow {
        let rows = try body(.status, "{\"app\":\"\(app)\"}")["rows"]?.arrayValue ?? []
        let row = try #require(rows.first { $0["policy"]?.stringValue == policy.rawValue })
        return try StatusRow(json: row.json, limit: 10_000)
    }

    /// What the broker holds at a desired topic, verified.
    func document(_ address: Address) -> DesiredDocument? {
        retained[identity.topic(address)].flatMap { identity.verified($0, at: identity.topic(address)) }
    }

    func topics(of kind: String) -> [String] { published.map(\.topic).filter { $0.contains(kind) } }
}

extension Status {
    /// A status in which every policy has its default, applied.
    static func fresh(_ device: DeviceID, _ app: AppID, boot: Int64 = 1, sequence: Int64 = 1, at: Timestamp) -> Status {
        Status(
            fleet: World.fleetID, device: device, app: app,
            order: ReportOrder(incarnation: 1, boot: boot, sequence: sequence), at: at, agent: "1.0", sdk: "1.0",
            isRunning: true, isReady: true, managed: .managed, authState: .unauthorized, authReason: .policy,
            authMessage: "Ask at the desk.", keys: .present, secureServices: .unavailable, logLevel: .status,
            events: 3,
            policies: Policy.allCases.map { _ in
                PolicyReport(
                    source: nil, received: 0, applied: 0, attempt: .init(revision: 0, outcome: .applied, at: at))
            }, refusals: [])
    }

    /// The same, one report later, with another report for the policies of an aspect.
    func then(
        _ aspect: Aspect, from layer: Layer?, _ revision: Int64, _ outcome: Outcome, message: String? = nil
    ) -> Status {
        var copy = self
        copy.order.sequence += 1
        for policy in Policy.allCases where policy.aspect == aspect {
            copy.policies[policy.index] = PolicyReport(
                source: layer.map { .desired($0, app, aspect) }, received: revision,
                applied: outcome == .applied ? revision : nil,
                attempt: .init(revision: revision, outcome: outcome, message: message, at: at))
        }
        return copy
    }
}

let mail = AppID(unchecked: "com.example.mail")
let notes = AppID(unchecked: "com.example.notes")
let till = DeviceID(unchecked: "till-1")
let till2 = DeviceID(unchecked: "till-2")
let kiosk = GroupID(unchecked: "kiosk")

extension ControllerCore {
    /// With clocks that nobody sets.
    mutating func handle(_ event: Event, at now: Timestamp) -> [Effect] {
        handle(event, at: now, uptime: now.milliseconds)
    }
}
