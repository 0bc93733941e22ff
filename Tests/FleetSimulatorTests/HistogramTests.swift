import FleetSimulator
import Testing

@Suite("Percentiles")
struct HistogramTests {
    @Test("are at most 0.4 % too large")
    func precision() {
        var histogram = Histogram()
        for value in 1...100_000 { histogram.add(UInt64(value) * 1_000) }
        for part in [0.01, 0.5, 0.9, 0.99, 1] {
            let exact = part * 1e8
            #expect((exact...exact * 1.004).contains(Double(histogram.value(at: part))))
        }
        #expect(Histogram().value(at: 0.5) == 0)
    }

    @Test("hold for the smallest and the largest values")
    func extremes() {
        var histogram = Histogram()
        for value in [0, 1, 255, 256, 257, .max] as [UInt64] { histogram.add(value) }
        #expect(histogram.value(at: 0.01) == 0)
        #expect(histogram.value(at: 0.5) == 255)
        #expect(histogram.value(at: 1) == .max)
    }

    @Test("count what was not asked while one answer was waited for")
    func coordinatedOmission() {
        // 10 ms between questions, 99 answers of 1 ms and one of a second: it hid 99 questions.
        var blind = Histogram()
        var corrected = Histogram()
        for value in [UInt64](repeating: 1_000_000, count: 99) + [1_000_000_000] {
            blind.add(value)
            corrected.add(value, meantEvery: 10_000_000)
        }
        #expect(blind.count == 100)
        #expect(corrected.count == 199)
        #expect(blind.milliseconds(at: 0.9) < 1.01)
        // Of 199 waits the 180th: 99 short ones, then 10, 20 … 1000 ms.
        #expect((810...814).contains(corrected.milliseconds(at: 0.9)))
        var none = Histogram()
        none.add(5, meantEvery: 0)
        #expect(none.count == 1)
    }

    @Test("of several histograms are those of all their values")
    func merged() {
        var (first, second, both) = (Histogram(), Histogram(), Histogram())
        for value in 1...1_000 as ClosedRange<UInt64> {
            if value % 3 == 0 { first.add(value) } else { second.add(value) }
            both.add(value)
        }
        first.add(second)
        #expect(first.count == 1_000)
        for part in [0.1, 0.5, 0.99, 1] { #expect(first.value(at: part) == both.value(at: part)) }
    }
}
