import FleetProtocol
import Foundation
import Glibc

/// What one scenario gave, in the form that is printed.
struct BenchReport {
    let scenario: String
    let parameters: JSONValue
    let result: JSONValue
    var floor: JSONValue = .null
    /// To the bare floor; the equal-bytes floor is not measured yet.
    var bareRatio: Double?
    var lost = 0
    var duplicated = 0
    var reordered = 0
    /// One line for people.
    let line: String

    var value: JSONValue {
        .object([
            "scenario": .string(scenario), "parameters": parameters, "result": result, "floor": floor,
            "ratio": .object(["bare": bareRatio.map { .double($0.rounded(to: 3)) } ?? .null, "equalBytes": .null]),
            "lost": .integer(Int64(lost)), "duplicated": .integer(Int64(duplicated)),
            "reordered": .integer(Int64(reordered)), "machine": Self.machine,
        ])
    }

    /// What the figures depend on.
    static var machine: JSONValue {
        var name = utsname()
        uname(&name)
        let kernel = withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let processor = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?
            .split(separator: "\n").first { $0.hasPrefix("model name") }?
            .split(separator: ":").last.map { $0.trimmingCharacters(in: .whitespaces) }
        var load = [0.0]
        getloadavg(&load, 1)
        #if DEBUG
            let build = "debug"
        #else
            let build = "release"
        #endif
        return .object([
            "processor": processor.map(JSONValue.string),
            "cores": .integer(Int64(ProcessInfo.processInfo.activeProcessorCount)),
            "memoryMiB": .integer(Int64(ProcessInfo.processInfo.physicalMemory >> 20)), "kernel": .string(kernel),
            "loadAverage": .double(load[0].rounded(to: 2)), "build": .string(build),
        ])
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
}
