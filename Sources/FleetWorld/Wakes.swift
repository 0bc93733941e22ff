import DeviceAgent

/// How often an agent is woken, and has nothing to do then.
struct Wakes {
    private var since: Int64 = 0
    private var count = 0
    /// Levels that a wall clock ends are looked at once a second; and by a slow clock a timer rings a little early.
    private static let (most, time) = (50, Int64(5_000))

    /// Whether it was woken in vain again and again.
    mutating func areInVain(_ events: [DeviceEvent], _ effects: [DeviceEffect], at now: Int64) -> Bool {
        let isTick = events.allSatisfy { if case .tick = $0 { true } else { false } }
        guard isTick, !events.isEmpty, effects.isEmpty else {
            count = 0
            return false
        }
        if count == 0 || now - since > Self.time { (since, count) = (now, 0) }
        count += 1
        return count > Self.most
    }
}
