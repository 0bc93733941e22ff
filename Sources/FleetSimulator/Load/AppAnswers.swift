import FleetProtocol

/// How simulated apps answer what they are told. Rates are parts of one.
package struct AppAnswers: Sendable {
    /// How long an app takes for a callback: any time in the range, all alike. An app that takes none answers before
    /// its agent says anything, so that a change is one status; else a change is two, `pending` and the answer.
    package var delay: ClosedRange<Duration> = .zero ... .zero
    /// Answers that are errors.
    package var errorRate = 0.0
    /// Answers that are `unsupported`.
    package var unsupportedRate = 0.0
    /// Apps that never answer.
    package var neverRate = 0.0

    package init() {}

    func state(using generator: inout some RandomNumberGenerator) -> PolicyState {
        guard errorRate + unsupportedRate > 0 else { return .applied }
        let draw = Double.random(in: 0..<1, using: &generator)
        return draw < errorRate ? .error : draw < errorRate + unsupportedRate ? .unsupported : .applied
    }

    func delay(using generator: inout some RandomNumberGenerator) -> Duration? {
        guard delay.upperBound > .zero else { return nil }
        let (low, high) = (delay.lowerBound.nanoseconds, delay.upperBound.nanoseconds)
        return .nanoseconds(Int64.random(in: low...high, using: &generator))
    }
}

extension Duration {
    var nanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }

    /// Reads `250ms`, `2s` or `5m`.
    init?(text: some StringProtocol) {
        let units: [(String, Double)] = [("ms", 0.001), ("s", 1), ("m", 60)]
        guard let (unit, scale) = units.first(where: { text.hasSuffix($0.0) }),
            let number = Double(text.dropLast(unit.count)), (0..<1e7).contains(number)
        else { return nil }
        self = .nanoseconds(Int64(number * scale * 1e9))
    }
}
