import DeviceAgent
import FleetProtocol

/// A device's clocks, which show what they show: both may drift, the wall's may be set and stand still, and what the device
/// sleeps through is no time since its boot. Times are milliseconds, `now` is the world's.
struct DeviceClocks {
    private var boots = 0
    private var bootedAt: Int64 = 0
    /// How much too fast they run, in thousandths.
    private var drift: (wall: Int64, uptime: Int64) = (0, 0)
    private(set) var wallOffset: Int64 = 0
    /// What the wall clock shows while it stands still.
    private var stoppedWall: Int64?
    /// When somebody set it last.
    private(set) var wallSetAt: Int64?
    private var sleepsSince: Int64?
    private var slept: Int64 = 0
    /// What of it since its connection began.
    var sleptOnline: Int64 = 0
    private var wokeAt: Int64 = 0

    init() {}

    init(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        if random.chance(15) { drift = ([-50, -10, 10, 50][random.below(4)], [-20, 0, 20][random.below(3)]) }
    }

    mutating func boot(at now: Int64) {
        boots += 1
        (bootedAt, slept, sleepsSince) = (now, 0, nil)
    }

    var bootID: String { "boot-\(boots)" }

    func uptime(at now: Int64) -> Int64 {
        let time = (sleepsSince ?? now) - bootedAt - slept
        return time + time * drift.uptime / 1_000 + 10_000
    }

    /// How long it has run, at least in this boot; nil where that cannot be said so well.
    func ran(since time: Int64, at now: Int64) -> Int64? {
        guard drift.uptime >= 0, sleepsSince == nil, wokeAt <= time else { return nil }
        return now - max(time, bootedAt)
    }

    func wall(at now: Int64) -> Timestamp {
        Timestamp(milliseconds: SimulatedFleet.begin.milliseconds + (stoppedWall ?? runningWall(at: now)))
    }

    private func runningWall(at now: Int64) -> Int64 { now + now * drift.wall / 1_000 + wallOffset }

    /// How long it takes until the time since the boot has gone on by `running`.
    func delay(of running: Int64) -> Int64 { running * 1_000 / (1_000 + drift.uptime) }

    mutating func set(by seconds: Int64, at now: Int64) {
        // No system has a time before 1970.
        wallOffset = max(wallOffset + seconds * 1_000, -SimulatedFleet.begin.milliseconds)
        wallSetAt = now
    }

    var isWallStopped: Bool { stoppedWall != nil }

    mutating func stopWall(at now: Int64) { stoppedWall = runningWall(at: now) }

    /// It goes on from where it stood.
    mutating func goOnWall(at now: Int64) {
        guard let stopped = stoppedWall else { return }
        wallOffset += stopped - runningWall(at: now)
        stoppedWall = nil
    }

    mutating func sleep(at now: Int64) { sleepsSince = now }

    mutating func wake(at now: Int64) {
        if let since = sleepsSince {
            slept += now - since
            sleptOnline += now - since
            wokeAt = now
        }
        sleepsSince = nil
    }

    /// The wall clock is right from now on.
    mutating func correct(at now: Int64) {
        if stoppedWall != nil || runningWall(at: now) != now { wallSetAt = now }
        (wallOffset, drift.wall, stoppedWall) = (0, 0, nil)
    }
}
