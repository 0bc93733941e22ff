import Synchronization

/// Effects on their way from the core to the broker, in order.
///
/// Unbounded, since the core must not wait for the broker (whose answers come behind messages that only the core takes
/// in); in effect bounded by what one batch of messages gives rise to. What belongs to a connection that is gone is
/// dropped: the next connection repairs whatever that was.
final class Outbox: Sendable {
    struct Entry: Sendable {
        let effect: ControllerCore.Effect
        /// The number of the connection that it was meant for.
        let connection: Int
    }

    private let entries = Mutex<[Entry]>([])
    private let signal: AsyncStream<Void>
    private let bell: AsyncStream<Void>.Continuation

    init() { (signal, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    func put(_ effects: [ControllerCore.Effect], for connection: Int) {
        guard !effects.isEmpty else { return }
        entries.withLock { $0 += effects.map { Entry(effect: $0, connection: connection) } }
        bell.yield()
    }

    /// Calls `body` with all that has gathered, again and again, until the task is cancelled.
    func drain(_ body: ([Entry]) async throws -> Void) async rethrows {
        for await _ in signal {
            let gathered = entries.withLock { entries in
                defer { entries = [] }
                return entries
            }
            try await body(gathered)
        }
    }
}
