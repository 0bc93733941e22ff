import Glibc
import Synchronization

/// Room on the disk, kept for when there is none: an app that is retired then must lose its keys all the same, and the agent
/// must start and connect to hear of it.
///
/// A file beside the store. It is given back to the disk when a transaction finds no room, and taken again when there is some.
final class DiskReserve: Sendable {
    private static let size: off_t = 1 << 20
    /// Seconds between two looks whether there is room again.
    private static let patience = 60

    private let path: String
    private let state = Mutex(State())

    private struct State {
        var isHeld = false
        /// That was why it could not be taken, or was given back.
        var isDiskFull = false
        /// Why it cannot be taken otherwise.
        var problem: String?
        var lookedAt: Int?
    }

    init(path: String) { self.path = path }

    var isHeld: Bool { state.withLock { $0.isHeld } }

    var isDiskFull: Bool { state.withLock { $0.isDiskFull } }

    /// Why there is none, where the disk is not full.
    var problem: String? { state.withLock { $0.problem } }

    /// Takes the room, if it was given back and there is some; looks for it once a minute.
    func take() {
        state.withLock { state in
            var now = timespec()
            clock_gettime(CLOCK_BOOTTIME, &now)
            guard !state.isHeld, state.lookedAt.map({ now.tv_sec - $0 >= Self.patience }) ?? true else { return }
            state.lookedAt = now.tv_sec
            let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard file >= 0 else {
                state.isDiskFull = [ENOSPC, EDQUOT].contains(errno)
                state.problem = state.isDiskFull ? nil : "opening \(path) failed: \(String(cString: strerror(errno)))"
                return
            }
            state.problem = nil
            defer { close(file) }
            state.isHeld = posix_fallocate(file, 0, Self.size) == 0
            state.isDiskFull = !state.isHeld
            if !state.isHeld { unlink(path) }
        }
    }

    /// Gives the room back.
    func release() {
        state.withLock { state in
            (state.isHeld, state.isDiskFull) = (false, true)
            unlink(path)
        }
    }
}
