import Foundation
import TestSupport
import Testing

@testable import AppConnect

@Suite("The mark of an app that has retired itself")
struct RetirementMarkTests {
    @Test("is seen by who comes later, until it is taken away")
    func stays() async throws {
        try await withTemporaryFolder { folder in
            let data = folder.appending(path: "a/b").path
            let mark = RetirementMark(in: data)
            try mark.set { false }
            #expect(!mark.isThere)
            for _ in 0..<2 { try mark.set { true } }
            #expect(RetirementMark(in: data).isThere)
            try mark.set { false }
            #expect(!RetirementMark(in: data).isThere)
        }
    }

    @Test("that cannot be made says so")
    func refused() async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "file")
            try Data().write(to: file)
            #expect(throws: AppConnectError.self) { try RetirementMark(in: file.path).set { true } }
        }
    }
}
