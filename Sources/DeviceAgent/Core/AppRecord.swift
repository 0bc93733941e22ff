package import FleetProtocol

/// The singleton state of one app on the device: kept on disk, told to the app, reported to the controller.
package struct AppRecord: Hashable, Sendable {
    /// A retirement that has taken effect. It ends only by a deciding auth document that was changed later.
    package struct Latch: Hashable, Sendable {
        package var change: Revision
        package var reason: AuthReason
        package var message: String
    }

    package var id: AppID { installation.id }
    package var install: RandomID {
        get { installation.install }
        set { installation.install = newValue }
    }
    package var launch: RandomID {
        get { installation.launch }
        set { installation.launch = newValue }
    }
    package var sdk: String {
        get { installation.sdk }
        set { installation.sdk = newValue }
    }
    package var implements: Set<Callback> {
        get { installation.implements }
        set { installation.implements = newValue }
    }
    private var installation: Installation {
        get {
            switch place {
            case .here(let installation): installation
            }
        }
        set { place = .here(newValue) }
    }
    private var place: Place
    /// Whether this installation has had a ready callback.
    package var wasReady = false
    /// This launch has yet to say that its ready callback has returned.
    var owesReady = false
    package var nextDelivery: Int64
    /// This launch's requests up to this number are stored.
    package var kept: Int64 = 0
    package var managed: ManagedPolicy = .unknown { didSet { changes.isTouched = true } }
    package var authReason: AuthReason = .none { didSet { changes.touch(.auth) } }
    package var hasKeys = false { didSet { changes.isTouched = true } }
    package var latch: Latch? {
        get {
            guard case .latched(let latch) = retirement else { return nil }
            return latch
        }
        set { retirement = newValue.map(Retirement.latched) ?? .none }
    }
    /// A retirement that has ended before this installation was told of it: that comes first, and until then its keys are out
    /// of its reach. It may have data of its own to erase.
    package internal(set) var owed: Latch? {
        get {
            guard case .owed(let latch) = retirement else { return nil }
            return latch
        }
        set { retirement = newValue.map(Retirement.owed) ?? .none }
    }
    private var retirement = Retirement.none { didSet { changes.isTouched = true } }
    /// Since the last right one, where a passcode is asked for.
    package var wrongPasscodes: Int64 = 0
    /// Wrong passcodes have locked it; only a document that was changed later than this ends that.
    package var passcodeLock: Revision? { didSet { changes.isTouched = true } }
    /// It is to be wiped for wrong passcodes, as soon as that is stored.
    package var isWipeDue = false { didSet { changes.isTouched = true } }
    /// On this run of the agent, and not too long ago.
    var isPasscodeEntered: Bool {
        get { passing.isPasscodeEntered }
        set {
            passing.isPasscodeEntered = newValue
            changes.isTouched = true
        }
    }
    private var passing = Passing()
    /// One record for each policy, by ``Policy/index``.
    package var policies: [PolicyRecord] {
        get { records }
        set {
            records = newValue
            changes = Changes()
        }
    }
    private var records: [PolicyRecord]
    package var managedTold = ToldValue<ManagedPolicy>()
    package var availabilityTold = ToldValue<SecureServicesAvailability>()
    /// When each log-level document's time began to run, and whether its code has been entered.
    package var levelClocks: [Address: LevelClock] = [:] { didSet { changes.isTouched = true } }
    private var changes = Changes()

    private struct Installation: Hashable {
        let id: AppID
        var install: RandomID
        var launch: RandomID
        var sdk: String
        var implements: Set<Callback>
    }

    /// Hardly ever another: in a place of its own, so that a record stays small.
    private enum Place: Hashable {
        indirect case here(Installation)
    }

    /// What has been changed since somebody looked: no part of what the record says, but found sooner than by comparing.
    private struct Changes: Hashable {
        /// Since the record was last settled.
        var isTouched = true
        /// The policies of which the app may have to be told, by the bits of their indices.
        var untold: UInt16 = .max

        mutating func touch(_ policy: Policy) {
            isTouched = true
            untold |= 1 << policy.index
        }

        static func == (left: Changes, right: Changes) -> Bool { true }
        func hash(into hasher: inout Hasher) {}
    }

    /// What ends with the agent's process: no part of what the record says.
    private struct Passing: Hashable {
        var isPasscodeEntered = false

        static func == (left: Passing, right: Passing) -> Bool { true }
        func hash(into hasher: inout Hasher) {}
    }

    /// Rarely there: in a place of its own, so that a record stays small.
    private enum Retirement: Hashable {
        case none
        indirect case latched(Latch)
        indirect case owed(Latch)
    }

    package struct LevelClock: Hashable, Sendable {
        package var change: Revision
        /// The running time at first receipt, in milliseconds.
        var start: Int64
        package var isCodeAccepted = false
        /// Its time has ended; no clock that is set back begins it anew.
        var isOver = false
        /// The level that counts of this address: the document's own, or, while that waits for its code or cannot be read, the
        /// one of the document before it.
        var said: Said?

        struct Said: Hashable, Sendable {
            let level: LogLevel
            /// The running time at which it ends.
            let end: Int64?
            let notAfter: Timestamp?
        }
    }

    package init(_ registration: Registration, at time: Timestamp) {
        place = .here(
            Installation(
                id: registration.app, install: registration.install, launch: registration.launch,
                sdk: registration.sdk, implements: registration.implements))
        // Numbers of an earlier life of this record, which an app may still name, are below.
        nextDelivery = max(1, time.milliseconds)
        records = Policy.allCases.map { PolicyRecord(default: $0, at: time) }
    }

    package subscript(policy: Policy) -> PolicyRecord {
        // In its place: to copy a record out takes longer than most questions to it.
        _read { yield records[policy.index] }
        _modify {
            changes.touch(policy)
            yield &records[policy.index]
        }
    }

    /// Begins to note whether the record is changed.
    mutating func beginSettling() { changes.isTouched = false }
    /// Whether it was changed since.
    var isTouched: Bool { changes.isTouched }

    /// Whether the app may have to be told of a policy: it has been changed since the last time that it did not.
    func mayBeUntold(_ policy: Policy) -> Bool { changes.untold & 1 << policy.index != 0 }

    /// The app has what is in force, and nothing of this policy is under way.
    mutating func isTold(_ policy: Policy) { changes.untold &= ~(1 << policy.index) }

    package var authState: AuthState {
        guard case .auth(let state, _) = self[.auth].value else { return .unauthorized }
        return state
    }

    package var authMessage: String {
        guard case .auth(_, let message) = self[.auth].value else { return "" }
        return message
    }

    /// Whether a retirement is in force that the app itself has asked for: then the layers' wishes count for nothing.
    var isSelfRetired: Bool { latch?.reason == .selfRetired }

    package var logLevel: LogLevel {
        guard case .logLevel(let level) = self[.logLevel].value else { return .status }
        return level
    }

    package var secureServices: SecureServicesValue {
        guard case .secureServices(let value) = self[.secureServices].value else { return SecureServicesValue() }
        return value
    }

    package var asksForPasscode: Bool { secureServices.passcode?.isRequired == true }

    /// By its policy, or by wrong passcodes.
    package var isLocked: Bool { secureServices.isLocked || passcodeLock != nil }

    /// Keys can be used while the app is authorized, has some, nobody has locked it, and the passcode, if one is asked for,
    /// has been entered.
    package var availability: SecureServicesAvailability {
        let isOpen = !isLocked && !isWipeDue && owed == nil && (!asksForPasscode || isPasscodeEntered)
        return authState == .authorized && hasKeys && isOpen ? .available : .unavailable
    }

    /// Whether the app has to be told of a policy: another value, or another reason for its authorization.
    func mustTell(_ policy: Policy) -> Bool {
        if self[policy].mustTell { return true }
        return policy == .auth && self[.auth].told?.reason.map { $0 != authReason } ?? false
    }

    /// What a process begins with.
    package var properties: AppProperties {
        var values = records.map(\.value)
        if let owed { values[Policy.auth.index] = .auth(.retired, message: owed.message) }
        return AppProperties(
            managed: managed, authReason: owed?.reason ?? authReason, availability: availability, values: values)
    }

    /// The retirement is over. An installation that has not been told of it still is, and answers anew for what follows.
    ///
    /// - Parameter isReadySent: Its process may be in its ready callback, or behind it.
    mutating func endRetirement(isReadySent: Bool) {
        guard let latch else { return }
        self.latch = nil
        // What it is called for while this ends may be of before, and then it would not hear of its new keys either.
        let isTold = isToldRetired && self[.auth].sent == nil && availabilityTold.sent?.value != .available
        guard wasReady || isReadySent, latch.reason != .selfRetired, !isTold else { return }
        owed = latch
        self[.auth].told = nil
    }

    private var isToldRetired: Bool { self[.auth].told?.value.isRetirement ?? false }

    /// The app's callback for the delivery `number` has returned. Returns whether that was news.
    mutating func returned(_ number: Int64, at time: Timestamp) -> Bool {
        if managedTold.returned(number) || availabilityTold.returned(number) { return true }
        guard let policy = Policy.allCases.first(where: { self[$0].isUnderWay(number) }) else { return false }
        _ = self[policy].returned(number)
        noteTold()
        if policy.isAcknowledgedByApp { self[policy].refreshAttempt(at: time) }
        return true
    }

    private mutating func noteTold() {
        if owed != nil, isToldRetired { owed = nil }
    }

    func isUnderWay(_ number: Int64) -> Bool {
        managedTold.sent?.number == number || availabilityTold.sent?.number == number
            || records.contains { $0.isUnderWay(number) }
    }

    /// The app has answered a delivery. Returns whether that was news.
    mutating func answered(_ acknowledgement: Acknowledgement, at time: Timestamp) -> Bool {
        let policy = acknowledgement.policy
        guard policy.isAcknowledgedByApp,
            self[policy].answer(acknowledgement.delivery, acknowledgement.state.outcome, acknowledgement.message)
        else { return false }
        noteTold()
        self[policy].refreshAttempt(at: time)
        return true
    }

    /// A process that is not this one has been told what this installation was told, but answers only for itself: what
    /// was delivered without an answer, or answered with an error, is delivered again.
    mutating func beginLaunch() {
        owesReady = true
        for policy in Policy.allCases { self[policy].beginLaunch(isAnswerDue: policy.isAcknowledgedByApp) }
        managedTold.beginLaunch()
        availabilityTold.beginLaunch()
    }

    /// A new installation has been told nothing.
    mutating func beginInstallation(_ install: RandomID) {
        self.install = install
        wasReady = false
        if owed != nil { owed = nil }
        forgetTold()
    }

    /// Nobody knows what this process has been told.
    mutating func forgetTold() {
        for policy in Policy.allCases {
            self[policy].told = nil
            self[policy].sent = nil
        }
        managedTold = ToldValue()
        availabilityTold = ToldValue()
    }

    /// The app has retired itself: it has the defaults now, and takes nothing of what is under way. Where it was told
    /// something else, or may have begun to be, it has to be told whatever comes next, also the value of before.
    mutating func takeRetirement(at time: Timestamp) {
        for policy in Policy.allCases {
            let record = self[policy]
            if record.sent != nil || record.told?.value != .default(of: policy) { self[policy].told = nil }
            self[policy].sent = nil
            if policy.isAcknowledgedByApp { self[policy].refreshAttempt(at: time) }
        }
        managedTold.takeDefault(.unknown)
        availabilityTold.takeDefault(.unavailable)
    }

    /// The process has taken these of what was under way; the rest was lost with its connection.
    mutating func keepUnderWay(_ begun: [Int64]) {
        for policy in Policy.allCases { self[policy].keepUnderWay(begun) }
        managedTold.keepUnderWay(begun)
        availabilityTold.keepUnderWay(begun)
    }

    /// With its ready the process gets the present values. Where they differ from what it was told before, it has to be
    /// told whatever comes next, also the value of before. Returns what it says.
    mutating func takeReady() -> AppProperties {
        let shown = properties
        for policy in Policy.allCases where self[policy].told.map({ $0.value != shown[policy] }) ?? false {
            self[policy].told = nil
        }
        self[.auth].told?.reason = shown.authReason
        if managedTold.told != managed { managedTold.told = nil }
        if availabilityTold.told != shown.availability { availabilityTold.told = nil }
        return shown
    }

    /// The app has learnt new callbacks: what it could not be told before it is told now.
    mutating func learn(_ callbacks: Set<Callback>) {
        let new = callbacks.subtracting(implements)
        for policy in Policy.allCases where !policy.isAcknowledgedByApp || self[policy].told?.outcome == .unsupported {
            if let callback = Callback(of: policy), new.contains(callback) { self[policy].told = nil }
        }
        if new.contains(.managedPolicy) { managedTold.told = nil }
        if new.contains(.secureServices) { availabilityTold.told = nil }
        implements = callbacks
    }
}

extension PolicyValue {
    var isRetirement: Bool { if case .auth(.retired, _) = self { true } else { false } }
}
