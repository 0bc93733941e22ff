import Glibc

/// Keeps a second agent off the same state: held while it lives. Its file also remembers that there has been a state.
struct StateLock: ~Copyable {
    private let file: Int32
    private let path: String
    /// Whether an agent has already made its store and its keystore here.
    let hasState: Bool

    init(folder: String) throws {
        path = folder + "/agent.lock"
        file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Files.failure("open \(path)") }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            close(file)
            throw DeviceAgentError(.store, "another agent uses \(folder): stop it first")
        }
        var info = stat()
        hasState = fstat(file, &info) == 0 && info.st_size > 0
    }

    /// From now on a store or keystore that is missing is one that was lost.
    func noteState() throws {
        guard !hasState else { return }
        let note = Array("The store and the keys beside this file have been made.\n".utf8)
        let isWritten = note.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, 0) == $0.count }
        guard isWritten, fsync(file) == 0 else { throw Files.failure("write \(path)") }
    }

    /// Unlocked, and not only closed: a process that is being started by another thread has the descriptor too.
    deinit {
        flock(file, LOCK_UN)
        close(file)
    }
}
