import Glibc

/// One process of the fleet, which is started again whenever it has ended. It belongs to one ``Chaos``.
final class ChaosPart {
    /// What somebody must be told of a part.
    enum News {
        case started
        /// Why it ended, if chaos is not the reason.
        case ended(Child.Ending, isOwnFault: Bool)
        case continued
        case hasRoom
        /// Asked to end, it has not: it was killed.
        case doesNotEnd
    }

    let target: ChaosPlan.Target
    private let launch: () throws -> Child
    private(set) var child: Child?
    private var startsAt: Int64? = 0
    private var startedAt: Int64 = 0
    private var stopsUntil: Int64?
    private var isFullUntil: Int64?
    /// Whether this run of it has been told to end, and by when it has to.
    private var isToEnd = false
    private var endsBy: Int64?
    private var wasFull = false
    private var downtime: Int64 = 0
    /// When something was done to it, or became of it: what it was about to say then may be lost.
    private(set) var wounds: [Wound] = []

    struct Wound {
        let at: Int64
        /// From then on it does its work.
        let isHealed: Bool
    }

    /// How long a part may take to end when it is asked to.
    static let patience: Int64 = 20_000

    /// Where what limits its files may complain.
    private let limits: String

    init(_ target: ChaosPlan.Target, limits: String, launch: @escaping () throws -> Child) {
        self.target = target
        self.limits = limits
        self.launch = launch
    }

    var isRunning: Bool { child != nil && stopsUntil == nil && !isToEnd }

    /// Whether it runs, and has had the time to see to its signals.
    func isSettled(at now: Int64) -> Bool { isRunning && now - startedAt > 1_500 }

    // MARK: Faults

    func kill(down: Int64, at now: Int64) {
        guard child != nil else { return }
        wound(now)
        isToEnd = true
        downtime = down
        child?.signal(SIGKILL)
    }

    func end(down: Int64, at now: Int64) {
        guard child != nil else { return }
        wound(now)
        isToEnd = true
        downtime = down
        endsBy = now + Self.patience
        child?.signal(SIGTERM)
        proceed(at: now)
    }

    func stop(until end: Int64, at now: Int64) {
        guard child != nil else { return }
        wound(now)
        stopsUntil = max(stopsUntil ?? 0, end)
        child?.signal(SIGSTOP)
    }

    func fill(until end: Int64, at now: Int64) throws {
        wound(now)
        isFullUntil = max(isFullUntil ?? 0, end)
        wasFull = true
        try child?.limitFiles(true, log: limits)
    }

    /// Ends every fault: it runs, or is started at the next look.
    func heal(at now: Int64) {
        proceed(at: now)
        if isFullUntil != nil { isFullUntil = now }
        if startsAt != nil { startsAt = now }
        downtime = 0
    }

    private func proceed(at now: Int64) {
        guard stopsUntil != nil else { return }
        stopsUntil = nil
        wound(now, isHealed: isFullUntil == nil)
        child?.signal(SIGCONT)
    }

    private func wound(_ now: Int64, isHealed: Bool = false) { wounds.append(Wound(at: now, isHealed: isHealed)) }

    /// When it has done its work for `margin` on end for the first time since `time`; nil if never so far.
    func quiet(since time: Int64, for margin: Int64) -> Int64? {
        let before = wounds.last { $0.at <= time }
        let begins = (before?.isHealed ?? true ? [time] : []) + wounds.filter { $0.at > time && $0.isHealed }.map(\.at)
        return begins.first { begin in !wounds.contains { (begin + 1...begin + margin).contains($0.at) } }
            .map { $0 + margin }
    }

    // MARK: What becomes of it

    func look(at now: Int64) throws -> [News] {
        var news: [News] = []
        if let end = stopsUntil, now >= end {
            proceed(at: now)
            news.append(.continued)
        }
        if let end = isFullUntil, now >= end {
            isFullUntil = nil
            wound(now, isHealed: child != nil && stopsUntil == nil)
            try child?.limitFiles(false, log: limits)
            news.append(.hasRoom)
        }
        if let ending = child?.ending {
            // A program that has only just started does not handle SIGTERM yet.
            let asked: [Child.Ending] = [.exited(0), .signalled(SIGTERM), .signalled(SIGKILL)]
            let isExpected = isToEnd && asked.contains(ending) || wasFull && ending == .exited(1)
            news.append(.ended(ending, isOwnFault: !isExpected || ending.isTrap))
            wound(now)
            child = nil
            stopsUntil = nil
            startsAt = now + (isToEnd ? downtime : 500)
            (isToEnd, endsBy, wasFull) = (false, nil, isFullUntil != nil)
        }
        if let by = endsBy, now >= by, child != nil {
            child?.signal(SIGKILL)
            endsBy = nil
            news.append(.doesNotEnd)
        }
        if child == nil, let due = startsAt, now >= due {
            startsAt = nil
            child = try launch()
            startedAt = now
            wound(now, isHealed: isFullUntil == nil)
            if isFullUntil != nil { try child?.limitFiles(true, log: limits) }
            news.append(.started)
        }
        return news
    }

    /// Ends it for good.
    func leave() async {
        startsAt = nil
        await child?.end()
        child = nil
    }
}
