/// A closure that an event loop will run, unless it is cancelled before.
public struct LoopTimer: Sendable {
    let loop: EventLoop
    let id: UInt64

    /// Forgets the closure. Called on the loop's thread: it does not run afterwards. From elsewhere: it may just be running.
    public func cancel() {
        if loop.isCurrent {
            loop.cancelTimer(id)
        } else {
            loop.execute { [loop, id] in loop.cancelTimer(id) }
        }
    }
}
