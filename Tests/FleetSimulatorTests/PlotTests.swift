import FleetProtocol
import Foundation
import FoundationXML
import TestSupport
import Testing

@testable import FleetSimulator

@Suite("The plot of convergence times")
struct PlotTests {
    private static func report(_ devices: Int, _ ours: Double, _ bare: Double, _ equal: Double?) -> JSONValue {
        .object([
            "scenario": "converge", "parameters": .object(["devices": .integer(Int64(devices))]),
            "result": .object(["medianMs": .double(ours)]),
            "floor": .object([
                "bare": .object(["medianMs": .double(bare)]),
                "equalBytes": equal.map { .object(["medianMs": .double($0)]) },
            ]),
        ])
    }

    @Test("has a point for each measurement, and a line for each series")
    func points() throws {
        let reports = [
            Self.report(100, 9, 4, 5), Self.report(1_000, 60, 35, 40), Self.report(10_000, 700, 350, nil),
            Self.report(1_000, 80, 35, 40),
        ]
        let results = try reports.compactMap { try ConvergeResult($0) }
        let drawn = try Drawing(ConvergePlot(results).svg)
        #expect(drawn.circles == ["ours": 3, "bare": 3, "equal": 2])
        #expect(drawn.lines == ["ours": 3, "bare": 3, "equal": 2])
        #expect(drawn.texts.contains("devices"))
        #expect(drawn.texts.contains("10,000"))
        #expect(drawn.texts.contains("1,000 devices: 70 ms"))
        #expect(drawn.texts.contains("10,000 devices: 700 ms"))
    }

    @Test("keeps every point within its axes, the larger further up and to the right")
    func places() throws {
        let results = [1, 30, 50_000].map {
            ConvergeResult(devices: $0, ours: Double($0) / 7, bare: nil, equalBytes: nil)
        }
        let drawn = try Drawing(ConvergePlot(results).svg)
        #expect(drawn.circles == ["ours": 3])
        #expect(drawn.places.allSatisfy { (80...730).contains($0.x) && (56...416).contains($0.y) })
        #expect(drawn.places.map(\.x) == drawn.places.map(\.x).sorted())
        #expect(drawn.places.map(\.y) == drawn.places.map(\.y).sorted(by: >))
    }

    @Test("is drawn of a single measurement too")
    func single() throws {
        let drawn = try Drawing(ConvergePlot([ConvergeResult(devices: 100, ours: 10, bare: 5, equalBytes: 5)]).svg)
        #expect(drawn.circles == ["ours": 1, "bare": 1, "equal": 1])
        #expect(drawn.places.allSatisfy { $0.x.isFinite && $0.y.isFinite })
    }

    @Test("an axis has ticks around all that is on it")
    func axis() {
        let axis = LogAxis([3, 900], from: 0, to: 100)
        #expect(axis.ticks.map { Int($0.rounded()) } == [2, 5, 10, 20, 50, 100, 200, 500, 1_000])
        #expect(axis.position(2) == 0)
        #expect(abs(axis.position(1_000) - 100) < 1e-9)
    }

    @Test("other scenarios are left out, and what is no report is said")
    func others() throws {
        #expect(try ConvergeResult(.object(["scenario": "decode"])) == nil)
        #expect(throws: LoadError.self) { try ConvergeResult(.object(["answer": 42])) }
        #expect(throws: LoadError.self) { try ConvergeResult(.object(["scenario": "converge"])) }
    }

    /// What stands in an SVG, read by an XML parser.
    private final class Drawing: NSObject, XMLParserDelegate {
        var circles: [String: Int] = [:]
        var lines: [String: Int] = [:]
        var texts: Set<String> = []
        var places: [(x: Double, y: Double)] = []
        private var text = ""

        init(_ svg: String) throws {
            super.init()
            let parser = XMLParser(data: Data(svg.utf8))
            parser.delegate = self
            guard parser.parse() else {
                throw TestFailure("no XML: \(parser.parserError.map { "\($0)" } ?? "")\n\(svg)")
            }
        }

        func parser(
            _ parser: XMLParser, didStartElement element: String, namespaceURI: String?, qualifiedName: String?,
            attributes: [String: String]
        ) {
            text = ""
            if element == "circle" {
                circles[attributes["class"] ?? "", default: 0] += 1
                places.append((Double(attributes["cx"] ?? "") ?? .nan, Double(attributes["cy"] ?? "") ?? .nan))
            }
            if element == "polyline" {
                lines[attributes["class"] ?? "", default: 0] += (attributes["points"] ?? "").split(separator: " ").count
            }
        }

        func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }

        func parser(
            _ parser: XMLParser, didEndElement element: String, namespaceURI: String?, qualifiedName: String?
        ) {
            if element == "text" || element == "title" { texts.insert(text) }
        }
    }
}
