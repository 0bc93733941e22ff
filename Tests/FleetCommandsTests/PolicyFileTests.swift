import FleetProtocol
import Testing

@testable import FleetCommands

@Suite("A policy file")
struct PolicyFileTests {
    static func read(_ text: String, name: String = "p.yaml") throws -> PolicyFile {
        try PolicyFile([(name, Array(text.utf8))])
    }

    static func mistakes(_ text: String) -> [String] {
        do {
            _ = try read(text)
            return []
        } catch let error as PolicyFile.Mistakes {
            return error.mistakes.map(\.description)
        } catch {
            return ["\(error)"]
        }
    }

    static let head =
        "apiVersion: fleetbus/v1\nkind: AppPolicy\nmetadata: {app: com.example.mail, target: all}\nspec:\n"

    @Test("a doubled key is named as it was written, also where a text has what an alias begins with")
    func doubledAsterisks() {
        let mistakes = Self.mistakes(Self.head + "  config: {\"*.a\": x, \"*.a\": y}\n")
        #expect(mistakes.count == 1 && mistakes.first?.contains("'*.a' occurs more than once") == true, "\(mistakes)")
    }

    @Test("a message is counted as documents keep it")
    func longMessage() {
        // 600 flags, of two scalars each.
        let text = String(repeating: "\u{1F1E9}\u{1F1EA}", count: 600)
        let mistakes = Self.mistakes(Self.head + "  auth: {state: authorized, message: \"\(text)\"}\n")
        #expect(mistakes.count == 1)
        #expect(mistakes.first?.hasSuffix("1200 characters, where at most 1000 are allowed") == true)
    }

    @Test("of the documented form says all five aspects")
    func documented() throws {
        let file = try Self.read(
            Self.head + """
                  auth: {state: authorized, message: ""}
                  dlp: {openIn: {policy: whitelist, apps: [com.example.notes]}, openFrom: {policy: authorized}, pasteboard: secureCopy, print: unauthorized, dragAndDrop: appConnectApps}
                  config: {server: "https://mail.example.com", theme: dark}
                  secure-services: {passcode: {required: true, minLength: 6}, autoLock: 5m, offline: {blockAfter: 12h, wipeAfter: 90d}}
                  log-level: {level: info}
                """)
        #expect(file.changes.map(\.aspect) == Aspect.allCases)
        #expect(file.changes.allSatisfy { $0.app.text == "com.example.mail" && $0.layer == .all })
        #expect(file.warnings.isEmpty)
        guard case .secureServices(let services) = file.changes[3].value.content else {
            Issue.record("no secure services")
            return
        }
        #expect(services.passcode?.isRequired == true && services.passcode?.minLength == 6)
        #expect(services.autoLock == 300)
        #expect(services.offline == .init(blockAfter: 43_200, wipeAfter: 7_776_000))
        #expect(file.changes[2].value.content == .config(["server": "https://mail.example.com", "theme": "dark"]))
    }

    @Test("may hold any number of brackets in texts")
    func brackets() throws {
        let lines = (0..<200).map { "    k\($0): \"[{\"  # [\n" }.joined()
        #expect(try Self.read(Self.head + "  config:\n" + lines).changes.count == 1)
    }

    @Test("keeps keys of a configuration that begin with a private character")
    func privateCharacters() throws {
        let file = try Self.read(Self.head + "  config: {\u{E000}a: \"1\", b: \"2\"}\n")
        #expect(file.changes.map(\.value.content) == [.config(["\u{E000}a": "1", "b": "2"])])
    }

    @Test("may be JSON, and hold several documents for several targets")
    func several() throws {
        let json = """
            {"apiVersion": "fleetbus/v1", "kind": "AppPolicy",
            \t"metadata": {"app": "a", "target": "group/kiosk"}, "spec": {"log-level": {"level": "debug", "for": 600}}}
            """
        #expect(try Self.read(json).selectors.map(\.layer.description) == ["group/kiosk"])
        let second = Self.head.replacing("target: all", with: "target: device/till-1")
        let file = try Self.read(
            "---\n" + Self.head + "  log-level: {level: info}\n---\n" + second + "  log-level: {level: info}\n---\n")
        #expect(file.selectors.map(\.layer.description) == ["all", "device/till-1"])
    }

