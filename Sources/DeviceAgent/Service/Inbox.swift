import Dispatch
import Synchronization

/// Carries events from the threads where they happen to the one queue where the core runs, in order. Sources hold back
/// by themselves (the broker's socket and the apps' connections are not read on), so it is bounded by them.
final class Inbox: Sendable {
    let queue = DispatchQueue(label: "fleet-agent.core")
    private let events = Mutex<[DeviceEvent]>([])
    private let handler: @Sendable ([DeviceEvent]) -> Void

    /// `handler` is called on the queue, with all the events that have gathered.
    init(handler: @escaping @Sendable ([DeviceEvent]) -> Void) { self.handler = handler }

    func add(_ event: DeviceEvent) {
        events.withLock { events in
            events.append(event)
            // Under the lock, so that nothing that is enqueued behind this call runs before it.
            if events.count == 1 { queue.async { [self] in handleGathered() } }
        }
    }

    private func handleGathered() {
        let gathered = events.withLock { events in
            defer { events = [] }
            return events
        }
        handler(gathered)
    }
}
