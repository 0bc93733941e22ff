import FleetProtocol
import Foundation
import Testing

@testable import AppConnect

@Suite("A relative path")
struct PathTests {
    private let here = FileManager.default.currentDirectoryPath

    @Test("is that of the same file wherever the process goes")
    func absolute() {
        #expect(RawFile.absolute("a/b") == here + "/a/b")
        #expect(RawFile.absolute("/a/b") == "/a/b")
    }

    @Test("of a socket is taken as it is where it would be too long otherwise")
    func socket() throws {
        func socket(_ path: String) throws -> String {
            try AppConnect.Environment(
                AppConnect.Options(app: AppID(unchecked: "com.example.mail"), socket: path), dataFolder: "/none"
            ).socket
        }
        #expect(try socket("/run/agent.sock") == "/run/agent.sock")
        let room = Link.maximumPath - here.utf8.count - 1
        for (count, isAbsolute) in [(room, true), (room + 1, false)] where room > 0 {
            let path = String(repeating: "s", count: count)
            #expect(try socket(path) == (isAbsolute ? here + "/" + path : path))
        }
    }
}
