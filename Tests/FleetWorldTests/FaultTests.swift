import FleetWorld
import Testing

@Suite("The laws bite")
struct FaultTests {
    /// A seed near which each fault is found; it may be any.
    static let seeds: [Fault: UInt64] = [
        .marksNotStored: 5, .appsNotStored: 5, .eventsNotStored: 44, .bootNotStored: 27, .latchNotStored: 25,
        .documentsNotStored: 18, .groupsNotStored: 74, .clockNotStored: 152, .trustNotStored: 13, .dropsNotStored: 5,
        .levelClocksNotStored: 26, .transactionsHalved: 17, .saysBeforeStoring: 5, .keysNotDestroyed: 25,
        .keysDestroyedLast: 25, .keysMadeAnew: 5, .keysDestroyedEarly: 5,
        .keysNotGiven: 10, .keysNotTaken: 5, .keysNotRenewed: 92_100_678, .statusesLost: 18, .sequenceNotRaised: 5,
        .oldMessagesSentAgain: 5, .eventsNotSentAgain: 13, .eventsCountedTwice: 5, .presenceNotRepeated: 5,
        .endNotAnnounced: 44, .subscriptionsIncomplete: 9, .deliveriesLost: 5, .gainsFirst: 36, .lossesLast: 167,
        .displaysNotAnswered: 1_045, .tombstonesIgnored: 149, .signaturesNotChecked: 220, .barrierNotAwaited: 6,
        .helloNotAwaited: 14, .helloOfAnyConnection: 1_007, .heartbeatsTakenForHello: 37, .heartbeatsIgnored: 52,
        .marksIgnored: 5, .ownPresenceIgnored: 1_731, .revisionsNotCompared: 163, .topicsNotCompared: 1_456,
        .fleetsNotCompared: 8, .membershipIgnored: 10, .groupMetaIgnored: 3_290, .trustIgnored: 22, .ticksDropped: 161,
        .wallClockTrusted: 327, .wrongCodesTaken: 926, .acknowledgementsDropped: 1, .returnsDropped: 2,
        .readyDropped: 5, .retireIgnored: 5, .attemptsDropped: 5, .answersNotResumed: 1, .answersBeforeCommit: 23,
        .answersForgotten: 49, .basesNotCompared: 48, .noRepair: 1, .noHello: 9, .marksTooEarly: 26,
        .marksNotSaid: 5, .eventsForgotten: 13, .statusesNotTaken: 30, .oldStatusesTaken: 30, .newerIgnored: 1_054,
        .changesNotPublished: 44, .tombstonesNotPublished: 5, .membershipNotPublished: 12, .metaNotPublished: 3_252,
        .trustNotPublished: 17, .lostIgnored: 101, .reportedNotSaid: 1_070, .documentsNotSaid: 11_344,
        .disksNotNamed: 19,
        .markersNotRepeated: 10_067, .connectionKept: 10_481, .ownConnectionKept: 10_088,
        .refusalsIgnored: 15_216, .nobodyAskedAgain: 33, .ownMarkerNotRepeated: 22_626, .connectionsConfused: 204,
        .wakesNotRepeated: 14_270,
        .replacedNotPutBack: 1_405, .presenceNotTaken: 9,
        .retainedPresenceTaken: 5, .willsTaken: 61, .removedNotCleared: 20, .enrolmentsNotRead: 5,
        .incarnationNotRaised: 19, .startsAsRestored: 1, .putBackNotNoticed: 372, .rowsLeftOut: 35,
        .lateRequestsDone: 30,
        .appsNotNamed: 5, .longDeletedKept: 13_623, .requestsNotStored: 5, .requestsNotRepeated: 6,
        .retirementNotMarked: 138,
        .agesIgnored: 10_000, .noncesNotSaid: 10_651, .noncesNotAnswered: 10_720,
        .callbacksOverlap: 5, .installationsConfused: 5, .launchesNotCompared: 31, .doubtNotTold: 5,
        .answersConfused: 5,
        .pasteboardNotConfined: 40, .copiesNotAnswered: 1,
        .wrongPasscodesTaken: 1, .passcodesNotCounted: 1, .passcodesNotAnswered: 1,
        .groupsStillHeard: 48, .plansCarriedOut: 1, .guardLearnsNothing: 23, .guardKeepsGroups: 168,
    ]

    /// What the schedules of a fault are about.
    static let themes: [Fault: Schedule.Theme] = [
        .reportedNotSaid: .losses, .letInIgnored: .registry, .longDeletedKept: .away, .wakesNotRepeated: .restore,
        .keysNotRenewed: .retiring,
        .pasteboardNotConfined: .pasteboards, .copiesNotAnswered: .pasteboards,
        .wrongPasscodesTaken: .passcodes, .passcodesNotCounted: .passcodes, .passcodesNotAnswered: .passcodes,
    ]

    /// Near its seed a fault is found at once; what changes the cores moves that, and then it takes longer.
    private static let schedules = 500

    @Test("a deliberate fault is found", arguments: Fault.allCases)
    func found(_ fault: Fault) throws {
        let explorer = try Explorer(fault: fault)
        let (failed, _) = try explorer.explore(
            seed: Self.seeds[fault] ?? 0, theme: Self.themes[fault], count: Self.schedules, limit: 1)
        #expect(!failed.isEmpty, "\(fault.rawValue) was not found in \(Self.schedules) schedules")
    }
}
