import FleetProtocol
import Foundation
import GRDB

/// What an agent keeps on disk: one SQLite file, all of its SQL in this folder. Not thread-safe by itself: one owner writes.
///
/// Each ``apply(_:)`` is one transaction, synced to the disk before it returns. On a full disk it goes on with a
/// ``DiskReserve``.
package struct DeviceStore: Sendable {
    let queue: DatabaseQueue
    /// For messages.
    let path: String
    private let reserve: DiskReserve?

    /// Whether it lives on what was kept for a full disk.
    package var isDiskFull: Bool { reserve?.isDiskFull == true }

    /// Why it keeps no room for a full disk, where the disk is not full.
    package var reserveProblem: String? { reserve?.problem }

    /// Opens the file at `path`, or makes it. Throws when it is damaged, not writable, of another program or of a newer
    /// version, and then changes nothing.
    ///
    /// - Parameter isExpected: Whether there has been a store already: a new one would have forgotten what it must not.
    package init(path: String, isExpected: Bool = false) throws {
        try Self.checkFile(path, isExpected: isExpected)
        Self.claimFile(path)
        let reserve = DiskReserve(path: path + "-reserve")
        do {
            do {
                queue = try Self.open(path)
            } catch let error as DatabaseError where Self.isOfFullDisk(error) {
                reserve.release()
                queue = try Self.open(path)
            }
        } catch let error as DatabaseError {
            throw Self.explain(error, "open the agent's store at \(path)", path)
        }
        self.path = path
        self.reserve = reserve
        reserve.take()
    }

    private static func open(_ path: String) throws -> DatabaseQueue {
        var configuration = configuration
        configuration.busyMode = .immediateError
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try check(queue, path)
        try queue.writeWithoutTransaction {
            try $0.execute(
                sql: """
                    PRAGMA journal_mode = WAL;
                    PRAGMA synchronous = FULL;
                    -- Nothing of it stands in files in /tmp, which may be full, and where a kill leaves them.
                    PRAGMA temp_store = MEMORY;
                    """)
        }
        try DeviceSchema.migrator.migrate(queue)
        try checkTables(queue, path)
        try checkRows(queue, path)
        return queue
    }

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.prepareDatabase { $0.add(function: DeviceSchema.rowSum) }
        return configuration
    }

    /// Moves the log into the file, and leaves it alone: nothing can be read or written any more.
    package func close() throws { try queue.close() }

    /// A store in memory, for tests and simulations.
    package static func inMemory() throws -> DeviceStore { try DeviceStore() }

    private init() throws {
        queue = try DatabaseQueue(configuration: Self.configuration)
        path = ":memory:"
        reserve = nil
        try DeviceSchema.migrator.migrate(queue)
    }

    // MARK: Writing

    package func apply(_ changes: [StoreChange]) throws {
        do {
            do {
                try commit(changes)
                reserve?.take()
            } catch let error as DatabaseError where Self.isOfFullDisk(error) && reserve != nil {
                makeRoom()
                try commit(changes)
            }
        } catch let error as DatabaseError {
            throw Self.explain(error, "write to the agent's store at \(path)", path)
        }
    }

    /// Gives the reserve back, and keeps the log short from now on: nearly all of the room is then there for the file.
    private func makeRoom() {
        reserve?.release()
        try? queue.writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA wal_autocheckpoint = 32; PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }

    /// Makes room for what is not the store's. False where there is none to make.
    package func giveReserveBack() -> Bool {
        guard reserve?.isHeld == true else { return false }
        makeRoom()
        return true
    }

    private func commit(_ changes: [StoreChange]) throws {
        try queue.writeWithoutTransaction { db in
            try db.inTransaction(.immediate) {
                for change in changes { try Self.apply(change, db) }
                return .commit
            }
        }
    }

    private static func apply(_ change: StoreChange, _ db: Database) throws {
        func run(_ sql: String, _ arguments: StatementArguments) throws {
            try db.cachedStatement(sql: sql).execute(arguments: arguments)
        }
        switch change {
        case .started(let boot, let disk, let owner):
            try run(
                "UPDATE device SET boot = ?, fleet = ?, device = ?", [boot, owner.fleet.text, owner.device.text])
            try run("UPDATE disk SET name = ?", [disk])
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
        case .passcode(let passcode):
            try run("UPDATE passcode SET hash = ?, wrong = ?", [passcode.hash?.jsonText, passcode.wrong])
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
        case .dropEvent(let boot, let number):
            try run("DELETE FROM event WHERE boot = ? AND number = ?", [boot, number])
        }
    }
}

/// A JSON array at the top of a text.
struct JSONList<Element: JSONCodable>: JSONCodable {
    let elements: [Element]

    init(_ elements: [Element]) { self.elements = elements }
    init(from reader: inout JSONReader) throws { elements = try reader.values(limit: .max) }

    func write(to writer: inout JSONWriter) {
        writer.array { for element in elements { element.write(to: &$0) } }
    }
}
