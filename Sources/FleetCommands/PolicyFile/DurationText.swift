/// Durations as people write them: `90s`, `5m`, `12h`, `90d`, or whole seconds.
enum DurationText {
    static let expectation = "expected a duration such as 90s, 5m, 12h, 90d, or whole seconds"

    private static let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]

    /// The seconds in the largest unit in which they are whole.
    static func text(_ seconds: Int64) -> String {
        let unit = units.filter { seconds.isMultiple(of: $0.value) }.max { $0.value < $1.value }
        return unit.map { "\(seconds / $0.value)\($0.key)" } ?? "\(seconds)s"
    }

    /// The seconds in the unit that `example` is written in, if they are whole in it.
    static func text(_ seconds: Int64, like example: String) -> String {
        guard let unit = example.last, let factor = units[unit] else { return "\(seconds)" }
        return seconds.isMultiple(of: factor) ? "\(seconds / factor)\(unit)" : "\(seconds)s"
    }

    static func seconds(_ text: some StringProtocol) -> Int64? {
        guard let last = text.last else { return nil }
        let factor = units[last]
        let digits = factor == nil ? text[...] : text.dropLast()
        guard !digits.isEmpty, digits.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }),
            let number = Int64(digits)
        else { return nil }
        let (seconds, overflow) = number.multipliedReportingOverflow(by: factor ?? 1)
        return overflow ? nil : seconds
    }
}
