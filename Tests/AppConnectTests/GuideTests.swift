import Foundation
import Testing

@Suite("The guide")
struct GuideTests {
    @Test("shows a delegate that compiles")
    func example() throws {
        let here = URL(filePath: #filePath).deletingLastPathComponent()
        let guide = try String(
            contentsOf: here.appending(path: "../../Sources/AppConnect/AppConnect.docc/Getting-started.md"),
            encoding: .utf8)
        let source = try String(contentsOf: here.appending(path: "GuideExample.swift"), encoding: .utf8)
        let shown = try #require(guide.split(separator: "```swift\n").first { $0.contains("final class Mail") })
        let example = try #require(shown.split(separator: "```").first)
        #expect(source.contains(example))
    }

    @Test("shows calls of secure files and keys that compile")
    func files() throws {
        let here = URL(filePath: #filePath).deletingLastPathComponent()
        func lines(_ path: String) throws -> [Substring] {
            try String(contentsOf: here.appending(path: path), encoding: .utf8).split(separator: "\n")
                .map { $0[...].drop { $0 == " " } }
        }
        let source = Set(try lines("GuideExample.swift"))
        var isSwift = false
        var shown = 0
        for line in try lines("../../Sources/AppConnect/AppConnect.docc/Secure-files.md") {
            if line.hasPrefix("```") {
                isSwift = line == "```swift"
            } else if isSwift {
                #expect(source.contains(line), "\(line)")
                shown += 1
            }
        }
        #expect(shown > 4)
    }
}
