/// One family of figures, as Prometheus knows them.
package struct Metric: Hashable, Sendable {
    enum Kind: String, Sendable { case gauge, counter }

    package struct Label: Hashable, Sendable {
        package let name: String
        package let value: String
    }

    package struct Sample: Hashable, Sendable {
        package let labels: [Label]
        package let value: Double
    }

    package let name: String
    let kind: Kind
    /// One line, without backslashes.
    let help: String
    package private(set) var samples: [Sample] = []

    /// A family without samples, which are added.
    init(_ name: String, _ help: String) {
        self.name = name
        self.kind = .gauge
        self.help = help
    }

    /// A family of one figure.
    init(_ name: String, _ help: String, kind: Kind = .gauge, _ value: some BinaryInteger) {
        self.init(name, help, kind: kind, Double(value))
    }

    /// A family of one figure.
    init(_ name: String, _ help: String, kind: Kind = .gauge, _ value: Double) {
        self.name = name
        self.kind = kind
        self.help = help
        samples = [Sample(labels: [], value: value)]
    }

    mutating func add(_ value: Int64, _ labels: KeyValuePairs<String, String>) {
        samples.append(Sample(labels: labels.map { Label(name: $0.key, value: $0.value) }, value: Double(value)))
    }
}

extension [Metric] {
    /// In Prometheus' text format, version 0.0.4.
    var text: String {
        var text = ""
        for metric in self where !metric.samples.isEmpty {
            text += "# HELP \(metric.name) \(metric.help)\n# TYPE \(metric.name) \(metric.kind.rawValue)\n"
            for sample in metric.samples { text += "\(metric.name)\(sample.labels.text) \(sample.value.text)\n" }
        }
        return text
    }
}

extension [Metric.Label] {
    fileprivate var text: String {
        isEmpty ? "" : "{" + map { "\($0.name)=\"\($0.value.escaped)\"" }.joined(separator: ",") + "}"
    }
}

extension String {
    fileprivate var escaped: String {
        var result = ""
        for character in unicodeScalars {
            switch character {
            case "\\": result += "\\\\"
            case "\"": result += "\\\""
            case "\n": result += "\\n"
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }
}

extension Double {
    fileprivate var text: String { Int64(exactly: self).map { "\($0)" } ?? "\(self)" }
}
