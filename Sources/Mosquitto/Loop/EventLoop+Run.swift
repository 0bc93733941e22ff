internal import Glibc
internal import Synchronization

extension EventLoop {
    /// How often every client's clock is looked at: keep-alive and deadlines are in seconds.
    private static let sweepPeriod: UInt64 = 1_000_000_000

    func run() {
        threadID.store(SystemThread.current, ordering: .relaxed)
        while isNeeded() {
            let pause = core.rush.pause(at: Self.now())
            if pause > 0, !hasJobs { poller.waitForWake(milliseconds: pause) }
            poller.wait(into: &core.ready, milliseconds: timeout())
            let ready = core.ready
            for item in ready {
                if item.isWake {
                    poller.clearWake()
                } else if let client = core.clients.client(for: item.key) {
                    client.pump(item.events, isAlone: ready.count == 1)
                }
            }
            deliver()
            runInbox()
            let now = Self.now()
            while let work = core.timers.popDue(now: now) {
                work()
                deliver()
            }
            if now >= core.nextSweep { sweep(now: now) }
        }
        core.timers.removeAll()
        threadID.store(0, ordering: .relaxed)
        let (waiting, late) = inbox.withLock { inbox in
            inbox.phase = .finished
            defer { inbox.whenFinished = [] }
            return (inbox.whenFinished, !inbox.jobs.isEmpty)
        }
        if late { runAfterwards() }
        for continuation in waiting { continuation.resume() }
    }

    /// What arrives after the end still runs, one after the other, so that nobody waits for an answer in vain.
    func runAfterwards() {
        afterwards.add {
            self.threadID.store(SystemThread.current, ordering: .relaxed)
            self.runInbox()
            self.threadID.store(0, ordering: .relaxed)
        }
    }

    /// Runs what other threads have left, in its order.
    func runInbox() {
        while true {
            let jobs = inbox.withLock { inbox in
                var jobs: [Job] = []
                swap(&jobs, &inbox.jobs)
                return jobs
            }
            if jobs.isEmpty { return }
            for job in jobs {
                switch job {
                case .work(let work): work()
                case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
                }
                deliver()
            }
        }
    }

    /// Hands the events over, one after the other; what handlers cause is appended, and comes behind.
    func deliver() {
        while !core.events.isEmpty {
            var batch: [(client: LoopClient, event: LoopClient.Event)] = []
            swap(&batch, &core.spare)
            swap(&batch, &core.events)
            core.rush.add(batch.count)
            for item in batch { item.client.handle(item.event) }
            batch.removeAll(keepingCapacity: batch.capacity <= 4096)
            swap(&batch, &core.spare)
        }
    }

    private var hasJobs: Bool { inbox.withLock { !$0.jobs.isEmpty } }

    private func timeout() -> Int32 {
        if hasJobs { return 0 }
        var next = core.clients.isEmpty ? UInt64.max : core.nextSweep
        if let due = core.timers.nextDue { next = min(next, due) }
        if next == .max { return -1 }
        let now = Self.now()
        return next <= now ? 0 : Int32(clamping: (next - now + 999_999) / 1_000_000)
    }

    /// Looks at a part of the clients, the larger the table the smaller the part, each client once in a second.
    private func sweep(now: UInt64) {
        let parts = max(1, min(10, core.clients.count / 32))
        core.nextSweep = now + Self.sweepPeriod / UInt64(parts)
        for client in core.clients.nextPart(of: parts) {
            client.tick(now: now)
            deliver()
        }
    }

    /// Whether there is anything to do but end; begins the end when it was asked for.
    private func isNeeded() -> Bool {
        if !core.stopping, inbox.withLock({ $0.phase == .running }) { return true }
        if !core.stopping {
            runInbox()
            core.stopping = true
            for client in core.clients.all { client.close() }
            deliver()
        }
        return !core.clients.isEmpty
    }
}
