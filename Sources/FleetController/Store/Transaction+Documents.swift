import FleetProtocol
import GRDB

extension FleetStore.Transaction {
    // MARK: The fleet and its counter

    /// Binds a new database to its fleet, or checks that it is that fleet's.
    func adopt(_ fleet: RandomID) throws {
        try run("INSERT OR IGNORE INTO meta (id, fleet, epoch, revision, session) VALUES (1, ?, 1, 0, 1)", [fleet.text])
        let known: String? = try row("SELECT fleet FROM meta")?[0]
        guard known == fleet.text else {
            throw FleetControllerError(
                .otherFleet, "this database belongs to the fleet \(known ?? "?"), and the home to \(fleet)")
        }
    }

    /// The epoch, and the highest revision that was ever given out.
    func latest() throws -> Revision {
        if let known = cache.latest { return known }
        guard let row = try row("SELECT epoch, revision FROM meta") else { return .zero }
        let latest = Revision(epoch: row[0], number: row[1])
        cache.latest = latest
        return latest
    }

    func nextRevision() throws -> Revision {
        cache.latest = nil
        try run("UPDATE meta SET revision = revision + 1")
        return try latest()
    }

    func advance(to revision: Revision) throws {
        cache.latest = nil
        try run("UPDATE meta SET epoch = ?, revision = ?", [revision.epoch, revision.number])
    }

    /// Counts a connection of the controller's own: from now on a device is unknown until it is heard.
    func beginSession() throws -> Int64 {
        cache.session = nil
        try run("UPDATE meta SET session = session + 1")
        return try session()
    }

    func session() throws -> Int64 {
        if let known = cache.session { return known }
        let session = try number("SELECT session FROM meta") ?? 1
        cache.session = session
        return session
    }

    func position() throws -> StorePosition { StorePosition(latest: try latest(), session: try session()) }

    /// The time up to which hellos and heartbeats may have been signed.
    func signedTime() throws -> Timestamp { Timestamp(milliseconds: try number("SELECT signed_at FROM meta") ?? 0) }

    func setSignedTime(_ time: Timestamp) throws { try run("UPDATE meta SET signed_at = ?", [time.milliseconds]) }

    // MARK: Documents

    func document(at address: Address) throws -> StoredDocument? {
        try row(Self.selectDocument + " WHERE path = ?", [address.path]).map(Self.document)
    }

    /// Every document, tombstones included, in the order of revisions.
    func documents(after revision: Int64, limit: Int) throws -> [StoredDocument] {
        try rows(Self.selectDocument + " WHERE revision > ? ORDER BY revision LIMIT ?", [revision, limit])
            .map(Self.document)
    }

    /// What stands on one layer about one app, tombstones included.
    func documents(on layer: Layer, app: AppID) throws -> [StoredDocument] {
        try rows(
            Self.selectDocument + " WHERE layer = ? AND target = ? AND app = ? ORDER BY aspect",
            [layer.number, layer.target, app.text]
        ).map(Self.document)
    }

    /// Everything on one layer, tombstones included.
    func documents(on layer: Layer) throws -> [StoredDocument] {
        try rows(
            Self.selectDocument + " WHERE layer = ? AND target = ? ORDER BY path", [layer.number, layer.target]
        ).map(Self.document)
    }

    /// The live documents of apps in the order of their paths, behind `path`.
    func policies(app: AppID?, layer: Layer?, for device: DeviceID?, after path: String, limit: Int) throws
        -> [StoredDocument]
    {
        var sql = Self.selectDocument + " WHERE value IS NOT NULL AND app NOT LIKE '\\_%' ESCAPE '\\' AND path > ?"
        var arguments: StatementArguments = [path]
        if let app {
            sql += " AND app = ?"
            arguments += [app.text]
        }
        if let layer {
            sql += " AND layer = ? AND target = ?"
            arguments += [layer.number, layer.target]
        }
        if let device {
            sql += " AND \(Self.readableByDevice)"
            arguments += [device.text, device.text]
        }
        return try rows(sql + " ORDER BY path LIMIT ?", arguments + [limit]).map(Self.document)
    }

    /// Topics that a device could read, with the highest revision that stands there, tombstones included.
    func floors(for device: DeviceID) throws -> [(address: Address, revision: Revision)] {
        try rows(
            "SELECT path, epoch, revision FROM documents WHERE \(Self.readableByDevice) ORDER BY path",
            [device.text, device.text]
        ).compactMap { row in
            Address(path: row[0] as String).map { ($0, Revision(epoch: row[1], number: row[2])) }
        }
    }

    /// What a device with these apps is to have, tombstones left out; nil when some of it was issued within the last `settling`
    /// seconds.
    func documents(
        for device: DeviceID, apps: [AppID], trust: Int64, settling: Int64, at now: Timestamp
    ) throws -> Presence.Documents? {
        var found = Presence.Documents(trust: trust)
        for document in try readable(by: device, apps: apps) {
            let issued = Timestamp(milliseconds: document[4])
            guard Schedule.hasPassed(settling, since: issued, at: now) else { return nil }
            if document[3] { found.add(document[2]) }
        }
        return found
    }

    /// Which documents a device with these apps is to have.
    func revisions(for device: DeviceID, apps: [AppID]) throws -> [Address: Revision] {
        var found: [Address: Revision] = [:]
        for document in try readable(by: device, apps: apps) {
            if document[3], let address = Address(path: document[0] as String) {
                found[address] = Revision(epoch: document[1], number: document[2])
            }
        }
        return found
    }

