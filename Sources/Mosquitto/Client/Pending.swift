internal import Synchronization

/// A slot for one answer: it may come before somebody waits for it, the waiter may give up, the first outcome counts.
final class Pending<Value: Sendable>: Sendable {
    private enum State {
        case open
        case waiting(CheckedContinuation<Value, any Error>)
        case settled(Result<Value, any Error>)
        case taken
    }

    private let state = Mutex(State.open)

    /// Whether nobody waits any more.
    var isSettled: Bool {
        state.withLock { state in
            switch state {
            case .open, .waiting: false
            case .settled, .taken: true
            }
        }
    }

    /// Waits for the outcome; once at most. A cancelled task gets `CancellationError`.
    func wait() async throws -> Value {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Value, any Error>? = state.withLock { state in
                    switch state {
                    case .open:
                        state = .waiting(continuation)
                        return nil
                    case .settled(let outcome):
                        state = .taken
                        return outcome
                    case .waiting, .taken:
                        return .failure(CancellationError())
                    }
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            settle(.failure(CancellationError()))
        }
    }

    func settle(_ outcome: Result<Value, any Error>) {
        let continuation: CheckedContinuation<Value, any Error>? = state.withLock { state in
            switch state {
            case .open:
                state = .settled(outcome)
                return nil
            case .waiting(let continuation):
                state = .taken
                return continuation
            case .settled, .taken:
                return nil
            }
        }
        continuation?.resume(with: outcome)
    }
}
