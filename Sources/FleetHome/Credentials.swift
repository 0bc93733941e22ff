package import FleetProtocol

/// A user name of the broker and its password.
package struct Credentials: Hashable, Sendable, CustomStringConvertible {
    package let user: User
    package let password: String

    package init(user: User, password: String) {
        self.user = user
        self.password = password
    }

    static func random(for user: User) -> Credentials { Credentials(user: user, password: randomPassword()) }

    /// 192 random bits, in base64url.
    static func randomPassword() -> String {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<24).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        return Base64URL.encode(bytes)
    }

    /// Never the password.
    package var description: String { "Credentials(\(user.text))" }
}

extension Credentials: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var user: String?
        var password: String?
        try reader.object { name, value in
            switch name {
            case "v": _ = try value.version()
            case "user": user = try value.string(limit: 128)
            case "password": password = try value.string(limit: 1_024)
            default: break
            }
        }
        guard let known = User(try required(user, "user")) else {
            throw FleetProtocolError(.value, "no user name of a fleet", at: "user")
        }
        self.init(user: known, password: try required(password, "password"))
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("user", user.text)
            writer.member("password", password)
        }
    }
}
