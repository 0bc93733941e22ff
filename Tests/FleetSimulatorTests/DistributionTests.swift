import FleetWorld
import Foundation
import Testing

@testable import FleetSimulator

@Suite("What varies in a load")
struct DistributionTests {
    @Test("distributions are read as they are written")
    func read() {
        #expect(Distribution("20ms", of: .time) == .constant(0.02))
        #expect(Distribution("5ms..2s", of: .time) == .uniform(0.005...2))
        #expect(Distribution("exp:20ms", of: .time) == .exponential(mean: 0.02))
        #expect(Distribution("normal:1m,5s", of: .time) == .normal(mean: 60, deviation: 5))
        #expect(Distribution("0.25", of: .part) == .constant(0.25))
        #expect(Distribution("0..0.1", of: .part) == .uniform(0...0.1))
        #expect(Distribution("0", of: .time) == .constant(0))
    }

    @Test(
        "what is none is refused",
        arguments: [
            "", "20", "-1s", "2s..1s", "5ms..", "exp:", "exp:-1s", "normal:1s", "normal:1s,2s,3s", "1e99s", "nans",
        ])
    func refuse(text: String) {
        #expect(Distribution(text, of: .time) == nil)
    }

    @Test("parts are between none and all", arguments: ["1.1", "-0.1", "0.5..1.5", "nan", "50%"])
    func parts(text: String) {
        #expect(Distribution(text, of: .part) == nil)
    }

    @Test(
        "what is drawn is distributed as it says, and never negative",
        arguments: [
            (Distribution.constant(3), 3, 0), (.uniform(2...4), 3, 2 / 12.0.squareRoot()),
            (.exponential(mean: 3), 3, 3),
            (.normal(mean: 3, deviation: 0.5), 3, 0.5),
        ])
    func draw(distribution: Distribution, mean: Double, deviation: Double) {
        var generator = SplitMix64(seed: 7)
        let values = (0..<50_000).map { _ in distribution.draw(using: &generator) }
        let average = values.reduce(0, +) / Double(values.count)
        let spread = (values.reduce(0) { $0 + ($1 - average) * ($1 - average) } / Double(values.count)).squareRoot()
        #expect(abs(average - mean) < 0.06)
        #expect(abs(spread - deviation) < 0.1)
        #expect(values.allSatisfy { $0 >= 0 && $0.isFinite })
        if case .normal = distribution {
            let within = values.count { abs($0 - mean) < deviation }
            #expect((0.67...0.695).contains(Double(within) / Double(values.count)))
        }
    }

    @Test("a normal distribution is cut off at nothing")
    func cutOff() {
        var generator = SplitMix64(seed: 7)
        let distribution = Distribution.normal(mean: 0.1, deviation: 1)
        #expect((0..<1_000).allSatisfy { _ in distribution.draw(using: &generator) >= 0 })
    }

    @Test("an app answers by its own habit, and each answer has one outcome")
    func habits() {
        var answers = AppAnswers()
        answers.errors = .constant(0.7)
        answers.unsupported = .constant(0.7)
        answers.silence = .constant(0.25)
        var generator = SplitMix64(seed: 3)
        let habits = (0..<4_000).map { _ in answers.habit(using: &generator) }
        #expect((900...1_100).contains(habits.count(where: \.isSilent)))
        let outcomes = habits.map { $0.state(using: &generator) }
        #expect((2_700...2_900).contains(outcomes.count { $0 == .error }))
        #expect(!outcomes.contains(.applied))
    }

    @Test("a device that is cut is away for its part of the time")
    func absence() {
        #expect(Flapping.absence(after: .seconds(90), offline: 0.1) == .seconds(10))
        #expect(Flapping.absence(after: .seconds(90), offline: 0) == .zero)
    }
}
