import Glibc

/// A lock on a file (flock), held until it is released or the process ends, however it ends.
final class FileLock: Sendable {
    private let descriptor: Int32

    /// - Parameters:
    ///   - waits: Whether to wait for the holder; if not, `nil` comes back while another holds it.
    ///   - patience: How many times to look again then, 10 ms later each: for whoever only looks whether it is held, and so
    ///     holds it for a moment.
    init?(path: String, waits: Bool = false, patience: Int = 0) throws {
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw FleetHomeError(.unwritable, "opening \(path) failed: \(Folder.reason())")
        }
        var patience = patience
        while flock(descriptor, LOCK_EX | (waits ? 0 : LOCK_NB)) != 0 {
            let reason = errno
            if reason == EINTR { continue }
            if reason == EWOULDBLOCK, patience > 0 {
                patience -= 1
                usleep(10_000)
                continue
            }
            // What was opened, `deinit` closes: it runs for one that fails as well.
            if reason == EWOULDBLOCK { return nil }
            throw FleetHomeError(.unwritable, "locking \(path) failed: \(String(cString: strerror(reason)))")
        }
    }

    /// Leaves a note for whoever finds the file locked.
    func note(_ text: String) {
        let bytes = Array(text.utf8)
        // In this order nobody finds it empty, whenever the process ends.
        _ = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        _ = ftruncate(descriptor, off_t(bytes.count))
    }

    /// A process that is being started by another thread has the descriptor too, until it runs its program: closed here alone, the
    /// lock would be held for so long.
    deinit {
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
