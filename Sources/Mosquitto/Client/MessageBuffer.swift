internal import Synchronization

/// What has been read from the broker and not been consumed; its bound is kept by whoever adds,
/// who learns from `consumed` how many more may be read.
final class MessageBuffer: Sendable {
    private enum Consumer {
        case none
        case waiting(CheckedContinuation<Void, Never>)
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

    /// A consumer that waits takes this message and all that come until it runs.
    func append(_ message: Message) {
        let waiting: CheckedContinuation<Void, Never>? = state.withLock { state in
            if state.finished { return nil }
            state.messages.append(message)
            state.peak = max(state.peak, state.messages.count + state.handedOut)
            return Self.takeConsumer(from: &state)
        }
        waiting?.resume()
    }

    /// No more messages come; what is held can still be consumed.
    func finish() {
        state.withLock { state in
            state.finished = true
            return Self.takeConsumer(from: &state)
        }?.resume()
    }

    /// The next messages, at least one; nil at the end, or when the task is cancelled. The batch before counts as
    /// consumed; `consumed` is told so in steps of half the capacity.
    func next(most: Int, consumed: (Int) -> Void) async -> [Message]? {
        let granted = state.withLock { state in
            state.owed += state.handedOut
            state.handedOut = 0
            guard state.owed >= max(1, capacity / 2) else { return 0 }
            defer { state.owed = 0 }
            return state.owed
        }
        if granted > 0 { consumed(granted) }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    if Task.isCancelled || state.finished || !state.messages.isEmpty { return true }
                    if case .waiting = state.consumer {
                        preconditionFailure("the messages of a client have one consumer at a time")
                    }
                    state.consumer = .waiting(continuation)
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            state.withLock { Self.takeConsumer(from: &$0) }?.resume()
        }
        if Task.isCancelled { return nil }
        return state.withLock { $0.messages.isEmpty ? nil : Self.take(most, from: &$0) }
    }

    private static func takeConsumer(from state: inout State) -> CheckedContinuation<Void, Never>? {
        guard case .waiting(let continuation) = state.consumer else { return nil }
        state.consumer = .none
        return continuation
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
