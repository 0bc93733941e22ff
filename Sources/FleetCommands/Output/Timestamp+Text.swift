import FleetProtocol

extension Timestamp {
    /// The time of day in UTC, as in tables: `09:24:00Z`.
    var timeOfDay: String { tableText.suffix(8) + "Z" }

    /// `2026-11-21 07:24:00`, in UTC, for tables.
    var tableText: String {
        let text = description
        return text.prefix(10) + " " + text.dropFirst(11).prefix(8)
    }
}
