import FleetProtocol

/// Texts of apps that no command shows: they stand in the agent's log, of each app so many in a minute. An app could fill it.
struct LoggedTexts {
    static let maximum = 20
    private static let interval = Duration.seconds(60)
    /// How many of an app, and since when. Nil are those that have gone.
    private var taken: [AppID?: (count: Int, since: ContinuousClock.Instant)] = [:]

    /// Whether one more of an app's may be written.
    mutating func take(for app: AppID?, at now: ContinuousClock.Instant) -> Bool {
        var (count, since) = taken[app] ?? (0, now)
        if now - since >= Self.interval { (count, since) = (0, now) }
        guard count < Self.maximum else { return false }
        taken[app] = (count + 1, since)
        return true
    }
}
