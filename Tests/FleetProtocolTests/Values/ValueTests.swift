import FleetProtocol
import Foundation
import Testing

@Suite("Times, ids, binary and texts")
struct ValueTests {
    @Test(
        "a time is written as RFC 3339 in UTC with milliseconds",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_245_840_123, "2026-11-21T07:24:00.123Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"), (Int64.max, "9999-12-31T23:59:59.999Z"),
            (Int64.min, "0001-01-01T00:00:00.000Z"),
        ])
    func write(_ milliseconds: Int64, _ text: String) {
        #expect(Timestamp(milliseconds: milliseconds).description == text)
    }

    @Test(
        "a time is read in every form of RFC 3339",
        arguments: [
            ("2026-11-21T07:24:00Z", "2026-11-21T07:24:00.000Z"),
            ("2026-11-21t07:24:00.5z", "2026-11-21T07:24:00.500Z"),
            ("2026-11-21T07:24:00.123456789Z", "2026-11-21T07:24:00.123Z"),
            ("2026-11-21T08:24:00.12+01:00", "2026-11-21T07:24:00.120Z"),
            ("2026-11-20T19:24:00-12:00", "2026-11-21T07:24:00.000Z"),
            ("2024-02-29T00:00:00-00:00", "2024-02-29T00:00:00.000Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"),
            ("2017-01-01T00:59:60+01:00", "2017-01-01T00:00:00.000Z"),
        ])
    func read(_ text: String, _ same: String) throws {
        #expect(try #require(Timestamp(text)).description == same)
    }

    @Test(
        "what is no time is refused",
        arguments: [
            "", "now", "2026-11-21", "2026-11-21T07:24Z", "2026-11-21T07:24:00", "2026-11-21 07:24:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z", "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:61Z", "2026-01-01T00:00:60Z",
            "2026-01-01T00:00:00.Z",
            "0000-01-01T00:00:00Z",
            "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+0100", "2026-01-01T00:00:00Z ", "+2026-01-01T00:00:00Z",
            "२०२६-01-01T00:00:00Z",
        ])
    func refuse(_ text: String) { #expect(Timestamp(text) == nil) }

    @Test("times agree with Foundation's calendar, and adding never overflows")
    func calendar() throws {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        for _ in 0..<2_000 {
            let time = Timestamp(milliseconds: generator.number(-2_208_988_800_000...4_102_444_800_000))
            #expect(Timestamp(time.description) == time, "seed \(seed)")
            let date = try style.parse(time.description)
            #expect(
                (date.timeIntervalSince1970 * 1_000).rounded() == Double(time.milliseconds), "\(time), seed \(seed)")
        }
        #expect(Timestamp(milliseconds: 0).advanced(bySeconds: .max).description == "9999-12-31T23:59:59.999Z")
        #expect(Timestamp(milliseconds: 0).advanced(bySeconds: .min).description == "0001-01-01T00:00:00.000Z")
    }

    @Test("binary has one text for each value, that of RFC 4648")
    func binary() {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            let bytes = generator.list(0...40) { UInt8.random(in: .min ... .max, using: &$0) }
            let text = Base64URL.encode(bytes)
            let expected = Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
                .replacing("=", with: "")
            #expect(text == expected && Base64URL.decode(text.utf8) == bytes, "seed \(seed)")
        }
        for text in ["A", "AAAAA", "AB", "AAB", "AA==", "A+", "A/", "A A", "Aé", "AA\n"] {
            #expect(Base64URL.decode(text.utf8) == nil)
        }
    }

    @Test(
        "an id is 1 to 48 characters of those that topics can bear",
        arguments: [
            ("a", true), ("A9._-", true), (String(repeating: "x", count: 48), true),
            (String(repeating: "x", count: 49), false),
            ("", false), ("_a", false), (".a", false), ("-a", false), ("a/b", false), ("a+", false), ("#", false),
            ("a b", false),
            ("é", false), ("a\n", false), ("a\u{0}", false), ("@controller", false), ("\u{212A}", false),
            ("a\u{301}", false),
        ])
    func ids(_ text: String, _ isValid: Bool) {
        #expect((DeviceID(text) != nil) == isValid)
        #expect((AppID(text) != nil) == isValid)
        if !isValid { #expect(throws: FleetProtocolError.self) { try GroupID(checking: text) } }
    }

    @Test(
        "a user is read from its user name",
        arguments: [
            "till-0042", "@controller", "@operator.alice", "@viewer.bob", "@bridge.edge-1",
        ])
    func users(_ text: String) throws { #expect(try #require(User(text)).text == text) }

    @Test(
        "what is no user name is no user",
        arguments: ["", "@", "@operator", "@operator.", "@admin.a", "@controller.a", "@Operator.a", "a b"])
    func noUsers(_ text: String) { #expect(User(text) == nil) }

    @Test("random ids are UUIDs of version 4 and differ")
    func uuids() throws {
        let ids = (0..<1_000).map { _ in RandomID.random() }
        #expect(Set(ids).count == 1_000)
        for id in ids {
            #expect(RandomID(id.text) == id)
            let uuid = try #require(UUID(uuidString: id.text))
            #expect(uuid.uuid.6 >> 4 == 4 && uuid.uuid.8 >> 6 == 2)
        }
        for text in [
            "", "5C1F0BD4-8D1A-4F0E-9A41-3F7D5C0E2B11", "5c1f0bd48d1a4f0e9a413f7d5c0e2b11",
            "5c1f0bd4-8d1a-4f0e-9a41-3f7d5c0e2b1g",
        ] {
            #expect(RandomID(text) == nil)
        }
    }

    @Test("a text that is shown can neither move a cursor nor reorder a line, and is cut once")
    func printable() {
        #expect(Text.printable("plain") == "plain")
        #expect(Text.printable("a\u{1B}[2J\u{7F}\u{9B}b\n\t\u{0}c") == "a[2Jb  c")
        #expect(Text.printable("Backup failed.\nCall 555") == "Backup failed. Call 555")
        #expect(Text.printable("a\r\nb\rc\n\nd\r\n\r\ne\tf") == "a b c  d  e f")
        #expect(Text.printable("\u{202E}abc\u{2066}\u{200F}\u{061C}\u{2028}\u{FEFF}") == "abc")
        #expect(Text.printable("é漢😀") == "é漢😀")
        #expect(Text.printable("abcdef", limit: 3) == "abc…" && Text.printable("abc", limit: 3) == "abc")
        #expect(Text.printable("漢漢漢", bytes: 7) == "漢漢…" && Text.printable("abc", limit: 0) == "…")
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            let text = generator.text(40)
            let limit = Int(generator.number(0...40))
            let once = Text.printable(text, limit: limit)
            #expect(Text.printable(once, limit: limit) == once, "seed \(seed)")
            #expect(
                once.unicodeScalars.count <= limit + 1
                    && once.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
        }
    }
}
