import FleetProtocol

extension FleetHome {
    package var metricsTokenPath: String { folder.path(of: Self.tokenName) }

    private static let tokenName = "metrics.token"

    /// What must be shown to be told the controller's figures; is made when there is none. What is there is read without a
    /// wait for whoever changes the folder just then.
    package func metricsToken() throws -> String {
        if folder.exists(Self.tokenName) { return try presentToken() }
        return try changing {
            guard !folder.exists(Self.tokenName) else { return try presentToken() }
            let token = Credentials.randomPassword()
            try folder.write(Array((token + "\n").utf8), to: Self.tokenName)
            return token
        }
    }

    private func presentToken() throws -> String {
        try FleetHome.checkSecrecy(of: metricsTokenPath)
        let bytes = try folder.read(Self.tokenName, limit: 1_024)
        let token = bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...]
        guard token.count >= 22, token.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw FleetHomeError(
                .malformed, "\(metricsTokenPath) holds no token",
                remedy: "remove the file: the controller makes a new one when it starts with --metrics")
        }
        return String(decoding: token, as: UTF8.self)
    }
}
