import FleetProtocol

/// Which refusals are told: of an app one a minute, of 256 apps in a minute, and of what is no app twenty in a minute. Any process
/// of the machine can be refused as often as it likes, under any name.
struct RefusedApps {
    private var told: [AppID: ContinuousClock.Instant] = [:]
    private var others = MinuteBudget(20)

    private static let interval = MinuteBudget.interval
    static let maximumApps = 256

    /// - Parameter app: Nil for a process that has not said which it is.
    mutating func isDue(_ app: AppID?, at now: ContinuousClock.Instant) -> Bool {
        guard let app else { return others.take(at: now) }
        if told.count >= Self.maximumApps { told = told.filter { now - $0.value < Self.interval } }
        if let last = told[app] {
            guard now - last >= Self.interval else { return false }
        } else {
            guard told.count < Self.maximumApps else { return false }
        }
        told[app] = now
        return true
    }
}
