import FleetProtocol
import Foundation
import GRDB
import TestSupport
import Testing

@testable import FleetController

@Suite("The store")
struct StoreTests {
    @Test("commits are on the disk when they return: WAL with synchronous=FULL, and foreign keys hold")
    func pragmas() async throws {
        try await withTemporaryFolder { folder in
            let store = try FleetStore(path: folder.appending(path: "fleet.db").path)
            let mode: String? = try store.transaction { try $0.row("PRAGMA journal_mode")?[0] }
            #expect(mode == "wal")
            #expect(try store.transaction { try $0.number("PRAGMA synchronous") } == 2)
            #expect(try store.transaction { try $0.number("PRAGMA foreign_keys") } == 1)
        }
    }

    @Test("what can be rolled back in part stands in no file in /tmp, where a kill would leave it")
    func temporaries() async throws {
        try await withTemporaryFolder { folder in
            let store = try FleetStore(path: folder.appending(path: "fleet.db").path)
            try store.together {
                try store.transaction { transaction in
                    for number in 0..<20_000 {
                        _ = try transaction.addDevice(DeviceID(unchecked: "d\(number)"), incarnation: 1, boot: 1)
                    }
                }
                try store.transaction { try $0.run("UPDATE devices SET boot = boot + 1") }
                let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
                let files = descriptors.compactMap {
                    try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
                }
                #expect(files.contains { $0.hasSuffix("fleet.db-wal") })
                #expect(files.filter { $0.contains("etilqs_") } == [])
            }
        }
    }

