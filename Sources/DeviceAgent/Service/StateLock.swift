import Glibc

/// Keeps a second agent off the same state: held while it lives.
struct StateLock: ~Copyable {
    private let file: Int32

    init(folder: String) throws {
        let path = folder + "/agent.lock"
        file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Files.failure("open \(path)") }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            close(file)
            throw DeviceAgentError(.store, "another agent uses \(folder): stop it first")
        }
    }

    deinit { close(file) }
}
