package import FleetProtocol
import Glibc

/// The folder of one fleet: who it is, its keys, the passwords of those who speak for it, its devices, and the
/// configuration of its broker.
///
/// ```
/// fleet.json  trust.json  fleet.db  controller.lock  changes.lock  metrics.token
/// keys/{root,signing}.key   credentials/USER   devices/ID.json   broker/{mosquitto.conf,passwd,acl,guard.so,data/}
/// ```
/// Every file is replaced as a whole; changes of several processes wait for each other. The folder belongs to one user of
/// the system, who alone can read it; the broker's user, if another, can enter `broker/`.
package struct FleetHome: Sendable {
    package let path: String
    package internal(set) var context: HomeContext

    /// Opens a fleet's folder, and says what is wrong with it, if anything is.
    package init(opening path: String) throws {
        try self.init(reaching: path)
        guard let holder = context.holder else { return }
        throw FleetHomeError(
            .missing, "\(self.path) is the folder of \(holder.text), which has none of the fleet's keys",
            remedy: "run this on the fleet's own folder")
    }

    /// Opens a fleet's folder, or a person's (``addUser(_:folder:)``), to speak with the fleet's broker and controller.
    package init(reaching path: String) throws {
        let folder = Folder(path)
        try Self.checkOwner(of: folder.path)
        var context: HomeContext = try folder.value(
            in: "fleet.json",
            remedy: "name a fleet's folder with --home or FLEETCTL_HOME, or make one with `fleetctl init`")
        if context.holder != nil, let authority = context.tls?.authority {
            // It may have been carried anywhere.
            context.tls?.authority = folder.path(of: authority)
        }
        self.init(path: folder.path, context: context)
        guard context.holder == nil else { return }
        _ = try signingKey()
        _ = try trust()
    }

    init(path: String, context: HomeContext) {
        self.path = path
        self.context = context
    }

    var folder: Folder { Folder(path) }
    var keyFolder: Folder { folder.folder("keys") }
    static let credentialName = "credentials"
    static let authorityName = "ca.pem"
    var credentialFolder: Folder { folder.folder(Self.credentialName) }
    var deviceFolder: Folder { folder.folder("devices") }
    var brokerFolder: Folder { folder.folder("broker") }
    var dataFolder: Folder { brokerFolder.folder("data") }

    /// Where the controller keeps everything.
    package var databasePath: String { folder.path(of: "fleet.db") }
    /// Whether a controller has ever run on this home, even if its database is lost.
    package var hasDatabase: Bool { folder.exists("fleet.db") || lockNotes.hasDatabase }

    // MARK: Keys

    /// Signs trust documents, and nothing else.
    package func rootKey() throws -> SigningKey { try key("root.key", .root) }

    /// Signs everything that the controller says.
    package func signingKey() throws -> SigningKey { try key("signing.key", .signing) }

    /// The newest trust document, verified.
    package func trust() throws -> SignedDocument {
        let remedy = FleetHomeError.restoreFile
        let bytes = try folder.read("trust.json", limit: SignedDocument.maximumSize, remedy: remedy)
        do {
            let signed = try SignedDocument(wire: bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes)
            let document = try TrustDocument(json: signed.payload, limit: SignedDocument.maximumSize)
            guard signed.kind == .trust, signed.isSigned(by: try rootKey().publicKey) else {
                throw FleetProtocolError(.signature, "not signed by the key in keys/root.key")
            }
            guard document.fleet == context.uuid, document.topic == Address.trust.topic(in: context.fleet) else {
                throw FleetProtocolError(.mismatch, "the document belongs to another fleet")
            }
            guard document.key(try signingKey().publicKey.id) != nil else {
                throw FleetProtocolError(.unknownKey, "the key in keys/signing.key does not stand in it")
            }
            return signed
        } catch let error as FleetProtocolError {
            throw FleetHomeError(.malformed, "\(folder.path(of: "trust.json")): \(error)", remedy: remedy)
        }
    }

    private func key(_ name: String, _ use: KeyFile.Use) throws -> SigningKey {
        try Self.checkSecrecy(of: keyFolder.path(of: name))
        let file: KeyFile = try keyFolder.value(
            in: name, remedy: FleetHomeError.restoreFile + ": without it nobody can sign")
        guard file.use == use else {
            throw FleetHomeError(
                .malformed, "\(keyFolder.path(of: name)): use: this is a \(file.use.rawValue) key",
                remedy: FleetHomeError.restoreFile)
        }
        return file.key
    }

    // MARK: One at a time

    /// The right to be the controller. Throws, with the process id, while another has it.
    package func lock() throws -> HomeLock {
        let name = "controller.lock"
        guard let lock = try FileLock(path: folder.path(of: name), patience: 20) else {
            let holder = lockNotes.holder.map { ": process \($0)" } ?? ""
            throw FleetHomeError(
                .locked, "a controller already runs on \(path)\(holder)",
                remedy: "a fleet has one controller; stop that one first")
        }
        return HomeLock(lock, lockNotes)
    }

    /// What the process has noted that has the lock, or had it last.
    private var lockNotes: HomeLock.Notes {
        HomeLock.Notes((try? folder.read("controller.lock", limit: 256)) ?? [])
    }

    /// Runs a change of the folder while no other process makes one.
    func changing<Result>(_ body: () throws -> Result) throws -> Result {
        let lock = try FileLock(path: folder.path(of: "changes.lock"), waits: true)
        // Whoever was killed while it wrote has left secrets there: a key that is trusted by now, say.
        for folder in [folder, keyFolder, credentialFolder, deviceFolder, brokerFolder] { folder.removeLeftovers() }
        return try withExtendedLifetime(lock, body)
    }

    // MARK: Whose

    private static func checkOwner(of path: String) throws {
        var info = stat()
        guard stat(path, &info) == 0 else {
            throw FleetHomeError(
                errno == ENOENT ? .missing : .unreadable,
                "opening the fleet's folder \(path) failed: \(Folder.reason())",
                remedy: "name it with --home or FLEETCTL_HOME, or make one with `fleetctl init`")
        }
        guard info.st_uid == geteuid() else {
            let owner = Account.name(of: info.st_uid)
            throw FleetHomeError(
                .wrongOwner, "the fleet's folder \(path) belongs to \(owner)",
                remedy: "run this as that user: sudo -u \(owner) …")
        }
        // Whoever can change it decides which broker is given the passwords.
        guard info.st_mode & 0o022 == 0 else {
            throw FleetHomeError(
                .wrongOwner,
                "the fleet's folder \(path) can be changed by others (mode \(String(info.st_mode & 0o777, radix: 8)))",
                remedy: "chmod go-w \(ShellWord.quoted(path)), and look whether its fleet.json is as it was")
        }
    }

    static func checkOwner(of folder: Folder, remedy: String) throws {
        var info = stat()
        guard lstat(folder.path, &info) == 0 else { return }
        guard info.st_uid == geteuid() else {
            throw FleetHomeError(
                .wrongOwner, "\(folder.path) belongs to \(Account.name(of: info.st_uid))", remedy: remedy)
        }
    }

    static func checkSecrecy(of path: String) throws {
        var info = stat()
        guard stat(path, &info) == 0 else { return }  // Reading it says what is wrong.
        guard info.st_uid == geteuid() else {
            throw FleetHomeError(
                .wrongOwner, "\(path) belongs to \(Account.name(of: info.st_uid)), not to who runs this",
                remedy: "chown it to the owner of the fleet's folder")
        }
        guard info.st_mode & 0o077 == 0 else {
            throw FleetHomeError(
                .wrongOwner, "\(path) can be read by others (mode \(String(info.st_mode & 0o777, radix: 8)))",
                remedy: "chmod 600 \(ShellWord.quoted(path)); if others may have read it, make a new one")
        }
    }
}
