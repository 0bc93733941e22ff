import FleetProtocol
import GRDB
import Glibc

/// What may be wrong with a database's file, found before anything is read from it or written to it.
extension FleetStore {
    /// Looks at the file itself, and at those that SQLite keeps beside it.
    static func checkFile(_ path: String, isExpected: Bool) throws {
        var info = stat()
        let isThere = stat(path, &info) == 0
        // SQLite takes a single byte for nothing, too.
        guard isThere && info.st_size > 1 || !isExpected else {
            throw FleetControllerError(
                .corrupt,
                "'\(path)' is \(isThere ? "empty" : "missing"), though a controller has run on this home:"
                    + " \(isThere ? remedy : remedyWithoutFile). Without any copy this command begins with a fleet for"
                    + " which nothing is wanted, and withdraws what its devices were told")
        }
        for file in [path, path + "-wal", path + "-shm"] where stat(file, &info) == 0 {
            guard info.st_mode & S_IFMT == S_IFREG else {
                throw FleetControllerError(.unusable, "'\(file)' is no file, and must be one: move it away")
            }
            guard info.st_uid == geteuid() else {
                throw FleetControllerError(
                    .unusable,
                    "'\(file)' belongs to user \(info.st_uid), and this is user \(geteuid()): chown it to the owner of the"
                        + " fleet's folder")
            }
            guard access(file, R_OK | W_OK) == 0 else {
                throw FleetControllerError(
                    .unusable,
                    "'\(file)' cannot be read and written (\(String(cString: strerror(errno)))): chmod 600 it")
            }
        }
    }

    /// Makes the file unless it is there, and lets nobody else read it, not even the broker's user, who may enter the
    /// fleet's folder; what SQLite puts beside it gets the same mode.
    static func claimFile(_ path: String) {
        // SQLite says what is wrong if this fails.
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if file >= 0 { Glibc.close(file) }
        for name in [path, path + "-wal", path + "-shm"] { chmod(name, 0o600) }
    }

    /// Looks into a file that was opened, by reading only: all of it, half a second for a million device-apps, since a
    /// damaged page may come to light late, in a wrong answer.
    func check() throws {
        let problem: String? = try database.inDatabase { db in
            // A file on a disk that has become read-only opens, and would fail in the middle of something.
            try db.execute(sql: "BEGIN IMMEDIATE; ROLLBACK")
            return try String.fetchOne(db, sql: "PRAGMA integrity_check(1)")
        }
        if let problem, problem != "ok" { throw Self.damaged(path, problem) }
        let pageSize = try database.read { try Int64.fetchOne($0, sql: "PRAGMA page_size") } ?? 0
        if Self.isCut(path, pageSize) { throw Self.damaged(path, "it ends in the middle of a page") }
        let (isNewer, isForeign) = try database.read { db in
            let version = try Int64.fetchOne(db, sql: "PRAGMA user_version") ?? 0
            let tables = try String.fetchAll(
                db,
                sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
            let isForeign =
                tables.contains { $0 != "grdb_migrations" }
                && !["grdb_migrations", "documents"].allSatisfy(tables.contains)
            return (try version > 0 || !isForeign && Schema.migrator.hasBeenSuperseded(db), isForeign)
        }
        guard !isForeign else { throw Self.damaged(path, "it has the tables of another program") }
        guard !isNewer else {
            throw FleetControllerError(
                .newer,
                "'\(path)' was made by a newer version of fleet-controller: install that version again, or \(Self.remedy)"
            )
        }
    }

    /// Whether the last page is not whole: SQLite reads the rest of it as zeros. What stands in a log is written once more.
    private static func isCut(_ path: String, _ pageSize: Int64) -> Bool {
        var (main, log) = (stat(), stat())
        guard pageSize > 0, stat(path, &main) == 0, stat(path + "-wal", &log) != 0 || log.st_size == 0 else {
            return false
        }
        return Int64(main.st_size) % pageSize != 0
    }

    private static let tablesQuery =
        """
        SELECT type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, '') FROM sqlite_master
        WHERE name NOT LIKE 'sqlite\\_stat%' ESCAPE '\\' ORDER BY 1
        """
    /// nil: they cannot be made, which opening says better.
    private static let tables = try? FleetStore().database.read { try String.fetchAll($0, sql: tablesQuery) }

    /// The tables must be those that the migrations make, name for name: reading relies on it.
    func checkTables() throws {
        guard try database.read({ try String.fetchAll($0, sql: Self.tablesQuery) }) == Self.tables else {
            throw Self.damaged(path, "its tables are not those of fleet-controller")
        }
    }

    /// Verifies each document as the devices will: what was damaged in here would be published, and refused by all.
    func verifyDocuments(for identity: FleetIdentity) throws {
        try forEachDocument { document in
            guard identity.isIntact(document) else {
                throw Self.damaged(path, "the document for \(document.address.path) is not as it was signed")
            }
        }
    }

    static func damaged(_ path: String, _ reason: String) -> FleetControllerError {
        FleetControllerError(
            .corrupt,
            "'\(path)' is damaged, or no database of fleet-controller (\(Text.printable(reason, limit: 300))): \(remedy)"
        )
    }

    static func explain(_ error: DatabaseError, _ path: String) -> FleetControllerError {
        let reason = Text.printable(error.message ?? "SQLite error \(error.extendedResultCode.rawValue)", limit: 300)
        return switch error.resultCode {
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            FleetControllerError(.busy, "'\(path)' is in use by another process (\(reason)): end that one first")
        // A name in the file that means nothing, and only a damaged one can have, is SQLITE_ERROR.
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR: damaged(path, reason)
        case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM:
            FleetControllerError(
                .unusable,
                "cannot use the database '\(path)' (\(reason)): it and its folder must be writable for user \(geteuid())"
            )
        case .SQLITE_FULL:
            FleetControllerError(.unusable, "cannot write to the database '\(path)' (\(reason)): make room on its disk")
        default: FleetControllerError(.unusable, "cannot use the database '\(path)': \(reason)")
        }
    }

    /// A log of the damaged file would be played into the copy.
    private static let remedy = "remove the file and those beside it that end in -wal and -shm, " + putBack
    private static let remedyWithoutFile = "remove what is left of it and ends in -wal or -shm, " + putBack
    private static let putBack = "put back a copy that is good, then start with 'fleet-controller run --restored'"
}

extension FleetIdentity {
    /// Whether the columns of a document and its wire form say the same, and the signature fits, if its key is known.
    fileprivate func isIntact(_ stored: StoredDocument) -> Bool {
        guard let signed = try? SignedDocument(wire: stored.wire), signed.kind == .desired,
            trust.key(signed.keyID).map(signed.isSigned) ?? true,
            let document = try? DesiredDocument(payload: signed.payload, in: fleetID)
        else { return false }
        return document.fleet == fleet && document.topic == topic(stored.address)
            && document.revision == stored.revision && document.change == stored.change
            && document.content.isRetired == stored.isRetired
            // Not by what this build makes of the value: another one has written it.
            && (try? JSONValue(json: signed.payload, limit: SignedDocument.maximumSize))?["value"]
                == stored.value.flatMap { try? JSONValue(json: Array($0.utf8), limit: SignedDocument.maximumSize) }
    }
}
