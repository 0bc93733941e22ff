import FleetProtocol

/// A private key on disk: `{"v":1,"use":"root","kid":"…","secret":"…"}`.
struct KeyFile: JSONCodable {
    enum Use: String, CaseIterable { case root, signing }

    let use: Use
    let key: SigningKey

    init(_ key: SigningKey, for use: Use) {
        self.key = key
        self.use = use
    }

    init(from reader: inout JSONReader) throws {
        var version: Int64?
        var use: Use?
        var id: KeyID?
        var secret: Binary?
        try reader.object { name, value in
            switch name {
            case "v": version = try value.version()
            case "use": use = try value.oneOf()
            case "kid": id = try value.value()
            case "secret": secret = try value.value()
            default: break
            }
        }
        _ = try required(version, "v")
        self.use = try required(use, "use")
        do {
            key = try SigningKey(secret: try required(secret, "secret").bytes)
        } catch let error as FleetProtocolError where error.path.isEmpty {
            throw error.inside("secret")
        }
        guard try required(id, "kid") == key.publicKey.id else {
            throw FleetProtocolError(.value, "this is not the id of the key in this file", at: "kid")
        }
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("v", 1)
            writer.member("use", use.rawValue)
            writer.member("kid", key.publicKey.id)
            writer.member("secret", Binary(key.secret))
        }
    }
}
