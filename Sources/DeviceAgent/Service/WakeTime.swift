/// When the core is to be woken next: one timer at a time, but for an earlier one. Times are running ones, in milliseconds.
package struct WakeTime {
    private var at: Int64?

    package init() {}

    /// How long to wait for `next`; nil where a timer is under way that rings no later.
    package mutating func set(for next: Int64, at total: Int64) -> Int64? {
        if let at, at > total, at <= next { return nil }
        at = next
        return next - total
    }

    /// The timer that was set for that time has rung: maybe a little early, by the core's clock, and then it is set again.
    /// False where another is waited for.
    package mutating func rang(for time: Int64) -> Bool {
        guard at == time else { return false }
        at = nil
        return true
    }
}
