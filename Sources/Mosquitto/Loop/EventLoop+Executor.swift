extension EventLoop: SerialExecutor {
    /// Runs an actor's job on the loop's thread.
    public func enqueue(_ job: consuming ExecutorJob) {
        enqueue(.job(UnownedJob(job)))
    }

    /// Traps when the caller is not on the loop's thread.
    public func checkIsolated() {
        precondition(isCurrent, "not on the thread of the event loop \(name)")
    }

    /// Whether the caller is on the loop's thread.
    public func isIsolatingCurrentContext() -> Bool? { isCurrent }
}
