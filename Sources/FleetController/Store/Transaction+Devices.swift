import FleetProtocol
import GRDB

extension FleetStore.Transaction {
    private static let selectDevice =
        "SELECT id, name, enrolled, incarnation, boot, announced, state, connection, since, agent, warning, disk,"
        + " copied, judged FROM devices"

    func device(_ name: DeviceID) throws -> DeviceRow? {
        if let known = cache.devices[name] { return known }
        let device = try row(Self.selectDevice + " WHERE name = ?", [name.text]).flatMap(Self.device)
        if let device { cache.devices[name] = device }
        return device
    }

    func addDevice(
        _ name: DeviceID, incarnation: Int64, boot: Int64, enrolled: Int64? = nil
    ) throws -> DeviceRow {
        try run(
            "INSERT INTO devices (name, enrolled, incarnation, boot, state) VALUES (?, ?, ?, ?, 0)",
            [name.text, enrolled, incarnation, boot])
        var device = DeviceRow(
            id: database.lastInsertedRowID, name: name, incarnation: incarnation, boot: boot,
            state: Connectivity.unknownState)
        device.enrolled = enrolled
        cache.devices[name] = device
        return device
    }

    func update(_ device: DeviceRow) throws {
        try run(
            """
            UPDATE devices SET enrolled = ?, incarnation = ?, boot = ?, announced = ?, state = ?, connection = ?, since = ?,
                agent = ?, warning = ?, disk = ?, copied = ?, judged = ? WHERE id = ?
            """,
            [
                device.enrolled, device.incarnation, device.boot, device.announced, device.state,
                device.connection?.text, device.since?.milliseconds, device.agent, device.warning, device.disk,
                device.isCopied, device.judged, device.id,
            ])
        cache.devices[device.name] = device
    }

    /// Devices in the order of their names, behind `name`.
    func devices(named only: DeviceID?, after name: String, limit: Int) throws -> [DeviceRow] {
        if let only { return try only.text > name ? device(only).map { [$0] } ?? [] : [] }
        return try rows(Self.selectDevice + " WHERE name > ? ORDER BY name LIMIT ?", [name, limit])
            .compactMap(Self.device)
    }

    func apps(of device: DeviceRow) throws -> [AppID] {
        try rows(
            """
            SELECT apps.name FROM device_apps JOIN apps ON apps.id = device_apps.id & 65535
            WHERE device_apps.id BETWEEN ? AND ? ORDER BY apps.name
            """, [device.row(of: 0), device.row(of: 65_535)]
        ).compactMap { AppID($0[0] as String) }
    }

    func appCount(of device: DeviceRow) throws -> Int64 {
        try number(
            "SELECT count(*) FROM device_apps WHERE id BETWEEN ? AND ?", [device.row(of: 0), device.row(of: 65_535)])
            ?? 0
    }

    /// How many devices there are, by whether they are connected.
    func deviceCounts() throws -> [Connectivity: Int64] {
        let session = try session()
        return try rows("SELECT state, count(*) FROM devices GROUP BY state").reduce(into: [:]) { counts, row in
            counts[Connectivity(state: row[0], session: session), default: 0] += row[1] as Int64
        }
    }

    /// How many devices ``DeviceRow/warning``, ``keysOnEarlierDisks(of:)``, ``keysOnCopies(of:)``, ``isLetInAgain(_:)`` or
    /// ``gaps(of:)`` speak of.
    func warnedDeviceCount() throws -> Int64 { try number(Self.countWarned) ?? 0 }

    static let countWarned = """
        SELECT count(*) FROM devices WHERE warning IS NOT NULL OR copied = 1 OR id IN (SELECT device FROM gaps)
        OR id IN (
            SELECT devices.id FROM removed_devices JOIN devices USING (name)
            WHERE is_back = 1 AND devices.enrolled <= removed_devices.incarnation
            AND removed_devices.incarnation < \(JSONValue.largestInteger))
        OR EXISTS (
            SELECT 1 FROM left_keys
            WHERE device = devices.name AND removed_groups IS NULL AND left_keys.disk IS NOT devices.disk)
        """

    /// How many events devices had to drop: as a sum that cannot overflow, for it is devices that say so.
    func lostEventCount() throws -> Int64 {
        try number("SELECT CAST(min(total(last - first + 1), 9e18) AS INTEGER) FROM gaps") ?? 0
    }

    /// Ranges of events that a device had to drop, as texts.
    func gaps(of device: DeviceRow) throws -> [String] {
        try rows(
            "SELECT incarnation, boot, first, last FROM gaps WHERE device = ? ORDER BY at DESC LIMIT 5", [device.id]
        ).map { row in
            let (first, last): (Int64, Int64) = (row[2], row[3])
            let range = first == last ? "event \(first)" : "events \(first) to \(last)"
            return
                "\(range) of boot \(row[1] as Int64) (incarnation \(row[0] as Int64)) missing, and gone on the device"
        }
    }

    private static func device(_ row: Row) -> DeviceRow? {
        guard let name = DeviceID(row[1] as String) else { return nil }
        return DeviceRow(
            id: row[0], name: name, enrolled: row[2], incarnation: row[3], boot: row[4], announced: row[5],
            judged: row[13], state: row[6], connection: (row[7] as String?).flatMap { RandomID($0) },
            since: (row[8] as Int64?).map { Timestamp(milliseconds: $0) }, agent: row[9], warning: row[10],
            disk: row[11], isCopied: row[12])
    }
}
