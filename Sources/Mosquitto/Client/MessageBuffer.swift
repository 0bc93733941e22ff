internal import Synchronization

/// What has been read from the broker and not been consumed; its bound is kept by whoever adds,
/// who learns from `consumed` how many more may be read.
final class MessageBuffer: Sendable {
    private enum Consumer {
        case none
        case waiting(CheckedContinuation<[Message]?, Never>)
    }

    private struct State {
        var messages: [Message] = []
        /// Handed out in the last batch, and so still held by the consumer.
        var handedOut = 0
        /// Consumed, and not yet granted to the client anew.
        var owed = 0
        var peak = 0
        var finished = false
        var consumer = Consumer.none
    }

    let capacity: Int
    private let state = Mutex(State())

    init(capacity: Int) {
        self.capacity = capacity
    }

    /// The most messages that were ever held at once, for tests.
    var peak: Int { state.withLock { $0.peak } }

    func append(_ message: Message) {
        let waiting: CheckedContinuation<[Message]?, Never>? = state.withLock { state in
            if state.finished { return nil }
            switch state.consumer {
            case .none:
                state.messages.append(message)
                state.peak = max(state.peak, state.messages.count + state.handedOut)
                return nil
            case .waiting(let continuation):
                state.consumer = .none
                state.handedOut = 1
                state.peak = max(state.peak, 1)
                return continuation
            }
        }
        waiting?.resume(returning: [message])
    }

    /// No more messages come; what is held can still be consumed.
    func finish() {
        let waiting: CheckedContinuation<[Message]?, Never>? = state.withLock { state in
            state.finished = true
            guard case .waiting(let continuation) = state.consumer else { return nil }
            state.consumer = .none
            return continuation
        }
        waiting?.resume(returning: nil)
    }

    /// The next messages, at least one; nil at the end, or when the task is cancelled. The batch before counts as
    /// consumed; `consumed` is told so in steps of half the capacity.
    func next(most: Int, consumed: (Int) -> Void) async -> [Message]? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (granted, outcome): (Int, [Message]??) = state.withLock { state in
                    state.owed += state.handedOut
                    state.handedOut = 0
                    var granted = 0
                    if state.owed >= max(1, capacity / 2) {
                        granted = state.owed
                        state.owed = 0
                    }
                    if Task.isCancelled { return (granted, .some(nil)) }
                    guard state.messages.isEmpty else { return (granted, .some(Self.take(most, from: &state))) }
                    if state.finished { return (granted, .some(nil)) }
                    if case .waiting = state.consumer {
                        preconditionFailure("the messages of a client have one consumer at a time")
                    }
                    state.consumer = .waiting(continuation)
                    return (granted, .none)
                }
                if granted > 0 { consumed(granted) }
                if let outcome { continuation.resume(returning: outcome) }
            }
        } onCancel: {
            let waiting: CheckedContinuation<[Message]?, Never>? = state.withLock { state in
                guard case .waiting(let continuation) = state.consumer else { return nil }
                state.consumer = .none
                return continuation
            }
            waiting?.resume(returning: nil)
        }
    }

    private static func take(_ most: Int, from state: inout State) -> [Message] {
        var batch: [Message] = []
        if state.messages.count <= most {
            swap(&batch, &state.messages)
        } else {
            batch = Array(state.messages.prefix(most))
            state.messages.removeFirst(most)
        }
        state.handedOut = batch.count
        return batch
    }
}
