import Testing

@testable import FleetProtocol

/// What one schema describes, as the code has it.
struct Format: Sendable, CustomTestStringConvertible {
    typealias Sample = @Sendable (inout SeededGenerator) throws -> [UInt8]

    let schema: String
    /// Reads a document, refusing what our programs refuse, and writes it again.
    let recode: @Sendable ([UInt8]) throws -> [UInt8]
    /// A random document as the code writes it; nil where others write.
    let sample: Sample?

    var testDescription: String { schema }

    init(_ schema: String, sample: Sample? = nil, recode: @escaping @Sendable ([UInt8]) throws -> [UInt8]) {
        self.schema = schema
        self.recode = recode
        self.sample = sample
    }

    static func plain<Value: JSONCodable & SendableMetatype>(
        _ schema: String, limit: Int = SignedDocument.maximumSize, check: (@Sendable (Value) throws -> Void)? = nil,
        sample: @escaping @Sendable (inout SeededGenerator) throws -> Value
    ) -> Format {
        Format(schema, sample: { try sample(&$0).json }) { bytes in
            let value = try Value(json: bytes, limit: limit)
            try check?(value)
            return value.json
        }
    }

    /// The fleet of all examples.
    static let fleet = FleetID(unchecked: "demo")

    static let all: [Format] = signed + values + replies + requests
}

/// A document at another place than it says.
private func isAt(_ address: Address, _ topic: String) throws {
    guard topic == address.topic(in: Format.fleet) else {
        throw FleetProtocolError(.mismatch, "another topic", at: "topic")
    }
}

extension Format {
    private static let signed: [Format] = [
        Format(
            "envelope",
            sample: { try SignedDocument(signing: $0.desired().json, as: .desired, with: SigningKey()).wire },
            recode: { try SignedDocument(wire: $0).wire }),
        Format("protected-header") { header in
            var writer = JSONWriter()
            writer.object { writer in
                writer.member("protected", Base64URL.encode(header))
                writer.member("payload", "{}")
                writer.member("signature", Binary([UInt8](repeating: 0, count: 64)))
            }
            return try #require(Base64URL.decode(try SignedDocument(wire: writer.bytes).protected.utf8))
        },
        Format("desired", sample: { try $0.desired().json }) { try DesiredDocument(payload: $0, in: fleet).json },
        .plain("trust", check: { (trust: TrustDocument) in try isAt(.trust, trust.topic) }) { try $0.trust() },
        .plain("heartbeat", check: { (heartbeat: Heartbeat) in try isAt(.heartbeat, heartbeat.clock.topic) }) {
            Heartbeat(clock: $0.clock(.heartbeat))
        },
        .plain("hello", check: { (hello: Hello) in try isAt(.hello(hello.device), hello.clock.topic) }) { $0.hello() },
        .plain(
            "received",
            check: { (received: Received) in
                guard case .received = Address(topic: received.topic, in: fleet) else {
                    throw FleetProtocolError(.mismatch, "another topic", at: "topic")
                }
            }
        ) { $0.received() },
        .plain("barrier") { BarrierMarker(connection: $0.uuid(), counter: $0.count()) },
    ]

    private static let values: [Format] =
        Aspect.allCases.map { aspect in
            Format("value-\(aspect.text)", sample: { try $0.value(of: aspect).json }) { bytes in
                let value = try JSONReader.read(bytes, limit: SignedDocument.maximumSize) {
                    try DesiredValue(of: aspect, from: &$0)
                }
                if let problem = value.problems.first { throw FleetProtocolError(.value, problem.value) }
                return value.json
            }
        } + [
            .plain("value-group-meta") { GroupMeta(priority: $0.number(-1_000_000...1_000_000)) },
            Format("value-membership") { bytes in
                let groups = try JSONReader.read(bytes, limit: SignedDocument.maximumSize) {
                    try GroupID.membership(from: &$0)
                }
                var writer = JSONWriter()
                writer.object { $0.member("groups", groups) }
                return writer.bytes
            },
        ]

    private static let replies: [Format] = [
        Format("status", sample: { try $0.status().wire }) { bytes in
            let (device, app) = try place(of: bytes, limit: Status.maximumSize)
            return try Status(wire: bytes, fleet: fleet, device: device, app: app).wire
        },
        Format("event", sample: { try $0.event().json }) { bytes in
            let (device, app) = try place(of: bytes, limit: AppEvent.maximumSize)
            return try AppEvent(wire: bytes, device: device, app: app).json
        },
        Format("log-level-change", sample: { try $0.logLevelChange().json }) { bytes in
            let (device, app) = try place(of: bytes, limit: AppEvent.maximumSize)
            return try LogLevelChange(wire: bytes, device: device, app: app).json
        },
        .plain("presence", limit: Presence.maximumSize) { try $0.presence() },
    ]

    /// The device and app of a reply's topic: those that the reply names.
    private static func place(of reply: [UInt8], limit: Int) throws -> (DeviceID, AppID) {
        let members = try JSONValue(json: reply, limit: limit)
        return (
            try DeviceID(checking: members["device"]?.stringValue ?? ""),
            try AppID(checking: members["app"]?.stringValue ?? "")
        )
    }

    private static let requests: [Format] = [
        .plain("request", limit: Request.maximumSize) { $0.request() },
        .plain("response", limit: Response.maximumSize) { try $0.response() },
        .plain("request-apply") { try $0.apply() },
        .plain("request-delete") { try $0.selection() },
        .plain("request-progress") { try $0.progress() },
        .plain("request-plan") { try $0.plan() },
        .plain("request-group-set") { $0.groupSet() },
        .plain("request-group-delete") { GroupRequest(group: $0.group(), why: $0.maybe { $0.text() }) },
        .plain("request-enroll") {
            DeviceRequest(device: $0.device(), incarnation: $0.maybe { $0.number(1...1_000) })
        },
        .plain("request-device-remove") {
            DeviceRequest(
                device: $0.device(), incarnation: $0.maybe { $0.number(1...1_000) }, why: $0.maybe { $0.text() })
        },
        .plain("request-list") { try $0.listing() },
        .plain("response-change") { try $0.changeResponse() },
        .plain("status-row") { try $0.statusRow() },
    ]
}
