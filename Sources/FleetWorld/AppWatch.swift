import AppConnect
import FleetProtocol

/// What somebody beside a launch of an app has seen of its session, to hold it to its promises.
struct AppWatch {
    struct Answer {
        /// The callback that was answered, by its number.
        let number: Int64
        let state: PolicyState
        let message: String?
    }

    /// The newest callback of each policy that has begun.
    private var begun: [Policy: Int64] = [:]
    private var answers: [Policy: Answer] = [:]
    /// What was blocked, what of it the agent was told, by the number, and how often the delegate.
    private(set) var attempts = 0
    private(set) var attemptsTold: Set<Int64?> = []
    private(set) var attemptsCalled = 0
    /// The last that the delegate was called with of the screen is that the agent takes it.
    private(set) var isScreenTaken = false
    /// Requests that gave way to later ones, by their numbers.
    private(set) var dropped: Set<Int64> = []

    mutating func begins(_ call: AppSession.Call) {
        switch call {
        case .changed(let number, .policy(let value, _)): begun[value.policy] = number
        case .attempted: attemptsCalled += 1
        case .activity(let isActive): isScreenTaken = !isActive
        case .changed, .ready, .connectionChanged: break
        }
    }

    mutating func blocked() { attempts += 1 }

    /// Whether the agent was told of all that was blocked, but for what gave way.
    var isEachAttemptTold: Bool { attemptsTold.union(dropped.map(Optional.some)).count == attempts }

    /// The app has asked for something: where there is no room, the oldest attempt gives way. Returns what is wrong.
    mutating func asked(_ session: AppSession, before: AppSession, isRetirement: Bool, limit: Int) -> String? {
        var expected = before.requests.map { (number: $0.number, isRetirement: $0.isRetirement) }
        if session.lastRequest > before.lastRequest { expected.append((session.lastRequest, isRetirement)) }
        if expected.count > limit, let oldest = expected.firstIndex(where: { !$0.isRetirement }) {
            dropped.insert(expected.remove(at: oldest).number)
        }
        let (kept, meant) = (session.requests.map(\.number), expected.map(\.number))
        return kept == meant ? nil : "it keeps the requests \(kept), not \(meant)"
    }

    mutating func sends(_ frame: AppFrame) {
        if case .blocked(_, _, let number) = frame { attemptsTold.insert(number) }
    }

    func mayAnswer(_ policy: Policy) -> Bool { begun[policy] != nil }

    mutating func answered(_ policy: Policy, _ state: PolicyState, _ message: String?) {
        answers[policy] = begun[policy].map { Answer(number: $0, state: state, message: message) }
    }

    /// What the app has said to the newest callback of a policy.
    func answer(to policy: Policy) -> Answer? {
        answers[policy].flatMap { $0.number == begun[policy] ? $0 : nil }
    }
}
