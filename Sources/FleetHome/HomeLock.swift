import Glibc

/// The right to be the fleet's controller on this home: held as long as this object lives and the process runs. Its file
/// names the process, and remembers that there has been a database, and how far that had come.
package final class HomeLock: Sendable {
    private let lock: FileLock
    /// Whether a controller has already made its database on this home: if it is missing now, it was lost.
    package let hasDatabase: Bool
    /// What ``noteDatabase(at:)`` was told last, by whatever process; nil when the file does not say it.
    package let databasePosition: String?

    private static let databaseNote = "has made fleet.db"

    init(_ lock: FileLock, _ notes: Notes) {
        self.lock = lock
        hasDatabase = notes.hasDatabase
        databasePosition = notes.databasePosition
        note(hasDatabase, databasePosition)
    }

    /// Remembers that there is a database, and how far it has come, in one line. Not waited for: after a loss of power it
    /// may say less.
    package func noteDatabase(at position: String?) { note(true, position) }

    private func note(_ hasDatabase: Bool, _ position: String?) {
        let lines = ["\(getpid())"] + (hasDatabase ? [Self.databaseNote] + (position.map { [$0] } ?? []) : [])
        lock.note(lines.joined(separator: "\n") + "\n")
    }

    /// The lines of the file.
    struct Notes {
        let holder: String?
        let hasDatabase: Bool
        let databasePosition: String?

        init(_ text: [UInt8]) {
            let lines = text.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
            holder = lines.first
            hasDatabase = lines.dropFirst().first == HomeLock.databaseNote
            databasePosition = hasDatabase ? lines.dropFirst(2).first : nil
        }
    }
}
