/// Convergence time against the number of devices, both by powers of ten, for ours and both floors.
package struct ConvergePlot {
    private struct Series {
        let name: String
        let className: String
        let color: String
        /// By the number of devices.
        let points: [(x: Double, y: Double)]
    }

    private let series: [Series]
    private let across: LogAxis
    private let up: LogAxis
    private static let (width, height) = (760.0, 480.0)
    private static let (left, right, top, bottom) = (80.0, 30.0, 56.0, 64.0)

    /// Of several results for one number of devices the median is drawn.
    package init(_ results: [ConvergeResult]) {
        func points(_ value: (ConvergeResult) -> Double?) -> [(x: Double, y: Double)] {
            Dictionary(grouping: results, by: \.devices).sorted { $0.key < $1.key }.compactMap { devices, results in
                let values = results.compactMap(value)
                return values.isEmpty ? nil : (Double(devices), values.median)
            }
        }
        series = [
            Series(name: "Fleetbus, committed", className: "ours", color: "#0072b2", points: points(\.ours)),
            Series(name: "floor, equal bytes", className: "equal", color: "#d55e00", points: points(\.equalBytes)),
            Series(name: "floor, bare", className: "bare", color: "#777777", points: points(\.bare)),
        ].filter { !$0.points.isEmpty }
        let all = series.flatMap(\.points)
        across = LogAxis(all.map(\.x), from: Self.left, to: Self.width - Self.right)
        up = LogAxis(all.map(\.y), from: Self.height - Self.bottom, to: Self.top)
    }

    package var svg: String {
        let (left, right) = (Self.left, Self.width - Self.right)
        let (top, bottom) = (Self.top, Self.height - Self.bottom)
        let title = "One change for the fleet: time until the last status is committed"
        var lines = [
            #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \#(Self.text(Self.width)) \#(Self.text(Self.height))" "#
                + #"font-family="sans-serif" font-size="13" role="img">"#,
            "<title>\(title)</title>",
            ##"<rect width="100%" height="100%" fill="#ffffff"/>"##,
            Self.label(title, x: left, y: 28, anchor: "start", more: #" font-size="16" font-weight="bold""#),
        ]
        for tick in across.ticks {
            let x = across.position(tick)
            lines.append(Self.line(x, top, x, bottom))
            lines.append(Self.label(Self.count(tick), x: x, y: bottom + 20, anchor: "middle"))
        }
        for tick in up.ticks {
            let y = up.position(tick)
            lines.append(Self.line(left, y, right, y))
            lines.append(Self.label(Self.time(tick), x: left - 8, y: y + 4, anchor: "end"))
        }
        lines.append(Self.label("devices", x: (left + right) / 2, y: bottom + 46, anchor: "middle"))
        for one in series { lines += drawing(of: one) }
        for (index, one) in series.enumerated() {
            let y = top + 18 + Double(index) * 20
            lines.append(
                #"<line x1="\#(Self.text(left + 14))" y1="\#(Self.text(y))" x2="\#(Self.text(left + 40))" "#
                    + #"y2="\#(Self.text(y))" stroke="\#(one.color)" stroke-width="2.5"/>"#)
            lines.append(Self.label(one.name, x: left + 48, y: y + 4, anchor: "start"))
        }
        return (lines + ["</svg>"]).joined(separator: "\n") + "\n"
    }

    private func drawing(of one: Series) -> [String] {
        let places = one.points.map { (x: across.position($0.x), y: up.position($0.y), of: $0) }
        let path = places.map { "\(Self.text($0.x)),\(Self.text($0.y))" }.joined(separator: " ")
        return [
            #"<polyline class="\#(one.className)" points="\#(path)" fill="none" stroke="\#(one.color)" "#
                + #"stroke-width="2.5"/>"#
        ]
            + places.map { place in
                #"<circle class="\#(one.className)" cx="\#(Self.text(place.x))" cy="\#(Self.text(place.y))" r="4" "#
                    + #"fill="\#(one.color)"><title>\#(Self.count(place.of.x)) devices: \#(Self.time(place.of.y))"#
                    + "</title></circle>"
            }
    }

    private static func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double) -> String {
        #"<line x1="\#(text(x1))" y1="\#(text(y1))" x2="\#(text(x2))" y2="\#(text(y2))" stroke="lightgray"/>"#
    }

    private static func label(_ text: String, x: Double, y: Double, anchor: String, more: String = "") -> String {
        "<text x=\"\(Self.text(x))\" y=\"\(Self.text(y))\" text-anchor=\"\(anchor)\" fill=\"#222222\"\(more)>\(text)</text>"
    }

    private static func text(_ number: Double) -> String {
        let rounded = number.rounded(to: 1)
        return rounded == rounded.rounded() ? "\(Int(rounded))" : "\(rounded)"
    }

    /// With a comma between thousands.
    private static func count(_ number: Double) -> String {
        let digits = Array("\(Int(number.rounded()))")
        return digits.enumerated().map { index, digit in
            index > 0 && (digits.count - index) % 3 == 0 ? ",\(digit)" : "\(digit)"
        }.joined()
    }

    private static func time(_ milliseconds: Double) -> String {
        milliseconds >= 1_000
            ? "\(text(milliseconds / 1_000)) s" : milliseconds >= 1 ? "\(text(milliseconds)) ms" : "\(milliseconds) ms"
    }
}

/// An axis on which equal factors are equally far.
struct LogAxis {
    /// 1, 2 and 5 of each power of ten within the axis, which begins and ends with one.
    let ticks: [Double]
    private let start: Double
    private let end: Double

    init(_ values: [Double], from start: Double, to end: Double) {
        self.start = start
        self.end = end
        let low = values.min() ?? 1
        let high = max(values.max() ?? 10, low)
        var steps: [Double] = []
        var power = 1e-6
        while power < 1e12 {
            steps += [power, 2 * power, 5 * power]
            power *= 10
        }
        let first = steps.lastIndex { $0 <= low * 1.000_001 } ?? 0
        let last = max(first + 1, steps.firstIndex { $0 >= high * 0.999_999 } ?? steps.count - 1)
        ticks = Array(steps[first...min(last, steps.count - 1)])
    }

    func position(_ value: Double) -> Double {
        guard let low = ticks.first, let high = ticks.last else { return start }
        return start + (end - start) * (value / low).logarithm / (high / low).logarithm
    }
}