    /// Paths, epochs, revisions, whether it is no tombstone and when it was issued, of all that a device reads of itself, its
    /// groups and these apps.
    private func readable(by device: DeviceID, apps: [AppID]) throws -> [Row] {
        let names = JSONValue.array((["_device", "_group"] + apps.map(\.text)).map(JSONValue.string)).jsonText
        var found: [Row] = []
        for layer in try [.all, .device(device)] + groups(of: device).map(Layer.group) {
            found += try rows(
                """
                SELECT path, epoch, revision, value IS NOT NULL, issued_at FROM documents
                WHERE layer = ? AND target = ? AND app IN (SELECT value FROM json_each(?))
                """, [layer.number, layer.target, names])
        }
        return found
    }

    /// The layers that say `retired` about an app, of very many the first: those that speak to several devices come first.
    func retiredLayers(of app: AppID, limit: Int) throws -> [Layer] {
        try rows(
            """
            SELECT layer, target FROM documents WHERE app = ? AND aspect = 'auth' AND retired = 1
            ORDER BY layer, path LIMIT ?
            """, [app.text, limit]
        ).compactMap { Layer(number: $0[0], target: $0[1]) }
    }

    func put(_ document: StoredDocument) throws {
        guard let place = DocumentPlace(document.address) else { return }
        try run(
            """
            INSERT INTO documents (path, layer, target, app, aspect, epoch, revision, change_epoch, change, issued_at,
                changed_by, why, value, retired, wire)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (path) DO UPDATE SET epoch = excluded.epoch, revision = excluded.revision,
                change_epoch = excluded.change_epoch, change = excluded.change, issued_at = excluded.issued_at,
                changed_by = excluded.changed_by, why = excluded.why, value = excluded.value,
                retired = excluded.retired, wire = excluded.wire
            """,
            [
                document.address.path, place.layer.number, place.layer.target, place.app, place.aspect,
                document.revision.epoch, document.revision.number, document.change.epoch, document.change.number,
                document.issuedAt.milliseconds, document.by, document.why, document.value, document.isRetired,
                document.wire.blob,
            ])
    }

    func removeDocument(at address: Address) throws {
        try run("DELETE FROM documents WHERE path = ?", [address.path])
    }

    /// Tombstones from before `time`.
    func tombstones(issuedBefore time: Timestamp) throws -> [Address] {
        try rows(
            "SELECT path FROM documents WHERE value IS NULL AND issued_at < ? LIMIT 1000", [time.milliseconds]
        ).compactMap { Address(path: $0[0] as String) }
    }

    // MARK: History

    func remember(_ document: StoredDocument, replacing old: String?) throws {
        guard let place = DocumentPlace(document.address) else { return }
        try remember(
            HistoryEntry(
                revision: document.revision.number, at: document.issuedAt, by: document.by, why: document.why,
                target: place.layer.description, app: place.app, aspect: place.aspect, old: old, new: document.value),
            epoch: document.revision.epoch)
    }

    func remember(_ entry: HistoryEntry, epoch: Int64) throws {
        try run(
            """
            INSERT INTO history (revision, epoch, at, changed_by, why, target, app, aspect, old, new)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                entry.revision, epoch, entry.at.milliseconds, entry.by, entry.why, entry.target, entry.app,
                entry.aspect, entry.old, entry.new,
            ])
    }

    /// Changes before a revision, the newest first.
    func history(app: AppID?, layer: Layer?, before revision: Int64, limit: Int) throws -> [HistoryEntry] {
        var sql =
            "SELECT revision, at, changed_by, why, target, app, aspect, old, new FROM history WHERE revision < ?"
        var arguments: StatementArguments = [revision]
        if let app {
            sql += " AND app = ?"
            arguments += [app.text]
        }
        if case .group(let group)? = layer {
            sql += " AND (target = ? OR \(Self.membershipChanges))"
            arguments += [layer?.description, group.text, group.text]
        } else if let layer {
            sql += " AND target = ?"
            arguments += [layer.description]
        }
        return try rows(sql + " ORDER BY revision DESC LIMIT ?", arguments + [limit]).map { row in
            HistoryEntry(
                revision: row[0], at: Timestamp(milliseconds: row[1]), by: row[2], why: row[3], target: row[4],
                app: row[5], aspect: row[6], old: row[7], new: row[8])
        }
    }

    // MARK: Columns

    /// Which changes have let a device into a group, or taken it out. Binds the group's name twice.
    private static let membershipChanges =
        "app = '_device' AND aspect = 'membership' AND (\(names("old"))) <> (\(names("new")))"

    private static func names(_ column: String) -> String {
        "EXISTS (SELECT 1 FROM json_each(coalesce(\(column), '{}'), '$.groups') WHERE value = ?)"
    }

    /// Binds a device's name twice.
    private static let readableByDevice =
        "(layer = 0 OR (layer = 2 AND target = ?) OR (layer = 1 AND target IN (SELECT \"group\" FROM members WHERE device = ?)))"

    private static let selectDocument =
        "SELECT path, epoch, revision, change_epoch, change, issued_at, changed_by, why, value, retired, wire FROM documents"

    /// A row that is left out would be a wish that nobody hears of.
    private static func document(_ row: Row) throws -> StoredDocument {
        guard let address = Address(path: row[0] as String) else {
            throw FleetStore.DamagedRow(description: "'\(row[0] as String)' is no topic of a fleet")
        }
        return StoredDocument(
            address: address, revision: Revision(epoch: row[1], number: row[2]),
            change: Revision(epoch: row[3], number: row[4]), issuedAt: Timestamp(milliseconds: row[5]), by: row[6],
            why: row[7], value: row[8], isRetired: row[9], wire: [UInt8](blob: row[10]))
    }
}

/// One change of the desired state, as `history` tells it.
struct HistoryEntry: Hashable, Sendable {
    let revision: Int64
    let at: Timestamp
    let by: String
    let why: String?
    let target: String
    let app: String
    let aspect: String
    let old: String?
    let new: String?
}
