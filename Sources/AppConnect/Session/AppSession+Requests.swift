package import FleetProtocol

/// What an app says of its own accord and what must not be lost, whoever dies: it is said again at each connection until the
/// agent has stored it.
extension AppSession {
    package struct Request: Hashable, Sendable {
        package let number: Int64
        package let frame: AppFrame

        package var isRetirement: Bool { if case .retire = frame { true } else { false } }
    }

    /// The app has retired itself, and the agent has not said yet that it knows.
    var isRetirementUnconfirmed: Bool { requests.contains(where: \.isRetirement) }

    /// Writes it at once, or behind the next welcome.
    mutating func ask(_ frame: (_ number: Int64) -> AppFrame) {
        lastRequest += 1
        let request = Request(number: lastRequest, frame: frame(lastRequest))
        requests.append(request)
        if connection == .open { send([request]) }
        if requests.count > maximumRequests, let oldest = requests.firstIndex(where: { !$0.isRetirement }) {
            requests.remove(at: oldest)
        }
    }

    /// The agent of a new connection has stored what it had `kept` from this launch; nil of one that does not count: it has
    /// what is written.
    mutating func repeatRequests(kept: Int64?) {
        doesAgentCount = kept != nil
        stored(through: kept ?? 0)
        send(requests)
    }

    private mutating func send(_ requests: [Request]) {
        effects += requests.map { .send($0.frame) }
        if !doesAgentCount { confirmRequests(through: lastRequest) }
    }

    /// The agent has stored so many: no later process has to ask for a retirement that is among them.
    mutating func stored(through number: Int64) {
        if requests.contains(where: { $0.isRetirement && $0.number <= number }) { settleRetirement() }
        confirmRequests(through: number)
    }

    /// A retirement is asked for until the agent's own word about it has come.
    private mutating func confirmRequests(through number: Int64) {
        requests.removeAll { $0.number <= number && !$0.isRetirement }
    }

    mutating func confirmRetirement() {
        requests.removeAll(where: \.isRetirement)
        settleRetirement()
    }

    /// An agent knows of it.
    mutating func settleRetirement() {
        guard isRetirementOwed else { return }
        isRetirementOwed = false
        effects.append(.retirementOwed(false))
    }
}
