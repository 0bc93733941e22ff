import FleetProtocol
import Foundation
import Testing

/// Code, schemas and examples say the same, in both directions.
@Suite("Code, schemas and examples")
struct ExampleTests {
    private func format(_ schema: String) throws -> Format {
        try #require(Format.all.first { $0.schema == schema }, "no format is called \(schema)")
    }

    @Test(
        "every example is read and written again as the same value", arguments: try SchemaFolder.files(in: "examples"))
    func recode(_ file: SchemaFolder.File) throws {
        let again = try format(file.schema).recode(file.bytes)
        #expect(try Canonical(again) == Canonical(file.bytes))
    }

    @Test(
        "what others may write differently is read, and what becomes of it stays so",
        arguments: try SchemaFolder.files(in: "accepted"))
    func accept(_ file: SchemaFolder.File) throws {
        let format = try format(file.schema)
        let once = try format.recode(file.bytes)
        #expect(try Canonical(format.recode(once)) == Canonical(once))
    }

    @Test("every invalid example is refused by the code", arguments: try SchemaFolder.files(in: "invalid"))
    func refuse(_ file: SchemaFolder.File) throws {
        let format = try format(file.schema)
        #expect(throws: FleetProtocolError.self) { try format.recode(file.bytes) }
    }

    @Test("the schemas accept and refuse the same examples", arguments: ["examples", "accepted", "invalid"])
    func validate(_ folder: String) throws {
        let path = SchemaFolder.url.appending(path: folder).path()
        let result = try folder == "invalid" ? SchemaFolder.validate("--refused", path) : SchemaFolder.validate(path)
        #expect(result.isValid, "\(result.lines.joined(separator: "\n"))")
    }

    @Test("every schema has examples, valid and invalid, and every format a schema")
    func completeness() throws {
        let schemas = try FileManager.default.contentsOfDirectory(atPath: SchemaFolder.url.path())
            .filter { $0.hasSuffix(".schema.json") && $0 != "common.schema.json" }
            .map { String($0.dropLast(".schema.json".count)) }
        #expect(Set(schemas) == Set(Format.all.map(\.schema)))
        #expect(Set(schemas) == Set(try SchemaFolder.files(in: "examples").map(\.schema)))
        #expect(Set(schemas).subtracting(try SchemaFolder.files(in: "invalid").map(\.schema)) == [])
    }

    @Test("what the code writes is valid by the schemas, and is read again as it was")
    func samples() throws {
        let seed = UInt64.random(in: .min ... .max)
        try SchemaFolder.withTemporaryFolder { folder in
            for format in Format.all {
                guard let sample = format.sample else { continue }
                var generator = SeededGenerator(seed: seed)
                var lines: [UInt8] = []
                for _ in 0..<200 {
                    let bytes = try sample(&generator)
                    // Control characters are removed on reading, so the second writing is the one that stays.
                    let once = try format.recode(bytes)
                    #expect(try format.recode(once) == once, "\(format.schema), seed \(seed)")
                    lines += bytes + [UInt8(ascii: "\n")]
                }
                let place = folder.appending(path: format.schema)
                try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
                try Data(lines).write(to: place.appending(path: "samples.jsonl"))
            }
            let result = try SchemaFolder.validate(folder.path())
            #expect(result.isValid, "seed \(seed)\n\(result.lines.prefix(20).joined(separator: "\n"))")
        }
    }
}
