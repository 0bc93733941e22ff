internal import CMosquitto
internal import Glibc

extension MosquittoError {
    /// What libmosquitto returned for `tried` (a clause such as "publishing to fleet/a"), made readable.
    static func library(_ status: Int32, errno number: Int32, _ tried: String, detail: String? = nil) -> MosquittoError
    {
        let status = mosq_err_t(rawValue: status)
        var said =
            status == MOSQ_ERR_ERRNO
            ? text(of: number) : mosquitto_strerror(status.rawValue).map { String(cString: $0) } ?? "unknown"
        if said.hasSuffix(".") { said.removeLast() }
        if let detail { said += " (\(detail))" }
        return MosquittoError(
            code(of: status, errno: number), "\(tried): \(said)",
            status: status == MOSQ_ERR_ERRNO ? number : status.rawValue)
    }

    static func system(_ number: Int32, _ tried: String) -> MosquittoError {
        MosquittoError(.system, "\(tried): \(text(of: number))", status: number)
    }

    static func text(of number: Int32) -> String {
        strerror(number).map { String(cString: $0) } ?? "error \(number)"
    }

    private static func code(of status: mosq_err_t, errno number: Int32) -> Code {
        switch status {
        case MOSQ_ERR_INVAL, MOSQ_ERR_MALFORMED_UTF8, MOSQ_ERR_QOS_NOT_SUPPORTED, MOSQ_ERR_RETAIN_NOT_SUPPORTED:
            .invalidArgument
        case MOSQ_ERR_PAYLOAD_SIZE, MOSQ_ERR_OVERSIZE_PACKET: .payloadTooLarge
        case MOSQ_ERR_NO_CONN: .notConnected
        case MOSQ_ERR_CONN_LOST, MOSQ_ERR_KEEPALIVE: .connectionLost
        case MOSQ_ERR_CONN_REFUSED: .connectionRefused
        case MOSQ_ERR_EAI, MOSQ_ERR_LOOKUP: .connectionFailed
        case MOSQ_ERR_TLS, MOSQ_ERR_TLS_HANDSHAKE: .tls
        case MOSQ_ERR_ERRNO where number == EPROTO: .tls
        case MOSQ_ERR_ERRNO: .system
        default: .library
        }
    }
}
