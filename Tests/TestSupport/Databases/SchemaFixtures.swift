import Foundation
package import GRDB

/// A database of each version of a schema that was ever shipped, as SQL texts `version-N.sql` in a folder. They are
/// written once, and never again.
package struct SchemaFixtures: Sendable {
    private let folder: URL
    /// Set to write the fixture of a version that has none.
    package static let isWriting = ProcessInfo.processInfo.environment["FLEETBUS_WRITE_FIXTURES"] == "1"

    /// - Parameter test: The file of the test, which stands in a folder beside `Fixtures`.
    package init(beside test: String) {
        folder = URL(filePath: test).deletingLastPathComponent().deletingLastPathComponent().appending(path: "Fixtures")
    }

    /// The versions that there are, in order.
    package func versions() throws -> [Int] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).compactMap { name in
            guard name.hasPrefix("version-"), name.hasSuffix(".sql") else { return nil }
            return Int(name.dropFirst("version-".count).dropLast(".sql".count))
        }.sorted()
    }

    private func file(_ version: Int) -> URL { folder.appending(path: "version-\(version).sql") }

    /// Makes a database file of a version.
    package func make(_ version: Int, at path: String) throws {
        try DatabaseText(sql: String(contentsOf: file(version), encoding: .utf8)).make(at: path)
    }

    /// The schema of a version as it was shipped.
    package func schema(_ version: Int) throws -> [String] {
        let queue = try DatabaseQueue()
        try queue.writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA foreign_keys = OFF")
            try $0.execute(sql: String(contentsOf: file(version), encoding: .utf8))
        }
        return try DatabaseText.schema(of: queue)
    }

    /// Writes the fixture of the version that `database` has.
    package func write(_ database: some DatabaseReader) throws {
        let version = try Self.version(of: database)
        guard try !versions().contains(version) else {
            throw TestFailure(
                "\(file(version).path) is there already. A migration that has been shipped is never edited: register another"
                    + " one, whose name begins with \(version + 1), and write its fixture")
        }
        try DatabaseText(of: database).sql.write(to: file(version), atomically: true, encoding: .utf8)
    }

    /// The number that the newest migration's name begins with.
    package static func version(of database: some DatabaseReader) throws -> Int {
        let names = try database.read { try String.fetchAll($0, sql: "SELECT identifier FROM grdb_migrations") }
        return names.compactMap { Int($0.prefix { $0.isNumber }) }.max() ?? 0
    }
}
