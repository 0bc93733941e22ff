internal import Synchronization

/// Shows a client's state to any number of watchers.
final class StateBoard: Sendable {
    private struct State {
        var current = ConnectionState.connecting
        var watchers: [Int: AsyncStream<ConnectionState>.Continuation] = [:]
        var nextID = 0
    }

    private let state = Mutex(State())

    var current: ConnectionState { state.withLock { $0.current } }

    /// On the loop's thread alone, so that states are shown in order.
    func show(_ new: ConnectionState) {
        let watchers = state.withLock { state in
            state.current = new
            return state.watchers
        }
        for watcher in watchers.values {
            watcher.yield(new)
            if case .closed = new { watcher.finish() }
        }
    }

    func watch() -> AsyncStream<ConnectionState> {
        let (stream, watcher) = AsyncStream.makeStream(of: ConnectionState.self, bufferingPolicy: .bufferingNewest(1))
        let id = state.withLock { state in
            watcher.yield(state.current)  // nobody listens yet, so nobody is resumed under the lock
            if case .closed = state.current {
                watcher.finish()
            }
            state.nextID += 1
            state.watchers[state.nextID] = watcher
            return state.nextID
        }
        watcher.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.watchers.removeValue(forKey: id) }
        }
        return stream
    }
}
