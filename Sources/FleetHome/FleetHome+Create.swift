package import FleetProtocol
import Foundation

extension FleetHome {
    /// Makes a fleet: keys, the first trust document, the controller's and the first operator's passwords, and a
    /// configuration that Mosquitto runs with as it is.
    ///
    /// - Parameters:
    ///   - brokerUser: As whom Mosquitto will run when root starts it (`mosquitto` if nil). Without effect for any other
    ///     caller, whose broker runs as the caller.
    ///   - listen: The address that the broker listens on; loopback unless told otherwise.
    ///   - guardLibrary: The plugin that is to guard the broker. If that runs as another user than the caller, it gets a
    ///     copy that it can read. With nil, Mosquitto's ACL file says who may do what.
    /// - Throws: when there is a fleet already, or the broker's user could not reach its files.
    @discardableResult
    package static func create(
        at path: String, fleet: FleetID, host: String = "127.0.0.1", port: UInt16 = 1883,
        listen: String = "127.0.0.1", brokerUser: String? = nil, tls: HomeContext.TLS? = nil,
        guardLibrary: String? = nil
    ) throws -> FleetHome {
        let folder = Folder(path)
        let tlsFiles = tls.map { [$0.authority, $0.certificate ?? "", $0.key ?? ""] } ?? []
        try checkConfigurable([folder.path, host, listen] + tlsFiles)
        let library = try guardLibrary.map { try GuardLibrary(reading: $0) }
        guard try folder.names().isEmpty else {
            throw FleetHomeError(
                .exists, "\(folder.path) is not empty",
                remedy: remedy(for: folder))
        }
        let user = Account.isRoot ? brokerUser ?? "mosquitto" : nil
        if let user, let closed = try Account(named: user).firstClosedFolder(above: folder.path) {
            throw FleetHomeError(
                .wrongOwner, "\(closed) cannot be entered by \(user), as whom the broker will run",
                remedy: "choose a folder elsewhere, such as /var/lib/fleetbus/\(fleet), or another --broker-user")
        }
        var home = FleetHome(
            path: folder.path,
            context: HomeContext(
                fleet: fleet, uuid: .random(), host: host, port: port, listen: listen, brokerUser: user,
                tls: tls.map {
                    HomeContext.TLS(
                        authority: Folder($0.authority).path, certificate: $0.certificate.map { Folder($0).path },
                        key: $0.key.map { Folder($0).path })
                }))
        do {
            try home.fill(library)
        } catch {
            // What it has made is nobody's yet, and would be in the way of the next attempt.
            for name in parts { try? FileManager.default.removeItem(atPath: folder.path(of: name)) }
            throw error
        }
        return home
    }

    private static let parts = [
        "keys", credentialName, "devices", "broker", "trust.json", "changes.lock", "fleet.json",
    ]

    /// What to do about a folder that something is in.
    private static func remedy(for folder: Folder) -> String {
        if folder.exists("fleet.json") { return "it holds a fleet already: use it, or choose another folder" }
        return folder.exists("keys")
            ? "if making a fleet in it was interrupted, remove the folder and repeat; if it was a fleet, restore its"
                + " fleet.json from the backup" : "choose a new folder"
    }

    /// Whether texts can stand in Mosquitto's configuration.
    static func checkConfigurable(_ texts: [String]) throws {
        for text in texts where text.isEmpty || text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
            throw FleetHomeError(
                .malformed, "'\(Text.printable(text))' cannot stand in Mosquitto's configuration",
                remedy: "use a name without control characters")
        }
    }

    /// The broker's TLS files that it may not be able to read as the user as whom it will run.
    package var filesClosedToBroker: [String] {
        guard let user = context.brokerUser, let account = try? Account(named: user), let tls = context.tls else {
            return []
        }
        return [tls.authority, tls.certificate, tls.key].compactMap { $0 }.filter { !account.canRead($0) }
    }

    private mutating func fill(_ library: GuardLibrary?) throws {
        try folder.make()
        for folder in [keyFolder, credentialFolder, deviceFolder] { try folder.make() }
        let root = try SigningKey()
        let signing = try SigningKey()
        try keyFolder.write(KeyFile(root, for: .root), to: "root.key")
        try keyFolder.write(KeyFile(signing, for: .signing), to: "signing.key")
        let trust = TrustDocument(
            fleet: context.uuid, fleetID: context.fleet, version: 1, issuedAt: .now, keys: [signing.publicKey])
        let signed = try SignedDocument(signing: trust.json, as: .trust, with: root)
        try folder.write(signed.wire, to: "trust.json")
        try makeBrokerFolder()
        context.guardLibrary = try library.map(install)
        try writeBrokerConfiguration()
        try write(PasswordFile())
        try addUser(.controller)
        try addUser(.operator(Name(unchecked: "admin")))
        // Last: a folder without it is no fleet, whatever else was written.
        try folder.write(context, to: "fleet.json")
    }
}
