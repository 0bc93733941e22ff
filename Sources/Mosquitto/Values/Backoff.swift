/// How long a client waits before it tries again: exponential with full jitter, so that a fleet which lost its broker
/// does not come back all at once.
///
/// The wait behind the nth failure is a random part of `minimum` · 2ⁿ⁻¹, at most of `maximum`.
public struct Backoff: Hashable, Sendable {
    /// The upper end of the first wait.
    public var minimum: Duration
    /// The upper end of every wait.
    public var maximum: Duration
    /// A connection that held this long starts the count anew.
    public var stableAfter: Duration

    /// Waits that suit a daemon.
    public init(
        minimum: Duration = .milliseconds(500), maximum: Duration = .seconds(60), stableAfter: Duration = .seconds(10)
    ) {
        self.minimum = minimum
        self.maximum = maximum
        self.stableAfter = stableAfter
    }

    /// The longest wait after `failures` attempts in a row that did not last.
    func ceiling(failures: Int) -> UInt64 {
        let cap = maximum.nanoseconds
        let doublings = max(0, failures - 1)
        let (scaled, overflow) = minimum.nanoseconds.multipliedReportingOverflow(
            by: doublings < 63 ? UInt64(1) << UInt64(doublings) : .max)
        return overflow ? cap : min(cap, scaled)
    }

    func delay(failures: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        .nanoseconds(Int64(clamping: UInt64.random(in: 0...ceiling(failures: failures), using: &generator)))
    }
}

extension Duration {
    /// Whole nanoseconds, never negative, clamped instead of overflowing.
    var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (product, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carried) = product.addingReportingOverflow(UInt64(attoseconds / 1_000_000_000))
        return overflow || carried ? .max : sum
    }
}
