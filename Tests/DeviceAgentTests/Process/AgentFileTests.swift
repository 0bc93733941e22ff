import DeviceAgent
import FleetProtocol
import Foundation
import GRDB
import TestSupport
import Testing

/// Every file that an agent reads, in every bad state: it ends with status 1 and one line that says what is wrong, where,
/// and what to do; and it leaves the file as it is.
@Suite("Files that an agent cannot work with")
struct AgentFileTests {
    private let fleet: TestFleet

    init() throws { fleet = try TestFleet() }

    /// A folder in which an agent has run.
    private func used(_ fixture: Fixture) async throws -> AgentFolder {
        let agent = try AgentFolder(fixture, fleet: fleet, port: 1)
        await (try agent.start(fixture)).terminate()
        return agent
    }

    private func expectRefusal(_ agent: AgentFolder, _ words: [String], obeysModes: Bool = false) async throws {
        let result = try await agent.runToEnd(obeysModes: obeysModes)
        #expect(result.status == 1, "\(result.errors)")
        #expect(
            result.errors.hasPrefix("Error: ") && result.errors.split(separator: "\n").count == 1, "\(result.errors)")
        for word in words { #expect(result.errors.contains(word), "\(word) is not in: \(result.errors)") }
    }

    private func setMode(_ mode: Int, _ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    @Test("a store that is lost, empty, cut, no file, no store, or another program's is never replaced by a new one")
    func store() async throws {
        try await withFixture { fixture in
            let agent = try await used(fixture)
            let database = agent.state.appendingPathComponent("agent.db")
            let whole = try Data(contentsOf: database)
            func refused(_ content: Data?, _ words: String...) async throws {
                try content?.write(to: database)
                try await expectRefusal(agent, words + [database.path, "enroll this device again"])
                #expect(try Data(contentsOf: database) == content ?? whole)
            }
            try await refused(Data(), "is empty, though this agent has run before")
            try await refused(Data("garbage".utf8), "is damaged")
            try await refused(Data(repeating: 0x41, count: 10_000), "not a database")
            try await refused(whole.prefix(whole.count / 2), "is damaged")
            try await refused(whole.prefix(5_000), "is damaged")
            try FileManager.default.removeItem(at: database)
            try await DatabaseQueue(path: database.path).write {
                try $0.execute(sql: "CREATE TABLE recipes (name TEXT)")
            }
            try await refused(Data(contentsOf: database), "the tables of another program")
            // Statistics that somebody has made are no other tables.
            try whole.write(to: database)
            try await DatabaseQueue(path: database.path).writeWithoutTransaction { try $0.execute(sql: "ANALYZE") }
            try await agent.start(fixture).terminate()
            try FileManager.default.removeItem(at: database)
            try await expectRefusal(agent, [database.path, "is missing, though this agent has run before", "enroll"])
            #expect(!FileManager.default.fileExists(atPath: database.path))
            try FileManager.default.createDirectory(at: database, withIntermediateDirectories: false)
            try await expectRefusal(agent, [database.path, "is no file", "move it away"])
        }
    }

    @Test("a store of a newer version is refused, by its migrations and by its number", arguments: [false, true])
    func newer(byNumber: Bool) async throws {
        try await withFixture { fixture in
            let agent = try await used(fixture)
            let database = agent.state.appendingPathComponent("agent.db")
            if byNumber {
                try await DatabaseQueue(path: database.path).write { try $0.execute(sql: "PRAGMA user_version = 2") }
            } else {
                try DeviceStoreTampering.pretendNewer(database.path)
            }
            let before = try DatabaseText(of: DatabaseQueue(path: database.path))
            try await expectRefusal(agent, [database.path, "newer version of fleet-agent", "install that version"])
            #expect(try DatabaseText(of: DatabaseQueue(path: database.path)) == before)
        }
    }

    @Test("a first start that was cut short is no lost store")
    func firstStart() async throws {
        try await withFixture { fixture in
            let agent = try AgentFolder(fixture, fleet: fleet, port: 1)
            try agent.write("", to: "state/agent.db", mode: 0o600)
            try agent.write("", to: "state/agent.lock", mode: 0o600)
            await (try agent.start(fixture)).terminate()
            #expect(try DeviceStore(path: agent.state.appendingPathComponent("agent.db").path).load().boot > 0)
        }
    }

    @Test("what stands in the place of the room for a full disk is named, and no disk is said to be full")
    func noReserve() async throws {
        try await withFixture { fixture in
            let agent = try AgentFolder(fixture, fleet: fleet, port: 1)
            let reserve = agent.state.appendingPathComponent("agent.db-reserve").path
            try FileManager.default.createDirectory(atPath: reserve, withIntermediateDirectories: true)
            let process = try await agent.start(fixture)
            try await until("the agent says so") { process.errors.contains("no room is kept for a full disk") }
            #expect(process.errors.contains("opening \(reserve) failed: Is a directory"), "\(process.errors)")
            #expect(!process.errors.contains("the disk is full"), "\(process.errors)")
        }
    }

    @Test("a store that may only be read, itself or its folder, is refused for an agent for which modes count")
    func readOnly() async throws {
        try await withFixture { fixture in
            let agent = try await used(fixture)
            let database = agent.state.appendingPathComponent("agent.db").path
            // The owner of a file can give it another mode, and the agent does; a folder it leaves alone.
            try setMode(0o500, agent.state.path)
            try await expectRefusal(agent, [database, "writable"], obeysModes: true)
            try setMode(0o700, agent.state.path)
        }
    }

    @Test("a store, its folder, a key or agent.json of another user is refused", .enabled(if: geteuid() == 0))
    func owner() async throws {
        try await withFixture { fixture in
            let agent = try await used(fixture)
            let paths =
                [agent.configuration.path, agent.folder.path + "/credentials.json"]
                + ["", "/agent.db", "/keys"].map { agent.state.path + $0 }
            for path in paths {
                #expect(chown(path, 65_534, 0) == 0)
                try await expectRefusal(agent, [path, "belongs to user 65534", "chown"])
                #expect(chown(path, 0, 0) == 0)
            }
        }
    }

    @Test("the store lets nobody else read it")
    func storeMode() async throws {
        try await withFixture { fixture in
            let agent = try await used(fixture)
            let database = agent.state.appendingPathComponent("agent.db").path
            for old in [0o600, 0o644] {
                try setMode(old, database)
                let process = try await agent.start(fixture)
                for name in [database, database + "-wal", database + "-shm"] {
                    let mode = try FileManager.default.attributesOfItem(atPath: name)[.posixPermissions] as? Int
                    #expect(mode == 0o600, "\(name)")
                }
                await process.terminate()
            }
        }
    }

    @Test("agent.json and credentials.json that are empty, no JSON, no file, too large, newer or open are refused")
    func configuration() async throws {
        try await withFixture { fixture in
            var agent = try AgentFolder(fixture, fleet: fleet, port: 1)
            let credentials = #"{"user":"till-1","password":"secret"}"#
            for name in ["agent.json", "credentials.json"] {
                let path = agent.folder.path + "/" + name
                for (content, mode, word) in [
                    ("", 0o600, "enroll"), ("garbage", 0o600, "enroll"), ("{", 0o600, "enroll"),
                    ("[]", 0o600, "enroll"),
                    (#"{"v":2}"#, 0o600, "format version 2"),
                    (String(repeating: " ", count: 5_000_000), 0o600, "bytes"),
                    (credentials, 0o666, "chmod"),
                ] {
                    try agent.write(content, to: name, mode: mode)
                    try await expectRefusal(agent, [path, word])
                }
                try FileManager.default.removeItem(atPath: path)
                try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
                try await expectRefusal(agent, [path, "is no file"])
                try FileManager.default.removeItem(atPath: path)
                #expect(mkfifo(path, 0o600) == 0)
                try await expectRefusal(agent, [path, "is no file"])
                try FileManager.default.removeItem(atPath: path)
                try await expectRefusal(agent, [path, "No such file"])
                try agent.write()
            }
            try agent.write(credentials, to: "credentials.json", mode: 0o600)
            try agent.write("key", to: "client.key", mode: 0o640)
            agent.members["broker"] =
                #"{"host":"127.0.0.1","port":1,"tls":{"ca":"ca.pem","certificate":"client.pem","key":"client.key"}}"#
            try agent.write()
            try await expectRefusal(agent, ["client.key", "can be read by others", "chmod 600"])
        }
    }

    @Test("a display command begins where the file is, as every path in it")
    func displayCommand() async throws {
        try await withFixture { fixture in
            var agent = try AgentFolder(fixture, fleet: fleet, port: 1)
            for (written, read) in [("show.sh", "\(agent.folder.path)/show.sh"), ("/bin/show", "/bin/show")] {
                agent.members["displayCommand"] = #"["\#(written)","x"]"#
                try agent.write()
                #expect(try AgentConfiguration.read(agent.configuration.path).displayCommand == [read, "x"])
            }
        }
    }

    @Test("keys that are lost as a whole, open to others, or damaged are refused")
    func keys() async throws {
        try await withFixture { fixture in
            let agent = try await used(fixture)
            let database = agent.state.appendingPathComponent("agent.db").path
            _ = try FixtureDevice(DeviceStore(path: agent.state.path + "/other.db"), fleet: fleet)
            for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: database + suffix) }
            try FileManager.default.moveItem(atPath: agent.state.path + "/other.db", toPath: database)
            let keys = agent.state.path + "/keys"
            let key = "\(keys)/\(mail).key"
            // The store knows of a key of this app, which a crash has taken: it gets another, and the log says so.
            let process = try await agent.start(fixture)
            #expect(process.errors.contains("the key of an app is gone"))
            await process.terminate()
            let content = try Data(contentsOf: URL(fileURLWithPath: key))
            #expect(content.count == 32)
            for bytes in [0, 31, 33] {
                try Data(repeating: 7, count: bytes).write(to: URL(fileURLWithPath: key))
                try await expectRefusal(agent, [key, "has \(bytes) bytes"])
            }
            try content.write(to: URL(fileURLWithPath: key))
            try setMode(0o644, key)
            try await expectRefusal(agent, [key, "can be read by others", "chmod 600"])
            try setMode(0o600, key)
            try setMode(0o755, keys)
            try await expectRefusal(agent, [keys, "can be read by others", "chmod 700"])
            try FileManager.default.moveItem(atPath: keys, toPath: keys + "-away")
            try await expectRefusal(agent, [keys, "is missing, though this agent has run before", "mkdir"])
            try agent.write("", to: "state/keys", mode: 0o600)
            try await expectRefusal(agent, [keys, "is no folder"])
        }
    }
}
