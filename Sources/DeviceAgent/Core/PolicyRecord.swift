package import FleetProtocol

/// What the agent knows of one policy of one app: what decides it, what the app has been told, what it said.
package struct PolicyRecord: Hashable, Sendable {
    /// A delivery to the app, by its number on the link.
    package struct Told: Hashable, Sendable {
        package var number: Int64
        /// Moves on with revisions that say the same.
        var revision: Int64
        var value: PolicyValue
        /// The value stands in for what the revision says, which could not be applied.
        var isSubstitute = false
        /// delivered, or what the app answered.
        var outcome: Outcome = .delivered
        /// Why an authorization is what it is; nil for other policies, and where an earlier version has told it.
        var reason: AuthReason?
        var message: String?

        /// What the app has answered; nil before that.
        var answer: String? {
            guard outcome != .delivered else { return nil }
            return message.map { "\(outcome.rawValue): \($0)" } ?? outcome.rawValue
        }

        /// Whether the app has answered with an error at another revision than this one.
        func hasFailed(before revision: Int64) -> Bool { outcome == .error && self.revision != revision }
    }

    /// In force: what the agent enforces and the app is (to be) told.
    package var value: PolicyValue
    /// The apps that the value names are the authorized ones, as its document says, and follow these.
    package var namesAuthorized = false
    package var source: Address? { decidedBy?.address }
    var decidedBy: DocumentSource?
    /// The revision of the source; 0 for the default.
    package var received: Int64 = 0
    /// The revision whose value was last applied.
    package var applied: Int64? {
        get { appliedRevision < 0 ? nil : appliedRevision }
        set { appliedRevision = newValue ?? -1 }
    }
    private var appliedRevision: Int64 = -1
    package var attempt: PolicyReport.Attempt
    // Where a question to a record is not inlined, all of the record is copied for it.

    /// The newest delivery whose callback has returned.
    package var told: Told? {
        @inline(__always) get {
            guard case .some(let told) = place else { return nil }
            return told
        }
        set { place = newValue.map(Place.some) ?? .nothing }
    }
    private var place = Place.nothing
    /// The delivery that is under way.
    package var sent: Told? {
        @inline(__always) get { rare.sent }
        set { rare = Rare(newValue, problem) }
    }
    /// Why the document is not in force as it stands.
    package var problem: String? {
        @inline(__always) get { rare.problem }
        set { rare = Rare(sent, newValue) }
    }
    private var rare = Rare.nothing

    /// As large as all else, and in a place of its own, so that a record is copied soon.
    private enum Place: Hashable {
        case nothing
        indirect case some(Told)
    }

    /// Rarely there, and as large as all else: in a place of its own, so that a record stays small.
    private enum Rare: Hashable {
        case nothing
        indirect case some(sent: Told?, problem: String?)

        init(_ sent: Told?, _ problem: String?) {
            self = sent == nil && problem == nil ? .nothing : .some(sent: sent, problem: problem)
        }

        var sent: Told? {
            guard case .some(let sent, _) = self else { return nil }
            return sent
        }

        var problem: String? {
            guard case .some(_, let problem) = self else { return nil }
            return problem
        }
    }

    package init(default policy: Policy, at time: Timestamp) {
        value = .default(of: policy)
        attempt = PolicyReport.Attempt(
            revision: 0, outcome: policy.isAcknowledgedByApp ? .pending : .applied, at: time)
        applied = policy.isAcknowledgedByApp ? nil : 0
    }

    package var report: PolicyReport {
        PolicyReport(source: source, received: received, applied: applied, attempt: attempt)
    }

    /// Whether the app has to be told: it has another value, or answered this one with an error at an older revision.
    @inline(__always) var mustTell: Bool {
        guard let told else { return true }
        return told.hasFailed(before: received) || told.value != value
    }

    /// Whether the app has yet to be sent what is in force. What was told before is not what it has while something else
    /// is under way.
    @inline(__always) var isBehind: Bool { sent.map { $0.value != value } ?? mustTell }

    /// Whether the app has something else in hand than what is in force.
    @inline(__always) private var isElsewhere: Bool { sent.map { $0.value != value } ?? false }

    /// What decides has changed.
    mutating func decide(
        _ value: PolicyValue, by source: DocumentSource?, revision: Int64, problem: String?, namesAuthorized: Bool
    ) {
        self.value = value
        decidedBy = source
        received = revision
        self.namesAuthorized = namesAuthorized
        if problem != self.problem { self.problem = problem }
        if sent?.value == value {
            sent?.revision = revision
            sent?.isSubstitute = problem != nil
        }
    }

    /// Whether the delivery of this number is under way.
    @inline(__always) func isUnderWay(_ number: Int64) -> Bool {
        guard case .some(let sent?, _) = rare else { return false }
        return sent.number == number
    }

    /// The process that was told is gone. What it answered stands, but for an error: the next one may do better. Of the
    /// rest nobody knows how far it came.
    mutating func beginLaunch(isAnswerDue: Bool) {
        let outcome = told?.outcome
        if sent != nil || isAnswerDue && (outcome == .delivered || outcome == .error) { told = nil }
        sent = nil
    }

    /// See ``AppRecord/keepUnderWay(_:)``.
    mutating func keepUnderWay(_ begun: [Int64]) {
        if let sent, !begun.contains(sent.number) { self.sent = nil }
    }

    /// The app's callback for `number` has returned. Returns whether that was news.
    mutating func returned(_ number: Int64) -> Bool {
        guard var sent, sent.number == number else { return false }
        // Told once more, for other reasons: the answer stands. An error alone has the same told once more for its own sake.
        if let told, told.revision == sent.revision, told.value == sent.value,
            told.outcome != .error || told.reason != sent.reason
        {
            (sent.outcome, sent.message) = (told.outcome, told.message)
        }
        told = sent
        self.sent = nil
        return true
    }

    /// The app has answered the delivery `number`. Returns whether that was news.
    mutating func answer(_ number: Int64, _ outcome: Outcome, _ message: String?) -> Bool {
        if let sent, sent.number == number {
            told = sent
            self.sent = nil
        }
        guard var told, told.number == number, told.outcome != outcome || told.message != message else {
            return false
        }
        (told.outcome, told.message) = (outcome, message)
        self.told = told
        return true
    }

    /// Works the reported attempt out anew, for policies that the app answers for.
    mutating func refreshAttempt(at time: Timestamp) {
        // Each look at it is a copy, and values are compared at length.
        let problem = problem
        var told = told
        let hasValue = !isElsewhere && told?.value == value
        // A new revision of an equal value carries the app's answer over, unless it was an error.
        if hasValue, problem == nil, let old = told, old.outcome != .error,
            old.revision != received || old.isSubstitute
        {
            told?.revision = received
            told?.isSubstitute = false
            self.told = told
        }
        if let told, told.outcome == .applied, !told.isSubstitute { applied = told.revision }
        if let problem {
            // What the app says of what it has instead is for the operators all the same: above all of its data, retired.
            let answer = hasValue ? told?.answer : nil
            report(.rejected, [problem, answer].compactMap(\.self).joined(separator: "; the app: "), at: time)
        } else if hasValue, let told, !told.hasFailed(before: received) {
            report(told.outcome, told.message, at: time)
        } else {
            report(.pending, nil, at: time)
        }
    }

    /// Reports an outcome that the agent itself has brought about.
    mutating func report(_ outcome: Outcome, _ message: String?, at time: Timestamp) {
        if outcome == .applied, problem == nil { applied = received }
        guard attempt.revision != received || attempt.outcome != outcome || attempt.message != message else { return }
        attempt = PolicyReport.Attempt(revision: received, outcome: outcome, message: message, at: time)
    }
}

/// What an app has been told of something that it does not acknowledge.
package struct ToldValue<Value: Hashable & Sendable>: Hashable, Sendable {
    package var told: Value?
    package var sent: Sent?

    package struct Sent: Hashable, Sendable {
        var number: Int64
        var value: Value
    }

    package init() {}

    /// See ``PolicyRecord/beginLaunch(isAnswerDue:)``.
    mutating func beginLaunch() {
        if sent != nil { told = nil }
        sent = nil
    }

    /// See ``AppRecord/takeRetirement(at:)``.
    mutating func takeDefault(_ value: Value) {
        if sent != nil || told != value { told = nil }
        sent = nil
    }

    /// See ``AppRecord/keepUnderWay(_:)``.
    mutating func keepUnderWay(_ begun: [Int64]) {
        if let sent, !begun.contains(sent.number) { self.sent = nil }
    }

    mutating func returned(_ number: Int64) -> Bool {
        guard let sent, sent.number == number else { return false }
        told = sent.value
        self.sent = nil
        return true
    }
}