    @Test(
        "with a mistake says where, and what was expected",
        arguments: [
            (
                "  auth: {stat: authorized}\n",
                [
                    "5:9: spec.auth: 'state' is missing",
                    "5:10: spec.auth.stat: unknown member (did you mean 'state'?): expected state, message",
                ]
            ),
            (
                "  auth: {state: authorised}\n",
                [
                    "5:17: spec.auth.state: unknown value 'authorised' (did you mean 'authorized'?): expected unauthorized, authorized, retired"
                ]
            ),
            (
                "  auth: {state: retired, message: \"a\\u0007b\"}\n",
                [
                    "5:35: spec.auth.message: holds a control character (U+0007)"
                ]
            ),
            (
                "  auth: {state: retired, message: \"a\\nb\"}\n",
                [
                    "5:35: spec.auth.message: holds a control character (U+000A)"
                ]
            ),
            ("  auth: authorized\n", ["5:9: spec.auth: expected a mapping, found a single value"]),
            (
                "  config: {a: !!binary aGVsbG8=, b: !!int \"5\", c: !mine x, !!null d: e, f: !!str 5, g: ! h}\n",
                [
                    "5:15: spec.config.a: the tag !!binary is not supported: leave it out",
                    "5:37: spec.config.b: the tag !!int is not supported: leave it out",
                    "5:51: spec.config.c: the tag !mine is not supported: leave it out",
                    "5:60: spec.config: the tag !!null is not supported: leave it out",
                    "5:88: spec.config.g: the tag ! is not supported: leave it out",
                ]
            ),
            ("  config: !!set {a, b}\n", ["5:11: spec.config: the tag !!set is not supported: leave it out"]),
            (
                "  dlp: {openIn: {policy: whitelist, apps: !!set [a]}}\n",
                [
                    "5:17: spec.dlp.openIn: a whitelist needs 'apps'",
                    "5:43: spec.dlp.openIn.apps: the tag !!set is not supported: leave it out",
                ]
            ),
            (
                "  config:\n    port: 993\n    tls: true\n    proxy: null\n    since: 2026-01-01\n    none:\n    ok: \"1\"\n",
                [
                    "6:11: spec.config.port: YAML reads 993 as a number: quote it",
                    "7:10: spec.config.tls: YAML reads true as a boolean: quote it",
                    "8:12: spec.config.proxy: YAML reads null as null: quote it",
                    "9:12: spec.config.since: YAML reads 2026-01-01 as a date: quote it",
                    "10:10: spec.config.none: expected a text, found nothing: write \"\" for an empty one",
                ]
            ),
            (
                "  config: {a: x, b: [y], a: z}\n",
                [
                    "5:12: 'a' occurs more than once in this mapping",
                    "5:21: spec.config.b: expected one value, found a list",
                ]
            ),
            (
                "  dlp: {openIn: {policy: whitelist}, openFrom: {policy: authorized, apps: [a]}, print: secureCopy}\n",
                [
                    "5:17: spec.dlp.openIn: a whitelist needs 'apps'",
                    "5:48: spec.dlp.openFrom: 'apps' stands only with policy whitelist",
                    "5:88: spec.dlp.print: unknown value 'secureCopy': expected unauthorized, authorized",
                ]
            ),
            (
                "  dlp: {openIn: {policy: whitelist, apps: [a b, 7]}}\n",
                [
                    "5:44: spec.dlp.openIn.apps[0]: 'a b' is no app id: expected 1 to 48 of A–Z a–z 0–9 . _ -, beginning with a letter or digit",
                    "5:49: spec.dlp.openIn.apps[1]: YAML reads 7 as a number: quote it",
                ]
            ),
            (
                "  secure-services: {autoLock: 5 min, offline: {blockAfter: -1}, passcode: {minLength: 99}}\n",
                [
                    "5:31: spec.secure-services.autoLock: expected a duration such as 90s, 5m, 12h, 90d, or whole seconds, found '5 min'",
                    "5:60: spec.secure-services.offline.blockAfter: expected a duration such as 90s, 5m, 12h, 90d, or whole seconds, found '-1'",
                    "5:75: spec.secure-services.passcode: 'required' is missing",
                    "5:87: spec.secure-services.passcode.minLength: 99 is outside 1 to 64",
                ]
            ),
            (
                "  log-level: {level: trace, for: 400d, notAfter: tomorrow}\n",
                [
                    "5:22: spec.log-level.level: unknown value 'trace': expected error, warning, status, info, verbose, debug",
                    "5:34: spec.log-level.for: 400d is outside 1s to 366d",
                    "5:50: spec.log-level.notAfter: expected a time such as 2026-01-31T08:00:00Z",
                ]
            ),
            (
                "  loglevel: {level: info}\n",
                [
                    "5:3: spec.loglevel: unknown member (did you mean 'log-level'?): expected auth, dlp, config, secure-services, log-level"
                ]
            ),
            ("\tauth: {state: authorized}\n", ["5:1: tabs cannot indent YAML: use spaces"]),
            (
                "  {}\n",
                [
                    "5:3: spec: names no aspect: expected at least one of auth, dlp, config, secure-services, log-level"
                ]
            ),
        ] as [(String, [String])])
    func wrong(spec: String, expected: [String]) {
        #expect(Self.mistakes(Self.head + spec) == expected.map { "p.yaml:" + $0 })
    }

