import FleetProtocol
import GRDB

/// Which devices were removed, as which incarnation, and which of them are enrolled again since.
extension FleetStore.Transaction {
    /// Takes a device and all that it has said out of the store; answers which apps it had. `enrolled` is the
    /// incarnation that it was last enrolled with, as far as that is known.
    func removeDevice(_ name: DeviceID, enrolled: Int64, at time: Timestamp) throws -> [AppID] {
        let device = try device(name)
        try run(
            """
            INSERT INTO removed_devices (name, at, incarnation) VALUES (?, ?, ?)
            ON CONFLICT DO UPDATE SET
                at = excluded.at, incarnation = max(incarnation, excluded.incarnation), is_back = 0
            """, [name.text, time.milliseconds, max(enrolled, device?.lastIncarnation ?? 0)])
        cache.removed = nil
        guard let device else { return [] }
        let apps = try apps(of: device)
        try run("DELETE FROM devices WHERE id = ?", [device.id])
        cache.devices[name] = nil
        return apps
    }

    /// Notes that a removed device is enrolled again, or is let in as what it was. That it was removed is still known, for what it said before.
    func readmit(_ name: DeviceID) throws {
        try run("UPDATE removed_devices SET is_back = 1 WHERE name = ?", [name.text])
    }

    /// Whether a device is removed now: it has not been enrolled again since.
    func isRemoved(_ name: DeviceID) throws -> Bool { try removedIncarnation(of: name) != nil }

    /// The last incarnation of a device that is removed now; nil for any other.
    func removedIncarnation(of name: DeviceID) throws -> Int64? {
        try number("SELECT incarnation FROM removed_devices WHERE name = ? AND NOT is_back", [name.text])
    }

    /// The highest incarnation that a device has spoken as, was enrolled as or was removed as; 0 where nothing is known.
    func lastIncarnation(of name: DeviceID) throws -> Int64 {
        max(try device(name)?.lastIncarnation ?? 0, try cachedRemovals()[name] ?? 0)
    }

    /// Whether this incarnation was removed for certain, also when the device is enrolled again since: of a removal by
    /// an earlier version it is not known which one it was.
    func wasRemoved(_ name: DeviceID, incarnation: Int64) throws -> Bool {
        try cachedRemovals()[name].map { incarnation <= $0 } ?? false
    }

    /// Whether this incarnation may have been removed, and what it has said been forgotten with it: also by a removal
    /// of which it is not known which one it was.
    func mayHaveBeenRemoved(_ name: DeviceID, incarnation: Int64) throws -> Bool {
        try number("SELECT 1 FROM removed_devices WHERE name = ? AND incarnation >= ?", [name.text, incarnation]) != nil
    }

    /// Whether a device is enrolled as what was removed: its home was put back from before that.
    func isLetInAgain(_ device: DeviceRow) throws -> Bool {
        guard let enrolled = device.enrolled else { return false }
        return try wasRemoved(device.name, incarnation: enrolled)
    }

    /// The last incarnation of each device that was removed, also when it is enrolled again, where that is known.
    private func cachedRemovals() throws -> [DeviceID: Int64] {
        if let removed = cache.removed { return removed }
        let rows = try rows(
            "SELECT name, incarnation FROM removed_devices WHERE incarnation < ?", [JSONValue.largestInteger])
        let removed = Dictionary(rows.map { (DeviceID(unchecked: $0[0]), $0[1] as Int64) }) { $1 }
        cache.removed = removed
        return removed
    }
}
