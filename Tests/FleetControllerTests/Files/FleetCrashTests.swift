import FleetProtocol
import Foundation
import GRDB
import TestSupport
import Testing

@testable import FleetController

@Suite("The controller's database after a crash or with a damaged file")
struct FleetCrashTests {
    /// A database with a past, and one more change with its answer, as a crash would leave it. Compared is all it holds.
    private struct Crashed {
        let files: CrashedDatabase
        let identity: FleetIdentity
        let before: DatabaseText
        let after: DatabaseText

        init(in folder: URL) throws {
            let path = folder.appending(path: "open.db").path
            // Small pages: more of them, and a log short enough to be cut often.
            try DatabaseQueue(path: path).writeWithoutTransaction {
                try $0.execute(sql: "PRAGMA page_size = 512; PRAGMA journal_mode = WAL")
            }
            let world = try World(path: path)
            identity = world.identity
            try world.live()
            before = try DatabaseText(of: world.store.database)
            let start = try CrashedDatabase(copying: path).lastTransaction.upperBound
            try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
            after = try DatabaseText(of: world.store.database)
            files = try CrashedDatabase(copying: path)
            #expect(files.lastTransaction.lowerBound == start, "a change and its answer are one transaction")
        }

        func open(_ path: String) throws -> DatabaseText {
            let store = try FleetStore(path: path, isExpected: true)
            try store.verifyDocuments(for: identity)
            defer { try? store.close() }
            return try DatabaseText(of: store.database)
        }
    }

    @Test("a log that is cut at any byte of its last transaction gives the state before it, a whole one that after it")
    func cut() async throws {
        try await withTemporaryFolder { folder in
            let crashed = try Crashed(in: folder)
            let path = folder.appending(path: "fleet.db").path
            let end = crashed.files.lastTransaction.upperBound
            #expect(crashed.before != crashed.after)
            var wrong: [Int] = []
            for place in crashed.files.places + [end] {
                try crashed.files.lay(at: path, log: Array(crashed.files.log[..<place]))
                if try crashed.open(path) != (place < end ? crashed.before : crashed.after) { wrong.append(place) }
            }
            #expect(wrong.isEmpty)
        }
    }

    @Test("a byte of the last transaction that has changed in the log gives the state before it")
    func changedLog() async throws {
        try await withTemporaryFolder { folder in
            let crashed = try Crashed(in: folder)
            let path = folder.appending(path: "fleet.db").path
            var wrong: [Int] = []
            for place in crashed.files.places {
                var log = crashed.files.log
                log[place] ^= 1 << UInt8(place % 8)
                try crashed.files.lay(at: path, log: log)
                if try crashed.open(path) != crashed.before { wrong.append(place) }
            }
            #expect(wrong.isEmpty)
        }
    }

    /// Damages of a closed database's file, and where it neither was whole nor refused clearly.
    private func expectFound(_ makeDamages: (CrashedDatabase) -> [(String, [UInt8])]) async throws -> [String] {
        try await withTemporaryFolder { folder in
            let crashed = try Crashed(in: folder)
            let path = folder.appending(path: "fleet.db").path
            try crashed.files.lay(at: path)
            #expect(try crashed.open(path) == crashed.after)
            let files = try CrashedDatabase(copying: path)
            #expect(files.log.isEmpty)
            var wrong: [String] = []
            for (place, main) in makeDamages(files) {
                try files.lay(at: path, main: main)
                do {
                    if try crashed.open(path) != crashed.after { wrong.append(place) }
                } catch let error as FleetControllerError {
                    let text = "\(error)"
                    let isClear = error.code == .corrupt && text.contains(path) && text.contains("--restored")
                    if !isClear || text.contains("\n") { wrong.append("\(place): \(text)") }
                }
            }
            return wrong
        }
    }

    @Test("a file that is cut is refused with its name and what to do, or nothing is missing")
    func torn() async throws {
        let wrong = try await expectFound { files in
            stride(from: 1, to: files.main.count, by: CrashedDatabase.triesEveryByte ? 1 : 1_021).map {
                ("cut at \($0)", Array(files.main[..<$0]))
            }
        }
        #expect(wrong.isEmpty)
    }

    @Test("pages full of other bytes are refused with the file's name and what to do")
    func pages() async throws {
        let wrong = try await expectFound { files in
            stride(from: 0, to: files.main.count, by: files.pageSize).map { page in
                var noise = files.main
                noise.replaceSubrange(
                    page..<page + files.pageSize,
                    with: (0..<files.pageSize).map { UInt8(truncatingIfNeeded: $0 * 77 + page + 1) })
                return ("noise at \(page)", noise)
            }
        }
        #expect(wrong.isEmpty)
    }

    @Test("a changed byte in a document, wherever it stands in its row, is found before anything is published")
    func documents() async throws {
        let world = try World()
        try world.live()
        try world.store.verifyDocuments(for: world.identity)
        for change in [
            "wire = CAST(replace(CAST(wire AS TEXT), 'mail.example', 'fail.example') AS BLOB)",
            "value = replace(value, 'mail.example', 'fail.example')", "change = change - 1", "epoch = 2",
            "path = 'desired/all/com.example.mail/dlp'", "value = NULL", "path = 'nowhere'",
        ] {
            let copy = try FleetStore(copying: world.store)
            try copy.transaction { transaction in
                try transaction.run("UPDATE documents SET \(change) WHERE aspect = 'config' AND layer = 1")
                #expect(transaction.database.changesCount == 1)
            }
            let error = #expect(throws: FleetControllerError.self) { try copy.verifyDocuments(for: world.identity) }
            #expect(error?.code == .corrupt, "\(change)")
        }
    }
}
