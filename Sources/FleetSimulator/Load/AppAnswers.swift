import Glibc

/// How simulated apps answer what they are told. Parts are drawn once for each app, times for each answer.
package struct AppAnswers: Sendable {
    /// How long an app takes for a callback. An app that takes none answers before its agent says anything, so that a
    /// change is one status; else a change is two, `pending` and the answer.
    package var delay = Distribution.constant(0)
    /// Answers that are errors.
    package var errors = Distribution.constant(0)
    /// Answers that are `unsupported`.
    package var unsupported = Distribution.constant(0)
    /// Whether an app never answers.
    package var silence = Distribution.constant(0)

    package init() {}

    /// What one app is like.
    struct Habit {
        let errors: Float
        let unsupported: Float
        let isSilent: Bool

        /// Answers everything, as it should.
        static let prompt = Habit(errors: 0, unsupported: 0, isSilent: false)

        func state(using generator: inout some RandomNumberGenerator) -> Answer {
            guard errors + unsupported > 0 else { return .applied }
            let draw = Float.random(in: 0..<1, using: &generator)
            return draw < errors ? .error : draw < errors + unsupported ? .unsupported : .applied
        }
    }

    enum Answer { case applied, error, unsupported }

    func habit(using generator: inout some RandomNumberGenerator) -> Habit {
        let errors = Self.part(self.errors, &generator)
        let isSilent = !silence.isZero && Float.random(in: 0..<1, using: &generator) < Self.part(silence, &generator)
        // An answer has one outcome.
        return Habit(
            errors: errors, unsupported: min(Self.part(unsupported, &generator), 1 - errors), isSilent: isSilent)
    }

    private static func part(_ distribution: Distribution, _ generator: inout some RandomNumberGenerator) -> Float {
        distribution.isZero ? 0 : Float(min(1, distribution.draw(using: &generator)))
    }

    func delay(using generator: inout some RandomNumberGenerator) -> Duration? {
        delay.isZero ? nil : .nanoseconds(Int64(min(delay.draw(using: &generator), 1e7) * 1e9))
    }
}

extension Double {
    var logarithm: Double { log(self) }
    /// The cosine of so many turns.
    var turnedCosine: Double { cos(2 * .pi * self) }
}

extension Duration {
    var nanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }

    /// Reads `250ms`, `2s` or `5m`; `0` alone needs no unit.
    init?(text: some StringProtocol) {
        if text == "0" {
            self = .zero
            return
        }
        let units: [(String, Double)] = [("ms", 0.001), ("s", 1), ("m", 60)]
        guard let (unit, scale) = units.first(where: { text.hasSuffix($0.0) }),
            let number = Double(text.dropLast(unit.count)), (0..<1e7).contains(number)
        else { return nil }
        self = .nanoseconds(Int64(number * scale * 1e9))
    }
}
