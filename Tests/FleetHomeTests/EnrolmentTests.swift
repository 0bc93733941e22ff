import FleetProtocol
import Foundation
import TestSupport
import Testing

@testable import FleetHome

@Suite("Enrolment")
struct EnrolmentTests {
    private static let till = DeviceID(unchecked: "till-1")

    @Test("the newest trust document is given out, whether the home has it or the controller's answer")
    func newestTrust() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            let first = try home.trust()
            let known = try TrustDocument(json: first.payload, limit: SignedDocument.maximumSize)
            let renewed = TrustDocument(
                fleet: known.fleet, fleetID: home.context.fleet, version: known.version + 1, issuedAt: .now,
                keys: known.keys)
            let second = try SignedDocument(signing: renewed.json, as: .trust, with: try home.rootKey())
            func given(answer: SignedDocument) throws -> JSONValue? {
                let out = folder.path + "/till-1"
                try home.enroll([.init(device: Self.till, folder: out)], floors: Floors(trust: answer))
                let agent = try Data(contentsOf: URL(fileURLWithPath: out + "/agent.json"))
                return try JSONValue(json: Array(agent), limit: 65_536)["trust"]
            }
            let newest = JSONValue.string(String(decoding: second.wire, as: UTF8.self))
            #expect(try given(answer: second) == newest)
            try Data(second.wire).write(to: URL(fileURLWithPath: home.path + "/trust.json"))
            #expect(try given(answer: first) == newest)
        }
    }

    @Test("leaves a folder that an agent can be started on")
    func folder() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            var floors = Floors(trust: try home.trust(), epoch: 2)
            floors.set("fleet/v1/demo/desired/all/a/auth", epoch: 2, revision: 42)
            let out = folder.path + "/till-1"
            let reload = try home.enroll([.init(device: Self.till, folder: out)], floors: floors)
            #expect(reload == .notRunning)

            let agent = try JSONValue(
                json: Array(Data(contentsOf: URL(fileURLWithPath: out + "/agent.json"))), limit: 65_536)
            #expect(agent["device"] == "till-1")
            #expect(agent["fleet"] == "demo")
            #expect(agent["fleetUUID"] == .string(home.context.uuid.text))
            #expect(agent["incarnation"] == 1)
            #expect(agent["broker"] == .object(["host": "127.0.0.1", "port": 1_883]))
            #expect(agent["rootKey"] == .string(Base64URL.encode(try home.rootKey().publicKey.bytes)))
            #expect(agent["trust"] == .string(String(decoding: try home.trust().wire, as: UTF8.self)))
            #expect(agent["epoch"] == 2)
            #expect(agent["floors"] == .object(["fleet/v1/demo/desired/all/a/auth": [2, 42]]))
            #expect(agent["displayCommand"] == .null)
            let credentials = try Credentials(
                json: Array(Data(contentsOf: URL(fileURLWithPath: out + "/credentials.json"))), limit: 1_024)
            #expect(credentials.user == .device(Self.till))
            let attributes = try FileManager.default.attributesOfItem(atPath: out + "/credentials.json")
            #expect(attributes[.posixPermissions] as? Int == 0o600)
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: out).sorted() == [
                    "agent.json", "apps.d", "credentials.json", "state",
                ])
        }
    }

    @Test("raises the incarnation each time, also after a removal")
    func incarnation() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            let floors = Floors(trust: try home.trust())
            let enrolment = FleetHome.Enrolment(device: Self.till, folder: folder.path + "/till-1")
            #expect(try home.incarnation(of: Self.till) == nil)
            try home.enroll([enrolment], floors: floors)
            try home.enroll([enrolment], floors: floors)
            #expect(try home.incarnation(of: Self.till) == 2)
            try home.removeDevices([Self.till])
            #expect(try home.incarnation(of: Self.till) == nil)
            #expect(try home.devices().isEmpty)
            #expect(
                try home.removeDevices([DeviceID(unchecked: "till-2")]).incarnations[DeviceID(unchecked: "till-2")]
                    == nil)
            try home.enroll([enrolment], floors: floors)
            #expect(try home.devices().map(\.incarnation) == [3])
        }
    }

    @Test("replaces a password, and takes it away with the device")
    func passwords() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            func line() throws -> String? {
                try home.passwordFile().text.split(separator: "\n").first { $0.hasPrefix("till-1:") }.map(String.init)
            }
            let enrolment = FleetHome.Enrolment(device: Self.till, folder: folder.path + "/till-1")
            try home.enroll([enrolment], floors: Floors(trust: try home.trust()))
            let first = try #require(try line())
            #expect(first.hasPrefix("till-1:$7$101$"))
            try home.enroll([enrolment], floors: Floors(trust: try home.trust()))
            #expect(try line() != first)
            #expect(try home.removeDevices([Self.till]).incarnations[Self.till] == 2)
            #expect(try line() == nil)
            // Also that of a device whose record is lost.
            try home.enroll([enrolment], floors: Floors(trust: try home.trust()))
            try FileManager.default.removeItem(atPath: home.path + "/devices/till-1.json")
            #expect(try home.removeDevices([Self.till]).incarnations[Self.till] == nil)
            #expect(try line() == nil)
        }
    }

    @Test("takes a password away also where somebody's editor has ended the lines otherwise")
    func otherLineEnds() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            try home.enroll(
                [.init(device: Self.till, folder: folder.path + "/till-1")], floors: Floors(trust: try home.trust()))
            let file = URL(fileURLWithPath: home.path + "/broker/passwd")
            let text = try String(contentsOf: file, encoding: .utf8)
            try Data(text.replacing("\n", with: "\r\n").utf8).write(to: file)
            try home.removeDevices([Self.till])
            #expect(try !String(contentsOf: file, encoding: .utf8).contains("till-1"))
            #expect(try home.passwordFile().contains(.controller))
        }
    }

    @Test(
        "in a copy of a home, whose broker reads the passwords of the other one, changes nothing until that is mended")
    func copiedHome() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            try home.enroll(
                [.init(device: Self.till, folder: folder.path + "/till-1")], floors: Floors(trust: try home.trust()))
            try FileManager.default.copyItem(atPath: home.path, toPath: folder.path + "/copy")
            var copy = try FleetHome(opening: folder.path + "/copy")
            let error = #expect(throws: FleetHomeError.self) { try copy.removeDevices([Self.till]) }
            #expect(error?.description.contains("broker configure") == true, "\(error?.description ?? "")")
            #expect(try copy.devices().map(\.device) == [Self.till])
            try copy.configureBroker(guardLibrary: nil)
            try copy.removeDevices([Self.till])
            #expect(try copy.devices().isEmpty)
            // By another way to the same folder nothing is another.
            try FileManager.default.createSymbolicLink(
                atPath: folder.path + "/link", withDestinationPath: home.path)
            try FleetHome(opening: folder.path + "/link").removeDevices([Self.till])
        }
    }

    @Test("a removal that ends half-way is repeated, and takes the password away: a device's and a person's")
    func halfRemoved() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            let floors = Floors(trust: try home.trust())
            let eve = User.operator(Name(unchecked: "eve"))
            try home.enroll([.init(device: Self.till, folder: folder.path + "/till-1")], floors: floors)
            try home.addUser(eve)
            let access = home.path + "/broker/acl"
            let passwords = home.path + "/broker/passwd"
            let before = try Data(contentsOf: URL(fileURLWithPath: passwords))
            // Nothing can be renamed over a folder that has something in it.
            try FileManager.default.removeItem(atPath: access)
            try FileManager.default.createDirectory(atPath: access + "/in", withIntermediateDirectories: true)
            #expect(throws: FleetHomeError.self) { try home.removeDevices([Self.till]) }
            #expect(throws: FleetHomeError.self) { try home.removeUser(eve) }
            try FileManager.default.removeItem(atPath: access)
            #expect(try home.devices().map(\.device) == [Self.till])
            #expect(try home.users().contains(eve))
            try home.removeDevices([Self.till])
            try home.removeUser(eve)
            func isLeft() throws -> Bool {
                try home.passwordFile().contains(.device(Self.till)) || home.passwordFile().contains(eve)
                    || String(decoding: Data(contentsOf: URL(fileURLWithPath: access)), as: UTF8.self)
                        .contains(eve.text)
            }
            #expect(try !isLeft() && home.devices().isEmpty && !home.users().contains(eve))
            // As an earlier version left it when it was ended in between.
            try before.write(to: URL(fileURLWithPath: passwords))
            #expect(try isLeft())
            try home.removeDevices([Self.till])
            try home.removeUser(eve)
            #expect(try !isLeft())
            #expect(throws: FleetHomeError.self) { try home.removeUser(eve) }
        }
    }

    @Test("leaves folders alone that are no device's, and those that the fleet's is in")
    func otherContent() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            func refusal(_ folder: String) -> String? {
                #expect(throws: FleetHomeError.self) {
                    try home.prepare([.init(device: Self.till, folder: folder)])
                }?.message
            }
            func mode(_ path: String) throws -> Int? {
                try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            }
            let (parent, out) = (folder.path, folder.path + "/out")
            let before = try mode(parent)
            #expect(refusal(parent) == "the fleet's folder is inside \(parent)")
            #expect(try mode(parent) == before)
            try FileManager.default.createDirectory(
                atPath: out, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
            try Data().write(to: URL(fileURLWithPath: out + "/.profile"))
            #expect(refusal(out) == "\(out) is no device's folder: .profile is in it")
            #expect(try mode(out) == 0o755)
            try FileManager.default.removeItem(atPath: out + "/.profile")
            // An enrolment that was cut short has left what it had made.
            for _ in 0..<2 { try home.prepare([.init(device: Self.till, folder: out)]) }
            #expect(try mode(out) == 0o700)
        }
    }

    @Test("takes away what earlier ones have left that were killed: there are passwords in it")
    func leftovers() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            let (out, eve) = (folder.path + "/till-1", folder.path + "/eve")
            let viewer = User.viewer(Name(unchecked: "eve"))
            for isAgain in [false, true] {
                let left = [out + "/.credentials.json", eve + "/.fleet.json", eve + "/credentials/.@viewer.eve"]
                    .map { "\($0).4711.\(RandomID.random())" }
                if isAgain { for path in left { try Data("a password".utf8).write(to: URL(fileURLWithPath: path)) } }
                try home.enroll([.init(device: Self.till, folder: out)], floors: Floors(trust: home.trust()))
                try home.addUser(viewer, folder: eve)
                for path in left { #expect(!FileManager.default.fileExists(atPath: path)) }
            }
        }
    }

    @Test("of a folder that cannot be made changes nothing")
    func unwritable() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            #expect(throws: FleetHomeError.self) {
                try home.enroll(
                    [.init(device: Self.till, folder: "/proc/none/till-1")], floors: Floors(trust: try home.trust()))
            }
            #expect(try home.devices().isEmpty)
        }
    }

    @Test("leaves the folder of another device alone, and the fleet's own")
    func otherFolder() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            let floors = Floors(trust: try home.trust())
            let out = folder.path + "/till-1"
            try home.enroll([.init(device: Self.till, folder: out)], floors: floors)
            func refusal(_ folder: String) -> String? {
                let other = FleetHome.Enrolment(device: DeviceID(unchecked: "till-2"), folder: folder)
                return #expect(throws: FleetHomeError.self) { try home.prepare([other]) }?.message
            }
            #expect(refusal(out) == "\(out) is the folder of device till-1")
            for below in ["till-2", "state/deep/till-2"] {
                #expect(refusal("\(out)/\(below)") == "\(out)/\(below) is inside the folder of device till-1")
            }
            #expect(refusal(home.path + "/new/till-2") == "\(home.path)/new/till-2 is inside the fleet's folder")
            let link = folder.path + "/link"
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: home.path)
            #expect(refusal(link) == "\(link) is inside the fleet's folder")
            #expect(throws: FleetHomeError.self) {
                try home.enroll([.init(device: DeviceID(unchecked: "till-2"), folder: out)], floors: floors)
            }
            #expect(try home.devices().map(\.device) == [Self.till])
            // One that cannot be read is mended.
            try Data("{".utf8).write(to: URL(fileURLWithPath: out + "/agent.json"))
            try home.enroll([.init(device: Self.till, folder: out)], floors: floors)
        }
    }

    @Test("reads the floors that the controller sends")
    func floors() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            var floors = Floors(trust: try home.trust(), epoch: 3)
            floors.set("a", epoch: 1, revision: 7)
            #expect(try Floors(json: floors.json, limit: 65_536) == floors)
            let error = #expect(throws: FleetProtocolError.self) {
                try Floors(json: Array(#"{"epoch":1,"trust":"{}","floors":{}}"#.utf8), limit: 100)
            }
            #expect(error?.description == "trust.protected: this member is missing")
        }
    }
}
