/// How many lines the guard may still write into the broker's log: whoever is refused decides how often it asks.
package struct LogBudget: Sendable {
    private static let lines = 20
    private static let period: Int64 = 10_000

    private var left = Self.lines
    private var since: Int64?
    private var silent = 0

    package init() {}

    /// - Parameter now: Milliseconds of a clock that does not jump.
    /// - Returns: nil where the line is to be left out; otherwise how many were left out before it.
    package mutating func take(at now: Int64) -> Int? {
        if since.map({ now - $0 >= Self.period }) ?? true { (left, since) = (Self.lines, now) }
        guard left > 0 else {
            silent += 1
            return nil
        }
        left -= 1
        defer { silent = 0 }
        return silent
    }
}
