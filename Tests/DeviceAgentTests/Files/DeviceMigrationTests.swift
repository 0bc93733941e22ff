import DeviceAgent
import FleetProtocol
import Foundation
import GRDB
import TestSupport
import Testing

/// To write the fixture of a new version, once its migration is registered:
/// `FLEETBUS_WRITE_FIXTURES=1 swift test --disable-xctest --filter DeviceMigrationTests`
@Suite("Stores of earlier versions of the agent")
struct DeviceMigrationTests {
    private static let fixtures = SchemaFixtures(beside: #filePath)

    @Test("the fixture of the newest version is there", .enabled(if: SchemaFixtures.isWriting))
    func write() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "agent.db").path
            _ = try FixtureDevice(DeviceStore(path: path))
            try Self.fixtures.write(DatabaseQueue(path: path))
        }
    }

    @Test("the tables are those of the newest fixture: a shipped migration is never edited, a new one has its fixture")
    func schema() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "agent.db").path
            _ = try DeviceStore(path: path)
            let newest = try #require(try Self.fixtures.versions().last)
            let today = try DatabaseText.schema(of: DatabaseQueue(path: path))
            #expect(
                try today == Self.fixtures.schema(newest),
                "Leave shipped migrations as they are, register another one, and write its fixture as it says above.")
        }
    }

    @Test("a store of every version opens, is brought to the newest, and holds what it held")
    func migrated() async throws {
        for version in try Self.fixtures.versions() {
            try await withTemporaryFolder { folder in
                let path = folder.appending(path: "agent.db").path
                try Self.fixtures.make(version, at: path)
                let state = try DeviceStore(path: path).load()
                try Self.expectFixture(state, version)
                let fresh = folder.appending(path: "fresh.db").path
                _ = try DeviceStore(path: fresh)
                #expect(
                    try DatabaseText.schema(of: DatabaseQueue(path: path))
                        == DatabaseText.schema(of: DatabaseQueue(path: fresh)), "version \(version)")
                // What is opened again has been changed no more.
                #expect(try DeviceStore(path: path).load() == state)
            }
        }
    }

    private static func expectFixture(_ state: DeviceState, _ number: Int) throws {
        let version: Comment = "version \(number)"
        let hasPasscode = number >= 3
        let till = try DeviceID(checking: "till-1")
        #expect(state.owner?.device == till, version)
        // Starts were counted before they were named by their time.
        #expect(state.boot == (number >= 4 ? 1_800_000_000_000 : 1), version)
        #expect(state.disk == state.boot, version)
        #expect(state.groups == [FixtureDevice.kiosk], version)
        let trust = try SignedDocument(wire: try #require(state.trust))
        #expect(try TrustDocument(json: trust.payload, limit: 65_536).version == 2, version)
        #expect(state.contact != nil && state.running.total >= 70_000, version)
        var documents: Set<Address> = [
            .membership(till), .desired(.all, mail, .auth), .desired(.group(FixtureDevice.kiosk), mail, .config),
            .desired(.all, mail, .logLevel), .desired(.all, notes, .auth), .desired(.device(till), notes, .auth),
        ]
        if hasPasscode { documents.insert(.desired(.all, mail, .secureServices)) }
        #expect(Set(state.documents.keys) == documents, version)
        #expect(state.marks.count == documents.count + 1, version)
        let tombstone = try #require(state.marks[.desired(.device(till), mail, .config)])
        #expect(tombstone.revision == Revision(epoch: 1, number: 5), version)
        #expect(state.highest == Revision(epoch: 1, number: hasPasscode ? 9 : 8), version)
        #expect(
            state.passcode
                == (hasPasscode ? PasscodeRecord(hash: TestDevice.hash("2468"), wrong: 1) : PasscodeRecord()),
            version)
        for (address, wire) in state.documents {
            #expect(state.marks[address]?.digest == Digest(of: wire), version)
        }
        let first = try #require(state.apps[mail])
        #expect(first.authState == .authorized && first.authMessage == "Welcome." && first.hasKeys, version)
        #expect(first[.config].report.source == .desired(.group(FixtureDevice.kiosk), mail, .config), version)
        #expect(first[.config].report.applied == 3 && first.logLevel == .debug, version)
        #expect(first.levelClocks.count == 1 && first.latch == nil, version)
        #expect(first.wrongPasscodes == (hasPasscode ? 1 : 0), version)
        let second = try #require(state.apps[notes])
        #expect(second.authState == .retired && !second.hasKeys, version)
        #expect(second.latch?.change == Revision(epoch: 1, number: 8), version)
        #expect(!state.events.isEmpty, version)
        #expect(state.events.map(\.header.number) == Array(1...Int64(state.events.count)), version)
    }
}
