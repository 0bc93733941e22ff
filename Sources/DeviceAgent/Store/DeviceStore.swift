import FleetProtocol
import Foundation
import GRDB

/// What an agent keeps on disk: one SQLite file, all of its SQL here. Not thread-safe by itself: one owner writes.
///
/// Each ``apply(_:)`` is one transaction, synced to the disk before it returns.
package struct DeviceStore: Sendable {
    private let queue: DatabaseQueue

    /// Opens the file at `path`, or makes it. Throws when it is damaged, not writable, or of a newer version.
    package init(path: String) throws {
        do {
            var configuration = Configuration()
            configuration.prepareDatabase { db in
                try db.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
            }
            configuration.busyMode = .immediateError
            try self.init(DatabaseQueue(path: path, configuration: configuration))
        } catch let error as DatabaseError {
            throw DeviceAgentError(
                .store, "cannot open the agent's store at \(path)", cause: error)
        }
    }

    /// A store in memory, for tests and simulations.
    package static func inMemory() throws -> DeviceStore { try DeviceStore(DatabaseQueue()) }

    private init(_ queue: DatabaseQueue) throws {
        self.queue = queue
        let migrator = Self.migrator
        guard try queue.read({ try !migrator.hasBeenSuperseded($0) }) else {
            throw DeviceAgentError(.store, "the agent's store was written by a newer version of the agent: update it")
        }
        try migrator.migrate(queue)
    }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in
            try db.execute(
                sql: """
                    CREATE TABLE device (
                        id INTEGER PRIMARY KEY CHECK (id = 1),
                        fleet TEXT,
                        device TEXT,
                        boot INTEGER NOT NULL DEFAULT 0,
                        trust BLOB,
                        groups TEXT NOT NULL DEFAULT '[]',
                        running INTEGER NOT NULL DEFAULT 0,
                        uptime INTEGER NOT NULL DEFAULT 0,
                        boot_id TEXT NOT NULL DEFAULT '',
                        contact_running INTEGER,
                        contact_wall INTEGER,
                        highest_epoch INTEGER NOT NULL DEFAULT 0,
                        highest_revision INTEGER NOT NULL DEFAULT 0,
                        CHECK ((contact_running IS NULL) = (contact_wall IS NULL)),
                        CHECK ((fleet IS NULL) = (device IS NULL))
                    ) STRICT;
                    INSERT INTO device (id) VALUES (1);
                    CREATE TABLE document (path TEXT PRIMARY KEY, wire BLOB NOT NULL) STRICT, WITHOUT ROWID;
                    CREATE TABLE mark (
                        path TEXT PRIMARY KEY,
                        epoch INTEGER NOT NULL,
                        revision INTEGER NOT NULL,
                        digest BLOB CHECK (digest IS NULL OR length(digest) = 32)
                    ) STRICT, WITHOUT ROWID;
                    CREATE TABLE app (id TEXT PRIMARY KEY, record BLOB NOT NULL) STRICT, WITHOUT ROWID;
                    CREATE TABLE event (
                        boot INTEGER NOT NULL,
                        number INTEGER NOT NULL,
                        kind TEXT NOT NULL CHECK (kind IN ('event', 'log-level')),
                        device TEXT NOT NULL,
                        app TEXT NOT NULL,
                        wire BLOB NOT NULL,
                        PRIMARY KEY (boot, number)
                    ) STRICT, WITHOUT ROWID;
                    """)
        }
        return migrator
    }

    // MARK: Writing

    package func apply(_ changes: [StoreChange]) throws {
        do {
            try queue.writeWithoutTransaction { db in
                try db.inTransaction(.immediate) {
                    for change in changes { try Self.apply(change, db) }
                    return .commit
                }
            }
        } catch let error as DatabaseError {
            throw DeviceAgentError(.store, "cannot write to the agent's store", cause: error)
        }
    }

    private static func apply(_ change: StoreChange, _ db: Database) throws {
        func run(_ sql: String, _ arguments: StatementArguments) throws {
            try db.cachedStatement(sql: sql).execute(arguments: arguments)
        }
        switch change {
        case .started(let boot, let owner):
            try run(
                "UPDATE device SET boot = ?, fleet = ?, device = ?", [boot, owner.fleet.text, owner.device.text])
        case .trust(let wire): try run("UPDATE device SET trust = ?", [Data(wire)])
        case .groups(let groups): try run("UPDATE device SET groups = ?", [JSONList(groups).jsonText])
        case .clock(let running, let contact, let highest):
            try run(
                """
                UPDATE device SET running = ?, uptime = ?, boot_id = ?, contact_running = ?, contact_wall = ?,
                highest_epoch = ?, highest_revision = ?
                """,
                [
                    running.total, running.lastUptime, running.bootID, contact?.running, contact?.wall.milliseconds,
                    highest.epoch, highest.number,
                ])
        case .document(let address, let wire?):
            try run("INSERT OR REPLACE INTO document (path, wire) VALUES (?, ?)", [address.path, Data(wire)])
        case .document(let address, nil): try run("DELETE FROM document WHERE path = ?", [address.path])
        case .mark(let address, let mark):
            try run(
                "INSERT OR REPLACE INTO mark (path, epoch, revision, digest) VALUES (?, ?, ?, ?)",
                [address.path, mark.revision.epoch, mark.revision.number, mark.digest.map { Data($0.bytes) }])
        case .app(let record):
            try run("INSERT OR REPLACE INTO app (id, record) VALUES (?, ?)", [record.id.text, Data(record.json)])
        case .event(let event):
            let header = event.header
            try run(
                "INSERT OR REPLACE INTO event (boot, number, kind, device, app, wire) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    header.boot, header.number, event.kind, header.device.text, header.app.text,
                    Data(event.wire(oldest: header.oldest)),
                ])
        case .dropEvents(let boot, let through):
            try run("DELETE FROM event WHERE boot = ? AND number <= ?", [boot, through])
        }
    }

    // MARK: Reading

    package func load() throws -> DeviceState {
        do {
            return try queue.read { db in
                var state = DeviceState()
                try Self.loadDevice(into: &state, db)
                for row in try Row.fetchAll(db, sql: "SELECT path, wire FROM document") {
                    guard let address = Address(path: row["path"] as String) else { continue }
                    state.documents[address] = Array(row["wire"] as Data)
                }
                for row in try Row.fetchAll(db, sql: "SELECT path, epoch, revision, digest FROM mark") {
                    guard let address = Address(path: row["path"] as String) else { continue }
                    state.marks[address] = DocumentMark(
                        revision: Revision(epoch: row["epoch"], number: row["revision"]),
                        digest: (row["digest"] as Data?).map { Digest(bytes: Array($0)) })
                }
                for row in try Row.fetchAll(db, sql: "SELECT id, record FROM app") {
                    let record = try AppRecord(json: Array(row["record"] as Data), limit: .max)
                    state.apps[record.id] = record
                }
                let events = try Row.fetchAll(
                    db, sql: "SELECT kind, device, app, wire FROM event ORDER BY boot, number")
                state.events = try events.map { row in
                    try KeptEvent(
                        kind: row["kind"], wire: Array(row["wire"] as Data),
                        device: DeviceID(checking: row["device"] as String), app: AppID(checking: row["app"] as String))
                }
                return state
            }
        } catch let error where !(error is DeviceAgentError) {
            throw DeviceAgentError(.store, "cannot read the agent's store", cause: error)
        }
    }

    private static func loadDevice(into state: inout DeviceState, _ db: Database) throws {
        guard let row = try Row.fetchOne(db, sql: "SELECT * FROM device") else { return }
        if let fleet = (row["fleet"] as String?).flatMap({ RandomID($0) }), let device = row["device"] as String? {
            state.owner = DeviceState.Owner(fleet: fleet, device: try DeviceID(checking: device))
        }
        state.boot = row["boot"]
        state.trust = (row["trust"] as Data?).map { Array($0) }
        state.groups = try JSONList<GroupID>(json: Array((row["groups"] as String).utf8), limit: .max).elements
        state.running.total = row["running"]
        state.running.lastUptime = row["uptime"]
        state.running.bootID = row["boot_id"]
        if let running = row["contact_running"] as Int64?, let wall = row["contact_wall"] as Int64? {
            state.contact = Contact(running: running, wall: Timestamp(milliseconds: wall))
        }
        state.highest = Revision(epoch: row["highest_epoch"], number: row["highest_revision"])
    }
}

/// A JSON array at the top of a text.
private struct JSONList<Element: JSONCodable>: JSONCodable {
    let elements: [Element]

    init(_ elements: [Element]) { self.elements = elements }
    init(from reader: inout JSONReader) throws { elements = try reader.values(limit: .max) }

    func write(to writer: inout JSONWriter) {
        writer.array { for element in elements { element.write(to: &$0) } }
    }
}

extension KeptEvent {
    fileprivate var kind: String {
        switch body {
        case .event: "event"
        case .logLevel: "log-level"
        }
    }

    fileprivate init(kind: String, wire: [UInt8], device: DeviceID, app: AppID) throws {
        if kind == "log-level" {
            self.init(body: .logLevel(try LogLevelChange(wire: wire, device: device, app: app)))
        } else {
            self.init(body: .event(try AppEvent(wire: wire, device: device, app: app)))
        }
    }
}
