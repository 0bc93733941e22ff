import FleetProtocol
import Foundation
import GRDB
import Glibc
import Mosquitto

/// What the figures depend on.
enum Disclosure {
    static func value(broker settings: [String]) -> JSONValue {
        var name = utsname()
        uname(&name)
        let kernel = withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let processor = ProcessUsage.lines("/proc/cpuinfo").first { $0.hasPrefix("model name") }?
            .split(separator: ":").last.map { $0.drop { $0 == " " } }
        var load = [0.0, 0.0, 0.0]
        getloadavg(&load, 3)
        return .object([
            "processor": .string(processor.map(String.init) ?? "unknown"),
            "cores": .integer(Int64(ProcessInfo.processInfo.activeProcessorCount)),
            "memoryMiB": .integer(Int64(ProcessInfo.processInfo.physicalMemory >> 20)), "kernel": .string(kernel),
            "loadAverage": .double(load[0].rounded(to: 2)), "build": .string(build), "versions": versions,
            "broker": .array(settings.map(JSONValue.string)),
            "bareBroker": .array(BenchHost.bareSettings.map(JSONValue.string)),
        ])
    }

    private static var versions: JSONValue {
        .object([
            "fleetSim": .string(LoadPlan.agentVersion), "mosquitto": mosquitto.map(JSONValue.string),
            "libmosquitto": .string(EventLoop.libraryVersion), "sqlite": sqlite.map(JSONValue.string),
            "swift": .string(swift),
        ])
    }

    private static var build: String {
        #if DEBUG
            "debug"
        #else
            "release"
        #endif
    }

    private static var swift: String {
        #if compiler(>=6.4)
            "6.4 or newer"
        #elseif compiler(>=6.3.2)
            "6.3.2 or newer"
        #elseif compiler(>=6.3.1)
            "6.3.1"
        #else
            "6.3"
        #endif
    }

    private static var sqlite: String? {
        try? DatabaseQueue().read { try String.fetchOne($0, sql: "SELECT sqlite_version()") }
    }

    /// From the first line of its help: `mosquitto version 2.0.11`.
    private static let mosquitto: String? = {
        let process = Process()
        let pipe = Pipe()
        guard let path = try? Child.path(of: "mosquitto") else { return nil }
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = ["-h"]
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return nil }
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return text.split(separator: "\n").first?.split(separator: " ").last.map(String.init)
    }()
}
