import FleetProtocol
import Testing

/// RFC 8259 by examples, in the manner of JSONTestSuite: what must be read, what must be refused, what we decide.
@Suite("JSON: conformance")
struct JSONConformanceTests {
    static let accepted: [(String, JSONValue)] = [
        ("null", .null), ("true", true), (" false ", false), ("0", 0), ("-0", 0), ("-1", -1), ("42", 42),
        ("9007199254740991", 9_007_199_254_740_991), ("-9007199254740991", -9_007_199_254_740_991),
        ("9007199254740993", .double(9_007_199_254_740_992)), ("1.5", .double(1.5)), ("1e2", .double(100)),
        ("1E+2", .double(100)), ("1e-2", .double(0.01)), ("-0.0", .double(-0.0)), ("123.456e1", .double(1234.56)),
        (#""""#, ""), (#""a""#, "a"), (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"), (#""\u0041\u00e9""#, "Aé"),
        (#""\uD83D\uDE00""#, "😀"), (#""\u0000""#, "\u{0}"), ("\"\u{7F}\"", "\u{7F}"), ("\"é漢😀\"", "é漢😀"),
        (#""\uFFFF""#, "\u{FFFF}"), ("\"\u{2028}\"", "\u{2028}"), ("[]", []), ("[ ]", []),
        ("[1,[2],[]]", [1, [2], []]),
        ("\t\n\r [1\n]\r\n", [1]), ("{}", .object([JSONValue.Member]())), (#"{"":0}"#, .object(["": 0])),
        (#"{"a":{"b":[true]},"c":null}"#, .object(["a": .object(["b": [true]]), "c": .null])),
        (#"{"é":1,"e\u0301":2}"#, .object(["é": 1, "e\u{301}": 2])),
    ]

    @Test("what RFC 8259 allows is read", arguments: accepted)
    func accept(_ text: String, _ value: JSONValue) throws {
        #expect(try JSONValue(json: Array(text.utf8), limit: 1_000) == value)
    }

    static let refused: [String] = [
        "", " ", "nul", "nulll", "True", "NaN", "Infinity", "-Infinity", "+1", "01", "-01", "1.", ".5", "-", "--1",
        "1e", "1e+",
        "0x1", "1 2", "1_000", "１", "'a'", "a", #"""#, #""a"#, #""a" "b""#, #""\x41""#, #""\u12""#, #""\u12G4""#,
        #""\""#,
        #""\ud800""#, #""\udc00""#, #""\ud800\ud800""#, #""\ud800x""#, #""\ud800\n""#, #""\u{41}""#, "\"\n\"", "\"\t\"",
        "\"\u{0}\"", "\"\u{1F}\"", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "[1]]", "{", "}", "{]",
        "{a:1}", "{'a':1}",
        #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{,"a":1}"#, #"{"a":1 "b":2}"#, #"{"a":1}}"#, #"{1:1}"#,
        #"{"a":1;"b":2}"#,
        "/**/1", "1//", "\u{FEFF}1", "[1]\u{0}", "\u{A0}1", "\u{0C}1", #"{"a":1,"a":2}"#, #"{"a":1,"\u0061":2}"#,
        #"{"\u0061":1,"a":2}"#, #"{"x":{"a":1,"a":2}}"#,
    ]

    @Test("what RFC 8259 forbids is refused", arguments: refused)
    func refuse(_ text: String) {
        #expect(throws: FleetProtocolError.self) { try JSONValue(json: Array(text.utf8), limit: 1_000) }
        #expect(throws: FleetProtocolError.self, "skipped") {
            try JSONReader.read(Array(text.utf8), limit: 1_000) { try $0.skip() }
        }
    }

    @Test(
        "bytes that are no UTF-8 are refused",
        arguments: [
            [0xFF], [0xC0, 0x80], [0xC3], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x82], [0x80],
        ] as [[UInt8]])
    func encoding(_ bytes: [UInt8]) {
        let quote = UInt8(ascii: "\"")
        #expect(throws: FleetProtocolError.self) { try JSONValue(json: [quote] + bytes + [quote], limit: 99) }
        #expect(throws: FleetProtocolError.self) {
            try JSONValue(json: Array(#"{""#.utf8) + bytes + Array(#"":1}"#.utf8), limit: 99)
        }
        #expect(throws: FleetProtocolError.self) {
            try JSONValue(json: [quote, 0x5C, 0x6E] + bytes + [quote], limit: 99)
        }
    }

    @Test("sixteen levels are read, seventeen refused, in arrays and objects")
    func depth() throws {
        for (open, close) in [("[", "]"), (#"{"a":"#, "}")] {
            func text(_ depth: Int) -> [UInt8] {
                Array((String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)).utf8)
            }
            _ = try JSONValue(json: text(16), limit: 1_000)
            #expect { try JSONValue(json: text(17), limit: 1_000) } throws: {
                ($0 as? FleetProtocolError)?.code == .tooDeep
            }
        }
        let deep = [UInt8](repeating: UInt8(ascii: "["), count: 10_000_000)
        #expect(throws: FleetProtocolError.self) { try JSONValue(json: deep, limit: .max) }
    }

    @Test("one byte more than the limit is refused before it is read")
    func size() throws {
        _ = try JSONValue(json: Array("[1,2]".utf8), limit: 5)
        #expect { try JSONValue(json: Array("[1,2] ".utf8), limit: 5) } throws: {
            ($0 as? FleetProtocolError)?.code == .tooLarge
        }
    }

    @Test("a double member is found among many, escaped or not", arguments: [1, 23, 24, 25, 60])
    func duplicates(_ count: Int) throws {
        let members = (0..<count).map { #""m\#($0)":0"# }
        _ = try JSONValue(json: Array("{\(members.joined(separator: ","))}".utf8), limit: 10_000)
        for double in [#""m0":1"#, #""\u006d0":1"#] {
            let text = "{\((members + [double]).joined(separator: ","))}"
            #expect { try JSONValue(json: Array(text.utf8), limit: 10_000) } throws: {
                ($0 as? FleetProtocolError)?.code == .duplicate
            }
        }
        let texts = (members + [#""é":1"#, #""e\u0301":2"#]).joined(separator: ",")
        _ = try JSONValue(json: Array("{\(texts)}".utf8), limit: 10_000)
    }

    @Test("whole numbers may be written with a point or an exponent, and nothing else may pass for one")
    func wholeNumbers() throws {
        func integer(_ text: String) throws -> Int64 { try Int64(json: Array(text.utf8), limit: 99) }
        #expect(try integer("42") == 42 && integer("42.0") == 42 && integer("4.2e1") == 42)
        #expect(try integer("9007199254740991") == JSONValue.largestInteger)
        for text in [
            "9007199254740992", "9007199254740991.5", "1e16", "1e300", "0.5", "-1", "\"1\"", "true", "null", "1e999",
        ] {
            #expect(throws: FleetProtocolError.self, "\(text)") { try integer(text) }
        }
    }

    @Test("a member that nobody reads may hold any number, also one that no type here holds")
    func skippedNumbers() throws {
        for number in ["1e400", String(repeating: "9", count: 100)] {
            let wish = try LogLevelWish(json: Array(#"{"x":\#(number),"level":"info"}"#.utf8), limit: 1_000)
            #expect(wish.level == .info)
            #expect(throws: FleetProtocolError.self) {
                try JSONValue(json: Array(number.utf8), limit: 1_000)
            }
        }
        #expect(throws: FleetProtocolError.self) {
            try LogLevelWish(json: Array(#"{"x":1e,"level":"info"}"#.utf8), limit: 1_000)
        }
    }

    @Test(
        "an error names the member that was wrong",
        arguments: [
            (
                #"{"changes":[{"app":"a","target":"all","aspect":"auth","value":{"state":"trusted"}}]}"#,
                "changes[0].value"
            ),
            (#"{"changes":[{"app":"a","target":"x"}]}"#, "changes[0].target"),
            (#"{"changes":[{"app":7}]}"#, "changes[0].app"), (#"{"why":"x"}"#, "changes"),
            (#"{"changes":{}}"#, "changes"),
            // Left out, it would allow what the operator has forbidden.
            (
                #"{"changes":[{"app":"a","target":"all","aspect":"secure-services","value":"#
                    + #"{"passcode":{"required":true,"maxAtempts":5,"then":"wipe"}}}]}"#,
                "changes[0].value"
            ),
        ])
    func paths(_ text: String, _ path: String) {
        #expect { try ApplyRequest(json: Array(text.utf8), limit: 1_000) } throws: {
            ($0 as? FleetProtocolError)?.path == path
        }
    }
}
