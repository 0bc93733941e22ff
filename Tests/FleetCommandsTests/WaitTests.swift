import ArgumentParser
import FleetHome
import FleetProtocol
import Foundation
import TestSupport
import Testing

@testable import FleetCommands

@Suite("--wait")
struct WaitTests {
    private static let policy = PolicyFileTests.head + "  log-level: {level: info}\n"
    private static let applied = JSONValue.object([
        "results": [
            .object([
                "app": "com.example.mail", "target": "all", "aspect": "log-level", "revision": 7, "changed": true,
            ])
        ],
        "warnings": [],
    ])

    private static func progress(_ set: (inout OutcomeCounts) -> Void) -> JSONValue {
        var counts = OutcomeCounts()
        set(&counts)
        let row = StatusRow(app: AppID(unchecked: "com.example.mail"), policy: .logLevel, counts: counts, offline: 0)
        return .object(["rows": [row.value], "waiting": []])
    }

    @Test(
        "may name a time or none, wherever it stands",
        arguments: [
            (["-f", "x", "--wait"], 30), (["--wait", "-f", "x"], 30), (["--wait", "2m", "-f", "x"], 120),
            (["--wait=2s", "-f", "x"], 2), (["-f", "x", "--wait=2s", "--why", "y"], 2),
            (["-f", "x", "--wait", "--why", "y"], 30), (["-f", "x", "--wait", "5"], 5), (["-f", "x"], nil),
            (["-f", "x", "--why=--wait"], nil),
        ] as [([String], Int64?)])
    func places(arguments: [String], seconds: Int64?) throws {
        let apply = try #require(try Fleetctl.command(of: ["apply"] + arguments) as? Apply)
        #expect(apply.wait.wait?.seconds == seconds)
        #expect(apply.file == ["x"])
    }

    @Test(
        "says its time in the largest unit in which it is whole",
        arguments: [
            (1, "1s"), (60, "1m"), (90, "90s"), (5_400, "90m"), (7_200, "2h"), (86_400, "1d"),
        ] as [(Int64, String)])
    func unit(seconds: Int64, text: String) {
        #expect("\(WaitOptions.Limit(seconds: seconds))" == text)
    }

