import FleetProtocol

/// What a status says beyond its shape, compactly: enough to print the whole status again.
///
/// A status has some 2 KB on the wire and 150 bytes as detail: a million of them fit into memory and into few pages.
enum StatusDetail {
    /// A JSON array, in the order of ``write(_:)``.
    static func encode(_ status: Status) -> [UInt8] {
        var writer = JSONWriter(capacity: 256)
        writer.array { writer in
            writer.value(status.agent)
            writer.value(status.sdk)
            writer.value(status.isRunning)
            writer.value(status.isReady)
            writer.value(Int64(status.managed.rawValue))
            writer.value(Int64(status.authState.rawValue))
            writer.value(Int64(status.authReason.rawValue))
            writer.value(status.authMessage)
            writer.value(status.keys == .present)
            writer.value(Int64(status.secureServices.rawValue))
            writer.value(Int64(status.logLevel.rawValue))
            writer.value(status.events)
            // Attempts are mostly of the same moment: milliseconds before the status; and messages are rare.
            writer.array { writer in
                for report in status.policies {
                    writer.value(status.at.milliseconds - report.attempt.at.milliseconds)
                }
            }
            writer.object { writer in
                for policy in Policy.allCases {
                    if let message = status[policy].attempt.message { writer.member(named: policy.rawValue, message) }
                }
            }
            writer.array { for refusal in status.refusals { refusal.write(to: &$0) } }
        }
        return writer.bytes
    }

    /// The status that `detail` and `shape` were made from.
    static func status(
        fleet: FleetID, device: DeviceID, app: AppID, order: ReportOrder, at: Timestamp, shape: Shape,
        detail: [UInt8]
    ) throws -> Status {
        var fields = Fields()
        try JSONReader.read(detail, limit: Status.maximumSize) { reader in
            var index = 0
            try reader.array { element in
                try fields.read(index, &element)
                index += 1
            }
        }
        guard fields.ages.count == shape.entries.count else {
            throw FleetProtocolError(.value, "a stored status is incomplete")
        }
        let policies = Policy.allCases.map { policy in
            let entry = shape[policy]
            return PolicyReport(
                source: entry.source, received: entry.received, applied: entry.applied,
                attempt: PolicyReport.Attempt(
                    revision: entry.attempted, outcome: entry.outcome, message: fields.messages[policy.rawValue],
                    at: Timestamp(milliseconds: at.milliseconds - fields.ages[policy.index])))
        }
        return Status(
            fleet: fleet, device: device, app: app, order: order, at: at, agent: fields.agent, sdk: fields.sdk,
            isRunning: fields.isRunning, isReady: fields.isReady, managed: fields.managed,
            authState: fields.authState, authReason: fields.authReason, authMessage: fields.authMessage,
            keys: fields.hasKeys ? .present : .destroyed, secureServices: fields.secureServices,
            logLevel: fields.logLevel, events: fields.events, policies: policies, refusals: fields.refusals)
    }

    private struct Fields {
        var agent = ""
        var sdk = ""
        var isRunning = false
        var isReady = false
        var managed = ManagedPolicy.unknown
        var authState = AuthState.unauthorized
        var authReason = AuthReason.none
        var authMessage = ""
        var hasKeys = false
        var secureServices = SecureServicesAvailability.unavailable
        var logLevel = LogLevel.status
        var events: Int64 = 0
        var ages: [Int64] = []
        var messages: [String: String] = [:]
        var refusals: [Status.Refusal] = []

        mutating func read(_ index: Int, _ reader: inout JSONReader) throws {
            switch index {
            case 0: agent = try reader.string()
            case 1: sdk = try reader.string()
            case 2: isRunning = try reader.bool()
            case 3: isReady = try reader.bool()
            case 4: managed = try Self.named(&reader)
            case 5: authState = try Self.named(&reader)
            case 6: authReason = try Self.named(&reader)
            case 7: authMessage = try reader.string()
            case 8: hasKeys = try reader.bool()
            case 9: secureServices = try Self.named(&reader)
            case 10: logLevel = try Self.named(&reader)
            case 11: events = try reader.integer()
            case 12:
                try reader.array {
                    ages.append(try $0.integer(in: -JSONValue.largestInteger...JSONValue.largestInteger))
                }
            case 13: messages = try reader.value()
            case 14: refusals = try reader.values(limit: Status.maximumRefusals)
            default: break
            }
        }

        private static func named<Value: WireNamed>(_ reader: inout JSONReader) throws -> Value {
            guard let value = Value(rawValue: Int(try reader.integer())) else {
                throw FleetProtocolError(.value, "a stored status has an unknown value")
            }
            return value
        }
    }
}
