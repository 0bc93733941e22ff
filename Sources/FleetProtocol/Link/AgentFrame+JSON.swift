import Crypto

extension AgentFrame: JSONCodable {
    /// All types that this version knows.
    package static let types: Set<String> = [
        "welcome", "refused", "ready", "deliver", "displayed", "activity", "codeResult", "kept", "keys", "autoLock",
        "passcodeResult", "copied", "pasted",
    ]

    package init(from reader: inout JSONReader) throws {
        var members = Members()
        try reader.object { name, value in
            switch name {
            case "value": members.value = try value.extent()
            default: try members.read(name, &value)
            }
        }
        self = try members.frame(reader)
    }

    private struct Members {
        var type: String?
        var version: Int64?
        var agent: String?
        var device: DeviceID?
        var code: Refusal?
        var message: String?
        var properties: AppProperties?
        var delivery: Int64?
        var what: String?
        var value: Range<Int>?
        var reason: AuthReason?
        var id: Int64?
        var isOK: Bool?
        var isActive: Bool?
        var number: Int64?
        var kept: Int64?
        var app: SymmetricKey?
        var shared: SymmetricKey?
        var after: Int64?
        var result: PasscodeResult.Kind?
        var wait: Int64?
        var left: Int64?
        var isOwn = true
        var hasPasteboard = false
        var item = PasteboardItem.Members()

        mutating func read(_ name: Word, _ value: inout JSONReader) throws {
            switch name {
            case "type": type = try value.string(limit: 32)
            case "v": version = try value.integer()
            case "agent": agent = try value.message(limit: 64)
            case "device": device = try value.value()
            case "code": code = try value.oneOf()
            case "message": message = try value.message()
            case "properties": properties = try value.value()
            case "delivery": delivery = try value.integer(in: 0...Registration.Resume.largestDelivery)
            case "what": what = try value.string(limit: 32)
            // As in `ready`: what it is the reason of counts all the same.
            case "reason": reason = try value.known { try AuthReason(from: &$0) }
            case "id": id = try value.integer()
            case "ok": isOK = try value.bool()
            case "active": isActive = try value.bool()
            case "number": number = try value.integer()
            case "kept": kept = try value.integer()
            case "app": app = try value.value()
            case "shared": shared = try value.value()
            case "own": isOwn = try value.bool()
            case "after": after = try value.integer(in: 1...JSONValue.largestInteger)
            case "result": result = try value.oneOf()
            case "wait": wait = try value.integer()
            case "left": left = try value.integer()
            case "pasteboard": hasPasteboard = try value.bool()
            default: try item.read(name, &value)
            }
        }

        func frame(_ reader: borrowing JSONReader) throws -> AgentFrame {
            switch try required(type, "type") {
            case "welcome":
                guard try required(version, "v") == Link.version else {
                    throw FleetProtocolError(
                        .version, "link version \(version ?? 0), where this library speaks \(Link.version)", at: "v")
                }
                return .welcome(
                    agent: try required(agent, "agent"), device: try required(device, "device"), kept: kept,
                    hasPasteboard: hasPasteboard)
            case "refused": return .refused(try required(code, "code"), message: try required(message, "message"))
            case "ready": return .ready(try required(properties, "properties"))
            case "deliver":
                return .deliver(
                    number: try required(delivery, "delivery"),
                    try deliveryOf(try required(what, "what"), try required(value, "value"), reader))
            case "displayed": return .displayed(id: try required(id, "id"), try required(isOK, "ok"))
            case "activity": return .activity(isActive: try required(isActive, "active"))
            case "codeResult": return .codeResult(try required(isOK, "ok"))
            case "kept": return .kept(try required(number, "number"))
            case "keys":
                guard app != nil || shared != nil else { return .keys(nil) }
                return .keys(AppKeys(app: try required(app, "app"), shared: try required(shared, "shared")))
            case "autoLock": return .autoLock(after, isOwn: isOwn)
            case "copied": return .copied(id: try required(id, "id"), try required(isOK, "ok"))
            case "pasted": return .pasted(id: try required(id, "id"), try item.item())
            case "passcodeResult":
                return .passcodeResult(
                    PasscodeResult(try required(result, "result"), wait: wait, left: left, message: message))
            case let unknown:
                throw FleetProtocolError(
                    .value, "unknown type '\(Text.printable(unknown, limit: 40))'", at: "type")
            }
        }

