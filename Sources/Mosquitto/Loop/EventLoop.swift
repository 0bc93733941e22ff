internal import Glibc
internal import Synchronization

/// One thread that drives any number of MQTT clients.
///
/// Everything a client does happens on its loop's thread; handlers, timers and closures run there one after the other,
/// never nested, so that they need no locks among themselves, and must not block. A loop is also a `SerialExecutor`: an
/// actor that names it as its own can be entered from a handler with `assumeIsolated`, without a hop.
///
/// What has arrived for several clients is read for all of them first and handed over then; closures that their handlers
/// give to `execute` come behind all of it. A program with many clients so does each of its steps for many in a row, for
/// which a processor fetches its instructions once.
///
/// A loop runs until `shutdown()`, and is not freed before.
public final class EventLoop: @unchecked Sendable {  // safe: `core` is the loop thread's alone
    /// What belongs to the loop's thread.
    struct Core {
        var clients = ClientTable()
        var timers = TimerQueue()
        var events: [(client: LoopClient, event: LoopClient.Event)] = []
        var spare: [(client: LoopClient, event: LoopClient.Event)] = []
        var ready: [Poller.Ready] = []
        var nextSweep: UInt64 = 0
        var rush: Rush
        /// Once set, no client begins.
        var stopping = false
    }

    enum Job {
        case work(@Sendable () -> Void)
        case job(UnownedJob)
    }

    struct Inbox {
        enum Phase { case running, stopping, finished }
        var phase = Phase.running
        var jobs: [Job] = []
        var whenFinished: [CheckedContinuation<Void, Never>] = []
    }

    /// The thread's name.
    public let name: String
    let omitsSocketPairs: Bool
    let poller: Poller
    let inbox = Mutex(Inbox())
    let threadID = Atomic<UInt>(0)
    let nextTimerID = Atomic<UInt64>(0)
    /// For connections that do not begin on the loop's thread: where a name is to be looked up, which blocks, or no socket
    /// pair to be made.
    let openings: WorkQueue
    /// For what still arrives after the end.
    let afterwards: WorkQueue
    private let thread = Mutex<SystemThread?>(nil)
    var core: Core

    /// Starts the thread.
    ///
    /// - Parameter omitsSocketPairs: For simulators. libmosquitto makes a socket pair for each connection, which nobody
    ///   needs here, and goes without where it gets none: connections begin on a thread that the kernel refuses them
    ///   (seccomp, which takes from the thread's system calls what a filter costs; hence not the loop's own).
    /// - Parameter gathering: For a loop that one client keeps busy: while more than eight messages come in each
    ///   millisecond, the loop lets them gather for so long (in whole milliseconds) before it reads on, which costs less
    ///   than to wake up for each. What is asked of the loop meanwhile is done at once.
    public init(name: String = "mqtt", omitsSocketPairs: Bool = false, gathering: Duration = .zero) throws {
        guard Library.status == 0 else {
            throw MosquittoError(.library, "initialising libmosquitto failed", status: Library.status)
        }
        self.name = name
        self.omitsSocketPairs = omitsSocketPairs
        core = Core(rush: Rush(pause: Int32(clamping: gathering.nanoseconds / 1_000_000)))
        self.poller = try Poller(name: name)
        self.openings = WorkQueue(name: "\(name)-open")
        self.afterwards = WorkQueue(name: "\(name)-late")
        try thread.withLock { $0 = try SystemThread(name: name) { self.run() } }
    }

    /// Whether the caller runs on the loop's thread.
    public var isCurrent: Bool { threadID.load(ordering: .relaxed) == SystemThread.current }

    /// Runs `work` on the loop's thread, after all that was given before; it never runs within this call. Every closure
    /// does run, also those given after `shutdown()` (then on a thread of their own).
    public func execute(_ work: @escaping @Sendable () -> Void) {
        enqueue(.work(work))
    }

    func enqueue(_ job: Job) {
        let (first, finished) = inbox.withLock { inbox in
            inbox.jobs.append(job)
            return (inbox.jobs.count == 1, inbox.phase == .finished)
        }
        guard first else { return }
        if finished {
            runAfterwards()
        } else if !isCurrent {
            poller.wake()
        }
    }

    /// Runs `work` on the loop's thread once, `delay` from now (in whole milliseconds, never early), unless it is
    /// cancelled or the loop is shut down before.
    @discardableResult
    public func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> LoopTimer {
        let id = nextTimerID.add(1, ordering: .relaxed).newValue
        let (due, overflow) = Self.now().addingReportingOverflow(delay.nanoseconds)
        if isCurrent {
            core.timers.add(id: id, due: overflow ? .max : due, work)
        } else {
            execute { self.core.timers.add(id: id, due: overflow ? .max : due, work) }
        }
        return LoopTimer(loop: self, id: id)
    }

    func cancelTimer(_ id: UInt64) {
        core.timers.cancel(id: id)
    }

    /// Closes all clients gracefully (which takes up to a second when a broker does not answer), ends the thread and
    /// waits for its end. Timers that are not due by then are dropped. Calling it again does nothing.
    ///
    /// - Precondition: not on the loop's thread.
    public func shutdown() {
        precondition(!isCurrent, "an event loop cannot wait for its own end")
        stop()
        thread.withLock { thread in
            thread?.join()
            thread = nil
        }
    }

    /// The same without blocking the caller's thread.
    public func shutdown() async {
        precondition(!isCurrent, "an event loop cannot wait for its own end")
        stop()
        await withCheckedContinuation { continuation in
            let finished = inbox.withLock { inbox in
                if inbox.phase != .finished { inbox.whenFinished.append(continuation) }
                return inbox.phase == .finished
            }
            if finished { continuation.resume() }
        }
        thread.withLock { thread in
            thread?.join()  // it has done its last work
            thread = nil
        }
    }

    private func stop() {
        inbox.withLock { if $0.phase == .running { $0.phase = .stopping } }
        poller.wake()
    }

    /// Monotonic time in nanoseconds.
    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }
}
