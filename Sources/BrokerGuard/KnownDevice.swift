import FleetProtocol

/// What the guard remembers of a device. There are as many as accounts that were used since the broker started, and each is
/// bounded.
struct KnownDevice: Sendable {
    /// The groups of its newest membership document, which they are not older than.
    var groups: [PackedName] = []
    var membership: Revision?
    /// Of its bytes.
    var membershipHash: Int?
    var apps = KnownApps()
}

/// The apps of which a device has said a status since the broker started: each is a retained message.
struct KnownApps: Sendable {
    private var hashes: [Int] = []

    /// Whether there is room for it, or it is there already.
    mutating func admit(_ app: AppID) -> Bool {
        let hash = app.hashValue
        if hashes.contains(hash) { return true }
        guard hashes.count < Presence.maximumApps else { return false }
        hashes.append(hash)
        return true
    }

    mutating func remove(_ app: AppID) { hashes.removeAll { $0 == app.hashValue } }
}

/// How much a client may say: a burst, which fills up again with time. What an agent has to say when it comes back is a status
/// for each of its apps and the events it kept, which are at most 1,000. Large messages count as several.
struct Rate: Sendable {
    static let burst = 4_000
    static let perSecond = 200

    private var left = Self.burst
    private var filledAt: Int64?

    /// - Parameter now: Milliseconds of a clock that does not jump.
    mutating func admits(bytes: Int, at now: Int64) -> Bool {
        let filled = filledAt ?? now
        let fresh = min(max(0, now - filled), 1_000_000) * Int64(Self.perSecond) / 1_000
        left += Int(fresh)
        // What was not enough for one more counts next time.
        filledAt = left < Self.burst ? filled + fresh * 1_000 / Int64(Self.perSecond) : max(now, filled)
        left = min(left, Self.burst)
        guard left > 0 else { return false }
        left -= 1 + bytes / 4_096
        return true
    }
}
