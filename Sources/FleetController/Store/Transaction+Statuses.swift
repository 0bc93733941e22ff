import FleetProtocol
import GRDB

extension FleetStore.Transaction {
    /// Stores a status unless a newer one is there: one row written. False where there are more apps than there may be.
    func store(_ status: Status, of device: DeviceRow, at time: Timestamp) throws -> Bool {
        var known = try appID(status.app, adding: false)
        // A name gets its number only for a device that may have the app.
        if known == nil, try appCount(of: device) < Presence.maximumApps {
            known = try appID(status.app, adding: true)
        }
        guard let app = known else { return false }
        let id = device.row(of: app)
        let shape = try shapeID(of: status, app: app)
        let detail = StatusDetail.encode(status).blob
        let order = status.order
        try run(
            """
            UPDATE device_apps SET shape = ?, incarnation = ?, boot = ?, seq = ?, at = ?, detail = ?
            WHERE id = ? AND (incarnation, boot, seq) < (?, ?, ?)
            """,
            [
                shape, order.incarnation, order.boot, order.sequence, status.at.milliseconds, detail, id,
                order.incarnation, order.boot, order.sequence,
            ])
        if database.changesCount > 0 { return true }
        if try self.order(of: status.app, on: device) != nil { return true }
        guard try appCount(of: device) < Presence.maximumApps else { return false }
        let overrides = try classID(overrides(of: device.name, app: status.app), app: app)
        try run(
            """
            INSERT INTO device_apps (id, shape, class, incarnation, boot, seq, at, detail)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                id, shape, overrides, order.incarnation, order.boot, order.sequence, status.at.milliseconds, detail,
            ])
        try noteClassed(id, at: time)
        return true
    }

    /// Enrolled again, a device may have got another disk: what an earlier incarnation has said of apps that are not there
    /// any more is over. Answers the topics that are to be cleared.
    func dropApps(missingIn presence: Presence, _ device: DeviceRow) throws -> [Address] {
        guard presence.incarnation > 1 else { return [] }
        let present = Set(presence.apps.map(\.id))
        let missing = try apps(of: device, before: presence.incarnation).filter { !present.contains($0) }
        for app in missing { try drop(app, of: device) }
        return missing.map { .reply(device.name, $0, .status) }
    }

    /// The apps whose newest status is of an earlier incarnation.
    func apps(of device: DeviceRow, before incarnation: Int64) throws -> [AppID] {
        try rows(
            """
            SELECT apps.name FROM device_apps JOIN apps ON apps.id = device_apps.id & 65535
            WHERE device_apps.id BETWEEN ? AND ? AND incarnation < ?
            """, [device.row(of: 0), device.row(of: 65_535), incarnation]
        ).compactMap { AppID($0[0] as String) }
    }

    /// Takes what is known of an app on a device out of the store.
    func drop(_ app: AppID, of device: DeviceRow) throws {
        guard let id = try appID(app, adding: false) else { return }
        try run("DELETE FROM device_apps WHERE id = ?", [device.row(of: id)])
    }

    /// The order of the status that is stored of an app.
    func order(of app: AppID, on device: DeviceRow) throws -> ReportOrder? {
        guard let app = try appID(app, adding: false) else { return nil }
        return try row("SELECT incarnation, boot, seq FROM device_apps WHERE id = ?", [device.row(of: app)]).map {
            ReportOrder(incarnation: $0[0], boot: $0[1], sequence: $0[2])
        }
    }

    /// The number of an app; nil when it has none and may not get one, or all 65,535 are taken.
    func appID(_ app: AppID, adding: Bool) throws -> Int64? {
        if let id = cache.apps[app] { return id }
        if let id = try number("SELECT id FROM apps WHERE name = ?", [app.text]) {
            cache.apps[app] = id
            return id
        }
        guard adding, let id = try freeAppID() else { return nil }
        try run("INSERT INTO apps (id, name) VALUES (?, ?)", [id, app.text])
        cache.apps[app] = id
        return id
    }

    /// The number behind the highest or, when all are given out, one whose app is gone.
    private func freeAppID() throws -> Int64? {
        let highest = try number("SELECT coalesce(max(id), 0) FROM apps") ?? 0
        if highest < 65_535 { return highest + 1 }
        return try number("SELECT min(id) - 1 FROM apps WHERE id > 1 AND id - 1 NOT IN (SELECT id FROM apps)")
    }

    private func shapeID(of status: Status, app: Int64) throws -> Int64 {
        if let id = cache.recentShapes.id(of: status, app: app) { return id }
        let id = try storedShapeID(of: status, app: app)
        cache.recentShapes.add(status, app: app, id: id)
        return id
    }

    private func storedShapeID(of status: Status, app: Int64) throws -> Int64 {
        let key = StoreCache.ShapeKey(app: app, text: Shape.key(of: status))
        if let id = cache.shapes[key] { return id }
        let blob = key.text.blob
        try run("INSERT OR IGNORE INTO shapes (app, key) VALUES (?, ?)", [app, blob])
        let id = try number("SELECT id FROM shapes WHERE app = ? AND key = ?", [app, blob]) ?? 0
        if cache.shapes.count >= 10_000 { cache.shapes.removeAll() }
        cache.shapes[key] = id
        return id
    }

    /// Some of the device-apps: those of some shapes and classes, since all of both are counted alike.
    struct Selection {
        private var kinds: Set<Kind> = []
        private var count: Int64 = 0

        private struct Kind: Hashable {
            let shape: Int64
            let overrides: Int64
        }

        mutating func add(_ rows: Tally.Rows) {
            kinds.insert(Kind(shape: rows.shape, overrides: rows.overrides))
            count += rows.count
        }

        /// Few are found by their shapes and sorted; of many the first are found soonest in the order of the rows.
        fileprivate var isOfFew: Bool { count <= 5_000 }
        fileprivate var pairs: String { "[\(kinds.map { "[\($0.shape),\($0.overrides)]" }.joined(separator: ","))]" }
    }

    /// Whole statuses in the order of devices and apps, behind the row `row`; of a selection, those alone.
    func statuses(
        in fleet: FleetID, app: AppID?, device: DeviceID?, among selection: Selection? = nil, after row: Int64,
        limit: Int
    ) throws -> [(row: Int64, status: Status, tallied: Tally.Rows)] {
        let session = try session()
        var sql = """
            SELECT device_apps.id, devices.name, apps.name, device_apps.incarnation, device_apps.boot, device_apps.seq,
                device_apps.at, shapes.key, device_apps.detail, device_apps.shape, device_apps.class, devices.state
            FROM device_apps \(selection?.isOfFew ?? true ? "" : "NOT INDEXED")
                CROSS JOIN devices ON devices.id = device_apps.id >> 16
                CROSS JOIN apps ON apps.id = device_apps.id & 65535
                CROSS JOIN shapes ON shapes.id = device_apps.shape
            WHERE device_apps.id > ?
            """
        var arguments: StatementArguments = [row]
        if let device {
            guard let known = try self.device(device) else { return [] }
            sql += " AND device_apps.id BETWEEN ? AND ?"
            arguments += [known.row(of: 0), known.row(of: 65_535)]
        }
        if let app {
            guard let id = try appID(app, adding: false) else { return [] }
            sql += " AND device_apps.id & 65535 = ?"
            arguments += [id]
        }
        if let selection {
            sql += " AND (device_apps.shape, device_apps.class) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))"
            arguments += [selection.pairs]
        }
        return try rows(sql + " ORDER BY device_apps.id LIMIT ?", arguments + [limit]).map { row in
            guard let device = DeviceID(row[1] as String), let app = AppID(row[2] as String),
                let shape = Shape(key: [UInt8](blob: row[7]), app: app)
            else { throw FleetStore.DamagedRow(description: "the status in row \(row[0] as Int64) cannot be read") }
            let status = try StatusDetail.status(
                fleet: fleet, device: device, app: app,
                order: ReportOrder(incarnation: row[3], boot: row[4], sequence: row[5]),
                at: Timestamp(milliseconds: row[6]), shape: shape, detail: [UInt8](blob: row[8]))
            let tallied = Tally.Rows(
                shape: row[9], overrides: row[10], state: row[11],
                connection: Connectivity(state: row[11], session: session), count: 1)
            return (row[0], status, tallied)
        }
    }
}
