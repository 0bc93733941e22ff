/// How long to wait before the agent is tried again: not at all after a connection that lasted, then twice as long each
/// time up to two seconds, spread so that the apps of a device do not come all at once. Who is refused comes ever more seldom.
struct BackOff {
    private var attempts = 0
    static let first = Duration.milliseconds(50)
    static let longest = Duration.seconds(2)
    static let longestRefused = Duration.seconds(30)
    /// A connection that lasted so long was a good one.
    static let good = Duration.seconds(1)

    /// - Parameter spread: From 0 to 1, random.
    mutating func next(after lifetime: Duration?, isRefused: Bool = false, spread: Double) -> Duration {
        if let lifetime, lifetime >= Self.good { attempts = 0 }
        defer { attempts += 1 }
        guard attempts > 0 else { return .zero }
        let longest = isRefused ? Self.longestRefused : Self.longest
        let delay = min(Self.first * (1 << min(attempts - 1, 10)), longest)
        return delay * (0.5 + 0.5 * spread)
    }
}
