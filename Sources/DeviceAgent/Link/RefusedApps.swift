import FleetProtocol

/// Which refused registrations are told: of an app one a minute, and of 256 apps in a minute. Any process of the machine can be
/// refused as often as it likes, under any name.
struct RefusedApps {
    private var told: [AppID: ContinuousClock.Instant] = [:]

    static let interval = Duration.seconds(60)
    static let maximumApps = 256

    mutating func isDue(_ app: AppID, at now: ContinuousClock.Instant) -> Bool {
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
