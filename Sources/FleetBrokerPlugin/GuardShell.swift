import BrokerGuard
import CMosquittoBroker
import FleetProtocol
import Glibc

/// Asks the ``Guard`` what Mosquitto asks the plugin.
final class GuardShell {
    private var core: Guard
    private var log = LogBudget()
    /// Who may not connect is a stranger perhaps, and must not silence what is said of users.
    private var connectLog = LogBudget()

    init(options: UnsafeBufferPointer<mosquitto_opt>) throws {
        core = Guard(
            try GuardConfiguration(options: options.map { (String(cString: $0.key), String(cString: $0.value)) }))
    }

    /// For the life of the plugin: Mosquitto lets go of the callbacks when it unloads it.
    static func register(with plugin: OpaquePointer, _ userData: UnsafeMutableRawPointer) -> CInt {
        let connects: MOSQ_FUNC_generic_callback = { _, event, context in GuardShell.connect(event, context) }
        let checks: MOSQ_FUNC_generic_callback = { _, event, context in GuardShell.check(event, context) }
        let messages: MOSQ_FUNC_generic_callback = { _, event, _ in GuardShell.strip(event) }
        let callbacks = [
            (MOSQ_EVT_BASIC_AUTH, connects), (MOSQ_EVT_ACL_CHECK, checks), (MOSQ_EVT_MESSAGE, messages),
        ]
        for (event, callback) in callbacks {
            let status = mosquitto_callback_register(plugin, CInt(event.rawValue), callback, nil, userData)
            guard status == CInt(MOSQ_ERR_SUCCESS.rawValue) else { return status }
        }
        return CInt(MOSQ_ERR_SUCCESS.rawValue)
    }

    private static func connect(_ event: UnsafeMutableRawPointer?, _ userData: UnsafeMutableRawPointer?) -> CInt {
        guard let event, let userData else { return CInt(MOSQ_ERR_AUTH.rawValue) }
        return shell(userData).connect(event.assumingMemoryBound(to: mosquitto_evt_basic_auth.self).pointee)
    }

    private static func check(_ event: UnsafeMutableRawPointer?, _ userData: UnsafeMutableRawPointer?) -> CInt {
        guard let event, let userData else { return denied }
        return shell(userData).check(event.assumingMemoryBound(to: mosquitto_evt_acl_check.self).pointee)
    }

    /// Takes away what stands beside the body of a published message, of which nobody is told the size when it is to be allowed:
    /// properties of a megabyte would be kept, and shown to every reader. Nothing of ours has any. Of wills Mosquitto 2.0 says
    /// nothing here: they keep theirs.
    private static func strip(_ event: UnsafeMutableRawPointer?) -> CInt {
        if let message = event?.assumingMemoryBound(to: mosquitto_evt_message.self),
            message.pointee.properties != nil
        {
            mosquitto_property_free_all(&message.pointee.properties)
        }
        return allowed
    }

    private static let allowed = CInt(MOSQ_ERR_SUCCESS.rawValue)
    private static let denied = CInt(MOSQ_ERR_ACL_DENIED.rawValue)

    private static func shell(_ userData: UnsafeMutableRawPointer) -> GuardShell {
        Unmanaged<GuardShell>.fromOpaque(userData).takeUnretainedValue()
    }

    /// The password is for the password file to verify.
    private func connect(_ event: mosquitto_evt_basic_auth) -> CInt {
        let client = Client(user: Self.bytes(event.username), id: Self.bytes(mosquitto_client_id(event.client)))
        guard let refusal = core.refusalToConnect(client) else { return CInt(MOSQ_ERR_PLUGIN_DEFER.rawValue) }
        note(refusal, "connecting", client, &connectLog)
        return CInt(MOSQ_ERR_AUTH.rawValue)
    }

    private func check(_ event: mosquitto_evt_acl_check) -> CInt {
        let client = Client(
            user: Self.bytes(mosquitto_client_username(event.client)), id: Self.bytes(mosquitto_client_id(event.client))
        )
        let topic = Self.bytes(event.topic)
        let payload = UnsafeRawBufferPointer(
            start: event.payload, count: event.payload == nil ? 0 : Int(event.payloadlen))
        let message = Guard.Message(
            topic: topic, payload: payload.bindMemory(to: UInt8.self), isRetained: event.retain)
        switch event.access {
        case MOSQ_ACL_READ: return core.mayRead(message, client) ? Self.allowed : Self.denied
        case MOSQ_ACL_WRITE:
            guard let refusal = core.refusalToPublish(message, client, now: Self.now()) else { return Self.allowed }
            note(refusal, "publishing to \(Self.text(topic))", client, &log)
            return Self.denied
        case MOSQ_ACL_SUBSCRIBE:
            guard let refusal = core.refusalToSubscribe(to: topic, client, now: Self.now()) else { return Self.allowed }
            note(refusal, "subscribing to \(Self.text(topic))", client, &log)
            return Self.denied
        case MOSQ_ACL_UNSUBSCRIBE: return Self.allowed
        default: return Self.denied
        }
    }

    /// For the operator; what clients choose is bounded, and stripped of control characters.
    private func note(_ refusal: Refusal, _ action: String, _ client: Client, _ log: inout LogBudget) {
        guard let silent = log.take(at: Self.now()) else { return }
        if silent > 0 { BrokerLog.write("refused \(silent) times more", CInt(MOSQ_LOG_WARNING)) }
        BrokerLog.write(
            "refused \(client.description) \(action): \(Text.printable(refusal.reason, limit: 300))",
            CInt(MOSQ_LOG_WARNING))
    }

    private static func bytes(_ text: UnsafePointer<CChar>?) -> UnsafeBufferPointer<UInt8> {
        guard let text else { return UnsafeBufferPointer(start: nil, count: 0) }
        let raw = UnsafeRawBufferPointer(start: text, count: strlen(text))
        return raw.bindMemory(to: UInt8.self)
    }

    private static func text(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        Text.printable(String(decoding: bytes, as: UTF8.self), limit: 200)
    }

    /// Milliseconds since the machine started.
    private static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}
