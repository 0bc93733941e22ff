import FleetProtocol
import GRDB

extension FleetStore.Transaction {
    /// Apps that a document or a status names, in the order of their names, behind `name`.
    func knownApps(after name: String, limit: Int) throws -> [AppID] {
        try rows(
            """
            SELECT name FROM (
                SELECT name FROM apps WHERE EXISTS (
                    SELECT 1 FROM shapes JOIN summary ON summary.shape = shapes.id
                    WHERE shapes.app = apps.id AND summary.count > 0)
                UNION SELECT DISTINCT app FROM documents WHERE app NOT LIKE '\\_%' ESCAPE '\\' AND value IS NOT NULL
            ) WHERE name > ? ORDER BY name LIMIT ?
            """, [name, limit]
        ).compactMap { AppID($0[0] as String) }
    }

    /// What is needed to count the device-apps of an app; retirements as far as one of the `asked` layers wants them.
    func tally(of app: AppID, asked: Set<Layer>? = nil, now: Timestamp) throws -> Tally {
        var shapes: [Int64: Shape] = [:]
        var overrides: [Int64: OverrideClass] = [:]
        if let id = try appID(app, adding: false) {
            let inUse = "EXISTS (SELECT 1 FROM summary WHERE summary.shape = shapes.id AND summary.count > 0)"
            for row in try rows("SELECT id, key FROM shapes WHERE app = ? AND \(inUse)", [id]) {
                shapes[row[0]] = Shape(key: [UInt8](blob: row[1]), app: app)
            }
            for row in try rows("SELECT id, key FROM classes WHERE app = ?", [id]) {
                overrides[row[0]] = OverrideClass(key: row[1])
            }
        }
        return Tally(wishes: try wishes(for: app), shapes: shapes, overrides: overrides, now: now, asked: asked)
    }

    /// What all layers say of an app.
    func wishes(for app: AppID) throws -> AppWishes {
        AppWishes(
            app: app,
            documents: try rows(
                """
                SELECT layer, target, aspect, revision, issued_at, value IS NULL, retired,
                    iif(change_epoch = epoch, change, revision)
                FROM documents WHERE app = ?
                """, [app.text]
            ).compactMap { row in
                guard let layer = Layer(number: row[0], target: row[1]), let aspect = Aspect(rawValue: row[2]) else {
                    return nil
                }
                return AppWishes.Document(
                    layer: layer, aspect: aspect, revision: row[3], change: row[7],
                    issuedAt: Timestamp(milliseconds: row[4]), isTombstone: row[5], isRetired: row[6])
            })
    }

    /// The documents that decide of an app on a device.
    func deciding(of app: AppID, on device: DeviceID, at now: Timestamp) throws -> Set<Address> {
        let (wishes, overrides) = (try wishes(for: app), try overrides(of: device, app: app))
        return Set(Policy.allCases.compactMap { wishes.expectation(of: $0, for: overrides, at: now).source })
    }

    /// All device-apps of an app, by what they have in common.
    func summary(of app: AppID) throws -> [Tally.Rows] {
        guard let id = try appID(app, adding: false) else { return [] }
        let session = try session()
        return try rows(
            """
            SELECT summary.shape, summary.class, summary.state, summary.count
            FROM shapes JOIN summary ON summary.shape = shapes.id WHERE shapes.app = ? AND summary.count > 0
            """, [id]
        ).map { row in
            Tally.Rows(
                shape: row[0], overrides: row[1], state: row[2],
                connection: Connectivity(state: row[2], session: session), count: row[3])
        }
    }

    /// Of those whose devices are online, the ones that could answer only since just before `now`: the device has come
    /// online, or the device-app into its class.
    func summaryOfRecent(of app: AppID, at now: Timestamp) throws -> [Tally.Rows] {
        guard let id = try appID(app, adding: false) else { return [] }
        let session = try session()
        let recent = Tally.recent(at: now)
        return try rows(
            """
            SELECT device_apps.shape, device_apps.class, count(*)
            FROM (
                SELECT id << 16 | ?1 AS id FROM devices WHERE since > ?2 AND since <= ?4
                UNION SELECT id FROM classed WHERE at > ?2 AND at <= ?4 AND id & 65535 = ?1
            ) AS recent
                JOIN device_apps ON device_apps.id = recent.id
                JOIN devices ON devices.id = device_apps.id >> 16
            WHERE devices.state = ?3
            GROUP BY device_apps.shape, device_apps.class
            """, [id, recent.begin.milliseconds, session, recent.end.milliseconds]
        ).map { Tally.Rows(shape: $0[0], overrides: $0[1], state: session, connection: .online, count: $0[2]) }
    }

    /// Whether a device that is online could answer for an app only since just before `now`: see ``summaryOfRecent(of:at:)``.
    func isRecent(_ app: AppID, on device: DeviceRow, at now: Timestamp) throws -> Bool {
        if Tally.isRecent(device.since ?? now, at: now) { return true }
        let classed = try appID(app, adding: false).flatMap {
            try number("SELECT at FROM classed WHERE id = ?", [device.row(of: $0)])
        }
        return classed.map { Tally.isRecent(Timestamp(milliseconds: $0), at: now) } ?? false
    }

    /// One device-app of a device.
    func tallied(_ app: AppID, on device: DeviceRow) throws -> Tally.Rows? {
        guard let id = try appID(app, adding: false),
            let row = try row("SELECT shape, class FROM device_apps WHERE id = ?", [device.row(of: id)])
        else { return nil }
        return Tally.Rows(
            shape: row[0], overrides: row[1], state: device.state,
            connection: device.connectivity(in: try session()), count: 1)
    }

    /// Some devices of these rows, no more than there are: with the last of them the search ends.
    func devices(of group: Tally.Rows, limit: Int) throws -> [DeviceRow] {
        try rows(
            """
            SELECT devices.name FROM device_apps JOIN devices ON devices.id = device_apps.id >> 16
            WHERE device_apps.shape = ? AND device_apps.class = ? AND devices.state = ?
            ORDER BY device_apps.id LIMIT ?
            """, [group.shape, group.overrides, group.state, min(Int64(limit), group.count)]
        ).compactMap { row in try DeviceID(row[0] as String).flatMap { try device($0) } }
    }

    /// Drops shapes, classes and numbers of apps that no device-app has any more, and what has been in its class for an
    /// hour.
    func dropUnused(at time: Timestamp) throws {
        try run(
            "DELETE FROM classed WHERE at <= ? OR at > ?",
            [time.advanced(bySeconds: -3_600).milliseconds, time.advanced(bySeconds: 3_600).milliseconds])
        try run("DELETE FROM summary WHERE count = 0")
        try run("DELETE FROM shapes WHERE id NOT IN (SELECT shape FROM summary)")
        try run("DELETE FROM classes WHERE id NOT IN (SELECT class FROM summary)")
        try run(
            "DELETE FROM apps WHERE id NOT IN (SELECT app FROM shapes) AND id NOT IN (SELECT app FROM classes)")
        cache.forgetShapes()
        cache.classes.removeAll()
        cache.apps.removeAll()
    }
}
