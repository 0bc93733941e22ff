/// Random numbers that are the same for the same seed, on every machine (Steele, Lea and Flood, 2014).
package struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// 0 up to, not including, `limit`.
    package mutating func below(_ limit: Int) -> Int { limit > 0 ? Int((next() >> 33) % UInt64(limit)) : 0 }

    package mutating func milliseconds(_ range: ClosedRange<Int>) -> Int64 {
        Int64(range.lowerBound + below(range.count))
    }

    package mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
}
