import FleetProtocol

/// The times that are signed: they only rise, as those who count on it require, and go on as the uptime does also when the
/// wall clock is set back. By them devices tell what was kept back on its way. They follow it forward: where a store that was
/// put back has lost which times were signed, a clock that is set right leads beyond them.
struct SigningClock {
    /// The latest time that was signed.
    private(set) var latest: Timestamp
    /// The time now, without what words of one moment have added to differ, and the uptime of it; nil before this run's first.
    private var even: (time: Int64, uptime: Int64)?

    /// - Parameter latest: Of earlier runs: the wall clock may have been set back before this one.
    init(latest: Timestamp) { self.latest = latest }

    /// The next time: later than the one before.
    mutating func next(_ wall: Timestamp, uptime: Int64) -> Timestamp {
        let next = latest.milliseconds + 1
        let time = max(wall.milliseconds, even.map { $0.time + max(0, uptime - $0.uptime) } ?? next)
        even = (time, uptime)
        latest = Timestamp(milliseconds: max(time, next))
        return latest
    }
}
