import Testing

@testable import FleetProtocol

/// SplitMix64: the same values for the same seed, so that what a random test finds can be found again.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
    mutating func number(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &self) }

    mutating func pick<Value>(_ values: [Value]) throws -> Value { try #require(values.randomElement(using: &self)) }

    /// A number as it may stand anywhere from 0 up: mostly small, now and then the largest there is.
    mutating func count() -> Int64 {
        chance(10) ? JSONValue.largestInteger - number(0...1) : number(0...5_000)
    }

    mutating func maybe<Value>(_ body: (inout SeededGenerator) throws -> Value) rethrows -> Value? {
        chance(50) ? try body(&self) : nil
    }

    mutating func list<Value>(_ count: ClosedRange<Int>, _ body: (inout SeededGenerator) throws -> Value) rethrows
        -> [Value]
    {
        var result: [Value] = []
        for _ in 0..<Int.random(in: count, using: &self) { result.append(try body(&self)) }
        return result
    }
}
