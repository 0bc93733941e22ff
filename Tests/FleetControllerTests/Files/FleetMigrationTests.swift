import FleetProtocol
import Foundation
import GRDB
import TestSupport
import Testing

@testable import FleetController

/// To write the fixture of a new version, once its migration is registered:
/// `FLEETBUS_WRITE_FIXTURES=1 swift test --disable-xctest --filter FleetMigrationTests`
@Suite("Databases of earlier versions of the controller")
struct FleetMigrationTests {
    private static let fixtures = SchemaFixtures(beside: #filePath)

    @Test("the fixture of the newest version is there", .enabled(if: SchemaFixtures.isWriting))
    func write() async throws {
        try await withTemporaryFolder { folder in
            let world = try World(path: folder.appending(path: "fleet.db").path)
            try world.live()
            try Self.fixtures.write(world.store.database)
        }
    }

    @Test("the tables are those of the newest fixture: a shipped migration is never edited, a new one has its fixture")
    func schema() throws {
        let newest = try #require(try Self.fixtures.versions().last)
        let today = try DatabaseText.schema(of: FleetStore().database)
        #expect(
            try today == Self.fixtures.schema(newest),
            "Leave shipped migrations as they are, register another one, and write its fixture as it says above.")
    }

    @Test("a database of every version opens, is brought to the newest, holds what it held, and goes on")
    func migrated() async throws {
        for version in try Self.fixtures.versions() {
            try await withTemporaryFolder { folder in
                let path = folder.appending(path: "fleet.db").path
                try Self.fixtures.make(version, at: path)
                let store = try FleetStore(path: path)
                #expect(try DatabaseText.schema(of: store.database) == DatabaseText.schema(of: FleetStore().database))
                try Self.expectFixture(store, "version \(version)")
                try store.close()
                let again = try FleetStore(path: path)
                try Self.expectFixture(again, "version \(version)")
            }
        }
    }

