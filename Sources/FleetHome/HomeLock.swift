import Glibc

/// The right to be the fleet's controller on this home: held as long as this object lives and the process runs. Its file
/// names the process, and remembers that there has been a database.
package final class HomeLock: Sendable {
    private let lock: FileLock
    /// Whether a controller has already made its database on this home: if it is missing now, it was lost.
    package let hasDatabase: Bool

    static let databaseNote = "has made fleet.db"

    init(_ lock: FileLock, hasDatabase: Bool) {
        self.lock = lock
        self.hasDatabase = hasDatabase
        note(hasDatabase: hasDatabase)
    }

    package func noteDatabase() { note(hasDatabase: true) }

    private func note(hasDatabase: Bool) { lock.note("\(getpid())" + (hasDatabase ? "\n\(Self.databaseNote)\n" : "")) }
}
