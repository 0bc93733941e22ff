import FleetProtocol
import Foundation

extension Timestamp {
    /// The time of day here, `09:24:00`.
    var localTime: String {
        var seconds = time_t(milliseconds / 1_000)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return [parts.tm_hour, parts.tm_min, parts.tm_sec].map { ($0 < 10 ? "0" : "") + "\($0)" }.joined(separator: ":")
    }

    /// `2026-11-21 07:24:00`, in UTC, for tables.
    var tableText: String {
        let text = description
        return text.prefix(10) + " " + text.dropFirst(11).prefix(8)
    }
}
