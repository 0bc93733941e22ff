import FleetSimulator
import Testing

@Suite("The laws bite")
struct FaultTests {
    /// A seed near which each fault is found; it may be any.
    static let seeds: [Fault: UInt64] = [:]

    @Test("a deliberate fault is found", arguments: Fault.allCases)
    func found(_ fault: Fault) throws {
        let explorer = try Explorer(fault: fault)
        let (failed, _) = try explorer.explore(seed: Self.seeds[fault] ?? 0, count: 300, limit: 1)
        #expect(!failed.isEmpty, "\(fault.rawValue) was not found in 300 schedules")
    }
}
