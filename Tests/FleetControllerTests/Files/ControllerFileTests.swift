import FleetHome
import FleetProtocol
import Foundation
import GRDB
import TestSupport
import Testing

@testable import FleetController

/// Files that a controller cannot work with: it ends with status 1 and one line that says what is wrong, where, and what
/// to do; and it leaves the file as it is. (What may be wrong with the rest of the home, HomeTests tries.)
@Suite("Files that a controller cannot work with")
struct ControllerFileTests {
    /// A home on which a controller has run; there is no broker.
    private func used(_ fixture: Fixture) async throws -> FleetHome {
        let home = try FleetHome.create(
            at: fixture.temporaryFolder().path + "/home", fleet: World.fleetID, port: try freePort(),
            brokerUser: geteuid() == 0 ? "root" : nil)
        try await runFor(home, fixture)
        return home
    }

    private func runFor(_ home: FleetHome, _ fixture: Fixture, _ arguments: [String] = []) async throws {
        let process = try await fixture.process(
            program(named: "fleet-controller"), ["run", "--home", home.path] + arguments)
        try await until("the controller runs") {
            if let status = process.status { throw TestFailure("it ended with \(status): \(process.errors)") }
            return process.errors.contains("started")
        }
        #expect(await process.terminate() == 0)
    }

    private func expectRefusal(_ home: FleetHome, _ words: [String], obeysModes: Bool = false) async throws {
        let (executable, arguments) = try command(
            program(named: "fleet-controller"), ["run", "--home", home.path], obeysModes: obeysModes)
        let result = try await run(program(named: "timeout"), ["-s", "KILL", "120", executable.path] + arguments)
        #expect(result.status == 1, "\(result.errors)")
        #expect(
            result.errors.hasPrefix("Error: ") && result.errors.split(separator: "\n").count == 1, "\(result.errors)")
        for word in words { #expect(result.errors.contains(word), "\(word) is not in: \(result.errors)") }
    }

    @Test(
        "a database that is lost, empty, cut, no file, no database or another program's is never replaced by a new one")
    func database() async throws {
        try await withFixture { fixture in
            let home = try await used(fixture)
            let file = URL(fileURLWithPath: home.databasePath)
            let whole = try Data(contentsOf: file)
            func refused(_ content: Data, _ word: String) async throws {
                try content.write(to: file)
                try await expectRefusal(home, [file.path, "-wal", "--restored", word])
                #expect(try Data(contentsOf: file) == content)
            }
            try await refused(Data(), "is empty, though a controller has run")
            try await refused(Data("garbage".utf8), "is damaged")
            try await refused(Data(repeating: 0x41, count: 10_000), "not a database")
            try await refused(whole.prefix(whole.count / 2), "is damaged")
            try FileManager.default.removeItem(at: file)
            try await DatabaseQueue(path: file.path).write { try $0.execute(sql: "CREATE TABLE recipes (name TEXT)") }
            try await refused(Data(contentsOf: file), "the tables of another program")
            try FileManager.default.removeItem(at: file)
            try await expectRefusal(home, [file.path, "is missing, though a controller has run", "--restored"])
            #expect(home.hasDatabase, "a device that is enrolled now must still learn what is the newest")
            try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
            try await expectRefusal(home, [file.path, "is no file", "move it away"])
            try FileManager.default.removeItem(at: file)
            try await runFor(home, fixture, ["--restored"])
        }
    }

    @Test("a database of a newer version is refused, by its migrations and by its number")
    func newer() async throws {
        try await withFixture { fixture in
            let home = try await used(fixture)
            for sql in ["PRAGMA user_version = 2", "INSERT INTO grdb_migrations VALUES ('999 not known yet')"] {
                try await DatabaseQueue(path: home.databasePath).write { try $0.execute(sql: sql) }
                try await expectRefusal(
                    home, [home.databasePath, "newer version of fleet-controller", "install that version"])
                try await DatabaseQueue(path: home.databasePath).write {
                    try $0.execute(sql: "PRAGMA user_version = 0")
                }
            }
        }
    }

    @Test("a database or secret of another user is refused", .enabled(if: geteuid() == 0))
    func owner() async throws {
        try await withFixture { fixture in
            let home = try await used(fixture)
            for path in [
                home.databasePath, home.path, home.path + "/keys/root.key", home.path + "/credentials/@controller",
            ] {
                #expect(chown(path, 65_534, 0) == 0)
                try await expectRefusal(home, [path, "belongs to"])
                #expect(chown(path, 0, 0) == 0)
            }
        }
    }

    @Test("a home in which nothing can be written is refused for a controller for which modes count")
    func readOnly() async throws {
        try await withFixture { fixture in
            let home = try await used(fixture)
            chmod(home.path, 0o500)
            try await expectRefusal(home, [home.databasePath, "writable"], obeysModes: true)
            chmod(home.path, 0o700)
        }
    }

    @Test("the database lets nobody else read it, not even who may enter the fleet's folder")
    func mode() async throws {
        try await withFixture { fixture in
            let home = try await used(fixture)
            #expect(chmod(home.databasePath, 0o644) == 0)
            let store = try FleetStore(path: home.databasePath)
            for suffix in ["", "-wal", "-shm"] {
                let attributes = try FileManager.default.attributesOfItem(atPath: home.databasePath + suffix)
                #expect(attributes[.posixPermissions] as? Int == 0o600, "\(suffix)")
            }
            try store.close()
        }
    }

    @Test("files of the home that are empty, garbage, no file, too large, newer or open are refused by name")
    func home() async throws {
        try await withFixture { fixture in
            let home = try await used(fixture)
            for name in ["fleet.json", "trust.json", "keys/root.key", "keys/signing.key", "credentials/@controller"] {
                let file = URL(fileURLWithPath: home.path + "/" + name)
                let whole = try Data(contentsOf: file)
                func refused(_ content: String, _ words: String...) async throws {
                    try Data(content.utf8).write(to: file)
                    try await expectRefusal(home, [file.path, ";"] + words)
                }
                try await refused("")
                try await refused("garbage")
                try await refused(String(repeating: " ", count: 300_000))
                if name != "trust.json" { try await refused(#"{"v":2}"#, "format version 2", "newer") }
                try FileManager.default.removeItem(at: file)
                try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
                chmod(file.path, 0o700)
                try await expectRefusal(home, [file.path])
                try FileManager.default.removeItem(at: file)
                #expect(mkfifo(file.path, 0o600) == 0)
                try await expectRefusal(home, [file.path, "is no file"])
                try FileManager.default.removeItem(at: file)
                try await expectRefusal(home, [file.path, "is missing"])
                try whole.write(to: file)
                chmod(file.path, 0o600)
                if name.contains("/") {
                    chmod(file.path, 0o640)
                    try await expectRefusal(home, [file.path, "mode 640", "chmod 600"])
                    chmod(file.path, 0o600)
                }
            }
            try await runFor(home, fixture)
        }
    }
}
