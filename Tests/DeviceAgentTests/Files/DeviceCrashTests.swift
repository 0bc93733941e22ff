import FleetProtocol
import Foundation
import GRDB
import TestSupport
import Testing

@testable import DeviceAgent

@Suite("The agent's store after a crash or with a damaged file")
struct DeviceCrashTests {
    /// A store with a past, and one more transaction that touches every table, as a crash would leave it.
    private struct Crashed {
        let files: CrashedDatabase
        let before: DeviceState
        let after: DeviceState

        init(in folder: URL) throws {
            let path = folder.appending(path: "open.db").path
            // Small pages: more of them, and a log short enough to be cut at every byte.
            try DatabaseQueue(path: path).writeWithoutTransaction {
                try $0.execute(sql: "PRAGMA page_size = 512; PRAGMA journal_mode = WAL")
            }
            let store = try DeviceStore(path: path)
            var past = try FixtureDevice(store).device
            before = try store.load()
            var record = try #require(before.apps[mail])
            record.hasKeys = false
            let address = Address.desired(.all, mail, .config)
            let wire = try past.fleet.document(address, .config(["k": "v"]))
            let mark = DocumentMark(revision: Revision(epoch: 1, number: 9), digest: Digest(of: wire))
            try store.apply([
                .trust(past.fleet.trust(version: 3).wire), .groups([]), .document(address, wire), .mark(address, mark),
                .document(.desired(.all, notes, .auth), nil), .app(record), .dropEvents(boot: before.boot, through: 1),
                .clock(RunningTime(), nil, highest: Revision(epoch: 1, number: 9)),
            ])
            after = try store.load()
            files = try CrashedDatabase(copying: path)
            withExtendedLifetime(store) {}
        }
    }

    @Test("what is applied is on the disk when that returns: WAL with synchronous=FULL")
    func pragmas() async throws {
        try await withTemporaryFolder { folder in
            let store = try DeviceStore(path: folder.appending(path: "agent.db").path)
            let pragmas = try await store.queue.read { db in
                try ["journal_mode", "synchronous"].map { try String.fetchOne(db, sql: "PRAGMA \($0)") }
            }
            #expect(pragmas == ["wal", "2"])
        }
    }

    @Test("a log that is cut at any byte of its last transaction gives the state before it, a whole one that after it")
    func cut() async throws {
        try await withTemporaryFolder { folder in
            let crashed = try Crashed(in: folder)
            let path = folder.appending(path: "agent.db").path
            let last = crashed.files.lastTransaction
            #expect(crashed.before != crashed.after && last.count > 5 * 536)
            var wrong: [String] = []
            for end in crashed.files.places + [last.upperBound] {
                try crashed.files.lay(at: path, log: Array(crashed.files.log[..<end]))
                let state = try DeviceStore(path: path).load()
                if state != (end < last.upperBound ? crashed.before : crashed.after) { wrong.append("\(end)") }
            }
            #expect(wrong.isEmpty)
        }
    }

    @Test("a byte of the last transaction that has changed in the log gives the state before it")
    func changedLog() async throws {
        try await withTemporaryFolder { folder in
            let crashed = try Crashed(in: folder)
            let path = folder.appending(path: "agent.db").path
            var wrong: [String] = []
            for place in crashed.files.places {
                var log = crashed.files.log
                log[place] ^= 1 << UInt8(place % 8)
                try crashed.files.lay(at: path, log: log)
                if try DeviceStore(path: path).load() != crashed.before { wrong.append("\(place)") }
            }
            #expect(wrong.isEmpty)
        }
    }

    @Test("a damaged index of the log is made anew")
    func index() async throws {
        try await withTemporaryFolder { folder in
            let crashed = try Crashed(in: folder)
            let path = folder.appending(path: "agent.db").path
            for index in [[], [UInt8](repeating: 0x5A, count: 32_768), [1, 2, 3]] {
                try crashed.files.lay(at: path, index: index)
                #expect(try DeviceStore(path: path).load() == crashed.after)
            }
        }
    }

