package import FleetProtocol

/// Durations in nanoseconds, counted in buckets that are at most 0.4 % wide.
///
/// Takes what it is given. Whoever sends at a rate measures from when something was *due*, so that what waits behind a
/// slow one counts too; whoever waits for each answer before the next question says how often it meant to ask.
package struct Histogram: Sendable {
    private var buckets = [UInt64](repeating: 0, count: (64 - bits + 1) << bits)
    package private(set) var count: UInt64 = 0
    package private(set) var largest: UInt64 = 0
    private static let bits = 8

    package init() {}

    package mutating func add(_ value: UInt64) {
        buckets[Self.index(of: value)] += 1
        count += 1
        largest = max(largest, value)
    }

    /// Adds a duration that a loop measured which asks again only after the answer, though every `interval` was meant:
    /// with it what the questions would have waited that were not asked meanwhile.
    package mutating func add(_ value: UInt64, meantEvery interval: UInt64) {
        add(value)
        guard interval > 0 else { return }
        var missed = value
        while missed >= 2 * interval {
            missed -= interval
            add(missed)
        }
    }

    package mutating func add(_ other: Histogram) {
        for index in buckets.indices { buckets[index] += other.buckets[index] }
        count += other.count
        largest = max(largest, other.largest)
    }

    /// The value that this part of all values does not exceed; 0 without any.
    package func value(at part: Double) -> UInt64 {
        let rank = UInt64((part * Double(count)).rounded(.up))
        var seen: UInt64 = 0
        for (index, number) in buckets.enumerated() where number > 0 {
            seen += number
            if seen >= max(rank, 1) { return min(Self.upperBound(of: index), largest) }
        }
        return 0
    }

    package func milliseconds(at part: Double) -> Double { Double(value(at: part)) / 1e6 }

    /// Percentiles in milliseconds.
    package var value: JSONValue {
        func at(_ part: Double) -> JSONValue { .double(milliseconds(at: part).rounded(to: 3)) }
        return .object([
            "count": .integer(Int64(clamping: count)), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99),
            "p999": at(0.999), "max": at(1),
        ])
    }

    private static func index(of value: UInt64) -> Int {
        let magnitude = UInt64.bitWidth - value.leadingZeroBitCount
        guard magnitude > bits else { return Int(value) }
        let shift = magnitude - bits - 1
        return (shift + 1) << bits | Int(value >> shift) & (1 << bits - 1)
    }

    private static func upperBound(of index: Int) -> UInt64 {
        guard index >= 1 << bits else { return UInt64(index) }
        let shift = index >> bits - 1
        let base = UInt64(index & (1 << bits - 1) | 1 << bits)
        return base << shift + (1 << shift - 1)
    }
}
