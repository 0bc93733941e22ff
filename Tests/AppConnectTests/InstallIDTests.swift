import Foundation
import TestSupport
import Testing

@testable import AppConnect

@Suite("The install id")
struct InstallIDTests {
    @Test("is made once, for the user alone, and stays")
    func stays() async throws {
        try await withTemporaryFolder { folder in
            let data = folder.appending(path: "a/b").path
            let first = try InstallID.read(in: data)
            #expect(try InstallID.read(in: data) == first)
            #expect(try FileManager.default.contentsOfDirectory(atPath: data) == ["install-id"])
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(data)/install-id")
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
    }

    @Test("that is none is replaced: the app counts as newly installed")
    func replaced() async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "install-id")
            for content in ["", "no id", String(repeating: "x", count: 10_000)] {
                try content.write(to: file, atomically: true, encoding: .utf8)
                let id = try InstallID.read(in: folder.path)
                #expect(try InstallID.read(in: folder.path) == id)
            }
        }
    }
}
