import FleetProtocol
import Foundation
import Testing

@Suite("Code, schemas and examples of the link")
struct LinkExampleTests {
    /// The examples of one direction; none while the folder is not there.
    private func examples(_ direction: String) throws -> [(name: String, bytes: [UInt8])] {
        let folder = SchemaFolder.url.appending(path: "link/examples/\(direction)")
        guard FileManager.default.fileExists(atPath: folder.path()) else { return [] }
        return try FileManager.default.contentsOfDirectory(atPath: folder.path()).filter { $0.hasSuffix(".json") }
            .sorted()
            .map { ($0, [UInt8](try Data(contentsOf: folder.appending(path: $0)))) }
    }

    @Test("every example of a frame is read and written again as the same value")
    func recode() throws {
        for (name, bytes) in try examples("app") {
            let frame = try AppFrame(json: bytes, limit: Link.maximumLine)
            #expect(try Canonical(frame.json) == Canonical(bytes), "\(name)")
        }
        for (name, bytes) in try examples("agent") {
            let frame = try AgentFrame(json: bytes, limit: Link.maximumLine)
            #expect(try Canonical(frame.json) == Canonical(bytes), "\(name)")
        }
    }

    @Test(
        "a process that comes back names no delivery from which an agent could not count on",
        arguments: ["delivered", "begun"])
    func resumedDelivery(_ list: String) throws {
        func read(_ number: Int64) throws {
            let id = "00000000-0000-4000-8000-000000000000"
            let text =
                #"{"type":"register","v":1,"app":"a","install":"\#(id)","launch":"\#(id)","sdk":"1","implements":[],"#
                + #""resume":{"\#(list)":[\#(number)],"acknowledgements":[]}}"#
            _ = try AppFrame(json: Array(text.utf8), limit: Link.maximumLine)
        }
        try read(Registration.Resume.largestDelivery)
        #expect(throws: FleetProtocolError.self) { try read(Registration.Resume.largestDelivery + 1) }
        #expect(throws: FleetProtocolError.self) { try read(JSONValue.largestInteger) }
    }

    @Test("what is copied says who may read it, and has its place in a line")
    func pasteboardItem() throws {
        func code(_ text: String) -> FleetProtocolError.Code? {
            do {
                _ = try AppFrame(json: Array(text.utf8), limit: Link.maximumLine)
                return nil
            } catch { return (error as? FleetProtocolError)?.code }
        }
        let largest = PasteboardItem(Array(repeating: 1, count: PasteboardItem.maximumSize), isSecured: true)
        #expect(code(AppFrame.copy(id: 1, largest).jsonText) == nil)
        let larger = PasteboardItem(largest.content + [1], isSecured: true)
        #expect(code(AppFrame.copy(id: 1, larger).jsonText) == .tooLarge)
        #expect(code(#"{"type":"copy","id":1,"content":"AA"}"#) == .missing)
        #expect(code(#"{"type":"copy","content":"AA","secured":true}"#) == .missing)
        #expect(code(#"{"type":"copy","id":1,"content":"A","secured":true}"#) == .value)
        #expect(code(#"{"type":"copy","id":1,"content":"AA","secured":1}"#) == .type)
        #expect(code(#"{"type":"paste"}"#) == .missing)
        #expect(!"\(AppFrame.copy(id: 1, PasteboardItem([77], isSecured: false)))".contains("77"))
    }

    @Test("every example of a frame is valid by its schema", arguments: ["app", "agent"])
    func validate(_ direction: String) throws {
        let files = try examples(direction)
        guard !files.isEmpty else { return }
        try SchemaFolder.withTemporaryFolder { folder in
            let place = folder.appending(path: "link/\(direction)-frame")
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            for (name, bytes) in files { try Data(bytes).write(to: place.appending(path: name)) }
            let result = try SchemaFolder.validate(folder.path())
            #expect(result.isValid, "\(result.lines.joined(separator: "\n"))")
        }
    }
}
