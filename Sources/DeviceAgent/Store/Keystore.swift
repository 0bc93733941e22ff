import Crypto
package import FleetProtocol
import Glibc

/// The key of each app of a device: a file of 32 random bytes, mode 0600, in a folder that only the agent reads.
///
/// Calls return when the disk has it. A key file is there whole or not at all, however a call ends: a key is made and
/// destroyed under another name. Destroying overwrites, removes and syncs; a key that is gone stays gone.
package struct Keystore: Sendable {
    private let folder: String
    private static let size = 32
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
        let path = path(of: app)
        guard try !exists(for: app) else { return }
        let temporary = temporaryPath(of: app)
        try remove(temporary)
        let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Self.failure("make the key file \(path)") }
        defer { close(file) }
        let key = SymmetricKey(size: .bits256)
        let isWritten = key.withUnsafeBytes { write(file, $0.baseAddress, $0.count) == Self.size }
        guard isWritten, fsync(file) == 0, rename(temporary, path) == 0 else {
            let error = Self.failure("write the key file \(path)")
            unlink(temporary)
            throw error
        }
        try syncFolder()
    }

    package func destroy(for app: AppID) throws {
        let (path, temporary) = (path(of: app), temporaryPath(of: app))
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

    /// Whether the app has a key. Throws when there is a file that is none.
    package func exists(for app: AppID) throws -> Bool {
        let path = path(of: app)
        guard let info = Files.status(path) else {
            if errno == ENOENT { return false }
            throw Self.failure("look at the key file \(path)")
        }
        try Files.checkOwner(path, info)
        try Files.checkMode(path, info, isSecret: true)
        guard info.st_mode & S_IFMT == S_IFREG, info.st_size == Self.size else {
            throw DeviceAgentError(
                .keystore,
                "\(path) is damaged: it has \(info.st_size) bytes, and a key has \(Self.size). Put back a copy that is good,"
                    + " or remove it: then \(app) gets a new key, with which it cannot read what it has")
        }
        return true
    }

    /// Destroys what a crash has left: keys that were being made or destroyed, and keys of apps that have none by the
    /// store. Says which of `apps` have no key, and throws when one of theirs is damaged.
    package func tidy(keeping apps: Set<AppID>, missing: (AppID) -> Void) throws {
        for name in try Files.names(in: folder) where name.hasSuffix(Self.ending) {
            if name.hasPrefix(".") {
                try remove("\(folder)/\(name)")
            } else if let app = AppID(name.dropLast(Self.ending.count)), !apps.contains(app) {
                try destroy(for: app)
            }
        }
        try syncFolder()
        for app in apps.sorted() where try !exists(for: app) { missing(app) }
    }

    private func path(of app: AppID) -> String { "\(folder)/\(app)\(Self.ending)" }
    /// No app's id begins with a point.
    private func temporaryPath(of app: AppID) -> String { "\(folder)/.\(app)\(Self.ending)" }

    /// Overwrites a file and removes it; one that is not there is well.
    private func remove(_ path: String) throws {
        let file = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        if file >= 0 {
            defer { close(file) }
            let zeros = [UInt8](repeating: 0, count: Self.size)
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
