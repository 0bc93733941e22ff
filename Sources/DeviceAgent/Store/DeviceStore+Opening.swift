import GRDB
import Glibc

/// What may be wrong with a store's file, found before anything is read from it or written to it.
extension DeviceStore {
    /// Looks at the file itself, and at those that SQLite keeps beside it.
    static func checkFile(_ path: String, isExpected: Bool) throws {
        let size = Files.status(path)?.st_size ?? 0
        guard size > 1 || !isExpected else {  // SQLite takes a single byte for nothing, too.
            throw DeviceAgentError(
                .store,
                "the agent's store at \(path) is \(access(path, F_OK) == 0 ? "empty" : "missing"), though this agent has run"
                    + " before: \(remedy(path))")
        }
        for file in [path, path + "-wal", path + "-shm"] {
            guard let info = Files.status(file) else { continue }
            guard info.st_mode & S_IFMT == S_IFREG else {
                throw DeviceAgentError(.store, "\(file) is no file, and the agent's store must be one: move it away")
            }
            try Files.checkOwner(file, info)
            guard access(file, R_OK | W_OK) == 0 else {
                throw DeviceAgentError(
                    .store, "the agent's store \(file) cannot be read and written (\(Files.reason())): chmod 600 it")
            }
        }
    }

    /// Makes the file unless it is there, and lets nobody else read it; what SQLite puts beside it gets the same mode.
    static func claimFile(_ path: String) {
        // SQLite says what is wrong if this fails.
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if file >= 0 { Glibc.close(file) }
        for name in [path, path + "-wal", path + "-shm"] { chmod(name, 0o600) }
    }

    /// Looks into a file that was opened, by reading only: all of it, since a damaged page may come to light late, in a
    /// wrong answer. (A store has some hundred kilobytes.)
    static func check(_ queue: DatabaseQueue, _ path: String) throws {
        let problem: String? = try queue.inDatabase { db in
            // A file on a disk that has become read-only opens, and would fail in the middle of something.
            try db.execute(sql: "BEGIN IMMEDIATE; ROLLBACK")
            return try String.fetchOne(db, sql: "PRAGMA integrity_check(1)")
        }
        if let problem, problem != "ok" { throw damaged(path, problem) }
        let (isNewer, isForeign) = try queue.read { db in
            let version = try Int64.fetchOne(db, sql: "PRAGMA user_version") ?? 0
            let tables = try String.fetchAll(
                db,
                sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
            let isForeign =
                tables.contains { $0 != "grdb_migrations" }
                && !["grdb_migrations", "device"].allSatisfy(tables.contains)
            return (try version > 0 || !isForeign && DeviceSchema.migrator.hasBeenSuperseded(db), isForeign)
        }
        guard !isForeign else { throw damaged(path, "it has the tables of another program") }
        guard !isNewer else {
            throw DeviceAgentError(
                .store,
                "the agent's store at \(path) was made by a newer version of fleet-agent: install that version again, or"
                    + " \(remedy(path))")
        }
    }

    private static let tablesQuery =
        """
        SELECT type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, '') FROM sqlite_master
        WHERE name NOT LIKE 'sqlite\\_stat%' ESCAPE '\\' ORDER BY 1
        """
    /// nil: they cannot be made, which opening says better.
    private static let tables = try? inMemory().queue.read { try String.fetchAll($0, sql: tablesQuery) }

    /// The tables must be those that the migrations make, name for name: reading relies on it.
    static func checkTables(_ queue: DatabaseQueue, _ path: String) throws {
        guard try queue.read({ try String.fetchAll($0, sql: tablesQuery) }) == tables else {
            throw damaged(path, "its tables are not those of an agent")
        }
    }

    /// Each row must be as it was written.
    static func checkRows(_ queue: DatabaseQueue, _ path: String) throws {
        for (table, _, columns) in DeviceSchema.sums {
            let sql = "SELECT EXISTS (SELECT 1 FROM \(table) WHERE sum IS NOT row_sum(\(columns)))"
            guard try queue.read({ try Bool.fetchOne($0, sql: sql) }) == false else {
                throw damaged(path, "a row of the table \(table) is not as it was written")
            }
        }
    }

    static func damaged(_ path: String, _ reason: String) -> DeviceAgentError {
        DeviceAgentError(
            .store,
            "the agent's store at \(path) is damaged, or none (\(Files.oneLine(reason))): \(remedy(path))")
    }

    /// Also the index of the log, which the disk has no room for.
    static func isOfFullDisk(_ error: DatabaseError) -> Bool {
        error.resultCode == .SQLITE_FULL || error.extendedResultCode == .SQLITE_IOERR_SHMSIZE
    }

    static func explain(_ error: DatabaseError, _ what: String, _ path: String) -> DeviceAgentError {
        let reason = "\(error.message ?? "no reason given") (SQLite error \(error.extendedResultCode.rawValue))"
        let hint: String
        switch error.resultCode {
        // A name in the file that means nothing, and only a damaged one can have, is SQLITE_ERROR.
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR: return damaged(path, reason)
        case .SQLITE_BUSY, .SQLITE_LOCKED: hint = "another process uses it, which must end first"
        case .SQLITE_FULL: hint = "make room on its disk"
        case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM:
            hint = "the file and its folder must be writable for user \(geteuid())"
        default: hint = "look at its disk"
        }
        return DeviceAgentError(.store, "cannot \(what): \(Files.oneLine(reason)): \(hint)")
    }

    /// Only the controller knows which documents are the newest, and says so at an enrolment: an agent that began again
    /// with nothing would believe old ones, and would have forgotten which apps are retired.
    static func remedy(_ path: String) -> String {
        "move \(Files.folder(of: path)) away and enroll this device again"
    }
}
