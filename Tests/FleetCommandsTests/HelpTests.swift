import TestSupport
import Testing

@Suite("Help")
struct HelpTests {
    /// Those that have examples.
    private static let commands = [
        "", "init", "broker configure", "enroll device", "device remove", "user add", "key rotate", "group set",
        "apply",
        "delete", "get apps", "get policies", "get history", "get events", "status", "watch",
    ]

    @Test("has examples that fit into 80 columns, each a line of its own", arguments: commands)
    func examples(command: String) async throws {
        let words = command.split(separator: " ").map(String.init)
        let result = try await run(program(named: "fleetctl"), ["help"] + words, environment: ["COLUMNS": "80"])
        let lines = result.output.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex(of: "EXAMPLES"))
        let examples = lines[(start + 1)...].prefix { !$0.isEmpty }
        #expect(!examples.isEmpty)
        for line in examples { #expect(line.hasPrefix("  "), "wrapped: \(line)") }
    }
}