    @Test("keys that an earlier version has stored as destroyed count so afterwards")
    func destroyedKeys() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "fleet.db").path
            try Self.fixtures.make(4, at: path)
            try DatabaseQueue(path: path).write {
                // The ninth element says whether the keys are there, the third whether the app runs.
                try $0.execute(
                    sql: """
                        UPDATE device_apps SET detail = CAST(json_set(
                            CAST(detail AS TEXT), '$[8]', json('false'), '$[2]', json(iif(id >> 16 = 1, 'true', 'false'))
                        ) AS BLOB)
                        """)
            }
            let store = try FleetStore(path: path)
            let statuses = try store.statuses(in: World.fleetID)
            #expect(statuses.map(\.keys) == [.destroyed, .destroyed])
            #expect(Set(statuses.map(\.isRunning)) == [true, false])
            let counted = try store.transaction {
                try $0.rows(
                    "SELECT key FROM shapes JOIN summary ON summary.shape = shapes.id WHERE count > 0 ORDER BY key"
                ).map { String(decoding: [UInt8](blob: $0[0]), as: UTF8.self) }
            }
            #expect(counted == statuses.map { String(decoding: Shape.key(of: $0), as: UTF8.self) }.sorted())
            #expect(counted.count { $0.hasSuffix("\ndestroyed running\n") } == 1)
        }
    }

    @Test("keys on a disk that has no name, and on one that has, are still known")
    func leftKeysByDisk() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "fleet.db").path
            try Self.fixtures.make(8, at: path)
            try DatabaseQueue(path: path).write {
                try $0.execute(
                    sql: """
                        INSERT INTO left_keys (app, device, incarnation, at, epoch, revision, removed_groups, disk)
                        VALUES (?1, ?2, 1, 0, 1, 1, NULL, NULL), (?1, ?2, 2, 0, 1, 1, NULL, 5)
                        """, arguments: [mail.text, till.text])
            }
            let store = try FleetStore(path: path)
            let (left, count) = try store.transaction { transaction in
                try (
                    transaction.keysOnEarlierDisks(of: till),
                    transaction.number("SELECT count(*) FROM left_keys WHERE disk IN (-1, 5)")
                )
            }
            #expect(left == [mail] && count == 2)
        }
    }

    @Test("keys of a removed device, of whose last start nothing was kept, are still known")
    func leftKeysOfRemoved() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "fleet.db").path
            try Self.fixtures.make(9, at: path)
            try DatabaseQueue(path: path).write {
                try $0.execute(
                    sql: """
                        INSERT INTO left_keys (app, device, incarnation, disk, at, epoch, revision, removed_groups)
                        VALUES (?, 'till-3', 1, 5, 0, 1, 8, 'kiosk')
                        """, arguments: [mail.text])
            }
            let store = try FleetStore(path: path)
            let (left, boot) = try store.transaction { transaction in
                try (transaction.leftKeys(of: mail), transaction.number("SELECT boot FROM left_keys"))
            }
            #expect(left.map(\.place) == [.removed(groups: [kiosk], latest: Revision(epoch: 1, number: 8))])
            #expect(boot == 0)
        }
    }

    @Test("keys on another disk, of which a warning told alone, are still known")
    func leftKeys() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "fleet.db").path
            try Self.fixtures.make(7, at: path)
            try DatabaseQueue(path: path).write {
                for (device, apps) in [("till-1", "an app (com.example.mail)"), ("till-2", "6 apps (a, b, c, d, e…)")] {
                    let text = "came back on another disk: the keys of \(apps) may be on the one before"
                    try $0.execute(sql: "UPDATE devices SET warning = ? WHERE name = ?", arguments: [text, device])
                }
            }
            let store = try FleetStore(path: path)
            try store.transaction { transaction in
                #expect(try transaction.keysOnEarlierDisks(of: till) == [mail])
                #expect(
                    try transaction.keysOnEarlierDisks(of: till2).contains(mail),
                    "it may be one of those that are not named")
                let left = try transaction.leftKeys(of: mail)
                #expect(left.map(\.place) == [.earlierDisk, .earlierDisk])
                #expect(try transaction.device(till)?.warning == nil)
                #expect(try transaction.warnedDeviceCount() == 2)
            }
        }
    }

    @Test("a device of which a copy was warned of is still one of two")
    func copied() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "fleet.db").path
            try Self.fixtures.make(7, at: path)
            try DatabaseQueue(path: path).write {
                let text = "goes on from boot 4, where 6 was the last: a cloned or restored image"
                try $0.execute(sql: "UPDATE devices SET warning = ? WHERE name = 'till-2'", arguments: [text])
            }
            let store = try FleetStore(path: path)
            #expect(try store.leftKeys(of: till) == [])
            #expect(try store.leftKeys(of: till2).contains(mail))
            #expect(try store.device(till2)?.warning != nil)
        }
    }

    private static func expectFixture(_ store: FleetStore, _ version: Comment) throws {
        #expect(try store.latest() == Revision(epoch: 1, number: 8), version)
        let wishes = try store.wishes()
        #expect(
            Set(wishes.filter { $0.value != nil }.map(\.address)) == [
                .groupMeta(kiosk), .membership(till), .membership(till2), .desired(.all, mail, .auth),
                .desired(.group(kiosk), mail, .config), .desired(.device(till), notes, .auth),
            ], version)
        #expect(wishes.first { $0.value == nil }?.address == .desired(.all, notes, .config), version)
        for wish in wishes {
            let payload = try SignedDocument(wire: wish.wire).payload
            #expect(try DesiredDocument(payload: payload, in: World.fleetID).revision == wish.revision, version)
        }
        let statuses = try store.statuses(in: World.fleetID)
        #expect(statuses.map(\.device) == [till, till2] && statuses.allSatisfy { $0.app == mail }, version)
        #expect(statuses.map { $0[.config].attempt.outcome } == [.applied, .error], version)
        #expect(try store.onlineDevices() == [till], version)
        #expect(try Set(store.events().keys.map(\.number)) == [1, 3], version)
        let rows = try store.summary(of: mail, at: World.start.advanced(bySeconds: 20))
        let config = try #require(rows.first { $0.policy == .config })
        #expect(config.counts.applied == 1 && config.counts.error == 1 && config.counts.pending == 0, version)
        try store.transaction { transaction in
            #expect(try transaction.members(of: kiosk) == [till, till2], version)
            #expect(
                try transaction.history(app: nil, layer: nil, before: .max, limit: 100).map(\.revision)
                    == Array((1...8).reversed()), version)
            #expect(try transaction.number("SELECT count(*) FROM requests") ?? 0 > 0, version)
            let device = try #require(try transaction.device(till))
            #expect(try transaction.gaps(of: device).count == 1, version)
        }
    }
}

extension World {
    /// What a store must remember: groups, layers, a tombstone, statuses, events with a gap, answers.
    func live() throws {
        connect()
        try body(.groupSet, #"{"group":"kiosk","priority":5,"devices":["till-1","till-2"]}"#)
        try apply(mail, "all", .auth, #"{"state":"authorized","message":"Welcome."}"#)
        let revision = try apply(mail, "group/kiosk", .config, #"{"values":{"server":"https://mail.example.com"}}"#)
        try apply(notes, "device/till-1", .auth, #"{"state":"retired","message":"This till is no longer in use."}"#)
        try apply(notes, "all", .config, #"{"values":{}}"#)
        try body(.delete, #"{"documents":[{"app":"com.example.notes","target":"all","aspect":"config"}]}"#)
        for (device, outcome) in [(till, Outcome.applied), (till2, .error)] {
            let connection = RandomID.random()
            online(device, connection: connection)
            report(
                .fresh(device, mail, at: now).then(
                    .config, from: .group(kiosk), revision, outcome, message: "So it is."))
            if device == till2 { offline(device, connection: connection) }
        }
        event(till, mail, number: 1)
        event(till, mail, number: 3, oldest: 3)
        pass(seconds: 5)
    }
}
