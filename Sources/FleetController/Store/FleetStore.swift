import CSQLite
import FleetProtocol
import GRDB

/// All that the controller must not forget, in one SQLite database: what is wanted, what is, who changed what.
///
/// Every access is a transaction, and a transaction that has returned is on the disk (WAL, `synchronous=FULL`). SQL stands
/// in this type's extensions alone; what a transaction decides stands with its caller. Not thread-safe: it belongs to
/// one core.
package final class FleetStore {
    let database: DatabaseQueue
    let path: String
    private let cache = StoreCache()
    /// What is committed together now.
    private var current: Transaction?

    /// Opens or creates the database at `path`, and brings it to the present schema. Throws when it is damaged, not
    /// writable, of another program or of a newer version, and then changes nothing.
    ///
    /// - Parameter isExpected: Whether there has been one already: a new one would have forgotten what is wanted.
    package init(path: String, isExpected: Bool = false) throws {
        self.path = path
        _ = Self.isSQLiteConfigured
        try Self.checkFile(path, isExpected: isExpected)
        Self.claimFile(path)
        var configuration = Configuration()
        configuration.busyMode = .timeout(5)
        configuration.label = "fleet-controller"
        do {
            database = try DatabaseQueue(path: path, configuration: configuration)
            try check()
            try database.writeWithoutTransaction {
                try $0.execute(
                    sql: """
                        PRAGMA journal_mode = WAL;
                        PRAGMA synchronous = FULL;
                        -- Pages of a large fleet's statuses, 32 MiB of them, and as much written before it is copied.
                        PRAGMA cache_size = -32768;
                        PRAGMA wal_autocheckpoint = 8192;
                        -- What can be rolled back in part is kept in memory, and not in files in /tmp, which may be full, \
                        and where a kill leaves them.
                        PRAGMA temp_store = MEMORY;
                        """)
            }
            try Schema.migrator.migrate(database)
            try checkTables()
        } catch let error as DatabaseError {
            throw Self.explain(error, path)
        }
    }

    /// A store that lives as long as its object.
    package init() throws {
        path = ":memory:"
        _ = Self.isSQLiteConfigured
        database = try DatabaseQueue()
        try Schema.migrator.migrate(database)
    }

    /// A store in memory that begins as a copy of another.
    package init(copying other: FleetStore) throws {
        path = ":memory:"
        database = try DatabaseQueue()
        // Not by a reader: going to and from read-only makes SQLite prepare all statements anew.
        try other.database.writeWithoutTransaction { from in
            try database.writeWithoutTransaction { try from.backup(to: $0) }
        }
    }

    /// Once in a process, before its first database. SQLite refuses what comes too late, and works as well without.
    static let isSQLiteConfigured = fleetbus_sqlite_without_memory_statistics() == SQLITE_OK

    /// Forgets everything, but keeps what was prepared: for many short lives of a store in memory.
    package func empty() throws {
        try transaction { transaction in
            for table in Self.tableNames { try transaction.run("DELETE FROM \(table)") }
        }
        cache.removeAll()
    }

    /// In the order in which they can be emptied; `classed` follows `device_apps`.
    static let tableNames = [
        "device_apps", "summary", "shapes", "classes", "events", "marks", "gaps", "left_keys", "requests", "members",
        "groups", "devices", "removed_devices", "apps", "documents", "history", "meta",
    ]

    /// Forgets what does not stand in the tables, as a process does that starts again.
    package func forgetCaches() { cache.removeAll() }

    /// How far it has come, as the last transaction left it.
    package func position() throws -> StorePosition {
        if let latest = cache.latest, let session = cache.session {
            return StorePosition(latest: latest, session: session)
        }
        return try transaction { try $0.position() }
    }

    package func close() throws { try database.close() }

    /// Runs `body` in one transaction. When it throws, nothing of it has happened.
    func transaction<Result>(_ body: (Transaction) throws -> Result) throws -> Result {
        do {
            if let current { return try part(of: current, body) }
            return try write { try body(Transaction(database: $0, cache: cache)) }
        } catch {
            cache.removeAll()
            throw explain(error)
        }
    }

    /// Runs `body` in a transaction of which nothing stays.
    func rehearsal<Result>(_ body: (Transaction) throws -> Result) throws -> Result {
        var result: Result?
        do {
            try transaction { transaction -> Never in
                result = try body(transaction)
                throw TakenBack()
            }
        } catch {
            guard error is TakenBack, let result else { throw error }
            return result
        }
    }

    private struct TakenBack: Error {}

    /// Every document, tombstones included, in the order of revisions: `count` of them in each transaction.
    func forEachDocument(
        reading count: Int = ControllerCore.Batches().documents, _ body: (StoredDocument) throws -> Void
    ) throws {
        var last: Int64 = 0
        while true {
            let page = try transaction { try $0.documents(after: last, limit: count) }
            guard let end = page.last?.revision.number else { return }
            for document in page { try body(document) }
            last = end
        }
    }

    /// Commits all transactions of `body` as one, so that the disk is waited for once.
    ///
    /// - Throws: ``NotTogether`` when the disk has failed, of whatever part: then nothing of `body` has happened.
    func together<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try write { database in
                current = Transaction(database: database, cache: cache)
                defer { current = nil }
                return try body()
            }
        } catch {
            cache.removeAll()
            if error is DatabaseError { throw NotTogether() }
            throw explain(error)
        }
    }

    struct NotTogether: Error {}

    /// A transaction of prepared statements: GRDB's own compiles its BEGIN and its COMMIT each time.
    private func write<Result>(_ body: (Database) throws -> Result) throws -> Result {
        try database.writeWithoutTransaction { database in
            try database.cachedStatement(sql: "BEGIN IMMEDIATE").execute()
            do {
                let result = try body(database)
                try database.cachedStatement(sql: "COMMIT").execute()
                return result
            } catch {
                if database.isInsideTransaction { try? database.rollback() }
                throw error
            }
        }
    }

    /// A part may fail by itself, but for a failure of the disk, after which SQLite may have rolled everything back.
    private func part<Result>(
        of whole: Transaction, _ body: (Transaction) throws -> Result
    ) throws -> Result {
        do {
            try whole.run("SAVEPOINT part")
            do {
                let result = try body(whole)
                try whole.run("RELEASE part")
                return result
            } catch  where !(error is DatabaseError) {
                try whole.run("ROLLBACK TO part")
                try whole.run("RELEASE part")
                throw error
            }
        } catch is DatabaseError {
            throw NotTogether()
        }
    }

    private func explain(_ error: any Error) -> any Error {
        switch error {
        case let error as DatabaseError: Self.explain(error, path)
        case let error as DamagedRow: Self.damaged(path, error.description)
        default: error
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

    /// What was read cannot have been written.
    struct DamagedRow: Error, CustomStringConvertible {
        let description: String
    }
}

/// What the store need not look up again: ids of names, shapes and classes, and what all reports are judged by. Emptied when
/// a transaction fails.
final class StoreCache {
    var latest: Revision?
    var session: Int64?
    var devices: [DeviceID: DeviceRow] = [:]
    /// The last incarnation that was removed of each device, where it was noted; nil when it is to be read.
    var removed: [DeviceID: Int64]?
    /// The devices that ``FleetStore/Transaction/LeftKeys`` are, or were, of; nil when it is to be read.
    var devicesWithLeftKeys: Set<DeviceID>?
    var apps: [AppID: Int64] = [:]
    var shapes: [ShapeKey: Int64] = [:]
    var recentShapes = RecentShapes()
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
        latest = nil
        session = nil
        devices.removeAll()
        removed = nil
        devicesWithLeftKeys = nil
        apps.removeAll()
        forgetShapes()
        classes.removeAll()
    }

    func forgetShapes() {
        shapes.removeAll()
        recentShapes = RecentShapes()
    }
}
