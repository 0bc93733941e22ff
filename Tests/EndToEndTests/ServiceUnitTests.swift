import Foundation
import TestSupport
import Testing

@Suite("The units in deploy/systemd")
struct ServiceUnitTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "deploy/systemd")

    static let units = (try? FileManager.default.contentsOfDirectory(atPath: folder.path))?.sorted() ?? []

    @Test("there is one for each part that runs")
    func parts() {
        #expect(Self.units == ["fleet-agent.service", "fleet-controller@.service", "fleetbus-broker@.service"])
    }

    @Test("each starts its program as that takes it, and as nobody who could do more", arguments: units)
    func commands(unit: String) async throws {
        let lines = try String(contentsOf: Self.folder.appending(path: unit), encoding: .utf8).split(separator: "\n")
        func values(_ key: String) -> [Substring] {
            lines.filter { $0.hasPrefix("\(key)=") }.map { $0.dropFirst(key.count + 1) }
        }
        #expect(values("User").count == 1 && values("User") != ["root"])
        #expect(values("CapabilityBoundingSet") == [""] && values("NoNewPrivileges") == ["yes"])
        let command = try #require(values("ExecStart").first)
        let words = command.split(separator: " ").map { String($0) }.filter { !$0.hasPrefix("$") }
        let name = try #require(words.first?.split(separator: "/").last)
        guard name != "mosquitto" else {
            #expect(words.dropFirst() == ["-c", "/var/lib/fleetbus/%i/broker/mosquitto.conf"])
            return
        }
        // In another place, where nothing is: what it is to be started with is missing, and it says so.
        try await withTemporaryFolder { folder in
            let arguments = words.dropFirst().map { $0.replacing("/var/lib", with: folder.path) }
            let started = try await run(program(named: String(name)), Array(arguments))
            #expect(started.status == 1)
            #expect(started.errors.contains(folder.path) && !started.errors.contains("Usage"))
        }
    }
}
