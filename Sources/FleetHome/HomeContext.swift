package import FleetProtocol

/// Which fleet this is and where its broker is: `fleet.json`.
package struct HomeContext: Hashable, Sendable {
    /// PEM files, by absolute path.
    package struct TLS: Hashable, Sendable {
        /// Who may vouch for the broker.
        package var authority: String
        /// The broker's own certificate and key, for its listener; nil in a person's folder.
        package var certificate: String?
        package var key: String?

        package init(authority: String, certificate: String? = nil, key: String? = nil) {
            self.authority = authority
            self.certificate = certificate
            self.key = key
        }
    }

    package let fleet: FleetID
    /// What every signed document carries: two fleets may both be called demo.
    package let uuid: RandomID
    /// Where clients find the broker.
    package let host: String
    package let port: UInt16
    /// The address that the broker listens on.
    package let listen: String
    /// As whom the broker runs when root starts it; nil for the caller.
    package let brokerUser: String?
    package var tls: TLS?
    /// The plugin that guards the broker, by absolute path; nil where Mosquitto's ACL file says who may do what.
    package var guardLibrary: String?
    /// Whose folder this is, if it is not the fleet's own: it has this user's password, and none of the fleet's keys.
    package let holder: User?

    package init(
        fleet: FleetID, uuid: RandomID, host: String, port: UInt16, listen: String, brokerUser: String?, tls: TLS?,
        guardLibrary: String? = nil, holder: User? = nil
    ) {
        self.fleet = fleet
        self.uuid = uuid
        self.host = host
        self.port = port
        self.listen = listen
        self.brokerUser = brokerUser
        self.tls = tls
        self.guardLibrary = guardLibrary
        self.holder = holder
    }

    /// What a person needs to know of it, whose folder has the broker's authority, if any, in a file of its own.
    func context(of holder: User, authority: String?) -> HomeContext {
        HomeContext(
            fleet: fleet, uuid: uuid, host: host, port: port, listen: host, brokerUser: nil,
            tls: authority.map { TLS(authority: $0) }, holder: holder)
    }
}

extension HomeContext: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var version: Int64?
        var fleet: FleetID?
        var uuid: RandomID?
        var host: String?
        var port: Int64?
        var listen: String?
        var brokerUser: String?
        var tls: TLS?
        var guardLibrary: String?
        var holder: String?
        try reader.object { name, value in
            switch name {
            case "v": version = try value.version()
            case "fleet": fleet = try value.value()
            case "uuid": uuid = try value.value()
            case "host": host = try value.string(limit: 255)
            case "port": port = try value.integer(in: 1...65_535)
            case "listen": listen = try value.string(limit: 255)
            case "brokerUser": brokerUser = try value.string(limit: 255)
            case "tls": tls = try value.value()
            case "guard": guardLibrary = try value.string()
            case "holder": holder = try value.string(limit: 128)
            default: break
            }
        }
        _ = try required(version, "v")
        let user = try holder.map { try required(User($0), "holder") }
        if user == nil, let tls {
            _ = try required(tls.certificate, "tls.certificate")
            _ = try required(tls.key, "tls.key")
        }
        let knownHost = try required(host, "host")
        self.init(
            fleet: try required(fleet, "fleet"), uuid: try required(uuid, "uuid"), host: knownHost,
            port: UInt16(clamping: try required(port, "port")), listen: listen ?? knownHost, brokerUser: brokerUser,
            tls: tls, guardLibrary: guardLibrary, holder: user)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("v", 1)
            writer.member("fleet", fleet)
            writer.member("uuid", uuid)
            writer.member("host", host)
            writer.member("port", Int64(port))
            writer.member("listen", listen)
            writer.member("brokerUser", ifPresent: brokerUser)
            writer.member("tls", ifPresent: tls)
            writer.member("guard", ifPresent: guardLibrary)
            writer.member("holder", ifPresent: holder?.text)
        }
    }
}

extension HomeContext.TLS: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var authority: String?
        var certificate: String?
        var key: String?
        try reader.object { name, value in
            switch name {
            case "ca": authority = try value.string()
            case "certificate": certificate = try value.string()
            case "key": key = try value.string()
            default: break
            }
        }
        self.init(authority: try required(authority, "ca"), certificate: certificate, key: key)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("ca", authority)
            writer.member("certificate", ifPresent: certificate)
            writer.member("key", ifPresent: key)
        }
    }
}
