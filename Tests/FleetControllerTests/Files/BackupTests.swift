import FleetProtocol
import Foundation
import TestSupport
import Testing

@testable import FleetController

@Suite("Copies of the controller's database")
struct BackupTests {
    private func names(in folder: URL) throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: folder.path()))
    }

    @Test("a copy is as of one moment, while the controller goes on, and for its owner alone")
    func live() async throws {
        try await withTemporaryFolder { folder in
            let world = try World(path: folder.appending(path: "fleet.db").path())
            world.connect()
            try world.apply(mail, "all", .config, #"{"values":{"a":"0"}}"#)
            let copies = folder.appending(path: "copies")
            try FileManager.default.createDirectory(at: copies, withIntermediateDirectories: true)
            for number in 1...3 {
                try world.apply(mail, "all", .config, #"{"values":{"a":"\#(number)"}}"#)
                let copy = copies.appending(path: "\(number).db").path()
                try FleetStore.backUp(world.store.path, to: copy)
                try world.apply(mail, "all", .config, #"{"values":{"a":"behind it"}}"#)
                let attributes = try FileManager.default.attributesOfItem(atPath: copy)
                #expect(attributes[.posixPermissions] as? Int == 0o600)
            }
            #expect(try names(in: copies) == ["1.db", "2.db", "3.db"])
            for number in 1...3 {
                let store = try FleetStore(path: copies.appending(path: "\(number).db").path(), isExpected: true)
                try store.verifyDocuments(for: world.identity)
                #expect(try store.wishes().map(\.value) == [#"{"values":{"a":"\#(number)"}}"#])
                #expect(try store.latest().number == Int64(2 * number))
                try store.close()
            }
            #expect(try world.store.latest().number == 7)
        }
    }

    @Test("nothing is overwritten, and nothing is left where it fails")
    func refusals() async throws {
        try await withTemporaryFolder { folder in
            let world = try World(path: folder.appending(path: "fleet.db").path())
            world.connect()
            let there = folder.appending(path: "there.db")
            try Data("mine".utf8).write(to: there)
            let before = try names(in: folder)
            func refused(_ path: String, _ copy: String, _ word: String) {
                let error = #expect(throws: FleetControllerError.self) { try FleetStore.backUp(path, to: copy) }
                #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
            }
            let new = folder.appending(path: "new.db").path()
            refused(world.store.path, there.path(), "'\(there.path())' is there already")
            refused(world.store.path, folder.appending(path: "no/new.db").path(), "No such file or directory")
            refused(folder.appending(path: "other.db").path(), new, "there is no database")
            refused(there.path(), new, "'\(there.path())' is damaged, or no database of fleet-controller")
            #expect(try Data(contentsOf: there) == Data("mine".utf8))
            #expect(try names(in: folder) == before)
        }
    }
}
