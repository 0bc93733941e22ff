import Testing

@testable import FleetProtocol

@Suite("JSON: random input")
struct JSONFuzzTests {
    /// Pieces that are put in where a text is broken: tokens rather than bytes find more.
    private static let pieces = [
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud800", "null", "true", "-", "1e", "0.", "1e999", "\u{0}",
        "\u{FEFF}", "é",
        #""v":2"#, "9007199254740993", "{\"a\":", "[[[[[[[[[[[[[[[[[[", "\\u0000",
    ].map { Array($0.utf8) }

    static func mutate(_ bytes: [UInt8], _ generator: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0...Int.random(in: 0...3, using: &generator) {
            let place = Int.random(in: 0...bytes.count, using: &generator)
            let end = min(bytes.count, place + Int.random(in: 0...8, using: &generator))
            switch generator.number(0...5) {
            case 0: bytes.insert(UInt8.random(in: .min ... .max, using: &generator), at: place)
            case 1: bytes.removeSubrange(place..<end)
            case 2: bytes.insert(contentsOf: pieces[Int.random(in: 0..<pieces.count, using: &generator)], at: place)
            case 3: bytes.insert(contentsOf: bytes[place..<end], at: place)
            case 4: bytes = Array(bytes[..<place])
            default: if place < bytes.count { bytes[place] ^= 1 << UInt8(generator.number(0...7)) }
            }
        }
        return bytes
    }

    @Test(
        "no mutated document traps a reader, and what is read can be written and read again", .timeLimit(.minutes(10)))
    func mutations() throws {
        let seed = UInt64.random(in: .min ... .max)
        print("mutations with seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let device = DeviceID(unchecked: "till-0042")
        let app = AppID(unchecked: "com.example.mail")
        var read = 0
        for file in try SchemaFolder.files(in: "examples") + SchemaFolder.files(in: "invalid") {
            guard let format = Format.all.first(where: { $0.schema == file.schema }) else { continue }
            // The whole again without white space: mutations then hit what matters.
            let compact = (try? JSONValue(json: file.bytes, limit: 1 << 20).json) ?? file.bytes
            for _ in 0..<60 {
                let bytes = Self.mutate(compact, &generator)
                _ = try? JSONReader.read(bytes, limit: 1 << 20) { try $0.skip() }
                if let tree = try? JSONValue(json: bytes, limit: 1 << 20) {
                    let again = try JSONValue(json: tree.json, limit: 1 << 20)
                    if again != tree { Issue.record("\(tree.jsonText), seed \(seed)") }
                }
                _ = try? AppFrame(json: bytes, limit: Link.maximumLine)
                _ = try? AgentFrame(json: bytes, limit: Link.maximumLine)
                _ = try? Status(wire: bytes, fleet: Format.fleet, device: device, app: app)
                guard let once = try? format.recode(bytes) else { continue }
                read += 1
                let again = try format.recode(once)
                if again != once { Issue.record("\(file.testDescription), seed \(seed)") }
            }
        }
        #expect(read > 0)
    }

    @Test("no random bytes trap a reader")
    func noise() {
        let seed = UInt64.random(in: .min ... .max)
        print("noise with seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let alphabet =
            Array("{}[]\",:\\utrfalsn0123456789.eE+- \n".utf8) + [0, 0x1F, 0x7F, 0x80, 0xC3, 0xE2, 0xF0, 0xFF]
        for _ in 0..<60_000 {
            let count = Int.random(in: 0...24, using: &generator)
            let bytes = (0..<count).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &generator)] }
            do {
                let tree = try JSONValue(json: bytes, limit: 100)
                #expect(throws: Never.self, "seed \(seed)") { try JSONReader.read(bytes, limit: 100) { try $0.skip() } }
                #expect((try? JSONValue(json: tree.json, limit: 1_000)) == tree, "seed \(seed)")
            } catch let error as FleetProtocolError where error.code == .value {
                // A number beyond all that there are here may be well-formed all the same.
                _ = try? JSONReader.read(bytes, limit: 100) { try $0.skip() }
            } catch {
                #expect(throws: FleetProtocolError.self, "seed \(seed)") {
                    try JSONReader.read(bytes, limit: 100) { try $0.skip() }
                }
            }
        }
    }

    @Test("every value is read as it was written")
    func roundTrip() throws {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<3_000 {
            let value = generator.json()
            #expect(try JSONValue(json: value.json, limit: 1 << 20) == value, "seed \(seed)")
        }
    }
}
