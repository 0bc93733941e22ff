extension ClientOptions {
    /// Throws `.invalidArgument`, naming the option, for what libmosquitto could not send.
    func validate() throws(MosquittoError) {
        for (name, text) in [
            ("host", host), ("clientID", clientID), ("userName", userName ?? ""), ("bindAddress", bindAddress ?? ""),
            ("tls.authorityFile", tls?.authorityFile ?? ""), ("tls.certificateFile", tls?.certificateFile ?? ""),
            ("tls.keyFile", tls?.keyFile ?? ""),
        ] where text.utf8.contains(0) || text.utf8.count > 65_535 {
            throw invalid(name, "has a zero byte, or more than 65,535 bytes")
        }
        guard !host.isEmpty else { throw invalid("host", "is empty") }
        guard port > 0 else { throw invalid("port", "is 0") }
        guard !clientID.isEmpty else { throw invalid("clientID", "is empty") }
        guard keepAlive == .zero || (.seconds(5)...(.seconds(65_535))).contains(keepAlive) else {
            throw invalid("keepAlive", "must be zero, or 5 s to 65,535 s")
        }
        guard receiveMaximum > 0, sendMaximum > 0 else { throw invalid("receiveMaximum or sendMaximum", "is 0") }
        guard (64...Packet.largest).contains(maximumPacketSize) else {
            throw invalid("maximumPacketSize", "must be 64 to \(Packet.largest) bytes")
        }
        if let password {
            guard userName != nil else { throw invalid("password", "needs a user name") }
            guard !password.bytes.contains(0), password.bytes.count <= 65_535 else {
                throw invalid("password", "has a zero byte, or more than 65,535 bytes")
            }
        }
        if let will {
            try Topic.check(will.topic, for: "the will")
            guard will.payload.count <= 65_535 else { throw invalid("will.payload", "is over 65,535 bytes") }
        }
        if let tls, tls.authorityFile.isEmpty || (tls.certificateFile == nil) != (tls.keyFile == nil) {
            throw invalid("tls", "needs an authority file, and a certificate and key together or neither")
        }
    }

    private func invalid(_ name: String, _ what: String) -> MosquittoError {
        MosquittoError(.invalidArgument, "option \(name) of the client for \(endpoint) \(what)")
    }
}
