import FleetProtocol

/// Which refusals are told: of an app one a minute, of 256 apps in a minute, and of what is no app twenty in a minute. Any process
/// of the machine can be refused as often as it likes, under any name.
struct RefusedApps {
    private var told: [AppID: ContinuousClock.Instant] = [:]
    private var others = 0
    private var othersSince: ContinuousClock.Instant?

    static let interval = Duration.seconds(60)
    static let maximumApps = 256
    static let maximumOthers = 20

    /// - Parameter app: Nil for a process that has not said which it is.
    mutating func isDue(_ app: AppID?, at now: ContinuousClock.Instant) -> Bool {
        guard let app else {
            if othersSince.map({ now - $0 >= Self.interval }) ?? true { (others, othersSince) = (0, now) }
            others += 1
            return others <= Self.maximumOthers
        }
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
