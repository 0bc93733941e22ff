internal import CMosquitto
internal import Glibc

extension Connection {
    /// Configures the client and begins to connect without waiting for the network. A host *name* is looked up before
    /// this returns, so it belongs on a thread that may wait.
    ///
    /// - Parameter attempt: Of a name's address families, even attempts take what comes first, odd ones only IPv4.
    func open(attempt: Int) throws(MosquittoError) {
        let options = client.options
        let endpoint = options.endpoint
        func check(_ status: Int32, _ what: String) throws(MosquittoError) {
            let number = errno
            if status != MOSQ_ERR_SUCCESS.rawValue {
                throw .library(status, errno: number, "\(what) for \(endpoint)", detail: lastError)
            }
        }
        try check(mosquitto_int_option(raw, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5), "choosing MQTT 5")
        try check(mosquitto_int_option(raw, MOSQ_OPT_TCP_NODELAY, 1), "setting TCP_NODELAY")
        try check(
            mosquitto_int_option(raw, MOSQ_OPT_RECEIVE_MAXIMUM, Int32(options.receiveMaximum)),
            "setting the receive maximum")
        try check(
            mosquitto_int_option(raw, MOSQ_OPT_SEND_MAXIMUM, Int32(options.sendMaximum)), "setting the send maximum")
        if let userName = options.userName {
            let password = options.password.map { $0.bytes.map { CChar(bitPattern: $0) } + [0] }
            try check(mosquitto_username_pw_set(raw, userName, password), "setting the user name and password")
        }
        if let will = options.makeWill?() ?? options.will {
            try check(
                mosquitto_will_set_v5(
                    raw, will.topic, Int32(will.payload.count), will.payload, Int32(will.qos.rawValue), will.retain,
                    nil), "setting the will on \(will.topic)")
        }
        if let tls = options.tls {
            for file in [tls.authorityFile, tls.certificateFile, tls.keyFile].compactMap(\.self)
            where access(file, R_OK) != 0 {
                throw MosquittoError(
                    .tls, "connecting to \(endpoint): the TLS file \(file): \(MosquittoError.text(of: errno))")
            }
            installErrorLog()
            try check(
                mosquitto_tls_set(raw, tls.authorityFile, nil, tls.certificateFile, tls.keyFile, noPassphrase),
                "reading the TLS files")
        }
        var properties: OpaquePointer?
        defer { mosquitto_property_free_all(&properties) }
        try check(
            mosquitto_property_add_int32(
                &properties, Int32(MQTT_PROP_MAXIMUM_PACKET_SIZE.rawValue), UInt32(options.maximumPacketSize)),
            "setting the maximum packet size")
        // The library's non-blocking connect takes no properties; its blocking one stores them before it finds that
        // the port is wrong.
        let keepAlive = Int32(options.keepAlive.components.seconds)
        let stored = mosquitto_connect_bind_v5(raw, options.host, -1, keepAlive, nil, properties)
        guard stored == MOSQ_ERR_INVAL.rawValue else {
            throw .library(stored, errno: errno, "storing the CONNECT properties for \(endpoint)")
        }
        let bind = options.bindAddress ?? (options.hostIsNumeric || attempt % 2 == 0 ? nil : "0.0.0.0")
        let status = mosquitto_connect_bind_async(raw, options.host, Int32(options.port), keepAlive, bind)
        let number = errno
        guard status == MOSQ_ERR_SUCCESS.rawValue || status == MOSQ_ERR_CONN_PENDING.rawValue, isOpen else {
            let error = MosquittoError.library(status, errno: number, "connecting to \(endpoint)", detail: lastError)
            throw error.code == .tls ? error : MosquittoError(.connectionFailed, error.message, status: error.status)
        }
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
    }

    /// Why the connection ended, in the order of what is most telling.
    func cause(wasConnected: Bool, socketError: Int32 = 0) -> MosquittoError {
        let endpoint = client.options.endpoint
        if let refusal {
            return MosquittoError(
                refusal.isAuthentication ? .authenticationRefused : .connectionRefused,
                "connecting to \(endpoint): the broker refused with \(refusal)", reason: refusal)
        }
        if let farewell, farewell >= 0x80 {
            let reason = ReasonCode(rawValue: UInt8(truncatingIfNeeded: farewell))
            return MosquittoError(
                .connectionLost, "the broker at \(endpoint) ended the connection with \(reason)", reason: reason)
        }
        if let failure, failure.status == MOSQ_ERR_OVERSIZE_PACKET.rawValue {
            return MosquittoError(
                .connectionLost,
                "the broker at \(endpoint) sent a message larger than the \(client.options.maximumPacketSize) bytes allowed",
                status: failure.status)
        }
        let tried = wasConnected ? "the connection to \(endpoint)" : "connecting to \(endpoint)"
        if socketError != 0 {
            return MosquittoError(
                wasConnected ? .connectionLost : .connectionFailed,
                "\(tried): \(MosquittoError.text(of: socketError))", status: socketError)
        }
        let (status, number) = failure ?? (farewell ?? MOSQ_ERR_CONN_LOST.rawValue, 0)
        let error = MosquittoError.library(status, errno: number, tried, detail: lastError)
        let code: MosquittoError.Code =
            error.code == .tls || (client.options.tls != nil && lastError != nil && !wasConnected)
            ? .tls : wasConnected ? .connectionLost : .connectionFailed
        return MosquittoError(code, error.message, status: error.status)
    }
}

/// Without this OpenSSL would ask at the terminal for an encrypted key's passphrase.
private let noPassphrase:
    @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 = { _, _, _, _ in 0 }

extension ClientOptions {
    /// Whether connecting needs no look-up.
    package var hostIsNumeric: Bool {
        var address = in6_addr()
        return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1
    }
}