    @Test("leaves the app to delete alone")
    func app() throws {
        let delete = try #require(
            try Fleetctl.command(of: ["delete", "--wait", "com.example.mail", "--target", "all"]) as? Delete)
        #expect(delete.wait.wait?.seconds == 30)
        #expect(delete.app?.text == "com.example.mail")
    }

    @Test(
        "refuses what is no time",
        arguments: [
            ["--wait=banana", "-f", "x"], ["-f", "x", "--wait=banana"], ["--wait", "banana", "-f", "x"],
            ["--wait", "2x", "-f", "x"], ["--wait=", "-f", "x"], ["-f", "x", "--wait=0s"],
        ])
    func noTime(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try Fleetctl.command(of: ["apply"] + arguments) }
        #expect(error.map { Fleetctl.exitCode(for: $0) } == .validationFailure)
    }

    @Test(
        "says how a time is written",
        arguments: [
            (["apply", "-f", "x", "--wait=banana"], "or whole seconds, from 1s to 24h"),
            (["apply", "-f", "x", "--wait=25h"], "or whole seconds, from 1s to 24h"),
            (["watch", "--for", "0s"], "or whole seconds, from 1s to 24h"),
            (["get", "events", "--since", "2026-11-21"], "or a time in UTC such as 2026-11-21T07:24:00.000Z"),
        ])
    func expectedTime(arguments: [String], expected: String) {
        let error = #expect(throws: (any Error).self) { try Fleetctl.command(of: arguments) }
        let text = error.map { Fleetctl.message(for: $0) } ?? ""
        #expect(text.contains("expected a duration such as 90s, 5m, 12h, 90d, ") && text.contains(expected), "\(text)")
    }

    @Test("ends with 3 when an app has answered otherwise, and names policy and answer")
    func otherwise() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            _ = try await fleet.controller { asked, _ in
                let answer = Self.progress {
                    $0.applied = 2
                    $0.error = 1
                    $0.unsupported = 3
                }
                return .success(asked.verb == .apply ? Self.applied : answer, next: nil)
            }
            let file = try fleet.write(Self.policy, to: "policy.yaml")
            let result = try await fleet.fleetctl("apply", "--wait", "-f", file)
            #expect(result.status == 3)
            #expect(result.output.hasSuffix("\n\npolicies: 2 applied, 1 error, 3 unsupported"), "\(result.output)")
            #expect(
                result.errors == """
                    fleetctl: not every app has applied it:
                      com.example.mail logLevel: 1 error, 3 unsupported
                    Which devices, and why, is shown by
                      fleetctl get apps --app com.example.mail

                    """)
        }
    }

    @Test("ends with 3 when somebody has changed or deleted meanwhile what was asked for")
    func superseded() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { asked, _ in
                guard asked.verb == .progress else { return .success(Self.applied, next: nil) }
                let superseded = [false, true].map { isDeleted in
                    JSONValue.object([
                        "app": "com.example.mail", "target": "all", "aspect": "log-level", "revision": 8,
                        "by": "@operator.bob", "deleted": .bool(isDeleted),
                    ])
                }
                guard case .object(let members) = Self.progress({ $0.applied = 1 }) else {
                    return .failure(.init(.invalid, "no object"))
                }
                return .success(.object(members + [.init("superseded", .array(superseded))]), next: nil)
            }
            let file = try fleet.write(Self.policy, to: "policy.yaml")
            let result = try await fleet.fleetctl("apply", "-f", file, "--wait", "-o", "json")
            #expect(result.status == 3 && result.output.contains(#""converged": false"#), "\(result)")
            #expect(
                result.errors == """
                    fleetctl: what was asked for does not stand any more, and is counted as it stands now:
                      log-level of com.example.mail for all was changed meanwhile by @operator.bob
                      log-level of com.example.mail for all was deleted meanwhile by @operator.bob

                    """)
            #expect(controller.asked.last?.body["documents"]?.arrayValue?.first?["revision"] == 7)
        }
    }

    @Test("ends with 3, and at once, when the controller is restored behind the change", arguments: [0, 1] as [Int64])
    func restored(pending: Int64) async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            @Sendable func told(_ answer: JSONValue, in epoch: Int64) -> Response.Result {
                guard case .object(let members) = answer else { return .failure(.init(.invalid, "no object")) }
                return .success(.object(members + [.init("epoch", .integer(epoch))]), next: nil)
            }
            let controller = try await fleet.controller { _, count in
                switch count {
                case 0: told(Self.applied, in: 5)
                case 1: told(Self.progress { $0.pending = 1 }, in: 5)
                default:
                    told(
                        Self.progress {
                            $0.applied = 1
                            $0.pending = pending
                        }, in: 6)
                }
            }
            let file = try fleet.write(Self.policy, to: "policy.yaml")
            let result = try await fleet.fleetctl("apply", "-f", file, "--wait=3s", "-o", "json")
            #expect(result.status == 3 && result.output.contains(#""converged": false"#), "\(result)")
            #expect(
                result.errors == """
                    fleetctl: the controller was restored from a backup meanwhile, which may have undone the change: it is \
                    waited for no longer
                    Look with `fleetctl get policies`, and say it again where it does not stand.

                    """)
            #expect(controller.asked.count == 3)
        }
    }

    @Test("goes on where the controller cannot say how far it is just now")
    func unavailable() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { _, count in
                switch count {
                case 0: .success(Self.applied, next: nil)
                case 1: .success(Self.progress { $0.pending = 1 }, next: nil)
                case 2: .failure(Response.Failure(.unavailable, "its disk is full"))
                default: .success(Self.progress { $0.applied = 1 }, next: nil)
                }
            }
            let file = try fleet.write(Self.policy, to: "policy.yaml")
            let result = try await fleet.fleetctl("apply", "-f", file, "--wait=1m")
            #expect(result.status == 0, "\(result.errors)")
            #expect(controller.asked.count == 4)
        }
    }

    @Test(
        "of which nothing could be read says that the change is made, shows it, and ends with 3",
        arguments: [
            (.unavailable, "the controller: its disk is full"), (.tooLarge, "refused: its disk is full"),
        ] as [(Response.Failure.Code, String)])
    func unknown(code: Response.Failure.Code, why: String) async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            _ = try await fleet.controller { asked, _ in
                asked.verb == .apply
                    ? .success(Self.applied, next: nil) : .failure(Response.Failure(code, "its disk is full"))
            }
            let file = try fleet.write(Self.policy, to: "policy.yaml")
            let result = try await fleet.fleetctl("apply", "-f", file, "--wait=1s", "-o", "json")
            #expect(result.status == 3)
            #expect(result.output.contains(#""changed": true"#), "\(result.output)")
            #expect(
                result.errors == """
                    fleetctl: the change is made, and how far the devices are could not be read: \(why)

                    """)
        }
    }

    @Test("asks for many apps in parts")
    func parts() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { asked, _ in
                guard asked.verb == .progress else {
                    let results = (asked.body["changes"]?.arrayValue ?? []).map { change in
                        JSONValue.object([
                            "app": change["app"] ?? .null, "target": "all", "aspect": "log-level", "revision": 7,
                            "changed": true,
                        ])
                    }
                    return .success(.object(["results": .array(results), "warnings": []]), next: nil)
                }
                var counts = OutcomeCounts()
                counts.applied = 1
                var rows: [JSONValue] = []
                for document in asked.body["documents"]?.arrayValue ?? [] {
                    let app = AppID(unchecked: document["app"]?.stringValue ?? "")
                    rows.append(StatusRow(app: app, policy: .logLevel, counts: counts, offline: 0).value)
                }
                return .success(.object(["rows": .array(rows), "waiting": []]), next: nil)
            }
            let documents = (1...150).map { Self.policy.replacing("com.example.mail", with: "app-\($0)") }
            let file = try fleet.write(documents.joined(separator: "---\n"), to: "policy.yaml")
            let result = try await fleet.fleetctl("apply", "-f", file, "--wait")
            #expect(result.status == 0 && result.output.hasSuffix("\n\npolicies: 150 applied"), "\(result)")
            let asked = controller.asked.filter { $0.verb == .progress }
            #expect(asked.map { $0.body["documents"]?.arrayValue?.count } == [100, 50])
        }
    }

    @Test("has names looked for once, at the end, and counts alone before")
    func names() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { asked, _ in
                .success(asked.verb == .apply ? Self.applied : Self.progress { $0.pending = 1 }, next: nil)
            }
            let file = try fleet.write(Self.policy, to: "policy.yaml")
            #expect(try await fleet.fleetctl("apply", "-f", file, "--wait=1s").status == 3)
            let asked = controller.asked.filter { $0.verb == .progress }.map { $0.body["names"] }
            #expect(asked.count > 1 && asked.last == .some(nil), "\(asked)")
            #expect(asked.dropLast().allSatisfy { $0 == .bool(false) }, "\(asked)")
        }
    }

    @Test("interrupted before the controller has answered says that nobody knows, and ends with 4")
    func interruptedEarly() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { _, _ in nil }
            let file = try fleet.write(Self.policy, to: "policy.yaml")
            let process = try await fixture.process(
                try program(named: "fleetctl"), ["apply", "-f", file, "--home", fleet.home.path])
            try await until("the command asks") { controller.asked.count > 0 }
            process.signal(SIGINT)
            #expect(await process.exited() == 4)
            #expect(
                await process.allErrors()
                    == "fleetctl: interrupted\nWhether the change was made is not known: look with `fleetctl get`.\n")
        }
    }

    @Test("ends with 3 also where nobody reads what it says", arguments: ["table", "json"])
    func unread(format: String) async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            _ = try await fleet.controller { asked, _ in
                .success(asked.verb == .apply ? Self.applied : Self.progress { $0.pending = 1 }, next: nil)
            }
            let file = try fleet.write(Self.policy, to: "policy.yaml")
            let result = try await run(
                URL(fileURLWithPath: "/bin/bash"),
                [
                    "-c", #""$0" apply -f "$1" --wait=1s -o "$2" | true; exit "${PIPESTATUS[0]}""#,
                    try program(named: "fleetctl").path, file, format,
                ], environment: ["FLEETCTL_HOME": fleet.home.path])
            #expect(result.status == 3, "\(result.errors)")
        }
    }

    @Test("shows the change before it waits, and says what an interruption leaves", arguments: ["table", "json"])
    func interrupted(format: String) async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { asked, _ in
                .success(asked.verb == .apply ? Self.applied : Self.progress { $0.pending = 1 }, next: nil)
            }
            let file = try fleet.write(Self.policy, to: "policy.yaml")
            let process = try await fixture.process(
                try program(named: "fleetctl"),
                ["apply", "-f", file, "--wait=1d", "-o", format, "--home", fleet.home.path])
            var lines = process.lines.makeAsyncIterator()
            if format == "table" {
                #expect(await lines.next()?.hasPrefix("APP ") == true)
                #expect(await lines.next()?.hasSuffix("changed") == true)
            }
            try await until("the command waits") { controller.asked.count > 1 }
            process.signal(SIGINT)
            #expect(await process.exited() == 130)
            #expect(
                await process.allErrors()
                    == "fleetctl: interrupted: the change is made, and not waited for any longer; see `fleetctl status`\n"
            )
            if format == "json" { #expect(await lines.next() == "{") }
        }
    }
}
