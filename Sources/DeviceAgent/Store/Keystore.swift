import Crypto
package import FleetProtocol
import Glibc

/// The key of each app of a device: a file of 32 random bytes, mode 0600, in a folder that only the agent reads. Beside them
/// one that all apps share: it is there as long as any app has its own.
///
/// Calls return when the disk has it. A key file is there whole or not at all, however a call ends: a key is made and
/// destroyed under another name. Destroying overwrites, removes and syncs; a key that is gone stays gone.
package struct Keystore: Sendable {
    private let folder: String
    private static let ending = ".key"

    /// - Parameter isExpected: Whether there has been a keystore already. If not, the folder is made when it is missing.
    package init(folder: String, isExpected: Bool = false) throws {
        self.folder = folder
        guard let info = Files.status(folder) else {
            guard !isExpected else {
                throw DeviceAgentError(
                    .keystore,
                    "the folder of the keys \(folder) is missing, though this agent has run before: bring it back (is its"
                        + " disk there?), or make it empty (mkdir -m 700), and apps get new keys, with which they cannot"
                        + " read what they have")
            }
            guard mkdir(folder, 0o700) == 0 else { throw Self.failure("make the folder \(folder)") }
            return
        }
        guard info.st_mode & S_IFMT == S_IFDIR else {
            throw DeviceAgentError(.keystore, "\(folder) is no folder, and the keys need one: move it away")
        }
        try Files.checkOwner(folder, info)
        try Files.checkMode(folder, info, isSecret: true)
    }

    package func create(for app: AppID) throws {
        try create(Self.shared)
        try create(app.text)
    }

    private func create(_ name: String) throws {
        let path = path(of: name)
        guard try !exists(name) else { return }
        let temporary = temporaryPath(of: name)
        try remove(temporary)
        let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Self.failure("make the key file \(path)") }
        defer { close(file) }
        let key = SymmetricKey(size: .bits256)
        let isWritten = key.withUnsafeBytes { write(file, $0.baseAddress, $0.count) == $0.count }
        guard isWritten, fsync(file) == 0, rename(temporary, path) == 0 else {
            let error = Self.failure("write the key file \(path)")
            unlink(temporary)
            throw error
        }
        try syncFolder()
    }

    package func destroy(for app: AppID) throws {
        try destroy(app.text)
        if try apps().isEmpty { try destroy(Self.shared) }
    }

    private func destroy(_ name: String) throws {
        let (path, temporary) = (path(of: name), temporaryPath(of: name))
        // Under its own name a key that is half overwritten could be taken for a whole one.
        guard rename(path, temporary) == 0 || errno == ENOENT else { throw Self.failure("remove the key file \(path)") }
        guard access(temporary, F_OK) == 0 else {
            if errno == ENOENT { return }
            throw Self.failure("look for the key file \(temporary)")
        }
        try syncFolder()
        try remove(temporary)
        try syncFolder()
    }

    /// The apps that have keys.
    private func apps() throws -> [AppID] {
        try Files.names(in: folder).compactMap { name in
            name.hasSuffix(Self.ending) ? AppID(name.dropLast(Self.ending.count)) : nil
        }
    }

    /// What an app's process is given. Throws when the app has none, or a file is damaged.
    package func keys(of app: AppID) throws -> AppKeys {
        AppKeys(app: try key(app.text), shared: try key(Self.shared))
    }

    private func key(_ name: String) throws -> [UInt8] {
        let path = path(of: name)
        guard try exists(name) else {
            throw DeviceAgentError(
                .keystore,
                "the key file \(path) is missing: bring it back, or start the agent again, for a new key, with"
                    + " which apps cannot read what they have")
        }
        return try Files.read(path, limit: AppKeys.size)
    }

    /// Whether the app has a key. Throws when there is a file that is none.
    package func exists(for app: AppID) throws -> Bool { try exists(app.text) }

    private func exists(_ name: String) throws -> Bool {
        let path = path(of: name)
        var info = stat()
        guard lstat(path, &info) == 0 else {
            if errno == ENOENT { return false }
            throw Self.failure("look at the key file \(path)")
        }
        // Of a link only the name would be destroyed, and the key would be left where that leads.
        guard info.st_mode & S_IFMT != S_IFLNK else {
            throw DeviceAgentError(
                .keystore,
                "\(path) is a link, and a key that is destroyed must be gone: put the file itself there (its folder may be on"
                    + " another disk)")
        }
        try Files.checkOwner(path, info)
        try Files.checkMode(path, info, isSecret: true)
        guard info.st_mode & S_IFMT == S_IFREG, info.st_size == AppKeys.size else {
            throw DeviceAgentError(
                .keystore,
                "\(path) is damaged: it has \(info.st_size) bytes, and a key has \(AppKeys.size). Put back a copy that is"
                    + " good, or remove it: then there is a new key, with which what was kept under this one cannot be read"
            )
        }
        return true
    }

    /// Destroys what a crash has left: keys that were being made or destroyed, and keys of apps that have none by the
    /// store. Says which of `apps` have no key, and throws when one of theirs is damaged.
    package func tidy(keeping apps: Set<AppID>, missing: (AppID) -> Void) throws {
        for name in try Files.names(in: folder) where name.hasPrefix(".") && name.hasSuffix(Self.ending) {
            try remove("\(folder)/\(name)")
        }
        try syncFolder()
        for app in try self.apps() where !apps.contains(app) { try destroy(app.text) }
        if apps.isEmpty { try destroy(Self.shared) } else { _ = try exists(Self.shared) }
        for app in apps.sorted() where try !exists(for: app) { missing(app) }
    }

    /// No app's id begins so.
    private static let shared = "_shared"

    private func path(of name: String) -> String { "\(folder)/\(name)\(Self.ending)" }
    /// No name of a key begins with a point.
    private func temporaryPath(of name: String) -> String { "\(folder)/.\(name)\(Self.ending)" }

    /// Overwrites a file and removes it; one that is not there is well.
    private func remove(_ path: String) throws {
        let file = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        if file >= 0 {
            defer { close(file) }
            let zeros = [UInt8](repeating: 0, count: AppKeys.size)
            // On a disk that does not write in place this overwrites nothing; the removal below is what counts.
            _ = zeros.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, 0) }
            _ = fsync(file)
        }
        guard unlink(path) == 0 || errno == ENOENT else { throw Self.failure("remove the key file \(path)") }
    }

    private func syncFolder() throws {
        let file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard file >= 0 else { throw Self.failure("open the folder \(folder)") }
        defer { close(file) }
        guard fsync(file) == 0 else { throw Self.failure("sync the folder \(folder)") }
    }

    private static func failure(_ what: String) -> DeviceAgentError {
        DeviceAgentError(.keystore, "cannot \(what): \(Files.reason())")
    }
}
