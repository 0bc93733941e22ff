/// How a number varies: a time in seconds, or a part of one.
package enum Distribution: Hashable, Sendable {
    case constant(Double)
    /// Anything in the range, all alike.
    case uniform(ClosedRange<Double>)
    /// Independent of what was before, as arrivals and failures are.
    case exponential(mean: Double)
    case normal(mean: Double, deviation: Double)

    /// What a number is, and so how it is written.
    package enum Kind: Sendable {
        /// `20ms`, `2s`, `5m`
        case time
        /// `0` to `1`
        case part

        fileprivate func number(_ text: some StringProtocol) -> Double? {
            switch self {
            case .time: Duration(text: text)?.inSeconds
            case .part: Double(text).flatMap { (0...1).contains($0) ? $0 : nil }
            }
        }

        var expected: String {
            switch self {
            case .time: "a time such as 20ms, or 5ms..50ms, exp:20ms, normal:20ms,5ms"
            case .part: "a part of one such as 0.01, or 0..0.1, exp:0.02, normal:0.05,0.01"
            }
        }
    }

    /// Reads `A`, `A..B`, `exp:MEAN` or `normal:MEAN,DEVIATION`.
    package init?(_ text: String, of kind: Kind) {
        if text.hasPrefix("exp:") {
            guard let mean = kind.number(text.dropFirst(4)) else { return nil }
            self = .exponential(mean: mean)
        } else if text.hasPrefix("normal:") {
            let words = text.dropFirst(7).split(separator: ",", omittingEmptySubsequences: false)
            guard words.count == 2, let mean = kind.number(words[0]), let deviation = kind.number(words[1]) else {
                return nil
            }
            self = .normal(mean: mean, deviation: deviation)
        } else if let dots = text.firstRange(of: "..") {
            guard let low = kind.number(text[..<dots.lowerBound]), let high = kind.number(text[dots.upperBound...]),
                low <= high
            else { return nil }
            self = .uniform(low...high)
        } else {
            guard let number = kind.number(text) else { return nil }
            self = .constant(number)
        }
    }

    package var isZero: Bool {
        switch self {
        case .constant(let value), .exponential(let value): value == 0
        case .uniform(let range): range.upperBound == 0
        case .normal(let mean, let deviation): mean == 0 && deviation == 0
        }
    }

    /// Never negative.
    package func draw(using generator: inout some RandomNumberGenerator) -> Double {
        switch self {
        case .constant(let value): value
        case .uniform(let range): Double.random(in: range, using: &generator)
        case .exponential(let mean): -mean * Double.random(in: .leastNormalMagnitude..<1, using: &generator).logarithm
        case .normal(let mean, let deviation): max(0, mean + deviation * Self.normal(using: &generator))
        }
    }

    /// Of mean 0 and deviation 1 (Box and Muller, 1958).
    private static func normal(using generator: inout some RandomNumberGenerator) -> Double {
        let radius = (-2 * Double.random(in: .leastNormalMagnitude..<1, using: &generator).logarithm).squareRoot()
        return radius * Double.random(in: 0..<1, using: &generator).turnedCosine
    }
}
