package import FleetProtocol
import Glibc

/// The configuration of one agent: `agent.json`, made by `fleetctl enroll`, and the credentials beside it. Read once.
package struct AgentConfiguration: Sendable {
    /// The broker's certificate authority, and a client certificate with its key: paths of PEM files.
    package struct TLS: Sendable {
        package var authority: String
        package var certificate: String?
        package var key: String?
    }

    package var enrollment: Enrollment
    package var host: String
    package var port: UInt16
    package var tls: TLS?
    package var userName: String
    package var password: [UInt8]
    /// Where the store and the keys are kept.
    package var stateFolder: String
    /// One JSON file for each app that may register.
    package var appsFolder: String
    package var socketPath: String
    /// A program and its arguments that shows its standard input to the person at the device; none: the agent's log.
    package var displayCommand: [String]?

    /// Reads the file at `path`; relative paths in it start at its folder.
    package static func read(_ path: String) throws -> AgentConfiguration {
        // Whoever can change it decides which root key this device believes.
        if let info = Files.status(path) {
            try Files.checkOwner(path, info, orRoot: true)
            try Files.checkMode(path, info, isSecret: false)
        }
        let file = try parse(AgentFile.self, path)
        let folder = Files.folder(of: path)
        func absolute(_ relative: String) -> String { relative.hasPrefix("/") ? relative : "\(folder)/\(relative)" }
        let secretPath = absolute(file.credentials)
        try checkSecret(secretPath)
        if let key = file.tls?.key { try checkSecret(absolute(key)) }
        let credentials = try parse(CredentialsFile.self, secretPath)
        return AgentConfiguration(
            enrollment: file.enrollment, host: file.host, port: file.port,
            tls: file.tls.map {
                TLS(
                    authority: absolute($0.authority), certificate: $0.certificate.map(absolute),
                    key: $0.key.map(absolute))
            },
            userName: credentials.user, password: Array(credentials.password.utf8),
            stateFolder: absolute(file.state), appsFolder: absolute(file.apps), socketPath: absolute(file.socket),
            displayCommand: file.displayCommand.map { words in words.prefix(1).map(absolute) + words.dropFirst() })
    }

    /// Where the agent of this configuration listens: all that a person's program needs of it, whoever runs that.
    package static func socketPath(_ path: String) throws -> String {
        let socket = try parse(AgentFile.self, path).socket
        return socket.hasPrefix("/") ? socket : "\(Files.folder(of: path))/\(socket)"
    }

    private static func parse<Content: JSONReadable>(_ type: Content.Type, _ path: String) throws -> Content {
        let bytes = try Files.read(path, limit: 4_194_304)
        do {
            return try Content(json: bytes, limit: 4_194_304)
        } catch let error as FleetProtocolError where error.code == .version {
            throw DeviceAgentError(
                .configuration, "\(path): \(error): it was made for a newer fleet-agent, which is to be installed")
        } catch {
            throw DeviceAgentError(
                .configuration, "\(path): \(error); enroll the device again, or restore the file")
        }
    }

    private static func checkSecret(_ path: String) throws {
        // Reading it will say what is wrong.
        guard let info = Files.status(path), info.st_mode & S_IFMT == S_IFREG else { return }
        try Files.checkOwner(path, info, orRoot: true)
        try Files.checkMode(path, info, isSecret: true)
    }
}

/// `agent.json` as it stands in the file.
private struct AgentFile: JSONReadable {
    var enrollment: Enrollment
    var host: String
    var port: UInt16
    var tls: AgentConfiguration.TLS?
    var credentials: String
    var state: String
    var apps: String
    var socket: String
    var displayCommand: [String]?

    init(from reader: inout JSONReader) throws {
        var version: Int64?
        var device: DeviceID?
        var fleet: FleetID?
        var fleetUUID: RandomID?
        var incarnation: Int64?
        var rootKey: VerifyingKey?
        var trust: SignedDocument?
        var epoch: Int64?
        var floors: [(String, Revision)] = []
        var host: String?
        var port: Int64?
        var tls: AgentConfiguration.TLS?
        var credentials: String?
        var state = "state"
        var apps = "apps.d"
        var socket = "agent.sock"
        var displayCommand: [String]?
        try reader.object { name, value in
            switch name {
            case "v": version = try value.version()
            case "device": device = try value.value()
            case "fleet": fleet = try value.value()
            case "fleetUUID": fleetUUID = try value.value()
            case "incarnation": incarnation = try value.integer(in: 1...JSONValue.largestInteger)
            case "broker":
                try value.object { name, value in
                    switch name {
                    case "host": host = try value.string(limit: 255)
                    case "port": port = try value.integer(in: 1...65_535)
                    case "tls": if try !value.null() { tls = try AgentConfiguration.TLS(from: &value) }
                    default: break
                    }
                }
            case "rootKey": rootKey = try VerifyingKey(bytes: Binary(from: &value).bytes)
            case "trust": trust = try SignedDocument(wire: value.stringBytes())
            case "epoch": epoch = try value.integer(in: 1...JSONValue.largestInteger)
            case "floors":
                try value.object { topic, value in
                    var numbers: [Int64] = []
                    try value.array(limit: 2) { numbers.append(try $0.integer()) }
                    guard numbers.count == 2 else { throw FleetProtocolError(.value, "expected [epoch, revision]") }
                    floors.append((topic.text, Revision(epoch: numbers[0], number: numbers[1])))
                }
            case "credentials": credentials = try value.string()
            case "state": state = try value.string()
            case "apps": apps = try value.string()
            case "socket": socket = try value.string()
            case "displayCommand": if try !value.null() { displayCommand = try value.values(limit: 64) }
            default: break
            }
        }
        _ = try required(version, "v")
        let knownFleet = try required(fleet, "fleet")
        var floorsByAddress: [Address: Revision] = [:]
        for (topic, revision) in floors {
            guard let address = Address(topic: topic, in: knownFleet) else {
                throw FleetProtocolError(.value, "no topic of this fleet", at: "floors.\(topic)")
            }
            floorsByAddress[address] = revision
        }
        enrollment = Enrollment(
            device: try required(device, "device"), fleet: knownFleet,
            fleetUUID: try required(fleetUUID, "fleetUUID"), incarnation: try required(incarnation, "incarnation"),
            rootKey: try required(rootKey, "rootKey"), trust: try required(trust, "trust"),
            epoch: try required(epoch, "epoch"), floors: floorsByAddress)
        self.host = try required(host, "broker.host")
        self.port = UInt16(clamping: try required(port, "broker.port"))
        self.tls = tls
        self.credentials = try required(credentials, "credentials")
        self.state = state
        self.apps = apps
        self.socket = socket
        self.displayCommand = displayCommand
    }
}

extension AgentConfiguration.TLS: JSONReadable {
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
}

private struct CredentialsFile: JSONReadable {
    let user: String
    let password: String

    init(from reader: inout JSONReader) throws {
        var user: String?
        var password: String?
        try reader.object { name, value in
            switch name {
            case "v": _ = try value.version()
            case "user": user = try value.string()
            case "password": password = try value.string()
            default: break
            }
        }
        self.user = try required(user, "user")
        self.password = try required(password, "password")
    }
}
