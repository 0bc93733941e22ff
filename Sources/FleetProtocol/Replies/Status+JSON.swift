extension Status: JSONWritable {
    package func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

    /// The members alone, for an object that has others as well.
    package func writeMembers(to writer: inout JSONWriter) {
        writer.member("v", 1)
        writer.member("device", device)
        writer.member("app", app)
        writer.member("incarnation", order.incarnation)
        writer.member("boot", order.boot)
        writer.member("seq", order.sequence)
        writer.member("at", at)
        writer.member("agent", agent)
        writer.member("sdk", sdk)
        writer.member("running", isRunning)
        writer.member("ready", isReady)
        writer.member("managed", managed)
        writer.member("auth") { writer in
            writer.object { writer in
                writer.member("state", authState)
                writer.member("reason", authReason)
                writer.member("message", authMessage)
            }
        }
        writer.member("keys", keys.rawValue)
        writer.member("secureServices", secureServices)
        writer.member("logLevel", logLevel)
        writer.member("events", events)
        writer.member("policies") { writer in
            writer.object { write(policies.span, to: &$0) }
        }
        writer.member("refusals", refusals)
    }

    /// Many say the same, those above all that nobody has spoken of: of these one is written, and copied.
    private func write(_ policies: Span<PolicyReport>, to writer: inout JSONWriter) {
        var last: (place: Int, range: Range<Int>)?
        for policy in Policy.allCases {
            let place = policy.index
            writer.member(named: policy.rawValue) { writer in
                if let last, policies[last.place] == policies[place] { return writer.again(last.range) }
                last = (place, writer.noting { policies[place].write(to: &$0, in: fleet) })
            }
        }
    }

    /// The wire form, at most ``maximumSize`` bytes: messages are cut until it fits.
    package var wire: [UInt8] {
        let full = json(capacity: 2_048)
        if full.count <= Self.maximumSize { return full }
        var copy = self
        copy.agent = Text.printable(agent, limit: 64)
        copy.sdk = Text.printable(sdk, limit: 64)
        copy.refusals = copy.refusals.suffix(Self.maximumRefusals).map {
            Refusal(topic: Text.printable($0.topic, limit: 512, bytes: 512), reason: $0.reason, at: $0.at)
        }
        for limit in [200, 40, 0] {
            for index in copy.policies.indices {
                copy.policies[index].attempt.message = copy.policies[index].attempt.message
                    .map { Text.printable($0, limit: limit) }
            }
            copy.authMessage = Text.printable(copy.authMessage, limit: max(limit, 200))
            copy.refusals = copy.refusals.map {
                Refusal(topic: $0.topic, reason: Text.printable($0.reason, limit: max(limit, 80)), at: $0.at)
            }
            let bytes = copy.json
            if bytes.count <= Self.maximumSize { return bytes }
        }
        copy.refusals = []
        return copy.json
    }

    /// Reads a status that arrived at the topic of `device` and `app`.
    package init(wire: [UInt8], fleet: FleetID, device: DeviceID, app: AppID) throws {
        var known = KnownReports(in: fleet, limit: 0)
        try self.init(wire: wire, device: device, app: app, known: &known)
    }

    /// As above, for many statuses of one fleet: what they have in common is read once.
    package init(wire: [UInt8], device: DeviceID, app: AppID, known: inout KnownReports) throws {
        var members = Members()
        try JSONReader.read(wire, limit: Self.maximumSize) { reader in
            try reader.object { name, value in
                if name == "policies" {
                    members.policies = try known.read(from: &value)
                } else {
                    try members.read(name, &value)
                }
            }
        }
        self = try members.status(fleet: known.fleet, device: device, app: app)
    }

    private struct Members {
        var version: Int64?
        var device: DeviceID?
        var app: AppID?
        var incarnation: Int64?
        var boot: Int64?
        var sequence: Int64?
        var at: Timestamp?
        var agent: String?
        var sdk: String?
        var isRunning: Bool?
        var isReady: Bool?
        var managed: ManagedPolicy?
        var authState: AuthState?
        var authReason: AuthReason?
        var authMessage: String?
        var keys: Keys?
        var secureServices: SecureServicesAvailability?
        var logLevel: LogLevel?
        var events: Int64?
        var policies: [PolicyReport]?
        var refusals: [Refusal] = []

        mutating func read(_ name: Word, _ value: inout JSONReader) throws {
            switch name {
            case "v": version = try value.version()
            case "device": device = try value.value()
            case "app": app = try value.value()
            case "incarnation": incarnation = try value.integer()
            case "boot": boot = try value.integer()
            case "seq": sequence = try value.integer()
            case "at": at = try value.value()
            case "agent": agent = try value.message(limit: 64)
            case "sdk": sdk = try value.message(limit: 64)
            case "running": isRunning = try value.bool()
            case "ready": isReady = try value.bool()
            case "managed": managed = try value.value()
            case "auth":
                try value.object { name, value in
                    switch name {
                    case "state": authState = try value.value()
                    case "reason": authReason = try value.word { AuthReason(wireName: $0.text) ?? AuthReason.none }
                    case "message": authMessage = try value.message()
                    default: break
                    }
                }
            case "keys": keys = try value.oneOf()
            case "secureServices": secureServices = try value.value()
            case "logLevel": logLevel = try value.value()
            case "events": events = try value.integer()
            case "refusals": refusals = try value.values(limit: Status.maximumRefusals)
            default: break
            }
        }

        func status(
            fleet: FleetID, device expectedDevice: DeviceID, app expectedApp: AppID
        ) throws -> Status {
            _ = try required(version, "v")
            guard try required(device, "device") == expectedDevice else {
                throw FleetProtocolError(.mismatch, "this is not the device of the topic", at: "device")
            }
            guard try required(app, "app") == expectedApp else {
                throw FleetProtocolError(.mismatch, "this is not the app of the topic", at: "app")
            }
            return Status(
                fleet: fleet, device: expectedDevice, app: expectedApp,
                order: ReportOrder(
                    incarnation: try required(incarnation, "incarnation"), boot: try required(boot, "boot"),
                    sequence: try required(sequence, "seq")),
                at: try required(at, "at"), agent: try required(agent, "agent"), sdk: try required(sdk, "sdk"),
                isRunning: try required(isRunning, "running"), isReady: try required(isReady, "ready"),
                managed: try required(managed, "managed"), authState: try required(authState, "auth.state"),
                authReason: authReason ?? .none, authMessage: authMessage ?? "", keys: try required(keys, "keys"),
                secureServices: try required(secureServices, "secureServices"),
                logLevel: try required(logLevel, "logLevel"), events: try required(events, "events"),
                policies: try required(policies, "policies"), refusals: refusals)
        }
    }
}

extension Status.Refusal: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var topic: String?
        var reason: String?
        var at: Timestamp?
        try reader.object { name, value in
            switch name {
            case "topic": topic = try value.message(limit: 512)
            case "reason": reason = try value.message(limit: 300)
            case "at": at = try value.value()
            default: break
            }
        }
        self.init(
            topic: try required(topic, "topic"), reason: try required(reason, "reason"), at: try required(at, "at"))
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("topic", topic)
            writer.member("reason", reason)
            writer.member("at", at)
        }
    }
}
