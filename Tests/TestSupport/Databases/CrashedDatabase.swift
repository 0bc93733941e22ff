import Foundation

/// A database as it lies on the disk while a process has it open: what a crash would leave. It is laid out in another
/// place, whole or damaged, as often as one likes.
package struct CrashedDatabase: Sendable {
    package let main: [UInt8]
    package let log: [UInt8]
    /// The part of the log that the last transaction wrote; empty when there is none.
    package let lastTransaction: Range<Int>
    package let pageSize: Int

    package init(copying path: String) throws {
        main = try Self.bytes(path)
        log = (try? Self.bytes(path + "-wal")) ?? []
        pageSize = Self.number(main, at: 16, bytes: 2) == 1 ? 65_536 : Self.number(main, at: 16, bytes: 2)
        // The log: a header of 32 bytes, then frames, each a page behind 24 bytes. A frame that ends a transaction has the
        // size of the database in bytes 4 to 7. Frames with another salt than the header's are of an earlier round.
        let frame = 24 + pageSize
        var commits = [32]
        var offset = 32
        while offset + frame <= log.count, log[offset + 8..<offset + 16] == log[16..<24] {
            if Self.number(log, at: offset + 4, bytes: 4) != 0 { commits.append(offset + frame) }
            offset += frame
        }
        lastTransaction = (commits.dropLast().last ?? 32)..<max(commits.last ?? 32, 32)
    }

    /// Set to try every byte where else a choice of them is tried.
    package static let triesEveryByte = ProcessInfo.processInfo.environment["FLEETBUS_EVERY_BYTE"] == "1"

    /// Places in the last transaction: the headers of its first and last frames, both sides of every border, and some
    /// inside each frame.
    package var places: [Int] {
        let frame = 24 + pageSize
        return lastTransaction.filter { place in
            let inside = (place - 32) % frame
            let isOuter = place < lastTransaction.lowerBound + frame || place >= lastTransaction.upperBound - frame
            return Self.triesEveryByte || inside < 2 || inside == frame - 1 || isOuter && inside < 24
                || place % 151 == 0
        }
    }

    /// Writes the files to `path`; nil where they are as they were found.
    package func lay(at path: String, main: [UInt8]? = nil, log: [UInt8]? = nil, index: [UInt8]? = nil) throws {
        for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
        try Data(main ?? self.main).write(to: URL(filePath: path))
        let log = log ?? self.log
        if !log.isEmpty { try Data(log).write(to: URL(filePath: path + "-wal")) }
        if let index { try Data(index).write(to: URL(filePath: path + "-shm")) }
    }

    private static func bytes(_ path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(filePath: path))) }

    private static func number(_ bytes: [UInt8], at offset: Int, bytes count: Int) -> Int {
        guard offset + count <= bytes.count else { return 0 }
        return bytes[offset..<offset + count].reduce(0) { $0 << 8 | Int($1) }
    }
}
