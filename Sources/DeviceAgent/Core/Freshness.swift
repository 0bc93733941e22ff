import FleetProtocol

/// How late the controller's words come on one connection, as far as a device can know. Neither clock has to be right: a
/// hello was signed after this device had said the nonce that it answers, and each later word by as much after that as the
/// times in both say. What the broker, or this device's own standstill, has kept back is no fresh contact. A controller's clock
/// may have been set: what a hello answers tells then.
///
/// Times are milliseconds of the device's running time.
struct Freshness {
    /// So late a word may come and be contact of the moment in which it is heard: a slow link is no absence.
    static let tolerance: Int64 = 30_000
    /// How long after one nonce another is said while words stay late, at first and at most: ever more rarely, for a link may
    /// be slow for good.
    private static let (firstInterval, longestInterval): (Int64, Int64) = (30_000, 600_000)
    /// An answer to one of so many counts: on a slow link there are some under way.
    private static let limit = 8

    /// When the connection began: its random name is the first nonce.
    private let since: Int64
    /// Further ones, the newest last, and when each was said first.
    private var asked: [(nonce: RandomID, at: Int64)] = []
    private var interval = Freshness.firstInterval
    /// When another one is to be said; nil while words come in time.
    private(set) var askAt: Int64?
    /// No word was signed before the time that it bears plus this. Nil before the first hello, and with a controller of before
    /// there were nonces, whose words count when they are heard.
    private var offset: Int64?
    /// When the newest word was heard that counted.
    private var countedAt: Int64?

    init(since: Int64) {
        self.since = since
    }

    /// What is said with each presence.
    var nonce: RandomID? { asked.last?.nonce }

    /// Whether a hello was signed after all that counted, whatever times they bear: nobody knew before what it answers.
    func isLater(_ hello: Hello) -> Bool {
        guard let countedAt, let answered = asked.last(where: { $0.nonce == hello.nonce }) else { return false }
        return answered.at >= countedAt
    }

    /// Answers when at the earliest a hello was signed that is heard now and answers this connection.
    mutating func hello(_ hello: Hello, heardAt now: Int64) -> Int64 {
        guard let nonce = hello.nonce else {
            offset = nil
            return now
        }
        let said = asked.last { $0.nonce == nonce }?.at ?? since
        let least = said - hello.clock.at.milliseconds
        offset = max(offset ?? least, least)
        if let signed = word(hello.clock, heardAt: now) { return signed }
        offset = least
        return said
    }

    /// The same of any word that is heard after a hello; nil where its time is none of the clock that was known until now,
    /// and another hello has to tell.
    mutating func word(_ clock: ControllerClock, heardAt now: Int64) -> Int64? {
        guard let known = offset else { return now }
        let signed = clock.at.milliseconds + known
        guard signed <= now + Self.tolerance else { return nil }
        // Nothing is heard before it is signed.
        offset = min(known, now - clock.at.milliseconds)
        return min(signed, now)
    }

    mutating func counted(at now: Int64) { countedAt = now }

    /// A word counts as of now, or it is late, which another nonce will settle.
    ///
    /// - Parameter jitter: What delays one device delays many, and they do not all ask at one moment.
    mutating func note(isLate: Bool, at now: Int64, jitter: Int64) {
        if !isLate { (askAt, interval) = (nil, Self.firstInterval) }
        guard isLate, askAt == nil else { return }
        askAt = max(now, asked.last.map { $0.at + interval } ?? now) + jitter
    }

    mutating func ask(_ nonce: RandomID, at now: Int64) {
        askAt = nil
        if !asked.isEmpty { interval = min(2 * interval, Self.longestInterval) }
        asked = asked.suffix(Self.limit - 1) + [(nonce, now)]
    }
}
