package import GRDB

/// A SQLite database as SQL text that makes it again, and the other way round: a form that can be read and reviewed.
package struct DatabaseText: Hashable, Sendable {
    package let sql: String

    package init(sql: String) { self.sql = sql }

    /// The content of a database: tables, then their rows, then what acts on rows. The same content gives the same text.
    package init(of database: some DatabaseReader) throws {
        sql = try database.read { db in
            var lines = ["BEGIN;"]
            let objects = try Row.fetchAll(
                db, sql: "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'")
            let tables = objects.filter { $0["type"] == "table" }
            lines += tables.map { "\($0["sql"] as String);" }
            for table in tables {
                let name: String = table["name"]
                let columns = try Row.fetchAll(db, sql: "SELECT name FROM pragma_table_info(?)", arguments: [name])
                    .map { "\"\($0["name"] as String)\"" }
                let values = columns.map { "quote(\($0))" }.joined(separator: " || ', ' || ")
                for row in try String.fetchAll(db, sql: "SELECT \(values) FROM \"\(name)\" ORDER BY 1") {
                    lines.append("INSERT INTO \(name) (\(columns.joined(separator: ", "))) VALUES (\(row));")
                }
            }
            lines += objects.filter { $0["type"] != "table" }.map { "\($0["sql"] as String);" }
            return (lines + ["COMMIT;", ""]).joined(separator: "\n")
        }
    }

    /// Makes a database file of it.
    package func make(at path: String) throws {
        let queue = try DatabaseQueue(path: path)
        try queue.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA foreign_keys = OFF")
            try db.execute(sql: sql)
        }
        try queue.close()
    }

    /// What a database is made of, without its rows.
    package static func schema(of database: some DatabaseReader) throws -> [String] {
        try database.read { db in
            try String.fetchAll(
                db, sql: "SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_master ORDER BY 1")
        }
    }
}
