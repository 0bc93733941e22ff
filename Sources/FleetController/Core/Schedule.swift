import FleetProtocol

/// What is due without anything happening.
struct Schedule {
    private(set) var lastHousekeeping: Timestamp?
    /// Of the events that were stored before that some are left to be dropped, with the next heartbeats: by the time of the
    /// housekeeping, whatever is done to the clock since.
    var oldEventsBefore: Timestamp?
    /// Since when the clock has gone evenly, as far as this run has seen.
    private var evenSince: Timestamp?
    private(set) var lastEnrolments: Timestamp?
    var needsEnrolments = true
    /// When somebody who enrols a device was answered last.
    private(set) var lastEnrolmentAnswer: Timestamp?
    /// Devices that were answered for and are not in the home yet, with the incarnation that is to be given out.
    private(set) var enrolling: [DeviceID: Int64] = [:]
    /// The home is being read, or could not be; then it is read again.
    private(set) var isReadingEnrolments = false
    /// Devices may have been enrolled of which this controller has not heard from the home.
    var isHomeUnread: Bool { needsEnrolments || isReadingEnrolments }
    /// Since when somebody speaks as what was removed, or enrolled anew since: perhaps the home was put back, and is read again
    /// before long.
    private(set) var formerSince: Timestamp?
    /// How many seconds later: the longer, the more often nothing was found there.
    private(set) var formerPause = firstFormerPause
    private static let (firstFormerPause, longestFormerPause): (Int64, Int64) = (60, 600)
    /// When the broker first refused something on this connection: the next one says it again.
    var refusedAt: Timestamp?
    /// How many seconds later: the longer, the more often that does not help.
    private(set) var refusalPause: Int64 = 0
    private static let (firstPause, longestPause): (Int64, Int64) = (60, 3_600)
    /// When something was refused last.
    private var lastRefusal: Timestamp?
    /// What ``ControllerCore/Effect/wake(at:)`` last said.
    var wake: Timestamp?

    mutating func noteEnrolment(of device: DeviceID, as incarnation: Int64, at now: Timestamp) {
        needsEnrolments = true
        lastEnrolmentAnswer = now
        enrolling[device] = incarnation
    }

    mutating func noteFormer(at now: Timestamp) { formerSince = formerSince ?? now }

    /// The home is about to be read.
    mutating func noteReading(at now: Timestamp) {
        (needsEnrolments, isReadingEnrolments, lastEnrolments) = (false, true, now)
        if formerSince != nil { formerPause = min(2 * formerPause, Self.longestFormerPause) }
        formerSince = nil
    }

    /// It has become another since.
    mutating func noteOtherEnrolments() { formerPause = Self.firstFormerPause }

    /// The home was read. Whoever enrols a device has `patience` seconds to write it down: until then it is read again.
    mutating func noteEnrolments(_ enrolments: [DeviceID: Int64], _ patience: Int64, at now: Timestamp) {
        isReadingEnrolments = false
        if Self.hasPassed(patience, since: lastEnrolmentAnswer, at: now) {
            enrolling = [:]
        } else {
            needsEnrolments = true
            enrolling = enrolling.filter { enrolments[$0.key] ?? 0 < $0.value }
        }
    }

    mutating func noteRefusal(at now: Timestamp) {
        if refusedAt == nil {
            let isNew = Self.hasPassed(2 * refusalPause, since: lastRefusal, at: now)
            refusalPause = isNew ? Self.firstPause : min(2 * refusalPause, Self.longestPause)
            refusedAt = now
        }
        lastRefusal = now
    }

    mutating func noteHousekeeping(every seconds: Int64, at now: Timestamp) {
        let isEven = lastHousekeeping.map { $0 <= now && now <= $0.advanced(bySeconds: 2 * seconds) } ?? false
        if !isEven { evenSince = now }
        lastHousekeeping = now
    }

    func isEven(for seconds: Int64, at now: Timestamp) -> Bool {
        evenSince.map { $0.advanced(bySeconds: seconds) <= now } ?? false
    }

    /// Whether so much time has passed since `last`, or the clock was set back behind it; also without a last time.
    static func hasPassed(_ seconds: Int64, since last: Timestamp?, at now: Timestamp) -> Bool {
        guard let last else { return true }
        return now < last || last.advanced(bySeconds: seconds) <= now
    }
}
