import Crypto
package import FleetProtocol
import Glibc

/// The key of each app of a device: a file of 32 random bytes, mode 0600, in a folder that only the agent reads.
///
/// Both calls return when the disk has it. Destroying overwrites, removes and syncs; a key that is gone stays gone.
package struct Keystore: Sendable {
    private let folder: String

    /// The folder is made when it is missing.
    package init(folder: String) throws {
        self.folder = folder
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw Self.failure("make the folder \(folder)") }
    }

    package func create(for app: AppID) throws {
        let path = path(of: app)
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if file < 0, errno == EEXIST { return }
        guard file >= 0 else { throw Self.failure("make the key file \(path)") }
        defer { close(file) }
        let key = SymmetricKey(size: .bits256)
        let isWritten = key.withUnsafeBytes { write(file, $0.baseAddress, $0.count) == $0.count }
        guard isWritten, fsync(file) == 0 else { throw Self.failure("write the key file \(path)") }
        try syncFolder()
    }

    package func destroy(for app: AppID) throws {
        let path = path(of: app)
        let file = open(path, O_WRONLY | O_CLOEXEC)
        if file < 0, errno == ENOENT { return }
        if file >= 0 {
            defer { close(file) }
            let zeros = [UInt8](repeating: 0, count: 32)
            // On a disk that does not write in place this overwrites nothing; the removal below is what counts.
            _ = zeros.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, 0) }
            _ = fsync(file)
        }
        guard unlink(path) == 0 || errno == ENOENT else { throw Self.failure("remove the key file \(path)") }
        try syncFolder()
    }

    package func exists(for app: AppID) -> Bool { access(path(of: app), F_OK) == 0 }

    private func path(of app: AppID) -> String { "\(folder)/\(app).key" }

    private func syncFolder() throws {
        let file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard file >= 0 else { throw Self.failure("open the folder \(folder)") }
        defer { close(file) }
        guard fsync(file) == 0 else { throw Self.failure("sync the folder \(folder)") }
    }

    private static func failure(_ what: String) -> DeviceAgentError {
        DeviceAgentError(.keystore, "cannot \(what): \(String(cString: strerror(errno)))")
    }
}
