import Glibc
import Synchronization

/// A file beside the install id that says to later processes that the app has retired itself, and that no agent has stored it yet.
final class RetirementMark: Sendable {
    static let fileName = "self-retired"

    private let folder: String
    private let path: String
    private let turn = Mutex(())

    init(in folder: String) {
        self.folder = folder
        path = "\(folder)/\(Self.fileName)"
    }

    var isThere: Bool { access(path, F_OK) == 0 }

    /// Makes it, or removes it; done when this returns, also for a loss of power. One at a time, and `isOwed` is asked then: an
    /// agent's word may overtake the call that it answers.
    func set(_ isOwed: () -> Bool) throws {
        try turn.withLock { _ in try isOwed() ? make() : remove() }
    }

    private func make() throws {
        // Gone with all that was in it, the folder would take the retirement with it.
        try InstallID.make(folder)
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw problem("be made") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw problem("be kept") }
        try RawFile.syncFolder(of: path)
    }

    private func remove() throws {
        guard unlink(path) == 0 else {
            if errno == ENOENT { return }
            throw problem("be removed")
        }
        try RawFile.syncFolder(of: path)
    }

    private func problem(_ what: String) -> AppConnectError {
        AppConnectError(.dataFolder, "'\(path)' cannot \(what): \(String(cString: strerror(errno)))")
    }
}
