import FleetProtocol

/// What processes bring about as often as they like is logged once a minute: of each app of the device, and of all others
/// together.
struct SeldomLog: Sendable {
    private static let interval: Int64 = 60_000
    private var loggedAt = AppTable<Int64>()
    private var othersLoggedAt: Int64?

    /// - Parameters:
    ///   - app: One of the device's; nil for another, of which there may be any number.
    ///   - total: The running time, in milliseconds.
    mutating func isDue(_ app: AppID?, at total: Int64) -> Bool {
        let last = if let app { loggedAt[app] } else { othersLoggedAt }
        if let last, total - last < Self.interval { return false }
        if let app { loggedAt[app] = total } else { othersLoggedAt = total }
        return true
    }
}
