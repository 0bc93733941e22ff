import FleetProtocol

/// What one scenario gave, in the form that is printed.
struct BenchReport: Sendable {
    /// The figure that is compared, of the floor too.
    struct Figure: Sendable {
        /// How it is called in the result: `medianMs`, `perSecond` …
        let name: String
        let unit: String
        let ours: Double
        var bare: Double?
        var equalBytes: Double?

        func ratio(to floor: Double?) -> Double? {
            guard let floor, floor > 0 else { return nil }
            return (ours / floor).rounded(to: 3)
        }
    }

    let scenario: String
    let parameters: JSONValue
    let result: JSONValue
    var floor: JSONValue = .null
    var figure: Figure?
    var lost = 0
    var duplicated = 0
    var reordered = 0
    var brokerSettings: [String] = []
    /// Lines for people, behind the table's.
    var notes: [String] = []
    /// Bounds that were broken: what cannot be noise.
    var broken: [String] = []

    var isWrong: Bool { lost + duplicated + reordered > 0 || !broken.isEmpty }

    var value: JSONValue {
        func number(_ value: Double?) -> JSONValue { value.map(JSONValue.double) ?? .null }
        return .object([
            "scenario": .string(scenario), "parameters": parameters, "result": result, "floor": floor,
            "ratio": .object([
                "bare": number(figure?.ratio(to: figure?.bare)),
                "equalBytes": number(figure?.ratio(to: figure?.equalBytes)),
            ]), "lost": .integer(Int64(lost)), "duplicated": .integer(Int64(duplicated)),
            "reordered": .integer(Int64(reordered)), "machine": Disclosure.value(broker: brokerSettings),
        ])
    }

    // MARK: The table

    static let header = Self.row([
        "SCENARIO", "OURS", "BARE FLOOR", "EQUAL BYTES", "RATIO", "RATIO =", "LOST", "DOUBLE", "DISORDER",
    ])

    var line: String {
        func text(_ value: Double?) -> String {
            guard let figure, let value else { return "·" }
            return "\(value >= 100 ? "\(Int(value.rounded()))" : "\(value.rounded(to: 2))") \(figure.unit)"
        }
        func text(ratio: Double?) -> String { ratio.map { "\($0.rounded(to: 2))" } ?? "·" }
        let row = Self.row([
            scenario, text(figure?.ours), text(figure?.bare), text(figure?.equalBytes),
            text(ratio: figure?.ratio(to: figure?.bare)), text(ratio: figure?.ratio(to: figure?.equalBytes)),
            "\(lost)", "\(duplicated)", "\(reordered)",
        ])
        return ([row] + notes.map { "  " + $0 } + broken.map { "  BROKEN: " + $0 }).joined(separator: "\n")
    }

    private static func row(_ cells: [String]) -> String {
        let widths = [10, 14, 14, 14, 8, 8, 6, 7, 8]
        return zip(cells, widths).enumerated().map { index, cell in
            let space = String(repeating: " ", count: max(0, cell.1 - cell.0.count))
            return index == 0 ? cell.0 + space : space + cell.0
        }.joined(separator: " ")
    }
}

extension [Double] {
    var median: Double {
        guard !isEmpty else { return 0 }
        let sorted = sorted()
        return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2
    }

    /// In milliseconds, from seconds.
    var millisecondsValue: JSONValue { .array(map { .double(($0 * 1_000).rounded(to: 2)) }) }

    var roundedValue: JSONValue { .array(map { .double($0.rounded(to: 1)) }) }
}

extension JSONValue {
    static func milliseconds(_ seconds: Double) -> JSONValue { .double((seconds * 1_000).rounded(to: 2)) }
}
