import ArgumentParser
package import FleetProtocol
import Foundation

/// `fleet-sim plot`: what the bench has measured, as a picture.
struct PlotCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plot", abstract: "Draws convergence time against the number of devices, as SVG.",
        discussion: """
            Reads what `fleet-sim bench converge -o json` has printed, in one file or several: the medians of ours and \
            of both floors for each number of devices. Other scenarios in the files are left out.

            EXAMPLE
              for n in 100 1000 10000; do fleet-sim bench converge --devices $n -o json; done > converge.json
              fleet-sim plot converge.json > converge.svg
            """)

    @Argument(help: "Files with one JSON object a line; - is standard input.")
    var files: [String]

    func run() throws {
        var results: [ConvergeResult] = []
        for file in files {
            let data = try read(file)
            for line in data.split(separator: UInt8(ascii: "\n")) {
                let value = try JSONValue(json: Array(line), limit: line.count)
                if let result = try ConvergeResult(value) { results.append(result) }
            }
        }
        guard !results.isEmpty else { throw LoadError("no result of `fleet-sim bench converge` is in these files") }
        print(ConvergePlot(results).svg, terminator: "")
    }

    private func read(_ file: String) throws -> Data {
        if file == "-" { return FileHandle.standardInput.readDataToEndOfFile() }
        guard let data = FileManager.default.contents(atPath: file) else {
            throw LoadError("reading \(file) failed: \(String(cString: strerror(errno)))")
        }
        return data
    }
}

/// The medians of one run of the bench, in milliseconds.
package struct ConvergeResult: Hashable, Sendable {
    package let devices: Int
    package let ours: Double
    package let bare: Double?
    package let equalBytes: Double?

    package init(devices: Int, ours: Double, bare: Double?, equalBytes: Double?) {
        self.devices = devices
        self.ours = ours
        self.bare = bare
        self.equalBytes = equalBytes
    }

    /// Reads a report; nil for one of another scenario.
    package init?(_ report: JSONValue) throws {
        guard let scenario = report["scenario"]?.stringValue else { throw LoadError("this is no report of the bench") }
        guard scenario == "converge" else { return nil }
        func median(_ value: JSONValue?) -> Double? {
            switch value?["medianMs"] {
            case .double(let number): number > 0 ? number : nil
            case .integer(let number): number > 0 ? Double(number) : nil
            default: nil
            }
        }
        guard let devices = report["parameters"]?["devices"]?.integerValue, devices > 0,
            let ours = median(report["result"])
        else { throw LoadError("this report of converge names no devices or no median") }
        self.init(
            devices: Int(devices), ours: ours, bare: median(report["floor"]?["bare"]),
            equalBytes: median(report["floor"]?["equalBytes"]))
    }
}
