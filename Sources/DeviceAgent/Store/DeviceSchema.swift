import GRDB

/// The tables of an agent's store. A migration that has been shipped is never edited; each begins with the number of the
/// version that it makes, and a database of each version is kept in Tests/DeviceAgentTests/Fixtures.
enum DeviceSchema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { try $0.execute(sql: tables) }
        return migrator
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
