internal import Foundation
internal import Synchronization

/// Starts processes from a thread that lives as long as the tests: the kernel's parent-death signal is bound to the
/// thread that forked, and threads of a pool end when they are idle.
final class Spawner: Sendable {
    static let shared = Spawner()

    private let waiting = Mutex<[@Sendable () -> Void]>([])
    private let available = DispatchSemaphore(value: 0)

    private init() {
        Thread.detachNewThread { [self] in
            while true {
                available.wait()
                waiting.withLock { $0.isEmpty ? nil : $0.removeFirst() }?()
            }
        }
    }

    func run(_ work: @escaping @Sendable () throws -> Void) async throws {
        try await withCheckedThrowingContinuation { continuation in
            waiting.withLock { $0.append { continuation.resume(with: Result { try work() }) } }
            available.signal()
        }
    }
}
