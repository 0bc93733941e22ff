import FleetProtocol
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FleetHome

@Suite("A fleet's folder")
struct HomeTests {
    private static let demo = FleetID(unchecked: "demo")

    static func makeHome(in folder: URL, port: UInt16 = 1_883) throws -> FleetHome {
        // As root the tests' broker keeps running as root, which can read temporary folders.
        try FleetHome.create(
            at: folder.appendingPathComponent("home").path, fleet: demo, port: port, brokerUser: "root")
    }

    private static func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.posixPermissions] as? Int)
    }

    @Test("what the broker needs and is missing is made, each by itself", arguments: ["acl", "passwd"])
    func brokerFileMissing(name: String) async throws {
        try await withTemporaryFolder { folder in
            var home = try Self.makeHome(in: folder)
            let path = home.path + "/broker/" + name
            try FileManager.default.removeItem(atPath: path)
            try home.configureBroker(guardLibrary: nil)
            #expect(FileManager.default.fileExists(atPath: path))
        }
    }

    private final class Reading: Sendable {
        let token = Mutex<String?>(nil)
    }

    @Test("the token of the metrics is read while somebody changes the folder")
    func tokenMeanwhile() async throws {
        try await withTemporaryFolder { folder in
            let home = try Self.makeHome(in: folder)
            let token = try home.metricsToken()
            let lock = try FileLock(path: home.path + "/changes.lock", waits: true)
            let reading = Reading()
            Thread.detachNewThread {
                let found = try? home.metricsToken()
                reading.token.withLock { $0 = found }
            }
            try await until("it is read") { reading.token.withLock { $0 } == token }
            withExtendedLifetime(lock) {}
        }
    }

    @Test("opens again as it was made")
    func opens() async throws {
        try await withTemporaryFolder { folder in
            let made = try Self.makeHome(in: folder)
            let opened = try FleetHome(opening: made.path)
            #expect(opened.context == made.context)
            #expect(try opened.rootKey().publicKey == made.rootKey().publicKey)
            #expect(try opened.users().map(\.text) == ["@controller", "@operator.admin"])
            let trust = try TrustDocument(json: opened.trust().payload, limit: 65_536)
            #expect(trust.version == 1)
            #expect(trust.keys == [try opened.signingKey().publicKey])
            #expect(!opened.hasDatabase)
        }
    }

    @Test("keeps its secrets to itself")
    func modes() async throws {
        try await withTemporaryFolder { folder in
            let home = try Self.makeHome(in: folder)
            for name in ["keys", "credentials", "devices"] { #expect(try Self.mode(home.path + "/" + name) == 0o700) }
            for name in ["keys/root.key", "keys/signing.key", "credentials/@controller", "broker/passwd"] {
                #expect(try Self.mode(home.path + "/" + name) == 0o600)
            }
        }
    }

    @Test("gives a person a folder that reaches the fleet from anywhere, and has none of its keys")
    func person() async throws {
        try await withTemporaryFolder { folder in
            let files = ["ca", "certificate", "key"].map { folder.appending(path: "\($0).pem").path() }
            for file in files { try Data("PEM".utf8).write(to: URL(filePath: file)) }
            let home = try FleetHome.create(
                at: folder.appending(path: "home").path(), fleet: Self.demo, host: "bus.example", brokerUser: "root",
                tls: HomeContext.TLS(authority: files[0], certificate: files[1], key: files[2]))
            let eve = User.viewer(Name(unchecked: "eve"))
            let made = folder.appending(path: "eve").path()
            let (file, _) = try home.addUser(eve, folder: made)
            #expect(file == made + "/credentials/@viewer.eve")
            #expect(try Self.mode(made) == 0o700 && Self.mode(file) == 0o600)
            let carried = folder.appending(path: "elsewhere").path()
            try FileManager.default.moveItem(atPath: made, toPath: carried)
            let names = try FileManager.default.subpathsOfDirectory(atPath: carried).sorted()
            #expect(names == ["ca.pem", "credentials", "credentials/@viewer.eve", "fleet.json"])
            let text = try String(contentsOfFile: carried + "/fleet.json", encoding: .utf8)
            #expect(!text.contains(folder.path()), "nothing of where the fleet's own files are: \(text)")

            let reached = try FleetHome(reaching: carried)
            #expect(reached.context.host == "bus.example" && reached.context.uuid == home.context.uuid)
            #expect(reached.context.holder == eve && reached.context.tls?.authority == carried + "/ca.pem")
            #expect(try reached.credentials(for: eve) == home.credentials(for: eve))
            #expect(try FleetHome(reaching: home.path).context == home.context)
            let refused = #expect(throws: FleetHomeError.self) { try FleetHome(opening: carried) }
            #expect(refused?.message == "\(carried) is the folder of @viewer.eve, which has none of the fleet's keys")

            // The same person gets a new password there; nobody else, and no other fleet, loses what is there.
            let old = try home.credentials(for: eve)
            _ = try home.addUser(eve, folder: carried)
            #expect(try reached.credentials(for: eve) != old)
            let bob = User.operator(Name(unchecked: "bob"))
            for taken in [carried, home.path, home.path + "/devices", folder.path()] {
                #expect(throws: FleetHomeError.self) { try home.addUser(bob, folder: taken) }
            }
            #expect(try home.users().contains(bob) == false)
            let other = try Self.makeHome(in: folder.appending(path: "other"))
            #expect(throws: FleetHomeError.self) { try home.addUser(bob, folder: other.path) }
            #expect(throws: FleetHomeError.self) { try other.addUser(eve, folder: carried) }
        }
    }

    @Test("is not made over something else")
    func notEmpty() async throws {
        try await withTemporaryFolder { folder in
            let home = try Self.makeHome(in: folder)
            let error = #expect(throws: FleetHomeError.self) { try Self.makeHome(in: folder) }
            #expect(
                error?.description
                    == "\(home.path) is not empty; it holds a fleet already: use it, or choose another folder")
        }
    }

    @Test("an attempt that fails leaves nothing; of one that was killed it is said what to do")
    func cutShort() async throws {
        try await withTemporaryFolder { folder in
            // Its own name can be used, and not those of the files in it.
            var path = folder.path
            while path.utf8.count < 4_070 {
                path += "/" + String(repeating: "x", count: min(200, max(1, 4_070 - path.utf8.count - 1)))
            }
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            let error = #expect(throws: FleetHomeError.self) {
                try FleetHome.create(at: path, fleet: Self.demo, brokerUser: "root")
            }
            #expect(error?.message.contains("File name too long") == true, "\(error?.description ?? "")")
            #expect(try FileManager.default.contentsOfDirectory(atPath: path) == [])
            let home = try Self.makeHome(in: folder)
            try FileManager.default.removeItem(atPath: home.path + "/fleet.json")
            let remedy = #expect(throws: FleetHomeError.self) { try Self.makeHome(in: folder) }?.remedy
            #expect(
                remedy
                    == "if making a fleet in it was interrupted, remove the folder and repeat; if it was a fleet, restore"
                    + " its fleet.json from the backup")
        }
    }

    @Test("a password file that is lost is not begun anew with one user, who would be the only one to get in")
    func lostPasswords() async throws {
        try await withTemporaryFolder { folder in
            let home = try Self.makeHome(in: folder)
            let credentials = try home.credentials(for: .controller)
            try FileManager.default.removeItem(atPath: home.path + "/broker/passwd")
            let error = #expect(throws: FleetHomeError.self) { try home.addUser(.controller) }
            #expect(error?.code == .missing && error?.message == "\(home.path)/broker/passwd is missing")
            #expect(try home.credentials(for: .controller) == credentials)
            // Without a backup it is made anew, of the passwords that the folder has.
            let till = DeviceID(unchecked: "till-1")
            try "x:y\n".write(toFile: home.path + "/broker/passwd", atomically: false, encoding: .utf8)
            try home.enroll(
                [.init(device: till, folder: folder.path + "/till-1")], floors: Floors(trust: home.trust()))
            for name in ["passwd", "acl"] { try FileManager.default.removeItem(atPath: home.path + "/broker/" + name) }
            var mended = home
            #expect(try mended.configureBroker(guardLibrary: nil) == [till])
            let passwords = try home.passwordFile()
            #expect(passwords.contains(.controller) && !passwords.contains(.device(till)))
            #expect(FileManager.default.fileExists(atPath: home.path + "/broker/acl"))
            #expect(try mended.configureBroker(guardLibrary: nil) == [])
        }
    }

    @Test("of a home that was put back without the broker's data, configuring the broker makes the folder")
    func putBack() async throws {
        try await withTemporaryFolder { folder in
            var home = try Self.makeHome(in: folder)
            let data = home.path + "/broker/data"
            try FileManager.default.removeItem(atPath: data)
            try home.configureBroker(guardLibrary: nil)
            #expect(try Self.mode(data) == 0o700)
            #expect(!FileManager.default.fileExists(atPath: home.path + "/broker/mosquitto.conf.old"))
        }
    }

    @Test("what a killed process has left half-written goes with the next change, and nothing else does")
    func leftovers() async throws {
        try await withTemporaryFolder { folder in
            let home = try Self.makeHome(in: folder)
            let left = ["keys/.signing.key", "credentials/.@operator.admin", "broker/.passwd", ".trust.json"]
                .map { "\(home.path)/\($0).4711.\(RandomID.random())" }
            let kept = [".note", ".a.b.c", "keys/.signing.key.4711"].map { home.path + "/" + $0 }
            for file in left + kept { try "a secret".write(toFile: file, atomically: false, encoding: .utf8) }
            try home.rotateSigningKey(withdrawingOthers: false)
            for file in left { #expect(!FileManager.default.fileExists(atPath: file), "\(file)") }
            for file in kept { #expect(FileManager.default.fileExists(atPath: file), "\(file)") }
        }
    }

    @Test("says of damaged credentials how to get others, and not that only a backup helps")
    func damagedCredentials() async throws {
        try await withTemporaryFolder { folder in
            let home = try Self.makeHome(in: folder)
            let user = User.operator(Name(unchecked: "admin"))
            try home.addUser(user)
            try "garbage".write(
                toFile: home.path + "/credentials/\(user.text)", atomically: false, encoding: .utf8)
            let error = #expect(throws: FleetHomeError.self) { try home.credentials(for: user) }
            #expect(error?.remedy == "give @operator.admin a password with `fleetctl user add admin`")
        }
    }

    @Test(
        "says which file is wrong, and what helps",
        arguments: [
            ("fleet.json", nil, "fleet.json is missing; name a fleet's folder with --home"),
            ("fleet.json", #"{"v":2}"#, "fleet.json: v: format version 2, where this build knows 1; use the build"),
            ("fleet.json", #"{"v":1,"fleet":"demo"}"#, "fleet.json: host: this member is missing; restore"),
            ("keys/signing.key", nil, "signing.key is missing; restore the file from the backup"),
            (
                "keys/signing.key", #"{"v":1,"use":"signing","kid":"a","secret":"AA"}"#,
                "signing.key: secret: expected an"
            ),
            ("trust.json", nil, "trust.json is missing; restore"),
            ("trust.json", "{}", "trust.json: protected: this member is missing; restore"),
        ] as [(String, String?, String)])
    func damaged(name: String, content: String?, message: String) async throws {
        try await withTemporaryFolder { folder in
            let home = try Self.makeHome(in: folder)
            let path = home.path + "/" + name
            if let content {
                try content.write(toFile: path, atomically: false, encoding: .utf8)
            } else {
                try FileManager.default.removeItem(atPath: path)
            }
            let error = #expect(throws: FleetHomeError.self) { try FleetHome(opening: home.path) }
            #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
        }
    }

    @Test("is named for a shell so that it can be copied")
    func shellWords() {
        #expect(ShellWord.quoted("/srv/demo-1/a.conf") == "/srv/demo-1/a.conf")
        #expect(ShellWord.quoted("/srv/my demo") == "'/srv/my demo'")
        #expect(ShellWord.quoted("it's") == #"'it'\''s'"#)
        #expect(ShellWord.quoted("") == "''")
    }

    @Test("refuses a key that others can read")
    func openKey() async throws {
        try await withTemporaryFolder { folder in
            let home = try Self.makeHome(in: folder)
            chmod(home.path + "/keys/signing.key", 0o644)
            let error = #expect(throws: FleetHomeError.self) { try FleetHome(opening: home.path) }
            #expect(error?.message == "\(home.path)/keys/signing.key can be read by others (mode 644)")
        }
    }

    @Test("refuses to be one that others can change", arguments: [0o777, 0o720, 0o702] as [mode_t])
    func openFolder(_ mode: mode_t) async throws {
        try await withTemporaryFolder { folder in
            let home = try Self.makeHome(in: folder)
            chmod(home.path, mode)
            let error = #expect(throws: FleetHomeError.self) { try FleetHome(reaching: home.path) }
            let shown = String(mode, radix: 8)
            #expect(error?.message == "the fleet's folder \(home.path) can be changed by others (mode \(shown))")
            chmod(home.path, 0o755)
            #expect(try FleetHome(opening: home.path).context == home.context)
        }
    }

    @Test("refuses a trust document that another root has signed")
    func foreignTrust() async throws {
        try await withTemporaryFolder { folder in
            let home = try Self.makeHome(in: folder)
            let trust = try SignedDocument(signing: home.trust().payload, as: .trust, with: SigningKey())
            try Data(trust.wire).write(to: URL(fileURLWithPath: home.path + "/trust.json"))
            let error = #expect(throws: FleetHomeError.self) { try FleetHome(opening: home.path) }
            #expect(error?.message == "\(home.path)/trust.json: not signed by the key in keys/root.key")
        }
    }

    @Test("its lock remembers that there was a database, and how far it had come")
    func lockNotes() async throws {
        try await withTemporaryFolder { folder in
            let home = try Self.makeHome(in: folder)
            let path = home.path + "/controller.lock"
            do {
                let lock = try home.lock()
                #expect(!lock.hasDatabase && lock.databasePosition == nil)
                lock.noteDatabase(at: nil)
                lock.noteDatabase(at: "1 1000 7")
                lock.noteDatabase(at: "2 42 8")
                #expect(try String(contentsOfFile: path, encoding: .utf8) == "\(getpid())\nhas made fleet.db\n2 42 8\n")
            }
            #expect(home.hasDatabase)
            #expect(try home.lock().databasePosition == "2 42 8")
            // As the version before wrote it.
            try Data("17\nhas made fleet.db\n".utf8).write(to: URL(fileURLWithPath: path))
            let lock = try home.lock()
            #expect(lock.hasDatabase && lock.databasePosition == nil)
        }
    }

    @Test("belongs to one controller at a time")
    func lock() async throws {
        try await withTemporaryFolder { folder in
            let home = try Self.makeHome(in: folder)
            do {
                let lock = try home.lock()
                let error = #expect(throws: FleetHomeError.self) { try home.lock() }
                #expect(error?.code == .locked)
                #expect(error?.message == "a controller already runs on \(home.path): process \(getpid())")
                withExtendedLifetime(lock) {}
            }
            _ = try home.lock()
        }
    }

    @Test("cannot be made where the broker's user cannot go", .enabled(if: geteuid() == 0))
    func closedFolder() async throws {
        try await withTemporaryFolder { folder in
            let error = #expect(throws: FleetHomeError.self) {
                try FleetHome.create(at: folder.path + "/home", fleet: Self.demo, brokerUser: "mosquitto")
            }
            #expect(error?.message == "\(folder.path) cannot be entered by mosquitto, as whom the broker will run")
        }
    }
}
