import FleetProtocol

extension FleetHome {
    package var metricsTokenPath: String { folder.path(of: "metrics.token") }

    /// What must be shown to be told the controller's figures; is made when there is none.
    package func metricsToken() throws -> String {
        let name = "metrics.token"
        return try changing {
            guard folder.exists(name) else {
                let token = Credentials.randomPassword()
                try folder.write(Array((token + "\n").utf8), to: name)
                return token
            }
            try FleetHome.checkSecrecy(of: metricsTokenPath)
            let bytes = try folder.read(name, limit: 1_024)
            let token = bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...]
            guard token.count >= 22, token.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
                throw FleetHomeError(
                    .malformed, "\(metricsTokenPath) holds no token",
                    remedy: "remove the file: the controller makes a new one when it starts with --metrics")
            }
            return String(decoding: token, as: UTF8.self)
        }
    }
}
