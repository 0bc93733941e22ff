import GRDB

enum DeviceStoreTampering {
    /// Marks the store as migrated further than this build knows.
    static func pretendNewer(_ path: String) throws {
        try DatabaseQueue(path: path).write {
            try $0.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES ('999')")
        }
    }
}
