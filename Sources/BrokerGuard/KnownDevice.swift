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

/// How much a client may say. Devices' reports count apart: an app that causes too many keeps back nothing else, neither
/// presence nor subscriptions nor the will.
struct Rates: Sendable {
    var reports = Rate()
    var others = Rate()
}

/// A burst, which fills up again with time. What an agent has to say when it comes back is a status for each of its apps and
/// the events it kept, which are at most 1,000, and with 64 apps in 64 groups it has 4,300 subscriptions, which it may make
/// once more. Large messages count as several.
struct Rate: Sendable {
    static let burst = 10_000
    static let perSecond = 200
    /// Of a subscription to more than an app's documents, of one device or of all.
    static let costOfDevice = 100
    /// Of a subscription to what all devices say, or are told: `fleetctl watch` has two.
    static let costOfFleet = 500

    private var left = Self.burst
    private var filledAt: Int64?

    /// - Parameter now: Milliseconds of a clock that does not jump.
    mutating func admits(cost: Int, at now: Int64) -> Bool {
        let filled = filledAt ?? now
        let fresh = min(max(0, now - filled), 1_000_000) * Int64(Self.perSecond) / 1_000
        left += Int(fresh)
        // What was not enough for one more counts next time.
        filledAt = left < Self.burst ? filled + fresh * 1_000 / Int64(Self.perSecond) : max(now, filled)
        left = min(left, Self.burst)
        guard left > 0 else { return false }
        left -= cost
        return true
    }
}
