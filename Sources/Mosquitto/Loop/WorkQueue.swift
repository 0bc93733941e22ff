internal import Synchronization

/// Runs closures in order on a thread that exists only while there is work: for connections that begin beside the
/// loop, and for what still arrives at one that has been shut down.
final class WorkQueue: Sendable {
    private struct State {
        var waiting: [@Sendable () -> Void] = []
        var running = false
    }

    private let name: String
    private let state = Mutex(State())

    init(name: String) {
        self.name = name
    }

    func add(_ work: @escaping @Sendable () -> Void) {
        let start = state.withLock { state in
            state.waiting.append(work)
            defer { state.running = true }
            return !state.running
        }
        guard start else { return }
        do {
            try SystemThread(name: name) { self.drain() }.detach()
        } catch {
            drain()  // no thread to be had: late is better than never
        }
    }

    private func drain() {
        while true {
            let batch = state.withLock { state in
                defer { state.waiting = [] }
                if state.waiting.isEmpty { state.running = false }
                return state.waiting
            }
            if batch.isEmpty { return }
            for work in batch { work() }
        }
    }
}
