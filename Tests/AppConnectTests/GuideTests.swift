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
}