    @Test("a controller killed between transactions has what it answered for")
    func killed() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "fleet.db").path
            let world = try World(path: path)
            world.connect()
            let id = RandomID.random()
            let text =
                #"{"v":1,"id":"\#(id)","replyTo":"here","notAfter":"\#(world.now.advanced(bySeconds: 9))","body":{"changes":[{"app":"com.example.mail","target":"all","aspect":"config","value":{"values":{}}}]}}"#
            let answer = try #require(world.raw(.apply, text))
            world.event(till, mail, number: 1)
            let revision = try world.store.transaction { try $0.latest().number }
            world.report(.fresh(till, mail, at: world.now).then(.config, from: .all, revision, .applied))
            // As the disk has it at this moment, without a proper end.
            for suffix in ["", "-wal"] {
                try FileManager.default.copyItem(atPath: path + suffix, toPath: path + ".copy" + suffix)
            }
            let after = try World(path: path + ".copy", identity: world.identity)
            after.retained = [:]  // The broker has lost all of it.
            after.connect()
            #expect(after.document(.desired(.all, mail, .config))?.revision.number == revision)
            #expect(after.raw(.apply, text) == answer)
            #expect(try after.counts(mail, .config).counts.applied == 1)
            after.event(till, mail, number: 1)
            #expect(try after.store.transaction { try $0.number("SELECT count(*) FROM events") } == 1)
            #expect(try after.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#) > revision)
        }
    }

    @Test("a transaction that fails leaves nothing, neither in the tables nor in memory")
    func rollback() throws {
        let world = try World()
        struct Failure: Error {}
        #expect(throws: Failure.self) {
            try world.store.transaction { transaction in
                _ = try transaction.addDevice(till, incarnation: 1, boot: 1)
                _ = try transaction.appID(mail, adding: true)
                throw Failure()
            }
        }
        #expect(try world.store.transaction { try $0.device(till) } == nil)
        #expect(try world.store.transaction { try $0.appID(mail, adding: false) } == nil)
    }

    @Test("the numbers of apps that no device has any more are given out again")
    func appNumbers() throws {
        let world = try World()
        world.connect()
        world.online(till)
        world.report(.fresh(till, mail, at: world.now))
        let other = AppID(unchecked: "other")
        try world.store.transaction { transaction in
            try transaction.run(
                """
                WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 65535)
                INSERT INTO apps (id, name) SELECT n, 'app-' || n FROM numbers
                """)
            #expect(try transaction.appID(other, adding: true) == nil)
            try transaction.run("DELETE FROM apps WHERE id = 7")
            #expect(try transaction.appID(other, adding: true) == 7)
            try transaction.dropUnused(at: world.now)
            #expect(try transaction.appID(mail, adding: false) == 1)
            #expect(try transaction.appID(other, adding: false) == nil)
            #expect(try transaction.appID(other, adding: true) == 2)
        }
        #expect(try world.store.statuses(in: World.fleetID).map(\.app) == [mail])
    }

    @Test("revisions, epochs and the order of a status cannot go back, whatever the program does")
    func constraints() throws {
        let world = try World()
        world.connect()
        try world.apply(mail, "all", .config, #"{"values":{}}"#)
        world.report(.fresh(till, mail, boot: 2, at: world.now))
        for sql in [
            "UPDATE meta SET revision = 0", "UPDATE meta SET epoch = 0", "UPDATE meta SET fleet = 'x'",
            "UPDATE device_apps SET boot = 1", "UPDATE summary SET count = -1", "DELETE FROM shapes",
            "UPDATE documents SET wire = x''",
        ] {
            #expect(throws: FleetControllerError.self) { try world.store.transaction { try $0.run(sql) } }
        }
    }

    @Test("a database of a newer version, a damaged one and one of another fleet are refused, each with its message")
    func refused() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "fleet.db").path
            let world = try World(path: path)
            try world.store.close()
            let queue = try DatabaseQueue(path: path)
            try await queue.write {
                try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('2 what is not known yet')")
            }
            try queue.close()
            let newer = #expect(throws: FleetControllerError.self) { _ = try FleetStore(path: path) }
            #expect(newer?.code == .newer)
            let garbage = folder.appending(path: "garbage.db").path
            try Data(repeating: 0x41, count: 10_000).write(to: URL(filePath: garbage))
            let corrupt = #expect(throws: FleetControllerError.self) { _ = try FleetStore(path: garbage) }
            #expect(corrupt?.code == .corrupt)
            #expect(corrupt?.message.contains("--restored") == true)
            let missing = #expect(throws: FleetControllerError.self) {
                _ = try FleetStore(path: folder.appending(path: "no/fleet.db").path)
            }
            #expect(missing?.code == .unusable)
            let other = folder.appending(path: "other.db").path
            let first = try World(path: other)
            try first.store.close()
            let foreign = #expect(throws: FleetControllerError.self) { _ = try World(path: other) }
            #expect(foreign?.code == .otherFleet)
        }
    }

    @Test("a database of which somebody has made statistics is as good as before")
    func analyzed() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "fleet.db").path
            try World(path: path).store.close()
            let queue = try DatabaseQueue(path: path)
            try await queue.writeWithoutTransaction { try $0.execute(sql: "ANALYZE") }
            try queue.close()
            let store = try FleetStore(path: path)
            try store.checkTables()
            try store.close()
        }
    }

    @Test("shapes and classes that nobody has any more go, and what is left still counts")
    func unused() throws {
        let world = try World()
        world.connect()
        let status = Status.fresh(till, mail, at: world.now)
        world.report(status)
        for sequence in 1...20 {
            world.report(status.then(.config, from: .all, 0, .error).moved(to: Int64(sequence) + 1))
        }
        try world.apply(mail, "all", .config, #"{"values":{}}"#)
        world.pass(seconds: 3_600)
        #expect(try world.store.transaction { try $0.number("SELECT count(*) FROM shapes") } == 1)
        #expect(try world.counts(mail, .config).counts.pending == 1)
        world.report(status.moved(to: 99))
        #expect(try world.counts(mail, .auth).counts.applied == 1)
        // One that was met just now is gone as well.
        world.report(status.then(.config, from: .all, 0, .unsupported).moved(to: 100))
        world.pass(seconds: 3_600)
        world.report(status.moved(to: 101))
        #expect(world.stopped == nil)
        #expect(try world.counts(mail, .auth).counts.applied == 1)
    }

    @Test("how many devices are warned of is counted without looking through all keys that were left for each")
    func countWarned() throws {
        let store = try FleetStore()
        let plan = try store.plan(of: FleetStore.Transaction.countWarned)
        #expect(!plan.contains { $0.contains("SCAN left_keys") || $0.contains("CORRELATED LIST") }, "\(plan)")
    }

    @Test("the layers of one device are found without looking through all documents of the app")
    func overrides() throws {
        let store = try FleetStore()
        let plan = try store.plan(
            of: FleetStore.Transaction.selectOverrides, [till.text, mail.text, till.text, mail.text])
        #expect(!plan.contains { $0.contains("documents_by_app") }, "\(plan)")
    }

    @Test("a store that is emptied forgets every table")
    func emptied() throws {
        let store = try FleetStore()
        let all = try store.transaction {
            try $0.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").map { $0[0] as String }
        }
        let kept = ["classed", "grdb_migrations"]
        #expect(Set(FleetStore.tableNames).union(kept) == Set(all), "the rows of classed go with their device-apps")
    }
}

extension FleetStore {
    /// How SQLite goes about a query.
    fileprivate func plan(of sql: String, _ arguments: StatementArguments = []) throws -> [String] {
        try transaction { try $0.rows("EXPLAIN QUERY PLAN " + sql, arguments).map { $0[3] as String } }
    }
}

extension World {
    /// How many statements with this text the store runs meanwhile.
    func statements(with text: String, during body: () throws -> Void) rethrows -> Int {
        var count = 0
        store.database.inDatabase { $0.trace { if "\($0)".contains(text) { count += 1 } } }
        defer { store.database.inDatabase { $0.trace() } }
        try body()
        return count
    }
}

extension Status {
    func moved(to sequence: Int64) -> Status {
        var copy = self
        copy.order.sequence = sequence
        return copy
    }
}