    @Test("with several mistakes in several documents names all of them")
    func everything() {
        let text = """
            apiVersion: fleetbus/v2
            kind: Policy
            metadata: {app: -mail, target: kiosk, labels: x}
            spec: {auth: {state: on}}
            ---
            kind: AppPolicy
            metadata: {app: com.example.mail}
            """
        #expect(
            Self.mistakes(text) == [
                "p.yaml:1:13: apiVersion: unknown value 'fleetbus/v2' (did you mean 'fleetbus/v1'?): expected fleetbus/v1",
                "p.yaml:2:7: kind: unknown value 'Policy': expected AppPolicy",
                "p.yaml:3:17: metadata.app: '-mail' is no app id: expected 1 to 48 of A–Z a–z 0–9 . _ -, beginning with a letter or digit",
                "p.yaml:3:32: metadata.target: 'kiosk' is no target: expected all, group/NAME or device/ID",
                "p.yaml:3:39: metadata.labels: unknown member: expected app, target",
                "p.yaml:4:22: spec.auth.state: unknown value 'on': expected unauthorized, authorized, retired",
                "p.yaml:6:1: 'apiVersion' is missing: expected 'apiVersion: fleetbus/v1'",
                "p.yaml:6:1: 'spec' is missing",
                "p.yaml:7:11: metadata: 'target' is missing",
            ])
    }

    @Test("that says the same aspect twice is refused, also across documents and files")
    func twice() throws {
        let text = Self.head + "  log-level: {level: info}\n"
        #expect(
            Self.mistakes(text + "---\n" + text)
                == ["p.yaml:11:3: log-level of com.example.mail for all already stands at p.yaml:5:3"])
        let error = #expect(throws: PolicyFile.Mistakes.self) {
            try PolicyFile([("a.yaml", Array(text.utf8)), ("b.yaml", Array(text.utf8))])
        }
        #expect(
            error?.description == "b.yaml:5:3: log-level of com.example.mail for all already stands at a.yaml:5:3")
    }

    @Test(
        "that is no policy at all is refused",
        arguments: [
            ("", "1:1: the file holds no policy document"),
            ("# nothing\n---\n", "1:1: the file holds no policy document"),
            ("a: [1\n", "2:1: not YAML: did not find expected ',' or ']' (while parsing a flow sequence in line 1)"),
            ("- a\n", "1:1: expected a mapping, found a list"),
            ("a: \u{1}\n", "1:4: not YAML: control characters are not allowed"),
            ("a: ü\nb: ü\u{1}\n", "2:5: not YAML: control characters are not allowed"),
            (String(repeating: "[", count: 100_000), "1:1: nested too deeply"),
            (String(repeating: "- ", count: 100_000), "1:1999: nested too deeply"),
            // As deep as the parser goes.
            (
                String(repeating: "[", count: 990) + String(repeating: "]", count: 990),
                "1:1: expected a mapping, found a list"
            ), (String(repeating: "- ", count: 990) + "a\n", "1:1: expected a mapping, found a list"),
            (String(repeating: "x", count: 1_048_577), "1:1: more than 1048576 bytes: split it into several files"),
        ])
    func noPolicy(text: String, expected: String) {
        #expect(Self.mistakes(text) == ["p.yaml:\(expected)"])
    }

    @Test("may begin with a byte order mark")
    func byteOrderMark() throws {
        #expect(try Self.read("\u{FEFF}" + Self.head + "  log-level: {level: info}\n").changes.count == 1)
    }

    @Test("may have characters in two escapes where it is JSON, as its writers make them")
    func surrogates() throws {
        let start = #"{"apiVersion":"fleetbus/v1","kind":"AppPolicy","metadata":{"app":"a","target":"all"},"#
        for (written, read) in [
            (#"\ud83d\ude00"#, "😀"), (#"a\uD83D\uDE00b"#, "a😀b"), (#"\\ud83d\\ude00"#, #"\ud83d\ude00"#),
            (#"\\\ud83d\ude00"#, #"\😀"#), (#"\u00e9"#, "é"),
        ] {
            let text = start + #""spec":{"config":{"a":"\#(written)"}}}"#
            let file = try Self.read(text, name: "p.json")
            #expect(file.changes.map(\.value.content) == [.config(["a": read])], "\(written)")
        }
        let alone = #expect(throws: PolicyFile.Mistakes.self) {
            try Self.read(start + #""spec":{"config":{"a":"\ud83d"}}}"#, name: "p.json")
        }
        #expect(alone?.description.contains("not JSON") == true)
    }

    @Test("of JSON is not spoken of as YAML")
    func json() throws {
        func mistakes(_ text: String) -> String? {
            #expect(throws: PolicyFile.Mistakes.self) { try Self.read(text, name: "p.json") }?.description
        }
        let start = #"{"apiVersion":"fleetbus/v1","kind":"AppPolicy","metadata":{"app":"a","target":"all"},"#
        #expect(
            mistakes(start + #""spec":{"config":{"port":993}}}"#)
                == "p.json:1:111: spec.config.port: 993 is a number: quote it")
        #expect(mistakes("{\"a\": [}")?.hasPrefix("p.json:1:8: not JSON: ") == true)
        let document = start + #""spec":{"log-level":{"level":"info"}}}"#
        #expect(
            mistakes(document + "\n" + document)
                == "p.json:2:1: something follows the document: put a line with --- between two")
    }

    @Test("that is not UTF-8 is refused with its line")
    func encoding() {
        let error = #expect(throws: PolicyFile.Mistakes.self) {
            try PolicyFile([("p.yaml", Array("a: b\nc: ".utf8) + [0xE4, 0x0A])])
        }
        #expect(error?.description == "p.yaml:2:1: not UTF-8: save the file as UTF-8")
    }

    @Test(
        "that is not UTF-8 is refused with the line that is not, also far behind one that is", .timeLimit(.minutes(10)))
    func largeEncoding() {
        let start = "# " + String(repeating: "x", count: 900_000) + "\nc: ü\n" + String(repeating: "d: e\n", count: 47)
        let error = #expect(throws: PolicyFile.Mistakes.self) {
            try PolicyFile([("p.yaml", Array(start.utf8) + [0xFC, 0x0A])])
        }
        #expect(error?.description == "p.yaml:50:1: not UTF-8: save the file as UTF-8")
    }

    @Test("whose lines end otherwise has the same mistakes", arguments: ["\n", "\r\n", "\r"])
    func ends(of line: String) {
        func mistakes(_ spec: String) -> [String] {
            Self.mistakes((Self.head + spec).replacing("\n", with: line))
        }
        #expect(
            mistakes("  config: {a: x, a: z}\n  dlp: {print: authorized, print: authorized}\n") == [
                "p.yaml:5:12: 'a' occurs more than once in this mapping",
                "p.yaml:6:9: 'print' occurs more than once in this mapping",
            ])
        #expect(mistakes("\tauth: {state: authorized}\n") == ["p.yaml:5:1: tabs cannot indent YAML: use spaces"])
    }

    private static let noAnchors =
        "anchors and aliases (& and *) are not supported: write the value out, or quote a text that begins so"

    @Test("with an anchor or an alias, or a text that looks like one, is refused with its place")
    func anchors() {
        for (text, place) in [("a: *b\n", "1:4"), ("a: &b c\n", "1:4"), ("? &b\n", "1:3"), ("a:\n- [x, *.b]\n", "2:7")]
        {
            #expect(Self.mistakes(text) == ["p.yaml:\(place): \(Self.noAnchors)"])
        }
        let twice = "a: {*b : x, *c : y}\n"
        #expect(Self.mistakes(twice) == ["1:5", "1:13"].map { "p.yaml:\($0): \(Self.noAnchors)" })
    }

    @Test(
        "whose aliases multiply is refused before anybody follows them, in values and in keys",
        .timeLimit(.minutes(10)), arguments: ["a: *a12\n", "? *a12\n: x\n", "? [*a12]\n: x\n"])
    func bomb(end: String) {
        var text = "a0: &a0 [x]\n"
        for level in 1...12 {
            text += "a\(level): &a\(level) [\(Array(repeating: "*a\(level - 1)", count: 9).joined(separator: ","))]\n"
        }
        let mistakes = Self.mistakes(text + end)
        #expect(mistakes.first == "p.yaml:1:5: \(Self.noAnchors)" && mistakes.count <= 100)
    }

    @Test("whose aliases nest deeper than brackets may is refused")
    func deepAliases() {
        var text = "- &b0 x\n"
        for level in 1...200 {
            let (open, close) = (String(repeating: "[", count: 900), String(repeating: "]", count: 900))
            text += "- &b\(level) \(open)*b\(level - 1)\(close)\n"
        }
        #expect(Self.mistakes(text).first == "p.yaml:1:3: \(Self.noAnchors)")
    }

    @Test("may have & and * in texts, also unquoted behind their beginning, and in comments")
    func ampersands() throws {
        let config = [
            "config:", #"  "*a": "*.example.com""#, "  '&a': '&b *c'", "  d: R&D *now*  # &b *c", "  e: |", "    *a",
            "    &b",
        ]
        let text = Self.head + config.map { "  \($0)\n" }.joined()
        #expect(
            try Self.read(text).changes.map(\.value.content) == [
                .config(["*a": "*.example.com", "&a": "&b *c", "d": "R&D *now*", "e": "*a\n&b\n"])
            ])
    }

    @Test("with too large a configuration is refused before anything is sent")
    func tooLarge() {
        let value = String(repeating: "x", count: 63_000)
        #expect(Self.mistakes(Self.head + "  config: {a: \(value)}\n") == [])
        let rule = String(repeating: "-", count: 200)
        #expect(Self.mistakes(Self.head + "  config:\n    a: |\n      \(rule)\n      \(rule) x\n") == [])
        #expect(
            Self.mistakes(Self.head + "  config: {a: \(value)\(value)}\n")
                == ["p.yaml:5:11: spec.config: 126027 bytes, where at most 63488 are allowed"])
    }

    @Test("warns of what is allowed and may not be meant")
    func warnings() throws {
        let file = try Self.read(
            Self.head
                + "  auth: {state: retired}\n  dlp: {print: authorized}\n"
                + "  secure-services: {passcode: {required: false}, autoLock: 5m}\n"
                + "  log-level: {level: debug, notAfter: 2020-01-01T00:00:00Z}\n"
        )
        #expect(
            file.warnings.map(\.description) == [
                "p.yaml:5:3: retires com.example.mail for all: its keys there are destroyed, and no other layer shields a device from it",
                "p.yaml:6:3: dlp of com.example.mail for all says nothing about openIn, openFrom, pasteboard, dragAndDrop: not allowed",
                "p.yaml:7:3: secure-services of com.example.mail for all: autoLock does nothing where no passcode is required",
                "p.yaml:8:3: log-level of com.example.mail for all: its notAfter 2020-01-01T00:00:00.000Z is over, so it does nothing",
            ])
        let requires = "{passcode: {required: true, then: wipe}}"
        let none = "{required: false, maxAttempts: 1, then: wipe}"
        #expect(
            try Self.read(Self.head + "  secure-services: \(requires)\n").warnings.map(\.message) == [
                "secure-services of com.example.mail for all: passcode.then does nothing without maxAttempts"
            ])
        #expect(
            try Self.read(Self.head + "  secure-services: {passcode: \(none)}\n").warnings.map(\.message) == [
                "secure-services of com.example.mail for all: passcode.maxAttempts, passcode.then do nothing where no"
                    + " passcode is required"
            ])
        #expect(
            try Self.read(Self.head + "  log-level: {level: debug, notAfter: 2999-01-01T00:00:00Z}\n").warnings.isEmpty)
    }

    @Test(
        "duration is written with a unit or in seconds",
        arguments: [("90", 90), ("90s", 90), ("5m", 300), ("12h", 43_200), ("90d", 7_776_000)])
    func durations(text: String, seconds: Int64) {
        #expect(DurationText.seconds(text) == seconds)
    }

    @Test(
        "no duration is what has another form",
        arguments: ["", "m", "5 m", "-5m", "1.5h", "5w", "99999999999999999999d"])
    func noDurations(text: String) {
        #expect(DurationText.seconds(text) == nil)
    }
}
