/// A mistake that a test builds into the world, on purpose: each must be found by a law.
///
/// They stand around the real cores, not in them: what goes in or comes out is dropped or altered, as a core with that
/// mistake would have it.
package enum Fault: String, CaseIterable, Sendable {
    // The device's store
    case marksNotStored, appsNotStored, eventsNotStored, bootNotStored
    // Around the device's core
    case saysBeforeStoring, keysNotDestroyed, keysDestroyedLast, tombstonesIgnored, signaturesNotChecked
    case barrierNotAwaited, helloNotAwaited, statusesLost, eventsNotSentAgain, presenceNotRepeated
    case revisionsNotCompared, topicsNotCompared, fleetsNotCompared, deliveriesLost, membershipIgnored
    case groupMetaIgnored
    // The app
    case answersNotResumed
    // The controller
    case answersBeforeCommit, noRepair, noHello, marksTooEarly, eventsForgotten, statusesNotTaken
    case newerIgnored, changesNotPublished, presenceNotTaken
}
