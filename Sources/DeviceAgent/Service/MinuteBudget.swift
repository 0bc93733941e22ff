/// So much of something in a minute: what processes may bring about as often as they like.
struct MinuteBudget {
    let maximum: Int
    private var taken = 0
    private var since: ContinuousClock.Instant?

    static let interval = Duration.seconds(60)

    init(_ maximum: Int) { self.maximum = maximum }

    /// Whether there may be one more.
    mutating func take(at now: ContinuousClock.Instant) -> Bool {
        if since.map({ now - $0 >= Self.interval }) ?? true { (taken, since) = (0, now) }
        guard taken < maximum else { return false }
        taken += 1
        return true
    }
}
