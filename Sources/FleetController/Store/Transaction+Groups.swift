import FleetProtocol
import GRDB

extension FleetStore.Transaction {
    func priority(of group: GroupID) throws -> Int64? {
        try number("SELECT priority FROM groups WHERE name = ?", [group.text])
    }

    func setGroup(_ group: GroupID, priority: Int64) throws {
        try run(
            "INSERT INTO groups (name, priority) VALUES (?, ?) ON CONFLICT DO UPDATE SET priority = excluded.priority",
            [group.text, priority])
    }

    func removeGroup(_ group: GroupID) throws { try run("DELETE FROM groups WHERE name = ?", [group.text]) }

    func members(of group: GroupID) throws -> [DeviceID] {
        try rows("SELECT device FROM members WHERE \"group\" = ? ORDER BY device", [group.text])
            .compactMap { DeviceID($0[0] as String) }
    }

    /// The groups of a device, in the order of their names.
    func groups(of device: DeviceID) throws -> [GroupID] {
        try rows("SELECT \"group\" FROM members WHERE device = ? ORDER BY \"group\"", [device.text])
            .compactMap { GroupID($0[0] as String) }
    }

    func setMember(_ device: DeviceID, of group: GroupID, _ isMember: Bool) throws {
        try run(
            isMember
                ? "INSERT OR IGNORE INTO members (device, \"group\") VALUES (?, ?)"
                : "DELETE FROM members WHERE device = ? AND \"group\" = ?",
            [device.text, group.text])
    }

    /// Groups in the order of their names, from `name` on.
    func groups(from name: String, limit: Int) throws -> [(group: GroupID, priority: Int64)] {
        try rows("SELECT name, priority FROM groups WHERE name >= ? ORDER BY name LIMIT ?", [name, limit])
            .compactMap { row in GroupID(row[0] as String).map { ($0, row[1]) } }
    }
}
