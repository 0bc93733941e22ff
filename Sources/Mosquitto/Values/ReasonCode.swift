internal import CMosquitto

/// What the broker says about a request: MQTT 5's reason code. Codes from 0x80 on are errors.
public struct ReasonCode: RawRepresentable, Hashable, Sendable {
    /// The byte that stands in the packet.
    public let rawValue: UInt8

    /// Any byte is a reason code, known by name or not.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Whether the request was refused.
    public var isError: Bool { rawValue >= 0x80 }

    /// Done; for a subscription: granted with QoS 0.
    public static let success = ReasonCode(rawValue: 0)
    /// Accepted by the broker, and nobody has subscribed to the topic at this moment.
    public static let noMatchingSubscribers = ReasonCode(rawValue: 16)
    /// The broker gives no reason.
    public static let unspecifiedError = ReasonCode(rawValue: 128)
    /// The client id is not acceptable.
    public static let clientIdentifierNotValid = ReasonCode(rawValue: 133)
    /// The user name or password is wrong or malformed.
    public static let badUserNameOrPassword = ReasonCode(rawValue: 134)
    /// This user may not do that.
    public static let notAuthorized = ReasonCode(rawValue: 135)
    /// The broker cannot be used now.
    public static let serverUnavailable = ReasonCode(rawValue: 136)
    /// The client was banned.
    public static let banned = ReasonCode(rawValue: 138)
    /// The broker is shutting down.
    public static let serverShuttingDown = ReasonCode(rawValue: 139)
    /// Another connection with the same client id took over.
    public static let sessionTakenOver = ReasonCode(rawValue: 142)
    /// The broker does not accept this topic.
    public static let topicNameInvalid = ReasonCode(rawValue: 144)
    /// The packet is larger than the broker takes.
    public static let packetTooLarge = ReasonCode(rawValue: 149)
    /// A limit of the broker has been reached.
    public static let quotaExceeded = ReasonCode(rawValue: 151)

    /// CONNACK codes that another attempt with the same credentials will meet again.
    var isAuthentication: Bool {
        switch rawValue {
        case 133, 134, 135, 138, 140: true
        default: false
        }
    }
}

extension ReasonCode: CustomStringConvertible {
    /// The code with its name in the specification, for example `135 (Not authorized)`.
    public var description: String {
        let name = mosquitto_reason_string(Int32(rawValue)).map { String(cString: $0) } ?? "unknown reason"
        return "\(rawValue) (\(name))"
    }
}