        private func deliveryOf(
            _ what: String, _ extent: Range<Int>, _ reader: borrowing JSONReader
        ) throws -> Delivery {
            do {
                return try reader.read(extent) { value in
                    switch what {
                    case "managed": .managed(try value.value())
                    case "availability": .availability(try value.value())
                    default:
                        if let policy = Policy(rawValue: what) {
                            .policy(try PolicyValue(of: policy, from: &value), reason: reason ?? .none)
                        } else {
                            throw FleetProtocolError(.value, "unknown delivery '\(Text.printable(what, limit: 40))'")
                        }
                    }
                }
            } catch let error as FleetProtocolError {
                throw error.inside("value")
            }
        }
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            switch self {
            case .welcome(let agent, let device, let kept, let hasPasteboard):
                writer.member("type", "welcome")
                writer.member("v", Link.version)
                writer.member("agent", agent)
                writer.member("device", device)
                writer.member("kept", ifPresent: kept)
                if hasPasteboard { writer.member("pasteboard", true) }
            case .refused(let code, let message):
                writer.member("type", "refused")
                writer.member("code", code.rawValue)
                writer.member("message", message)
            case .ready(let properties):
                writer.member("type", "ready")
                writer.member("properties", properties)
            case .deliver(let number, let delivery):
                writer.member("type", "deliver")
                writer.member("delivery", number)
                switch delivery {
                case .policy(let value, let reason):
                    writer.member("what", value.policy.rawValue)
                    writer.member("value", value)
                    if value.policy == .auth { writer.member("reason", reason) }
                case .managed(let managed):
                    writer.member("what", "managed")
                    writer.member("value", managed)
                case .availability(let availability):
                    writer.member("what", "availability")
                    writer.member("value", availability)
                }
            case .displayed(let id, let isOK):
                writer.member("type", "displayed")
                writer.member("id", id)
                writer.member("ok", isOK)
            case .activity(let isActive):
                writer.member("type", "activity")
                writer.member("active", isActive)
            case .codeResult(let isOK):
                writer.member("type", "codeResult")
                writer.member("ok", isOK)
            case .kept(let number):
                writer.member("type", "kept")
                writer.member("number", number)
            case .keys(let keys):
                writer.member("type", "keys")
                writer.member("app", ifPresent: keys?.app)
                writer.member("shared", ifPresent: keys?.shared)
            case .autoLock(let after, let isOwn):
                writer.member("type", "autoLock")
                writer.member("after", ifPresent: after)
                if !isOwn { writer.member("own", false) }
            case .copied(let id, let isOK):
                writer.member("type", "copied")
                writer.member("id", id)
                writer.member("ok", isOK)
            case .pasted(let id, let item):
                writer.member("type", "pasted")
                writer.member("id", id)
                item?.writeMembers(to: &writer)
            case .passcodeResult(let result):
                writer.member("type", "passcodeResult")
                writer.member("result", result.kind.rawValue)
                writer.member("wait", ifPresent: result.wait)
                writer.member("left", ifPresent: result.left)
                writer.member("message", ifPresent: result.message)
            }
        }
    }
}

extension AppProperties: JSONCodable {
    /// The values of an app for which no message ever arrived.
    package static let initial = AppProperties(
        managed: .unknown, authReason: .none, availability: .unavailable,
        values: Policy.allCases.map(PolicyValue.default(of:)))

    /// A value that only a newer agent knows counts as its default, for that property alone.
    package init(from reader: inout JSONReader) throws {
        var managed: ManagedPolicy?
        var authReason: AuthReason?
        var availability: SecureServicesAvailability?
        var values = AppProperties.initial.values
        var missing = Set(Policy.allCases).subtracting([.secureServices])
        var isAuthUnknown = false
        try reader.object { name, value in
            switch name {
            case "managed": managed = try value.known { try ManagedPolicy(from: &$0) } ?? ManagedPolicy.unknown
            case "authReason": authReason = try value.known { try AuthReason(from: &$0) } ?? AuthReason.none
            case "availability":
                availability =
                    try value.known { try SecureServicesAvailability(from: &$0) }
                    ?? SecureServicesAvailability.unavailable
            case "policies":
                try value.object { name, value in
                    guard let policy = name.named(Policy.self) else { return }
                    missing.remove(policy)
                    if let known = try value.known({ try PolicyValue(of: policy, from: &$0) }) {
                        values[policy.index] = known
                    } else if policy == .auth {
                        isAuthUnknown = true
                    }
                }
            default: break
            }
        }
        if let policy = missing.min() {
            throw FleetProtocolError(.missing, "this member is missing", at: "policies.\(policy.rawValue)")
        }
        if isAuthUnknown { authReason = .unknownValue }
        self.init(
            managed: try required(managed, "managed"), authReason: try required(authReason, "authReason"),
            availability: try required(availability, "availability"), values: values)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("managed", managed)
            writer.member("authReason", authReason)
            writer.member("availability", availability)
            writer.member("policies") { writer in
                writer.object { writer in
                    for policy in Policy.allCases where policy != .secureServices {
                        writer.member(named: policy.rawValue, values[policy.index])
                    }
                }
            }
        }
    }
}
