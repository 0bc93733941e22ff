import FleetHome
import FleetProtocol
import Testing

@testable import FleetCommands

@Suite("What commands show")
struct RenderingTests {
    private func row(_ app: String, _ policy: Policy, applied: Int64, error: Int64 = 0, offline: Int64 = 0) -> StatusRow
    {
        var counts = OutcomeCounts()
        counts.applied = applied
        counts.error = error
        counts.pending = offline
        return StatusRow(app: AppID(unchecked: app), policy: policy, counts: counts, offline: offline)
    }

    @Test("notes keep their lines, whole, and nothing that moves a cursor, also where they quote an answer")
    func notes() {
        #expect(Terminal.lines(of: "a\u{1B}[2Jb\nc\r\n\nd\u{202E}") == ["a[2Jb", "c", "", "d"])
        let long = String(repeating: "é", count: 5_000)
        #expect(Terminal.lines(of: long) == [long])
        let answer = #"{"floors":{"a\u001b[2J\nb":1}}"#
        let error = #expect(throws: FleetProtocolError.self) { try Floors(json: Array(answer.utf8), limit: 1_000) }
        #expect(error?.description.hasPrefix("floors.a[2J b: ") == true, "\(String(describing: error))")
    }

    @Test("status: a row for each app and policy, numbers at the right, dots for zeros")
    func status() throws {
        let report = StatusCommand.report([
            row("com.example.mail", .auth, applied: 120, offline: 3), row("a", .secureServices, applied: 1, error: 22),
        ])
        #expect(
            report.table == [
                "APP               POLICY          APPLIED  ERROR  UNSUPPORTED  REJECTED  DELIVERED  PENDING  OVERDUE  OFFLINE",
                "com.example.mail  auth                120      ·            ·         ·          ·        3        ·        3",
                "a                 secureServices        1     22            ·         ·          ·        ·        ·        ·",
            ])
        #expect(
            try report.lines(as: .json).joined().replacing(" ", with: "")
                == #"[{"app":"com.example.mail","policy":"auth","counts":{"applied":120,"error":0,"unsupported":0,"rejected":0,"delivered":0,"pending":3,"overdue":0},"offline":3,"due":0},{"app":"a","policy":"secureServices","counts":{"applied":1,"error":22,"unsupported":0,"rejected":0,"delivered":0,"pending":0,"overdue":0},"offline":0,"due":0}]"#
        )
    }

    @Test("apps: keys that are out of an app's reach are locked, and what the device's passcode waits for is said")
    func locked() throws {
        func row(_ auth: String, _ services: String, _ message: String = "") throws -> [String] {
            let text = """
                {"device":"d","app":"a","connection":"online","running":true,"keys":"present","auth":{"state":"\(auth)"},
                 "secureServices":"\(services)","policies":{"secureServices":{"attempt":{"outcome":"applied"\(message)}}}}
                """
            let app = try JSONValue(json: Array(text.utf8), limit: 4_096)
            let line = GetApps.report([app]).table.last ?? ""
            return line.split(separator: " ", omittingEmptySubsequences: true).map(String.init)
        }
        let locked = try row("authorized", "unavailable", #","message":"no passcode""#)
        #expect(locked[3...4] == ["authorized", "locked"] && locked.suffix(2) == ["no", "passcode"])
        #expect(try row("authorized", "available")[4] == "present")
        #expect(try row("unauthorized", "unavailable")[4] == "present")
    }

    @Test("status: how many have destroyed the keys of a retired app, and how to see who has not")
    func retired() throws {
        var retired = row("com.example.mail", .auth, applied: 2, offline: 1)
        retired.retirement = RetirementCounts(confirmed: 2, outstanding: 1)
        var gone = row("a", .auth, applied: 1)
        gone.retirement = RetirementCounts(confirmed: 1, doubtful: 2)
        var removed = row("b", .auth, applied: 0)
        removed.retirement = RetirementCounts(doubtful: 1)
        let report = StatusCommand.report([retired, row("com.example.mail", .print, applied: 3), gone, removed])
        let lines: [String] = [
            "",
            "the keys of com.example.mail: destroyed on 2 of 3 devices: "
                + "fleetctl get apps --app com.example.mail --retirement outstanding",
            "the keys of a: destroyed on 1 of 1 device, and of 2 devices perhaps elsewhere: fleetctl get devices; removed ones: "
                + "fleetctl get history",
            "the keys of b: on no device that is there, and of 1 device perhaps elsewhere: fleetctl get devices; removed ones: "
                + "fleetctl get history",
        ]
        #expect(Array(report.table.suffix(4)) == lines)
        let json = try report.lines(as: .json).joined().replacing(" ", with: "")
        #expect(json.contains(#""retirement":{"confirmed":2,"outstanding":1}"#), "\(json)")
    }

    @Test("a table is aligned by columns of the terminal, and has no spaces at line ends")
    func widths() {
        var table = Table([.init("NAME"), .init("N", isNumber: true), .init("NOTE")])
        table.add(["日本", "1", ""])
        table.add(["é", "10", "x"])
        #expect(table.lines == ["NAME   N  NOTE", "日本   1", "é     10  x"])
    }

    @Test("a cell is one line, cut to its limit")
    func cells() {
        #expect(Cell.text("a\u{1B}[31m\nb") == "a[31m b")
        #expect(Cell.text(.string(String(repeating: "x", count: 100)), limit: 10) == "xxxxxxxxx…")
        #expect(Cell.text(nil) == "")
        #expect(Cell.text(7) == "7")
    }

    @Test("YAML quotes what it would read as something else")
    func yaml() throws {
        let value = JSONValue.object([
            "name": "till-1", "text": "5", "flag": "yes", "empty": "", "colon": "a: b", "escape": "\u{1B}[31m",
            "number": 5,
            "none": .null, "list": ["a", "true"], "nothing": [],
        ])
        #expect(
            try value.yamlLines == [
                "name: till-1", #"text: "5""#, #"flag: "yes""#, #"empty: """#, #"colon: "a: b""#, #"escape: "\e[31m""#,
                "number: 5", "none: null", "list:", "- a", #"- "true""#, "nothing: []",
            ])
    }

    @Test("JSON is indented, and escapes control characters")
    func json() throws {
        let value = JSONValue.object(["a": ["x\u{7F}", .object([])], "b": []])
        #expect(value.prettyLines == ["{", #"  "a": ["#, #"    "x\u007f","#, "    {}", "  ],", #"  "b": []"#, "}"])
        let moving = JSONValue.object([.init("a\u{202E}", .string("é\u{9B}2J"))])
        #expect(moving.prettyLines == ["{", #"  "a\u202e": "é\u009b2J""#, "}"])
        #expect(moving.lineText == #"{"a\u202e":"é\u009b2J"}"#)
        #expect(try moving.yamlLines == [#""a\u202e": "é\x9B2J""#])
    }

    @Test("progress sums up, and waits for those who are online")
    func progress() throws {
        let text = """
            {"rows":[{"app":"a","policy":"auth","counts":{"applied":2,"error":1,"unsupported":0,"rejected":0,"delivered":1,
            "pending":3,"overdue":0},"offline":3}],"waiting":[{"device":"d","app":"a","policy":"auth","outcome":"delivered",
            "online":true}]}
            """
        let progress = try Progress(joining: [ProgressAnswer(json: Array(text.utf8), limit: 4_096)])
        #expect(progress.rows.map(\.due) == [1], "a controller of before does not tell it")
        #expect(!progress.isSettled && !progress.isConverged)
        #expect(progress.summary == ["policies: 2 applied, 1 error, 1 delivered, 3 pending (3 offline)"])
        let shortfall = progress.shortfall(within: "1s") ?? ""
        #expect(shortfall.hasPrefix("1 answer has not come within 1s:\n  d a auth: delivered"))
        let since = try #require(Timestamp("2026-11-21T07:24:00Z"))
        let gone = progress.outdated(CommandError(.unreachable, "the controller is not running"), since: since)
        #expect(
            gone.shortfall(within: "1s")
                == "the controller is not running\nWhat stands here was so at 07:24:00Z.\n" + shortfall)
        #expect(!gone.isConverged)
    }

    @Test("progress in a later epoch than the change is of another store; where one is not told, nobody knows")
    func epochs() throws {
        func progress(in epochs: [Int64?], since epoch: Int64?) throws -> Progress {
            let parts = try epochs.map { epoch in
                let told = epoch.map { ",\"epoch\":\($0)" } ?? ""
                return try ProgressAnswer(json: Array("{\"rows\":[],\"waiting\":[]\(told)}".utf8), limit: 4_096)
            }
            return Progress(joining: parts, since: epoch)
        }
        for (epochs, epoch) in [([5], 5), ([5, 5], 5), ([5], nil), ([nil], 5)] as [([Int64?], Int64?)] {
            #expect(try progress(in: epochs, since: epoch).isConverged, "\(epochs) since \(epoch ?? 0)")
        }
        for epochs in [[6], [5, 6], [nil, 6]] as [[Int64?]] {
            let restored = try progress(in: epochs, since: 5)
            #expect(restored.isSettled && !restored.isConverged, "\(epochs)")
            #expect(restored.shortfall(within: "1s")?.hasPrefix("the controller was restored") == true)
        }
    }

    @Test("progress of a retirement waits for the keys, wherever they are, and for nothing else of an app that is gone")
    func retirement() throws {
        func progress(_ confirmed: Int, _ outstanding: Int, due: Int) throws -> Progress {
            let text = """
                {"rows":[{"app":"a","policy":"auth","counts":{"applied":1,"pending":2},"offline":1,"due":\(due),
                "retirement":{"confirmed":\(confirmed),"outstanding":\(outstanding)}}],"waiting":[{"device":"d","app":"a",
                "policy":"auth","outcome":"pending","retirement":"outstanding","online":false}]}
                """
            return try Progress(joining: [ProgressAnswer(json: Array(text.utf8), limit: 4_096)])
        }
        let waiting = try progress(2, 1, due: 1)
        #expect(!waiting.isSettled && !waiting.isConverged)
        #expect(
            waiting.summary == [
                "policies: 1 applied, 2 pending (1 offline)", "the keys of a: destroyed on 2 of 3 devices",
            ])
        #expect(
            waiting.shortfall(within: "30s") == """
                the keys of a: destroyed on 2 of 3 devices within 30s, not yet on
                  d (not connected)
                All of these are shown by
                  fleetctl get apps --app a --retirement outstanding
                """)
        // It was removed meanwhile.
        var left = try progress(2, 0, due: 0)
        left.follow(waiting)
        #expect(left.isSettled && !left.isConverged)
        #expect(
            left.shortfall(within: "30s") == """
                1 device left the count, and may not have destroyed the keys of a: with another policy, or removed by a \
                controller of before
                """)
        var later = try progress(2, 0, due: 0)
        later.follow(left)
        #expect(!later.isConverged, "that is not forgotten")
        var done = try progress(3, 0, due: 0)
        done.follow(waiting)
        #expect(done.isConverged)
        func leaving(_ place: String?) throws -> Progress {
            let text = """
                {"rows":[{"app":"a","policy":"auth","counts":{"applied":1},"offline":0,"retirement":{"confirmed":2}}],
                "waiting":[],"otherDisks":[{"device":"d","app":"a"\(place.map { ",\"\($0)\":true" } ?? "")}]}
                """
            return try Progress(joining: [ProgressAnswer(json: Array(text.utf8), limit: 4_096)])
        }
        let elsewhere = try leaving(nil)
        #expect(elsewhere.isSettled && !elsewhere.isConverged)
        #expect(elsewhere.shortfall(within: "30s")?.hasSuffix("until they are enrolled once more:\n  d a") == true)
        // Whom the answer names is not counted twice.
        var removed = try leaving("removed")
        removed.follow(waiting)
        #expect(
            removed.shortfall(within: "30s") == """
                devices were removed since, and had not said that the keys are destroyed; `fleetctl apply --again` begins \
                anew, without them:
                  d a
                """)
        // One of which there is a copy is counted all the same.
        var copied = try leaving("copied")
        copied.follow(waiting)
        #expect(copied.departed.values.sorted() == [1], "who has left is another")
        #expect(copied.isSettled && !copied.isConverged)
        #expect(copied.shortfall(within: "30s")?.contains("of which a copy was heard") == true)
        let nobody = try progress(0, 0, due: 0)
        #expect(nobody.isSettled && !nobody.isConverged)
        let shortfall = nobody.shortfall(within: "30s") ?? ""
        #expect(shortfall.hasPrefix("no device that this is for has reported a, and none"))
        let gone = try progress(3, 0, due: 0)
        #expect(gone.isSettled && gone.isConverged && gone.shortfall(within: "30s") == nil)
    }

    @Test("who waits for long asks less and less often")
    func waitPauses() {
        let pauses = [0, 4, 20, 100, 86_400].map { WaitOptions.pause(behind: .seconds($0)) }
        #expect(pauses == [.milliseconds(200), .milliseconds(200), .seconds(1), .seconds(5), .seconds(5)])
    }

    @Test("what is wrong with a device stands behind the table")
    func devices() {
        func device(_ name: String, boot: Int64, _ warnings: JSONValue) -> JSONValue {
            .object([
                "device": .string(name), "state": "unknown", "agent": "fleet-agent/1", "incarnation": 1,
                "boot": .integer(boot), "apps": 3, "groups": ["kiosk"], "warnings": warnings,
            ])
        }
        let table = GetDevices.report([
            device("till-1", boot: 2, ["speaks of boot 1, where 2 was the last"]),
            device("till-2", boot: 1_800_000_000_000, []),
        ]).table
        #expect(
            table.prefix(3) == [
                "DEVICE  STATE    SINCE  AGENT          STARTED              INCARNATION  APPS  GROUPS",
                "till-1  unknown         fleet-agent/1                                 1     3  kiosk",
                "till-2  unknown         fleet-agent/1  2027-01-15 08:00:00            1     3  kiosk",
            ])
        #expect(
            table.suffix(2) == [
                "", "warning: till-1: speaks of boot 1, where 2 was the last",
            ])
    }

    @Test("a group that comes in parts is one")
    func groups() {
        let parts = [("kiosk", ["a"]), ("till", ["b", "c"]), ("till", ["d"])].map { name, devices in
            JSONValue.object([
                "group": .string(name), "priority": 1, "devices": .array(devices.map { .string($0) }),
            ])
        }
        #expect(
            GroupList.report(parts).table == [
                "GROUP  PRIORITY  MEMBERS  DEVICES", "kiosk         1        1  a", "till          1        3  b,c,d",
            ])
    }

    @Test("apps are listed by device and name")
    func order() {
        let apps = ["b/x", "a/y", "b/a", "a/x"].map { name in
            JSONValue.object(["device": .string(String(name.prefix(1))), "app": .string(String(name.suffix(1)))])
        }
        #expect(
            GetApps.sorted(apps).map { "\($0["device"]?.stringValue ?? "")/\($0["app"]?.stringValue ?? "")" }
                == ["a/x", "a/y", "b/a", "b/x"])
    }

    @Test("apps show what was not applied, and why")
    func apps() {
        let app = JSONValue.object([
            "device": "till-1", "app": "a", "auth": .object(["state": "authorized"]), "keys": "present",
            "running": true,
            "incarnation": 1, "boot": 2, "seq": 33,
            "policies": .object([
                "auth": .object(["attempt": .object(["outcome": "applied"])]),
                "openIn": .object(["attempt": .object(["outcome": "error", "message": "of another document"])]),
                "print": .object(["attempt": .object(["outcome": "error", "message": "no printer"])]),
            ]),
            "connection": "offline",
            "counted": .object(["auth": "applied", "openIn": "pending", "print": "error"]),
        ])
        #expect(
            GetApps.report([app]).table == [
                "DEVICE  APP  STATE    AUTH        KEYS     RUNS  REPORT  APPLIED  OTHERWISE",
                "till-1  a    offline  authorized  present  yes       33        1  openIn pending, print error (no printer)",
            ])
        let doubtful = JSONValue.object((app.memberValues ?? []) + [.init("doubtful", true)])
        let otherwise = GetApps.report([doubtful]).table.last?.split(separator: "        1  ").last
        #expect(
            otherwise == "keys perhaps elsewhere (get devices), openIn pending, print error (no printer)")
    }

    @Test("events say what happened in one line, whatever the device has said")
    func events() {
        func row(_ members: [JSONValue.Member]) -> JSONValue {
            .object(
                [
                    .init("device", "till-1"), .init("app", "a"), .init("at", "2026-11-21T07:24:00.000Z"),
                    .init("storedAt", "2026-11-21T07:24:01.250Z"),
                ] + members)
        }
        let rows = [
            row([
                .init("kind", "logLevel"), .init("old", "status"), .init("new", "debug"), .init("why", "policy"),
                .init("until", "2026-11-21T08:24:00.000Z"),
            ]),
            row([.init("kind", "blocked"), .init("action", "openURL"), .init("target", "https://a.example\u{1b}[2J\n")]
            ),
            row([.init("kind", "ready")]),
        ]
        #expect(
            GetEvents.report(rows).table == [
                "STORED               AT                   DEVICE  APP  KIND      WHAT",
                "2026-11-21 07:24:01  2026-11-21 07:24:00  till-1  a    logLevel  "
                    + "status → debug (policy) until 2026-11-21 08:24:00",
                "2026-11-21 07:24:01  2026-11-21 07:24:00  till-1  a    blocked   openURL https://a.example[2J",
                "2026-11-21 07:24:01  2026-11-21 07:24:00  till-1  a    ready",
            ])
    }
}
