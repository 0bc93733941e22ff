import FleetProtocol
import GRDB

/// All that the controller must not forget, in one SQLite database: what is wanted, what is, who changed what.
///
/// Every access is a transaction, and a transaction that has returned is on the disk (WAL, `synchronous=FULL`). SQL stands
/// in this type's extensions alone; what a transaction decides stands with its caller. Not thread-safe: it belongs to
/// one core.
package final class FleetStore {
    let database: DatabaseQueue
    private let path: String
    private let cache = StoreCache()

    /// Opens or creates the database at `path`, and brings it to the present schema.
    package init(path: String) throws {
        self.path = path
        var configuration = Configuration()
        configuration.journalMode = .wal
        configuration.busyMode = .timeout(5)
        configuration.label = "fleet-controller"
        do {
            database = try DatabaseQueue(path: path, configuration: configuration)
            // Opening in WAL mode sets NORMAL, which may lose what was answered for when the machine loses power.
            try database.inDatabase { try $0.execute(sql: "PRAGMA synchronous = FULL") }
            try Self.migrate(database, path)
        } catch let error as DatabaseError {
            throw Self.explain(error, opening: path)
        }
    }

    /// A store that lives as long as its object.
    package init() throws {
        path = ":memory:"
        database = try DatabaseQueue()
        try Self.migrate(database, path)
    }

    /// A store in memory that begins as a copy of another.
    package init(copying other: FleetStore) throws {
        path = ":memory:"
        database = try DatabaseQueue()
        try other.database.backup(to: database)
    }

    /// Forgets everything, but keeps what was prepared: for many short lives of a store in memory.
    package func empty() throws {
        try transaction { transaction in
            for table in [
                "device_apps", "summary", "shapes", "classes", "events", "marks", "gaps", "requests", "members",
                "groups", "devices", "removed_devices", "apps", "documents", "history", "meta",
            ] {
                try transaction.run("DELETE FROM \(table)")
            }
        }
        cache.removeAll()
    }

    package func close() throws { try database.close() }

    private static func migrate(_ database: DatabaseQueue, _ path: String) throws {
        guard try !database.read(Schema.migrator.hasBeenSuperseded) else {
            throw FleetControllerError(
                .newer, "'\(path)' was written by a newer version of fleet-controller; run that version")
        }
        try Schema.migrator.migrate(database)
    }

    /// Runs `body` in one transaction. When it throws, nothing of it has happened.
    func transaction<Result>(_ body: (Transaction) throws -> Result) throws -> Result {
        do {
            return try database.write { try body(Transaction(database: $0, cache: cache)) }
        } catch {
            cache.removeAll()
            if let error = error as? DatabaseError { throw Self.explain(error, opening: path) }
            throw error
        }
    }

    private static func explain(_ error: DatabaseError, opening path: String) -> FleetControllerError {
        let reason = error.message ?? "SQLite error \(error.extendedResultCode.rawValue)"
        return switch error.resultCode {
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            FleetControllerError(.busy, "'\(path)' is in use by another process: \(reason)")
        case .SQLITE_CORRUPT, .SQLITE_NOTADB:
            FleetControllerError(
                .corrupt,
                "'\(path)' is damaged, or no database of fleet-controller (\(reason)): put back a copy that is good,"
                    + " then start with 'fleet-controller run --restored'")
        default: FleetControllerError(.unusable, "cannot use the database '\(path)': \(reason)")
        }
    }

    /// One transaction under way, with the statements of the extensions. It is not kept beyond it.
    struct Transaction {
        let database: Database
        let cache: StoreCache

        func run(_ sql: String, _ arguments: StatementArguments = []) throws {
            try database.cachedStatement(sql: sql).execute(arguments: arguments)
        }

        func rows(_ sql: String, _ arguments: StatementArguments = []) throws -> [Row] {
            try Row.fetchAll(database.cachedStatement(sql: sql), arguments: arguments)
        }

        func row(_ sql: String, _ arguments: StatementArguments = []) throws -> Row? {
            try Row.fetchOne(database.cachedStatement(sql: sql), arguments: arguments)
        }

        func number(_ sql: String, _ arguments: StatementArguments = []) throws -> Int64? {
            try Int64.fetchOne(database.cachedStatement(sql: sql), arguments: arguments)
        }
    }
}

/// What the store need not look up again: ids of names, shapes and classes. Emptied when a transaction fails.
final class StoreCache {
    var devices: [DeviceID: DeviceRow] = [:]
    var apps: [AppID: Int64] = [:]
    var shapes: [ShapeKey: Int64] = [:]
    var classes: [ClassKey: Int64] = [:]

    struct ShapeKey: Hashable {
        let app: Int64
        let text: [UInt8]
    }

    struct ClassKey: Hashable {
        let app: Int64
        let text: String
    }

    func removeAll() {
        devices.removeAll()
        apps.removeAll()
        shapes.removeAll()
        classes.removeAll()
    }
}
