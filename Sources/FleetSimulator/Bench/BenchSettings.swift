import FleetProtocol

/// How large a scenario is, and how long it takes.
struct BenchSettings: Sendable {
    var devices = 1_000
    /// On each device.
    var apps = 1
    /// Each with one of each floor.
    var rounds = 7
    /// Of each run of traffic.
    var duration = Duration.seconds(4)
    /// Changes a second.
    var rate = 500
    /// Changes of single devices that are under way at once.
    var outstanding = 256
    /// Devices that connect at once.
    var window = 256
    /// Connections a second that a back-off lets through.
    var connectRate = 1_000
    /// Rows of a store: one for each app on each device.
    var rows = 1_000_000
    /// Transactions in each round of the collector, of 1,000 statuses.
    var batches = 10
    /// Messages in each round of a codec.
    var messages = 2_000
    var verifiesEach = false
    /// A program that speaks as the reference floor does.
    var reference: String?

    static func defaults(of scenario: Scenario) -> BenchSettings {
        var settings = BenchSettings()
        switch scenario {
        case .converge, .decode, .all, .smoke: break
        case .connect:
            settings.devices = 10_000
            settings.apps = 3
            settings.rounds = 3
        case .sustained, .storm: settings.devices = 5_000
        case .device, .paced: settings.rounds = 3
        case .status, .collector:
            settings.apps = 10
            settings.rounds = 11
        case .apply:
            settings.rows = 100_000
            settings.rounds = 11
        }
        return settings
    }

    enum Scenario: String, Sendable, CaseIterable {
        case connect, converge, sustained, device, paced, storm, status, collector, apply, decode, all, smoke
    }

    var value: JSONValue {
        .object([
            "devices": .integer(Int64(devices)), "apps": .integer(Int64(apps)), "rounds": .integer(Int64(rounds)),
            "verifiesEach": .bool(verifiesEach),
        ])
    }

    func value(_ more: KeyValuePairs<String, JSONValue?>) -> JSONValue {
        guard case .object(let members) = value, case .object(let others) = JSONValue.object(more) else { return value }
        return .object(members + others)
    }
}
