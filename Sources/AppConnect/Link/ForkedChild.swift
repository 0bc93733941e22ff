import Glibc
import Synchronization

/// The link in children of `fork`: one that goes on without `exec` would keep it open, and the app that has ended would be
/// taken for one that runs.
enum ForkedChild {
    /// Closes this one from now on; the process has one link at a time.
    static func closes(_ descriptor: Int32) {
        openLink.store(descriptor, ordering: .relaxed)
        _ = isAsked
    }

    /// Call it before the descriptor is closed: the number may be another file's then.
    static func forgets(_ descriptor: Int32) {
        _ = openLink.compareExchange(expected: descriptor, desired: -1, ordering: .relaxed)
    }

    private static let isAsked: Bool = {
        let status = pthread_atfork(nil, nil) {
            // Other threads may have been holding any lock: none may be taken here, nor memory be had.
            let descriptor = openLink.exchange(-1, ordering: .relaxed)
            if descriptor >= 0 { close(descriptor) }
        }
        return status == 0
    }()
}

private let openLink = Atomic<Int32>(-1)
