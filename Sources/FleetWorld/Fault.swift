/// A mistake that a test builds into the world, on purpose: each must be found by a law.
///
/// They stand around the real cores, not in them: what goes in or comes out is dropped or altered, as a core with that
/// mistake would have it.
package enum Fault: String, CaseIterable, Sendable {
    // The device's store
    case marksNotStored, appsNotStored, eventsNotStored, bootNotStored, latchNotStored, documentsNotStored
    case groupsNotStored, clockNotStored, trustNotStored, dropsNotStored, levelClocksNotStored, transactionsHalved
    case requestsNotStored
    // Around the device's core: what it says and does
    case saysBeforeStoring, keysNotDestroyed, keysDestroyedLast, keysMadeAnew, keysDestroyedEarly
    case keysNotGiven, keysNotTaken, keysNotRenewed
    case statusesLost, sequenceNotRaised, oldMessagesSentAgain, eventsNotSentAgain, eventsCountedTwice
    case presenceNotRepeated, appsNotNamed, endNotAnnounced, subscriptionsIncomplete, groupsStillHeard
    case deliveriesLost, gainsFirst, lossesLast, displaysNotAnswered, connectionsConfused
    // What it takes in
    case tombstonesIgnored, signaturesNotChecked, barrierNotAwaited, helloNotAwaited, helloOfAnyConnection
    case agesIgnored, noncesNotSaid
    case heartbeatsTakenForHello, heartbeatsIgnored, marksIgnored, ownPresenceIgnored
    case revisionsNotCompared, topicsNotCompared, fleetsNotCompared, membershipIgnored, groupMetaIgnored, trustIgnored
    case lostIgnored, longDeletedKept, reportedNotSaid, documentsNotSaid, disksNotNamed, markersNotRepeated
    case connectionKept, documentsUnheard
    case ticksDropped, wallClockTrusted, wrongCodesTaken
    case pasteboardNotConfined, copiesNotAnswered
    case wrongPasscodesTaken, passcodesNotCounted, passcodesNotAnswered
    case acknowledgementsDropped, returnsDropped, readyDropped, retireIgnored, attemptsDropped
    // The app
    case answersNotResumed, requestsNotRepeated, callbacksOverlap, installationsConfused, launchesNotCompared
    case retirementNotMarked
    // The controller
    case answersBeforeCommit, answersForgotten, basesNotCompared, noRepair, noHello, marksTooEarly, marksNotSaid
    case eventsForgotten, statusesNotTaken, oldStatusesTaken, newerIgnored
    case changesNotPublished, tombstonesNotPublished, membershipNotPublished, metaNotPublished, trustNotPublished
    case noncesNotAnswered, nobodyAskedAgain, ownMarkerNotRepeated, wakesNotRepeated
    case ownConnectionKept, refusalsIgnored
    case replacedNotPutBack, presenceNotTaken, retainedPresenceTaken, willsTaken
    case startsAsRestored, putBackNotNoticed, lateRequestsDone, rowsLeftOut, plansCarriedOut
    // The broker's guard
    case guardLearnsNothing, guardKeepsGroups
    // The operator
    case doubtNotTold
    /// Who asks takes any answer for its own.
    case answersConfused
    // Members of the fleet
    case removedNotCleared, enrolmentsNotRead, incarnationNotRaised, letInIgnored
}
