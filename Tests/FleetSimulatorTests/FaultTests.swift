import FleetSimulator
import Testing

@Suite("The laws bite")
struct FaultTests {
    /// A seed near which each fault is found; it may be any.
    static let seeds: [Fault: UInt64] = [
        .marksNotStored: 776, .eventsNotStored: 5, .keysNotDestroyed: 5, .keysDestroyedLast: 5, .tombstonesIgnored: 5,
        .signaturesNotChecked: 20, .barrierNotAwaited: 6, .statusesLost: 2, .eventsNotSentAgain: 5,
        .revisionsNotCompared: 107, .topicsNotCompared: 182, .fleetsNotCompared: 1, .groupMetaIgnored: 630,
        .answersNotResumed: 11, .answersBeforeCommit: 0, .noRepair: 4, .noHello: 9, .marksTooEarly: 18,
        .newerIgnored: 65, .statusesNotTaken: 3, .changesNotPublished: 5, .presenceNotTaken: 2,
    ]

    @Test("a deliberate fault is found", arguments: Fault.allCases)
    func found(_ fault: Fault) throws {
        let explorer = try Explorer(fault: fault)
        let (failed, _) = try explorer.explore(seed: Self.seeds[fault] ?? 0, count: 40, limit: 1)
        #expect(!failed.isEmpty, "\(fault.rawValue) was not found in 40 schedules")
    }
}
