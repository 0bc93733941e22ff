import Foundation
import GRDB

/// The tables of an agent's store. A migration that has been shipped is never edited; each begins with the number of the
/// version that it makes, and a database of each version is kept in Tests/DeviceAgentTests/Fixtures.
enum DeviceSchema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { try $0.execute(sql: tables) }
        migrator.registerMigration("2 sums") { db in
            try addSums(to: ["device", "document", "mark", "app", "event"], db)
        }
        migrator.registerMigration("3 passcode") { db in
            try db.execute(
                sql: """
                    CREATE TABLE passcode (
                        id INTEGER PRIMARY KEY CHECK (id = 1),
                        hash TEXT,
                        wrong INTEGER NOT NULL DEFAULT 0
                    ) STRICT;
                    INSERT INTO passcode (id) VALUES (1);
                    """)
            try addSums(to: ["passcode"], db)
        }
        // One that has been used before is named by a start there. 0: it has no name yet.
        migrator.registerMigration("4 disk") { db in
            try db.execute(
                sql: """
                    CREATE TABLE disk (
                        id INTEGER PRIMARY KEY CHECK (id = 1),
                        name INTEGER NOT NULL
                    ) STRICT;
                    INSERT INTO disk (id, name) SELECT 1, boot FROM device;
                    """)
            try addSums(to: ["disk"], db)
        }
        return migrator
    }

    private static func addSums(to tables: Set<String>, _ db: Database) throws {
        for (table, key, columns) in sums where tables.contains(table) {
            let sum = "UPDATE \(table) SET sum = row_sum(\(columns))"
            let match = key.split(separator: ", ").map { "\($0) = NEW.\($0)" }.joined(separator: " AND ")
            try db.execute(
                sql: """
                    ALTER TABLE \(table) ADD COLUMN sum INTEGER;
                    \(sum);
                    CREATE TRIGGER \(table)_added AFTER INSERT ON \(table)
                    BEGIN \(sum) WHERE \(match); END;
                    CREATE TRIGGER \(table)_changed AFTER UPDATE OF \(columns) ON \(table)
                    BEGIN \(sum) WHERE \(match); END;
                    """)
        }
    }

    /// Tables, their keys, and the columns that a row's sum is made of. SQLite finds damaged pages, but not a changed value.
    static let sums = [
        (
            "device", "id",
            "id, fleet, device, boot, trust, groups, running, uptime, boot_id, contact_running, contact_wall,"
                + " highest_epoch, highest_revision"
        ),
        ("document", "path", "path, wire"),
        ("mark", "path", "path, epoch, revision, digest"),
        ("app", "id", "id, record"),
        ("event", "boot, number", "boot, number, kind, device, app, wire"),
        ("passcode", "id", "id, hash, wrong"),
        ("disk", "id", "id, name"),
    ]

    /// `row_sum(…)`: an FNV-1a hash, in which every single changed byte shows.
    static let rowSum = DatabaseFunction("row_sum", pure: true) { values in
        var sum: UInt64 = 0xCBF2_9CE4_8422_2325
        func add(_ bytes: some Sequence<UInt8>) {
            for byte in bytes { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
        }
        for value in values {
            switch value.storage {
            case .null: add([0])
            case .int64(let number):
                add([1])
                add((0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) })
            case .double(let number):
                add([2])
                add((0..<8).map { UInt8(truncatingIfNeeded: number.bitPattern >> (8 * $0)) })
            case .string(let text):
                add([3])
                add(text.utf8)
                add([0xFF])
            case .blob(let data):
                add([4])
                add(data)
                add((0..<4).map { UInt8(truncatingIfNeeded: data.count >> (8 * $0)) })
            }
        }
        return Int64(bitPattern: sum)
    }

    private static let tables = """
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
        """
}