    /// What opening a damaged store gives: its state, or an error that names the file and what to do.
    private func open(_ path: String) -> Result<DeviceState, any Error> {
        Result { try DeviceStore(path: path, isExpected: true).load() }
    }

    private func isClear(_ error: any Error, _ path: String) -> Bool {
        guard let error = error as? DeviceAgentError else { return false }
        return error.code == .store && error.description.contains(path) && error.description.contains("enroll")
            && !error.description.contains("\n")
    }

    /// Lays each damaged file, and returns the places where the store neither held its state nor said clearly why not.
    private func wrongPlaces(
        _ path: String, _ files: CrashedDatabase, _ state: DeviceState, _ damages: [(String, [UInt8])]
    ) throws -> (wrong: [String], refused: Int) {
        var wrong: [String] = []
        var refused = 0
        for (place, main) in damages {
            try files.lay(at: path, main: main, log: [])
            switch open(path) {
            case .success(let found): if found != state { wrong.append(place) }
            case .failure(let error):
                refused += 1
                if !isClear(error, path) { wrong.append("\(place): \(error)") }
            }
        }
        return (wrong, refused)
    }

    /// A store that was closed: everything stands in the main file.
    private func closed(_ folder: URL) throws -> (files: CrashedDatabase, state: DeviceState) {
        let crashed = try Crashed(in: folder)
        let path = folder.appending(path: "closed.db").path
        try crashed.files.lay(at: path)
        #expect(try DeviceStore(path: path).load() == crashed.after)
        return (try CrashedDatabase(copying: path), crashed.after)
    }

    @Test("a file that is cut is refused with its name and what to do, or nothing is missing")
    func torn() async throws {
        try await withTemporaryFolder { folder in
            let (files, state) = try closed(folder)
            #expect(files.log.isEmpty)
            let path = folder.appending(path: "agent.db").path
            let damages = (0..<files.main.count).filter { $0 == 1 || $0 % 509 == 0 || $0 % 512 == 0 }.map { end in
                ("cut at \(end)", Array(files.main[..<end]))
            }
            let result = try wrongPlaces(path, files, state, damages)
            #expect(result.wrong.isEmpty)
            #expect(result.refused >= damages.count - 1, "Only a last page that nothing uses may be missing.")
        }
    }

    @Test("pages that are empty, full of other bytes or another page are refused with the file's name and what to do")
    func pages() async throws {
        try await withTemporaryFolder { folder in
            let (files, state) = try closed(folder)
            let path = folder.appending(path: "agent.db").path
            var damages: [(String, [UInt8])] = []
            for page in stride(from: 0, to: files.main.count, by: files.pageSize) {
                let range = page..<page + files.pageSize
                var zeros = files.main
                zeros.replaceSubrange(range, with: [UInt8](repeating: 0, count: files.pageSize))
                var noise = files.main
                noise.replaceSubrange(
                    range, with: (0..<files.pageSize).map { UInt8(truncatingIfNeeded: $0 * 77 + page) })
                var other = files.main
                other.replaceSubrange(range, with: files.main[files.pageSize..<2 * files.pageSize])
                damages += [("zeros at \(page)", zeros), ("noise at \(page)", noise), ("a page at \(page)", other)]
            }
            let result = try wrongPlaces(path, files, state, damages)
            #expect(result.wrong.isEmpty)
            #expect(result.refused > damages.count / 2)
        }
    }

    @Test("a changed byte anywhere in the file is found, or makes no difference")
    func changedByte() async throws {
        try await withTemporaryFolder { folder in
            let (files, state) = try closed(folder)
            let path = folder.appending(path: "agent.db").path
            let damages = stride(from: 0, to: files.main.count, by: CrashedDatabase.triesEveryByte ? 1 : 61).map {
                place in
                var main = files.main
                main[place] ^= 1 << UInt8(place % 8)
                return ("bit at \(place)", main)
            }
            let result = try wrongPlaces(path, files, state, damages)
            #expect(result.wrong.isEmpty)
            #expect(result.refused > damages.count / 2)
        }
    }
}
