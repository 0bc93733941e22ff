import FleetSimulator
import Testing

@Suite("The laws bite")
struct FaultTests {
    /// A seed near which each fault is found; it may be any.
    static let seeds: [Fault: UInt64] = [
        .marksNotStored: 595, .appsNotStored: 1, .eventsNotStored: 31, .bootNotStored: 13, .latchNotStored: 5,
        .documentsNotStored: 6, .groupsNotStored: 6, .clockNotStored: 49, .trustNotStored: 31, .dropsNotStored: 1,
        .levelClocksNotStored: 10, .transactionsHalved: 9, .saysBeforeStoring: 1, .keysNotDestroyed: 5,
        .keysDestroyedLast: 5, .keysMadeAnew: 1, .keysDestroyedEarly: 5, .statusesLost: 9, .sequenceNotRaised: 5,
        .oldMessagesSentAgain: 5, .eventsNotSentAgain: 13, .eventsCountedTwice: 1, .presenceNotRepeated: 1,
        .endNotAnnounced: 41, .subscriptionsIncomplete: 15, .deliveriesLost: 1, .gainsFirst: 23, .lossesLast: 14,
        .displaysNotAnswered: 5, .tombstonesIgnored: 28, .signaturesNotChecked: 85, .barrierNotAwaited: 2,
        .helloNotAwaited: 6, .helloOfAnyConnection: 18, .heartbeatsTakenForHello: 33, .heartbeatsIgnored: 9,
        .marksIgnored: 1, .ownPresenceIgnored: 7947, .revisionsNotCompared: 64, .topicsNotCompared: 61,
        .fleetsNotCompared: 1, .membershipIgnored: 6, .groupMetaIgnored: 701, .trustIgnored: 5, .ticksDropped: 161,
        .wallClockTrusted: 184, .wrongCodesTaken: 204, .acknowledgementsDropped: 1, .returnsDropped: 2,
        .readyDropped: 1, .retireIgnored: 5, .attemptsDropped: 5, .answersNotResumed: 15, .answersBeforeCommit: 7,
        .answersForgotten: 18, .basesNotCompared: 419, .noRepair: 1, .noHello: 9, .marksTooEarly: 42,
        .marksNotSaid: 1, .eventsForgotten: 1, .statusesNotTaken: 15, .oldStatusesTaken: 10, .newerIgnored: 13,
        .changesNotPublished: 21, .tombstonesNotPublished: 28, .membershipNotPublished: 6, .metaNotPublished: 701,
        .trustNotPublished: 5, .lostIgnored: 74, .reportedNotSaid: 110, .documentsNotSaid: 227,
        .markersNotRepeated: 41, .nobodyAskedAgain: 43, .ownMarkerNotRepeated: 10, .presenceNotTaken: 2,
        .retainedPresenceTaken: 1, .willsTaken: 10, .removedNotCleared: 6, .enrolmentsNotRead: 10570,
        .incarnationNotRaised: 11,
    ]

    /// Near its seed a fault is found at once; what changes the cores moves that, and then it takes longer.
    private static let schedules = 500

    @Test("a deliberate fault is found", arguments: Fault.allCases)
    func found(_ fault: Fault) throws {
        let explorer = try Explorer(fault: fault)
        let (failed, _) = try explorer.explore(seed: Self.seeds[fault] ?? 0, count: Self.schedules, limit: 1)
        #expect(!failed.isEmpty, "\(fault.rawValue) was not found in \(Self.schedules) schedules")
    }
}
