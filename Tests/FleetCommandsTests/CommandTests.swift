import ArgumentParser
import FleetProtocol
import Foundation
import Mosquitto
import Synchronization
import TestSupport
import Testing

@testable import FleetCommands
@testable import FleetHome

@Suite("fleetctl")
struct CommandTests {
    private static let policy = PolicyFileTests.head + "  log-level: {level: info}\n"
    private static let applied = JSONValue.object([
        "results": [
            .object([
                "app": "com.example.mail", "target": "all", "aspect": "log-level", "revision": 7, "changed": true,
            ])
        ],
        "warnings": ["it is late"],
    ])

    private static func progress(pending: Int64) -> JSONValue {
        var counts = OutcomeCounts()
        counts.applied = 2 - pending
        counts.pending = pending
        let row = StatusRow(app: AppID(unchecked: "com.example.mail"), policy: .logLevel, counts: counts, offline: 0)
        return .object([
            "rows": [row.value],
            "waiting": .array(
                pending == 0
                    ? []
                    : [
                        .object([
                            "device": "till-1", "app": "com.example.mail", "policy": "logLevel", "outcome": "pending",
                            "online": true,
                        ])
                    ]),
        ])
    }

    @Test(
        "a device is removed; a broker that cannot be told of it is warned of, also when the command is repeated",
        arguments: [false, true])
    func remove(_ isElsewhere: Bool) async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture, isBrokerElsewhere: isElsewhere)
            let controller = try await fleet.controller { _, _ in .success(.object([]), next: nil) }
            let enrolment = FleetHome.Enrolment(
                device: DeviceID(unchecked: "till-1"), folder: fleet.folder.path + "/till-1", floors: nil)
            try fleet.home.enroll([enrolment], floors: Floors(trust: fleet.home.trust()))
            for _ in 1...2 {
                let result = try await fleet.fleetctl("device", "remove", "till-1")
                #expect(result.status == 0 && result.output == "till-1 is removed", "\(result)")
                #expect(result.errors.contains("warning: the broker was not told") == isElsewhere, "\(result)")
            }
            #expect(controller.asked.map { $0.body["incarnation"]?.integerValue } == [1, 1])
        }
    }

    @Test("who may not remove a device takes nothing from it, and a refusal says what is done already")
    func removeRefused() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { _, _ in .failure(.init(.conflict, "it was enrolled again")) }
            let till = DeviceID(unchecked: "till-1")
            let enrolment = FleetHome.Enrolment(device: till, folder: fleet.folder.path + "/till-1", floors: nil)
            try fleet.home.enroll([enrolment], floors: Floors(trust: fleet.home.trust()))
            #expect(try await fleet.fleetctl("user", "add", "eve", "--viewer").status == 0)
            for user in ["@viewer.eve", "@operator.bob"] {
                let result = try await fleet.fleetctl("device", "remove", "till-1", "--as", user)
                #expect(result.status == 1, "\(result)")
            }
            #expect(try fleet.home.incarnation(of: till) == 1)
            #expect(controller.asked.isEmpty)
            let refused = try await fleet.fleetctl("device", "remove", "till-1")
            #expect(refused.status == 3, "\(refused)")
            #expect(refused.errors.hasPrefix("fleetctl: refused: it was enrolled again\ntill-1 can connect no more"))
            #expect(try fleet.home.incarnation(of: till) == nil)
        }
    }

    @Test(
        "a device that the controller did not remove is not said to be cut off, where the broker was not told either",
        arguments: [true, false])
    func removedUntold(isRefused: Bool) async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture, isBrokerElsewhere: true)
            if isRefused {
                _ = try await fleet.controller { _, _ in .failure(.init(.conflict, "it was enrolled again")) }
            }
            let enrolment = FleetHome.Enrolment(
                device: DeviceID(unchecked: "till-1"), folder: fleet.folder.path + "/till-1", floors: nil)
            try fleet.home.enroll([enrolment], floors: Floors(trust: fleet.home.trust()))
            let result = try await fleet.fleetctl("device", "remove", "till-1")
            #expect(result.status == (isRefused ? 3 : 4), "\(result)")
            #expect(result.errors.hasPrefix("warning: the broker was not told"), "\(result)")
            #expect(
                result.errors.hasSuffix(
                    "\ntill-1 can go on connecting until the broker is sent a SIGHUP, and what it reported is still shown:"
                        + " repeat this command later.\n"), "\(result)")
        }
    }

    @Test(
        "whoever interrupts a change is told that nobody knows whether it is made, and it ends with 4",
        arguments: [
            (["group", "set", "kiosk", "--add", "till-1"], .groupSet, ""),
            (["group", "delete", "kiosk"], .groupDelete, ""),
            (
                ["device", "remove", "till-1"], .deviceRemove,
                "till-1 can connect no more, but what it reported is still shown: repeat this command later.\n"
            ),
        ] as [([String], Verb, String)])
    func interrupted(arguments: [String], verb: Verb, more: String) async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let enrolment = FleetHome.Enrolment(
                device: DeviceID(unchecked: "till-1"), folder: fleet.folder.path + "/till-1", floors: nil)
            try fleet.home.enroll([enrolment], floors: Floors(trust: fleet.home.trust()))
            let controller = try await fleet.controller { _, _ in nil }
            let process = try await fixture.process(
                try program(named: "fleetctl"), arguments + ["--home", fleet.home.path])
            try await until("the command asks") { controller.asked.last?.verb == verb }
            process.signal(SIGINT)
            #expect(await process.exited() == 4)
            #expect(
                await process.allErrors()
                    == "fleetctl: interrupted\nWhether the change was made is not known: look with `fleetctl get`.\n"
                    + more)
        }
    }

    @Test("a removal that is interrupted while it takes the passwords away says what is gone")
    func removalInterrupted() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let enrolment = FleetHome.Enrolment(
                device: DeviceID(unchecked: "till-1"), folder: fleet.folder.path + "/till-1", floors: nil)
            try fleet.home.enroll([enrolment], floors: Floors(trust: fleet.home.trust()))
            let descriptor = open(fleet.home.path + "/changes.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            defer { close(descriptor) }
            var info = stat()
            try #require(flock(descriptor, LOCK_EX) == 0 && fstat(descriptor, &info) == 0)
            let process = try await fixture.process(
                try program(named: "fleetctl"), ["device", "remove", "till-1", "--home", fleet.home.path])
            try await until("the command waits for the lock") {
                try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n").contains {
                    $0.contains("-> FLOCK") && $0.contains(":\(info.st_ino) ")
                }
            }
            process.signal(SIGINT)
            flock(descriptor, LOCK_UN)
            #expect(await process.exited() == 4)
            let errors = await process.allErrors()
            #expect(errors.contains("till-1 can connect no more, but what it reported is still shown"), "\(errors)")
            let passwords = try String(contentsOfFile: fleet.home.path + "/broker/passwd", encoding: .utf8)
            #expect(!passwords.contains("till-1"))
        }
    }

    @Test("an enrolment that is interrupted while it asks leaves nothing")
    func enrolmentInterrupted() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            _ = FileManager.default.createFile(atPath: fleet.home.databasePath, contents: nil)
            let controller = try await fleet.controller { _, _ in nil }
            let out = fleet.folder.path + "/till-1"
            let process = try await fixture.process(
                try program(named: "fleetctl"),
                ["enroll", "device", "till-1", "--out", out, "--home", fleet.home.path])
            try await until("the command asks") { controller.asked.count > 0 }
            #expect(FileManager.default.fileExists(atPath: out))
            process.signal(SIGINT)
            #expect(await process.exited() == 4)
            #expect(await process.allErrors().hasPrefix("fleetctl: interrupted: no device was enrolled; should "))
            #expect(!FileManager.default.fileExists(atPath: out))
            #expect(try fleet.home.incarnation(of: DeviceID(unchecked: "till-1")) == nil)
        }
    }

    @Test("several devices are removed at once; what is wrong with one keeps no other, and keys of one keep all")
    func removeSeveral() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let tills = (1...3).map { DeviceID(unchecked: "till-\($0)") }
            func enroll() throws {
                let enrolments = tills.map {
                    FleetHome.Enrolment(device: $0, folder: fleet.folder.path + "/\($0)", floors: nil)
                }
                try fleet.home.enroll(enrolments, floors: Floors(trust: fleet.home.trust()))
            }
            func left() throws -> [DeviceID] { try tills.filter { try fleet.home.incarnation(of: $0) != nil } }
            try enroll()
            let holding = Mutex(Set(["till-2", "till-3"]))
            let controller = try await fleet.controller { asked, _ in
                let device = asked.body["device"]?.stringValue ?? ""
                if asked.verb == .apps {
                    let app: JSONValue = .object(["app": "a", "keys": "present"])
                    let apps = holding.withLock { $0.contains(device) } ? [app] : []
                    return .success(.object(["apps": .array(apps)]), next: nil)
                }
                if asked.verb == .devices { return .success(.object(["devices": []]), next: nil) }
                switch device {
                case "till-2": return .failure(.init(.conflict, "it was enrolled again"))
                case "stranger": return .failure(.init(.notFound, "there is no device stranger"))
                default: return .success(.object([]), next: nil)
                }
            }
            try "# gone\ntill-3\n\n stranger\n".write(
                toFile: fleet.folder.path + "/ids.txt", atomically: true, encoding: .utf8)
            let command = ["device", "remove", "till-1", "till-2", "till-1", "--from", fleet.folder.path + "/ids.txt"]
            _ = FileManager.default.createFile(atPath: fleet.home.databasePath, contents: nil)
            let refused = try await fleet.fleetctl(command)
            #expect(refused.status == 1, "\(refused)")
            let said =
                "fleetctl: till-2 has the keys of an app (a)\ntill-3 has the keys of an app (a), and would be told"
            #expect(refused.errors.hasPrefix(said), "\(refused)")
            #expect(try left() == tills)

            holding.withLock { $0 = [] }
            let result = try await fleet.fleetctl(command)
            #expect(result.status == 3, "\(result)")
            #expect(result.output == "till-1 is removed\ntill-3 is removed")
            #expect(
                result.errors
                    == "fleetctl: refused: it was enrolled again\ntill-2 can connect no more, but what it reported is still"
                    + " shown: repeat this command later.\nrefused: there is no device stranger\n", "\(result)")
            #expect(try left() == [])
            #expect(controller.asked.filter { $0.verb == .deviceRemove }.count == 4)

            // One who is known nowhere, alone.
            let stranger = try await fleet.fleetctl("device", "remove", "stranger")
            #expect(stranger.status == 1 && stranger.errors.contains("there is no device stranger"), "\(stranger)")
        }
    }

    @Test("whoever removes a device that somebody enrols again meanwhile is told that it is there")
    func removedAndBack() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let till = DeviceID(unchecked: "till-1")
            let (home, path) = (fleet.home, fleet.folder.path)
            @Sendable func enroll(_ folder: String) throws {
                let enrolment = FleetHome.Enrolment(device: till, folder: path + folder, floors: nil)
                try home.enroll([enrolment], floors: Floors(trust: home.trust()))
            }
            try enroll("/till-1")
            let controller = try await fleet.controller { _, _ in
                do {
                    try enroll("/again")
                    return .failure(.init(.conflict, "it was enrolled again"))
                } catch {
                    return .failure(.init(.invalid, "\(error)"))
                }
            }
            let refused = try await fleet.fleetctl("device", "remove", "till-1")
            #expect(refused.status == 3, "\(refused)")
            let said = "fleetctl: refused: it was enrolled again\ntill-1 was enrolled again meanwhile: repeat this"
            #expect(refused.errors.hasPrefix(said), "\(refused)")
            #expect(try home.incarnation(of: till) == 2)
            #expect(controller.asked.count == 1)
        }
    }

    @Test("a device that has keys of apps is not removed, nor one of which nobody knows, unless they may stay there")
    func removeWithKeys() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let till = DeviceID(unchecked: "till-1")
            let enrolment = FleetHome.Enrolment(device: till, folder: fleet.folder.path + "/till-1", floors: nil)
            try fleet.home.enroll([enrolment], floors: Floors(trust: fleet.home.trust()))
            _ = FileManager.default.createFile(atPath: fleet.home.databasePath, contents: nil)
            let unknown = try await fleet.fleetctl("device", "remove", "till-1")
            #expect(unknown.status == 4, "\(unknown)")
            #expect(unknown.errors.contains("\nSo nobody knows whether till-1 has keys of apps; nothing was done."))
            #expect(try fleet.home.incarnation(of: till) == 1)

            let keys = Mutex(["a": "present", "b": "destroyed", "c": "present"])
            let left = Mutex([JSONValue.string("d")])
            let controller = try await fleet.controller { asked, _ in
                if asked.verb == .devices {
                    let device = JSONValue.object(["device": "till-1", "leftKeys": .array(left.withLock { $0 })])
                    return .success(.object(["devices": [device]]), next: nil)
                }
                guard asked.verb == .apps else { return .success(.object([]), next: nil) }
                let apps = keys.withLock { $0 }.sorted { $0.key > $1.key }.map { name, keys in
                    JSONValue.object(["device": "till-1", "app": .string(name), "keys": .string(keys)])
                }
                return .success(.object(["apps": .array(apps)]), next: nil)
            }
            let refused = try await fleet.fleetctl("device", "remove", "till-1")
            #expect(refused.status == 1, "\(refused)")
            #expect(
                refused.errors.hasPrefix("fleetctl: till-1 has the keys of 3 apps (a, c, d), and would be told nothing")
            )
            #expect(try fleet.home.incarnation(of: till) == 1)
            #expect(controller.asked.map(\.verb) == [.apps, .devices])
            // An answer that no controller of ours gives.
            keys.withLock { $0 = ["a\u{1B}[2J": "present"] }
            let forged = try await fleet.fleetctl("device", "remove", "till-1")
            #expect(forged.status == 4 && forged.errors.contains("nothing was done"), "\(forged)")
            #expect(!forged.errors.contains("\u{1B}"))
            // On an earlier disk.
            keys.withLock { $0 = ["a": "destroyed"] }
            #expect(try await fleet.fleetctl("device", "remove", "till-1").status == 1)
            left.withLock { $0 = [] }
            #expect(try await fleet.fleetctl("device", "remove", "till-1").status == 0)
            #expect(try fleet.home.incarnation(of: till) == nil)

            try fleet.home.enroll([enrolment], floors: Floors(trust: fleet.home.trust()))
            keys.withLock { $0 = ["a": "present"] }
            // Its record may be lost.
            let record = fleet.home.path + "/devices/till-1.json"
            try FileManager.default.moveItem(atPath: record, toPath: record + ".lost")
            #expect(try await fleet.fleetctl("device", "remove", "till-1").status == 1)
            try FileManager.default.moveItem(atPath: record + ".lost", toPath: record)
            #expect(try await fleet.fleetctl("device", "remove", "till-1", "--leaving-keys").status == 0)
            #expect(try fleet.home.incarnation(of: till) == nil)
        }
    }

    @Test("whoever enrolls a device anew is told which keys it had: on another disk they are counted no more")
    func enrolledAnew() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            _ = FileManager.default.createFile(atPath: fleet.home.databasePath, contents: nil)
            let floors = Floors(trust: try fleet.home.trust()).value
            let controller = try await fleet.controller { asked, _ in
                if asked.verb == .devices { return .success(.object(["devices": []]), next: nil) }
                guard asked.verb == .apps else { return .success(floors, next: nil) }
                let app = JSONValue.object(["device": "till-1", "app": "com.example.mail", "keys": "present"])
                return .success(.object(["apps": .array([app])]), next: nil)
            }
            let first = try await fleet.fleetctl("enroll", "device", "till-1", "--out", "till-1")
            #expect(first.status == 0 && first.errors == "", "\(first)")
            let again = try await fleet.fleetctl("enroll", "device", "till-1", "--out", "till-1")
            #expect(again.status == 0, "\(again)")
            #expect(
                again.errors.hasPrefix(
                    "note: enrolled before, and the earlier passwords count no more: till-1\n"
                        + "warning: till-1 had the keys of an app (com.example.mail). Should it come back")
            )
            #expect(controller.asked.map(\.verb) == [.enroll, .apps, .devices, .enroll])
        }
    }

    @Test("a home that was put back gives out no incarnation that the controller has heard of")
    func enrolledFromOldHome() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            _ = FileManager.default.createFile(atPath: fleet.home.databasePath, contents: nil)
            var floors = Floors(trust: try fleet.home.trust())
            floors.incarnation = 7
            let answer = floors.value
            let controller = try await fleet.controller { _, _ in .success(answer, next: nil) }
            let enrolled = try await fleet.fleetctl("enroll", "device", "till-1", "--out", "till-1")
            #expect(enrolled.status == 0 && enrolled.output.contains(" 7 "), "\(enrolled)")
            #expect(controller.asked.map { $0.body["incarnation"]?.integerValue } == [1])
            #expect(try fleet.home.incarnation(of: DeviceID(unchecked: "till-1")) == 7)
            let file = try Data(contentsOf: fleet.folder.appendingPathComponent("till-1/agent.json"))
            #expect(try JSONValue(json: Array(file), limit: 65_536)["incarnation"] == 7)
        }
    }

    @Test("the controller gets another password, is started again, and is nobody's viewer")
    func controllerPassword() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let before = try fleet.home.credentials(for: .controller)
            let result = try await fleet.fleetctl("user", "add", "@controller")
            #expect(result.status == 0, "\(result)")
            #expect(result.output.hasPrefix("@controller has a new password, and the old one is void"), "\(result)")
            #expect(result.errors.hasPrefix("note: a controller that runs has to be started again"), "\(result)")
            #expect(try fleet.home.credentials(for: .controller).password != before.password)
            // The broker knows it.
            _ = try await fleet.controller { _, _ in .success(.object([]), next: nil) }
            for wrong in [["--viewer"], ["--out", "here"]] {
                let refused = try await fleet.fleetctl(["user", "add", "@controller"] + wrong)
                #expect(refused.status == 64 || refused.status == 1, "\(refused)")
                #expect(refused.errors.contains("leave out \(wrong[0])"), "\(refused)")
            }
            #expect(try await fleet.fleetctl("user", "remove", "@controller").status == 1)
        }
    }

    @Test("a broker that cannot be told of new passwords is warned of")
    func untold() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture, isBrokerElsewhere: true)
            for end in ["or it does not know this one\n", "or it goes on with the old password\n"] {
                let added = try await fleet.fleetctl("user", "add", "eve")
                #expect(added.status == 0 && added.errors.hasSuffix("needs a SIGHUP, " + end), "\(added)")
            }
            _ = FileManager.default.createFile(atPath: fleet.home.databasePath, contents: nil)
            let floors = Floors(trust: try fleet.home.trust()).value
            _ = try await fleet.controller { _, _ in .success(floors, next: nil) }
            let enrolled = try await fleet.fleetctl("enroll", "device", "till-1", "--out", "till-1")
            #expect(enrolled.status == 0, "\(enrolled)")
            #expect(enrolled.errors.hasPrefix("warning: the broker was not told"), "\(enrolled)")
            let alone = try await fleet.fleetctl(
                "enroll", "device", "till-2", "--out", "till-2", "--without-floors")
            #expect(
                alone.errors
                    == "note: no broker runs on this home that this command could see; one that does needs a SIGHUP, or it"
                    + " goes on without the new passwords\n")
        }
    }

    @Test("a broker that is named is tried twice: the first of its addresses may be nobody's")
    func named() async throws {
        try await withFixture { fixture in
            let port = try freePort()
            let home = try FleetHome.create(
                at: fixture.temporaryFolder().path + "/home", fleet: FleetID(unchecked: "demo"), host: "localhost",
                port: port, brokerUser: "root")
            // Somebody who hangs up on everybody.
            let listener = try TestSupport.listener(on: port)
            let (calls, call) = AsyncStream.makeStream(of: Int32.self)
            Thread.detachNewThread {
                while true {
                    let caller = accept(listener, nil, nil)
                    guard caller >= 0 else { break }
                    close(caller)
                    call.yield(caller)
                }
                close(listener)
                call.finish()
            }
            let result = try await run(try program(named: "fleetctl"), ["status", "--home", home.path])
            #expect(result.status == 4, "\(result)")
            #expect(result.errors.hasPrefix("fleetctl: no broker answers at localhost:\(port): "), "\(result)")
            try await within { for await _ in calls.prefix(2) {} }
            shutdown(listener, Int32(SHUT_RDWR))
        }
    }

    @Test("applies a file, and waits until everyone has followed")
    func apply() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { asked, count in
                asked.verb == .apply
                    ? .success(Self.applied, next: nil) : .success(Self.progress(pending: count < 3 ? 1 : 0), next: nil)
            }
            let file = try fleet.write(Self.policy, to: "policy.yaml")
            let result = try await fleet.fleetctl("apply", "-f", file, "--wait", "--why", "a test")
            #expect(result.status == 0, "\(result.errors)")
            #expect(
                result.output == """
                    APP               TARGET  ASPECT     REVISION  CHANGE
                    com.example.mail  all     log-level         7  changed

                    policies: 2 applied
                    """)
            #expect(result.errors.contains("warning: it is late"))
            let asked = controller.asked
            #expect(asked.map(\.verb) == [.apply, .progress, .progress, .progress])
            #expect(asked.first?.user.text == "@operator.admin")
            #expect(
                asked.first?.body.jsonText
                    == #"{"changes":[{"app":"com.example.mail","target":"all","aspect":"log-level","value":{"level":"info"}}],"why":"a test"}"#
            )
        }
    }

    @Test("a dry run asks what would be, shows what differs and what would move, and changes nothing")
    func dryRun() async throws {
        let plan = #"""
            {"documents":[
              {"app":"com.example.mail","target":"all","aspect":"auth","old":{"state":"authorized","message":""},
               "new":{"state":"retired","message":""}},
              {"app":"com.example.mail","target":"group/kiosk","aspect":"config",
               "old":{"values":{"theme":"light","lang":"de"}},"new":{"values":{"theme":"dark","lang":"de"}}},
              {"app":"com.example.mail","target":"device/till-1","aspect":"log-level","new":{"level":"info"}},
              {"app":"com.example.notes","target":"all","aspect":"config","old":{"values":{}}}
            ],"documentsLeftOut":3,"warnings":["it is late"],"moves":[
              {"before":{"app":"com.example.mail","policy":"auth","counts":{"applied":12},"offline":0,"due":0},
               "after":{"app":"com.example.mail","policy":"auth","counts":{"applied":2,"pending":10},"offline":3,"due":7,
                        "retirement":{"confirmed":1,"outstanding":10}}}
            ],"movesLeftOut":0}
            """#
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { _, _ in
                .success((try? JSONValue(json: Array(plan.utf8), limit: 10_000)) ?? .null, next: nil)
            }
            let file = try fleet.write(Self.policy, to: "policy.yaml")
            let result = try await fleet.fleetctl("apply", "-f", file, "--dry-run")
            #expect(result.status == 0, "\(result.errors)")
            #expect(
                result.output == """
                    dry run: nothing was changed; this is what would be

                    APP                TARGET         ASPECT     CHANGE   OLD                           NEW
                    com.example.mail   all            auth       changed  {"state":"authorized"}        {"state":"retired"}
                    com.example.mail   group/kiosk    config     changed  {"values":{"theme":"light"}}  {"values":{"theme":"dark"}}
                    com.example.mail   device/till-1  log-level  new                                    {"level":"info"}
                    com.example.notes  all            config     deleted  {"values":{}}
                    and 3 more documents

                    APP               POLICY  NOW         WITH THE CHANGE
                    com.example.mail  auth    12 applied  2 applied, 10 pending (3 offline)
                    the keys of com.example.mail would be destroyed on 10 devices, for good
                    """)
            #expect(result.errors.contains("warning: it is late"))
            let asked = controller.asked
            #expect(asked.map(\.verb) == [.plan])
            #expect(
                asked.first?.body.jsonText
                    == #"{"verb":"apply","body":{"changes":[{"app":"com.example.mail","target":"all","aspect":"log-level","value":{"level":"info"}}]}}"#
            )
            for change in [
                ["delete", "com.example.mail", "--target", "all"], ["group", "set", "kiosk", "--add", "till-1"],
                ["group", "delete", "kiosk"],
            ] {
                let result = try await fleet.fleetctl(change + ["--dry-run"])
                #expect(result.status == 0 && result.output.hasPrefix("dry run: "), "\(result)")
            }
            #expect(controller.asked.map(\.verb) == [.plan, .plan, .plan, .plan])
            #expect(controller.asked.last?.body.jsonText == #"{"verb":"group-delete","body":{"group":"kiosk"}}"#)
            let waiting = try await fleet.fleetctl("apply", "-f", file, "--dry-run", "--wait=2s")
            #expect(waiting.status == 64 && waiting.errors.contains("leave out --wait"), "\(waiting)")
        }
    }

    @Test("a dry run tells whether nobody is concerned, or no count moves")
    func dryRunWithoutMoves() throws {
        func last(_ moves: String) throws -> String? {
            let text = #"""
                {"documents":[{"app":"com.example.mail","target":"all","aspect":"auth","old":{"state":"authorized"}}],
                 "documentsLeftOut":0,"warnings":[],"moves":[\#(moves)],"movesLeftOut":0}
                """#
            let body = try JSONValue(json: Array(text.utf8), limit: 10_000)
            return try PlanOptions.report(body.decoded(), body).table.last
        }
        let counts = #"{"app":"com.example.mail","policy":"auth","counts":{"pending":2},"offline":0,"due":0}"#
        #expect(try last("") == "no app that a device has reported would get another policy")
        #expect(try last(#"{"before":\#(counts),"after":\#(counts)}"#) == "the counts would stay as they are")
    }

    @Test("whoever asks what decides on a device that nobody knows is told so")
    func policiesOfNobody() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            _ = try await fleet.controller { asked, _ in
                let policy = JSONValue.object(["app": "com.example.mail", "target": "all", "aspect": "auth"])
                let devices: [JSONValue] = asked.body["device"] == "till-1" ? [.object(["device": "till-1"])] : []
                let rows = asked.verb == .policies ? [policy] : devices
                return .success(.object([JSONValue.Member(asked.verb.rawValue, .array(rows))]), next: nil)
            }
            for (device, note) in [("till-1", ""), ("til-1", "note: nothing is known of device til-1\n")] {
                let result = try await fleet.fleetctl("get", "policies", "--device", device)
                #expect(result.status == 0 && result.errors == note, "\(result)")
            }
        }
    }

    @Test("what is taken away is shown as deleted")
    func delete() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            _ = try await fleet.controller { _, _ in .success(Self.applied, next: nil) }
            let result = try await fleet.fleetctl("delete", "com.example.mail", "--target", "all")
            #expect(result.output.hasSuffix("com.example.mail  all     log-level         7  deleted"), "\(result)")
        }
    }

    @Test("says who has not followed in time, and ends with 3")
    func notConverged() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            _ = try await fleet.controller { asked, _ in
                .success(asked.verb == .apply ? Self.applied : Self.progress(pending: 1), next: nil)
            }
            let file = try fleet.write(Self.policy, to: "policy.yaml")
            let result = try await fleet.fleetctl("apply", "-f", file, "--wait=1s")
            #expect(result.status == 3)
            #expect(
                result.errors.contains(
                    "1 answer has not come within 1s:\n  till-1 com.example.mail logLevel: pending"))
        }
    }

    @Test("sends nothing of a file with a mistake, and ends with 1")
    func mistake() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { _, _ in nil }
            let file = try fleet.write(Self.policy.replacing("info", with: "trace"), to: "policy.yaml")
            let result = try await fleet.fleetctl("apply", "-f", file)
            #expect(result.status == 1)
            #expect(result.errors.hasPrefix("\(file):5:22: spec.log-level.level: unknown value 'trace'"))
            #expect(controller.asked.isEmpty)
        }
    }

    @Test("reads standard input, and shows a refusal in the controller's words")
    func refusal() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            _ = try await fleet.controller { _, _ in .failure(.init(.conflict, "it has moved", at: "changes[0]")) }
            let result = try await fleet.fleetctl("apply", "-f", "-", input: Self.policy)
            #expect(result.status == 1)
            #expect(result.errors.contains("fleetctl: refused: it has moved\n"))
        }
    }

    @Test("sends the same bytes again when no answer comes")
    func repeated() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { _, count in
                count == 0 ? nil : .success(.object(["rows": []]), next: nil)
            }
            let result = try await fleet.fleetctl("status", "-o", "json")
            #expect(result.status == 0)
            #expect(result.output == "[]")
            #expect(controller.asked.count == 2)
            #expect(controller.asked.first?.bytes == controller.asked.last?.bytes)
        }
    }

    @Test("joins the pages of a list")
    func pages() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { _, count in
                .success(
                    .object(["groups": [.object(["group": .string("g\(count)"), "priority": 1, "devices": []])]]),
                    next: count < 2 ? "p\(count)" : nil)
            }
            let result = try await fleet.fleetctl("group", "list")
            #expect(result.output.split(separator: "\n").map { $0.prefix(5) } == ["GROUP", "g0   ", "g1   ", "g2   "])
            #expect(controller.asked.map { $0.body["page"]?.stringValue } == [nil, "p0", "p1"])
        }
    }

    @Test("says that the controller is not running, or the broker, and ends with 4")
    func unreachable() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let alone = try await fleet.fleetctl("status")
            #expect(alone.status == 4)
            #expect(alone.errors.hasPrefix("fleetctl: the controller is not running\n"))
            await fleet.broker.stop()
            let lost = try await fleet.fleetctl("status")
            #expect(lost.status == 4)
            #expect(lost.errors.hasPrefix("fleetctl: no broker answers at 127.0.0.1:\(fleet.broker.port): "))
        }
    }

    @Test(
        "a change that the controller has heard may be made, also when the broker refuses its repetition: that ends with 4"
    )
    func refusedLater() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let acl = URL(fileURLWithPath: fleet.home.path + "/broker/acl")
            let rights = try String(contentsOf: acl, encoding: .utf8)
            let controller = try await fleet.controller { _, _ in
                let fewer = rights.split(separator: "\n").filter { !$0.contains("/request/@operator.") }
                try? Data(fewer.joined(separator: "\n").utf8).write(to: acl)
                fleet.broker.reload()
                return nil
            }
            let result = try await fleet.fleetctl("apply", "-f", "-", input: Self.policy)
            #expect(result.status == 4, "\(result)")
            #expect(result.errors.contains("the broker does not let @operator.admin ask 'apply'"), "\(result)")
            #expect(result.errors.contains("Whether the change was made is not known"), "\(result)")
            #expect(controller.asked.count == 1)
        }
    }

    @Test("a controller of before, which knows no selection, is not taken at its word")
    func olderController() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { _, _ in
                .success(.object(["apps": [.object(["device": "till-1", "app": "a", "keys": "present"])]]), next: nil)
            }
            let selected = try await fleet.fleetctl("get", "apps", "--retirement", "outstanding")
            #expect(selected.status == 1 && selected.output == "", "\(selected)")
            #expect(selected.errors.contains("of an earlier version, which lists all apps alike"), "\(selected)")
            #expect(controller.asked.last?.body["retirement"] == "outstanding")
            #expect(try await fleet.fleetctl("get", "apps").status == 0)
        }
    }

    @Test("a viewer asks under its own name")
    func viewer() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { _, _ in .failure(.init(.forbidden, "viewers may only look")) }
            #expect(try await fleet.fleetctl("user", "add", "eve", "--viewer").status == 0)
            try await until("the broker knows the viewer") {
                let result = try await fleet.fleetctl("group", "delete", "kiosk", "--as", "@viewer.eve")
                return result.status == 1 && result.errors.contains("refused: viewers may only look")
            }
            #expect(controller.asked.last?.user.text == "@viewer.eve")
        }
    }

    @Test("a person runs fleetctl on a folder of one's own, and needs no key of the fleet for it")
    func person() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { _, _ in .success(.object(["groups": []]), next: nil) }
            let added = try await fleet.fleetctl("user", "add", "eve", "--viewer", "--out", "eve")
            #expect(
                added.output
                    == "@viewer.eve may connect; the password is in \(fleet.folder.path)/eve/credentials/@viewer.eve")
            #expect(added.errors.contains("known as 127.0.0.1"), "\(added.errors)")
            try await until("the broker knows the viewer") {
                try await fleet.fleetctl("group", "list", "--home", "eve").status == 0
            }
            #expect(controller.asked.last?.user.text == "@viewer.eve")
            let watched = try await fleet.fleetctl("watch", "--for", "1s", "--home", "eve")
            #expect(watched.status == 0, "\(watched)")
            for command in [["enroll", "device", "x", "--out", "x"], ["user", "list"], ["device", "remove", "x"]] {
                let refused = try await fleet.fleetctl(command + ["--home", "eve"])
                #expect(refused.status == 1, "\(refused)")
                #expect(
                    refused.errors.contains("which has none of the fleet's keys; run this on the fleet's own folder"))
            }
            let other = try await fleet.fleetctl("group", "list", "--home", "eve", "--as", "@operator.admin")
            #expect(other.status == 1 && other.errors.contains("@operator.admin"), "\(other)")
            await fleet.broker.stop()
            let away = try await fleet.fleetctl("group", "list", "--home", "eve")
            #expect(away.status == 4 && !away.errors.contains("mosquitto -c"), "\(away)")
        }
    }

    @Test("enrols a device with the floors that the controller says, and not without them")
    func enrolment() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            #expect(try await fleet.fleetctl("enroll", "device", "till-1", "--out", "first").status == 0)
            _ = FileManager.default.createFile(atPath: fleet.home.databasePath, contents: nil)
            let refused = try await fleet.fleetctl("enroll", "device", "till-1", "--out", "second")
            #expect(refused.status == 4)
            #expect(refused.errors.contains("--without-floors"))
            let second = fleet.folder.path + "/second"
            #expect(!FileManager.default.fileExists(atPath: second), "nothing looks as if it were enrolled")
            #expect(try fleet.home.incarnation(of: DeviceID(unchecked: "till-1")) == 1)

            var floors = Floors(trust: try fleet.home.trust(), epoch: 3)
            floors.set("a", epoch: 2, revision: 9)
            let answer = floors.value
            let controller = try await fleet.controller { asked, _ in
                .success(asked.verb == .enroll ? answer : .object([asked.verb.rawValue: []]), next: nil)
            }
            let result = try await fleet.fleetctl("enroll", "device", "till-1", "--out", "second", "-o", "json")
            #expect(result.status == 0, "\(result.errors)")
            #expect(result.errors == "note: enrolled before, and the earlier passwords count no more: till-1\n")
            #expect(controller.asked.map(\.verb) == [.apps, .devices, .enroll])
            #expect(controller.asked.last?.body.jsonText == #"{"device":"till-1","incarnation":2}"#)
            let agent = try JSONValue(
                json: Array(Data(contentsOf: fleet.folder.appendingPathComponent("second/agent.json"))), limit: 65_536)
            #expect(agent["incarnation"] == 2)
            #expect(agent["epoch"] == 3)
            #expect(agent["floors"] == .object(["a": [2, 9]]))
        }
    }

    @Test("where more documents are in force than an answer can name, it is said how to enrol all the same")
    func enrolmentTooLarge() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            _ = FileManager.default.createFile(atPath: fleet.home.databasePath, contents: nil)
            _ = try await fleet.controller { _, _ in .failure(.init(.tooLarge, "the answer would be too large")) }
            let refused = try await fleet.fleetctl("enroll", "device", "till-1", "--out", "till-1")
            #expect(refused.status == 1, "\(refused)")
            #expect(refused.errors.hasPrefix("fleetctl: refused: the answer would be too large\n"), "\(refused)")
            #expect(refused.errors.contains("--without-floors enrols without"), "\(refused)")
            let enrolled = try await fleet.fleetctl(
                "enroll", "device", "till-1", "--out", "till-1", "--without-floors")
            #expect(enrolled.status == 0, "\(enrolled)")
        }
    }

    @Test("watch shows what happens, one object a line, and nothing of before")
    func watch() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let client = try await fleet.client()
            let id = fleet.home.context.fleet
            let device = DeviceID(unchecked: "till-1")
            let app = AppID(unchecked: "com.example.mail")
            func event(_ number: Int64) -> [UInt8] {
                AppEvent(
                    header: EventHeader(
                        device: device, app: app, incarnation: 1, boot: 1, number: number, oldest: 1,
                        at: Timestamp(milliseconds: 0)),
                    kind: .ready
                ).json
            }
            let topic = Address.reply(device, app, .event).topic(in: id)
            try await client.publish(event(1), to: topic, retain: true)
            let watch = try await fixture.process(
                try program(named: "fleetctl"), ["watch", "-o", "json", "--home", fleet.home.path])
            // The feed is there once somebody hears what is published.
            try await until("the feed has begun") {
                try await client.publish(event(2), to: topic) == .success
            }
            var lines = watch.lines.makeAsyncIterator()
            let line = try #require(await lines.next())
            let value = try JSONValue(json: Array(line.utf8), limit: 4_096)
            #expect(value["kind"] == "event")
            #expect(value["number"] == 2)
            #expect(value["device"] == "till-1")
        }
    }

    @Test("a list offers only what it can be narrowed to")
    func filters() {
        func options(_ command: any ParsableCommand.Type) -> [String] {
            let help = Fleetctl.helpMessage(for: command)
            return ["--app", "--device", "--target"].filter { help.contains("[\($0) ") }
        }
        #expect(options(GetDevices.self) == ["--device"])
        #expect(options(GetApps.self) == ["--app", "--device"])
        #expect(options(GetPolicies.self) == ["--app", "--device", "--target"])
        #expect(options(GetHistory.self) == ["--app", "--target"])
        #expect(options(GetEvents.self) == ["--app", "--device"])
    }

    @Test("says when nothing is known by a name, and shows the empty answer all the same")
    func unknownNames() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let row = StatusRow(app: AppID(unchecked: "a"), policy: .auth, counts: OutcomeCounts(), offline: 0)
            _ = try await fleet.controller { asked, _ in
                .success(
                    .object([
                        asked.verb == .status ? "rows" : asked.verb.rawValue: asked.verb == .status ? [row.value] : []
                    ]), next: nil)
            }
            for (arguments, note) in [
                (["status", "a"], "note: no device has reported app a yet\n"),
                (["get", "devices", "--device", "d"], "note: nothing is known of device d\n"),
                (["get", "apps", "--app", "a", "--device", "d"], "note: nothing was reported of app a, device d\n"),
                (["get", "devices"], ""),
                (["get", "events", "--kind", "wiped"], "note: nothing was told of kind wiped\n"),
                (
                    ["get", "events", "--since", "2026-11-21T07:24:00.000Z"],
                    "note: nothing was told since 2026-11-21 07:24:00\n"
                ),
            ] {
                let result = try await fleet.fleetctl(arguments)
                #expect(result.status == 0)
                #expect(result.errors == note)
                #expect(!result.output.isEmpty)
            }
        }
    }

    @Test(
        "of events and changes the newest come, until there are enough, and whoever sees less than there is is told so",
        arguments: [Verb.events, .history])
    func newest(_ verb: Verb) async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            _ = try await fleet.controller { asked, _ in
                guard asked.verb == verb, let request = try? ListRequest(json: asked.body.json, limit: 1_000) else {
                    return .failure(.init(.invalid, "\(verb) alone"))
                }
                // A page may be empty: what is asked for is further on.
                let first = request.page.flatMap { Int64($0) } ?? 0
                let rows = first == 0 ? [] : (first..<first + 3).map { JSONValue.object(["number": .integer($0)]) }
                let rest = first < 10 ? "\(first + 3)" : nil
                return .success(.object([JSONValue.Member(verb.rawValue, .array(rows))]), next: rest)
            }
            func numbers(_ limit: Int) async throws -> (numbers: [Int64?], errors: String) {
                let result = try await fleet.fleetctl(["get", verb.rawValue, "-o", "json", "--limit", "\(limit)"])
                #expect(result.status == 0)
                let rows = try JSONValue(json: Array(result.output.utf8), limit: 10_000).arrayValue
                return (rows?.map { $0["number"]?.integerValue } ?? [], result.errors)
            }
            let four = try await numbers(4)
            #expect(four.numbers == [3, 4, 5, 6])
            #expect(four.errors == "note: the newest 4 are shown; --limit shows more\n")
            let all = try await numbers(12)
            #expect(all.numbers == Array(3...14) && all.errors == "")
            let ofEvents = [["--since", "yesterday"], ["--kind", "exploded"]]
            for wrong in [["--limit", "0"], ["--limit", "\(Int.max)"]] + (verb == .events ? ofEvents : []) {
                let result = try await fleet.fleetctl(["get", verb.rawValue] + wrong)
                #expect(result.status == 64 && result.errors.contains(wrong[0]), "\(result)")
            }
        }
    }

    @Test("a list that goes on with itself is an error, and not for ever")
    func endless() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            _ = try await fleet.controller { _, _ in .success(.object(["events": .array([])]), next: "here") }
            let result = try await fleet.fleetctl(["get", "events"])
            #expect(result.status == 4)
            #expect(result.errors == "fleetctl: the controller's answer to 'events' never comes to an end\n")
        }
    }

    @Test("output that cannot be written is a failure, unless nobody reads any more")
    func unwritten() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let fleetctl = try program(named: "fleetctl").path
            func shell(_ script: String) async throws -> (status: Int32, output: String, errors: String) {
                try await run(
                    URL(fileURLWithPath: "/bin/bash"), ["-c", script],
                    environment: ["FLEETCTL_HOME": fleet.home.path, "fleetctl": fleetctl])
            }
            let full = try await shell("$fleetctl user list >/dev/full")
            #expect(full.status == 74)
            #expect(full.errors == "fleetctl: the output cannot be written: No space left on device\n")
            let unread = try await shell("$fleetctl user list | true")
            #expect(unread.status == 0)
            #expect(unread.errors == "")
            // A pipe whose reader is gone for certain.
            let gone = try await shell(
                """
                pipe=$(mktemp -u) && mkfifo "$pipe" && exec 3<>"$pipe" 4>"$pipe" 3<&- && rm "$pipe"
                $fleetctl user remove nobody 2>&4; echo $?
                $fleetctl user list >&4; echo $?
                """)
            #expect(gone.output == "1\n0" && gone.errors == "", "\(gone)")
        }
    }

    @Test("an enrolment that cannot be is refused before the controller has heard of the device")
    func impossible() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { _, _ in nil }
            _ = FileManager.default.createFile(atPath: fleet.home.databasePath, contents: nil)
            let result = try await fleet.fleetctl("enroll", "device", "till-1", "--out", "/proc/none/till-1")
            #expect(result.status == 1)
            #expect(controller.asked.isEmpty)
        }
    }

    @Test("a device that only the controller knows can be removed")
    func removeUnrecorded() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let controller = try await fleet.controller { _, count in
                count == 0
                    ? .success(.object([]), next: nil) : .failure(.init(.notFound, "there is no device", at: "device"))
            }
            let known = try await fleet.fleetctl("device", "remove", "till-1")
            #expect(known.status == 0 && known.output == "till-1 is removed", "\(known)")
            let unknown = try await fleet.fleetctl("device", "remove", "till-2")
            #expect(unknown.status == 1 && unknown.errors == "fleetctl: refused: there is no device\n", "\(unknown)")
            #expect(controller.asked.map(\.body.jsonText) == [#"{"device":"till-1"}"#, #"{"device":"till-2"}"#])
        }
    }

    @Test("a list of devices with a mistake is named with its line, and an empty one is a mistake")
    func lists() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            for (text, message) in [
                ("# tills\n\ntill 1\n", ":3: 'till 1' is no device id: expected"), ("# none\n", " names no device"),
            ] {
                let file = try fleet.write(text, to: "ids.txt")
                let result = try await fleet.fleetctl("enroll", "device", "--from", file, "--out", "devices")
                #expect(result.status == 1)
                #expect(result.errors.hasPrefix("fleetctl: \(file)\(message)"), "\(result.errors)")
            }
            let file = try fleet.write("\u{FEFF}till-1\r\ntill-2\r\n", to: "ids.txt")
            let result = try await fleet.fleetctl("enroll", "device", "--from", file, "--out", "devices")
            #expect(result.status == 0, "\(result)")
        }
    }

    @Test("people are added and removed by the name that is shown of them, and the last operator not in silence")
    func people() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            let unknown = try await fleet.fleetctl("status", "--as", "@viewer.eve")
            #expect(unknown.errors.contains("`fleetctl user add eve --viewer`"), "\(unknown)")
            #expect(try await fleet.fleetctl("user", "add", "@viewer.eve").output.contains("@viewer.eve may connect"))
            #expect(try await fleet.fleetctl("user", "add", "eve", "--viewer").output.contains("has a new password"))
            let other = try await fleet.fleetctl("user", "remove", "eve")
            #expect(other.status == 1 && other.errors.contains("`fleetctl user remove eve --viewer`"), "\(other)")
            #expect(try await fleet.fleetctl("user", "remove", "@viewer.eve").errors == "")
            let last = try await fleet.fleetctl("user", "remove", "admin")
            #expect(last.status == 0 && last.errors.hasPrefix("warning: nobody is left"), "\(last)")
        }
    }

    @Test("init says what would fail only later: files that are no certificate or key, or closed to the broker")
    func filesOfTLS() async throws {
        try await withTemporaryFolder { folder in
            func write(_ text: String, _ name: String) throws -> String {
                try Data(text.utf8).write(to: folder.appending(path: name))
                return folder.appending(path: name).path()
            }
            func pem(_ what: String) -> String { "-----BEGIN \(what)-----\nAA==\n-----END \(what)-----\n" }
            let certificate = try write(pem("CERTIFICATE"), "certificate.pem")
            let key = try write(pem("EC PRIVATE KEY"), "key.pem")
            let encrypted = try write(pem("ENCRYPTED PRIVATE KEY"), "encrypted.pem")
            func initialise(_ files: [String], _ options: [String] = []) async throws -> (
                status: Int32, output: String, errors: String
            ) {
                try await run(
                    try program(named: "fleetctl"),
                    ["init", "demo", "--tls-ca", files[0], "--tls-certificate", files[1], "--tls-key", files[2]]
                        + options,
                    in: folder)
            }
            let swapped = try await initialise([certificate, key, certificate])
            #expect(
                swapped.status == 1 && swapped.errors.contains("\(key) holds no certificate in PEM form"), "\(swapped)")
            let locked = try await initialise([certificate, certificate, encrypted])
            #expect(locked.status == 1 && locked.errors.contains("pass phrase at each start"), "\(locked)")
            let open = try await initialise(
                [certificate, certificate, key], ["--listen", "0.0.0.0", "--broker-user", "root"])
            #expect(open.status == 0, "\(open)")
            #expect(
                open.errors
                    == "warning: devices are told to find the broker at 127.0.0.1, which is each device itself: name it with --host\n"
            )
        }
    }

    @Test("init warns of a key that the broker's user cannot read", .enabled(if: geteuid() == 0))
    func closedKey() async throws {
        try await withTemporaryFolder { folder in
            let home = try FleetHome.create(
                at: folder.appending(path: "demo").path(), fleet: FleetID(unchecked: "demo"), brokerUser: "root")
            #expect(home.filesClosedToBroker == [])
            let key = "/tmp/fleetbus-test-\(RandomID.random()).pem"
            defer { try? FileManager.default.removeItem(atPath: key) }
            try Data().write(to: URL(filePath: key))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
            let nobody = FleetHome(
                path: home.path,
                context: HomeContext(
                    fleet: home.context.fleet, uuid: home.context.uuid, host: "a", port: 1, listen: "a",
                    brokerUser: "nobody",
                    tls: HomeContext.TLS(authority: "/etc/passwd", certificate: "/etc/passwd", key: key)))
            #expect(nobody.filesClosedToBroker == [key])
        }
    }

    @Test(
        "a fleet is not made of what cannot work",
        arguments: [
            (["--listen", "everywhere"], 64, "--listen everywhere: expected an address"),
            (["--host", "my host"], 64, "--host 'my host': expected a name or an address"),
            (["--fleet", "Ünï"], 64, "'Ünï' is no fleet id: expected 1 to 48 of A–Z"),
            (["--tls-ca", "ca", "--tls-certificate", "c", "--tls-key", "k"], 1, "reading ca failed: No such file"),
        ] as [([String], Int32, String)])
    func initialised(options: [String], status: Int32, message: String) async throws {
        try await withTemporaryFolder { folder in
            let result = try await run(
                try program(named: "fleetctl"), ["init", folder.path + "/demo"] + options, in: folder)
            #expect(result.status == status)
            #expect(result.errors.contains(message), "\(result.errors)")
            #expect(!FileManager.default.fileExists(atPath: folder.path + "/demo"))
        }
    }

    @Test("the folders above a fleet's are open to all whatever the umask says, and its own is not")
    func closedByUmask() async throws {
        try await withTemporaryFolder { folder in
            let result = try await run(
                URL(fileURLWithPath: "/bin/bash"),
                [
                    "-c", #"umask 077; "$0" init new/demo --broker-user "$(id -un)""#,
                    try program(named: "fleetctl").path,
                ], in: folder)
            #expect(result.status == 0, "\(result)")
            func mode(_ path: String) throws -> Int? {
                try FileManager.default.attributesOfItem(atPath: folder.path + path)[.posixPermissions] as? Int
            }
            #expect(try mode("/new") == 0o755)
            #expect(try mode("/new/demo").map { $0 & 0o007 } == 0)
        }
    }

    @Test("only root chooses as whom the broker runs; everybody may name themselves")
    func brokerUser() {
        #expect(Init.canRun(as: nil, by: "eve", isRoot: false))
        #expect(Init.canRun(as: "eve", by: "eve", isRoot: false))
        #expect(Init.canRun(as: "mosquitto", by: "root", isRoot: true))
        #expect(!Init.canRun(as: "mosquitto", by: "eve", isRoot: false))
    }

    @Test("wrong usage ends with 64")
    func usage() async throws {
        try await withFixture { fixture in
            let fleet = try await CommandFleet.start(fixture)
            #expect(try await fleet.fleetctl("apply").status == 64)
            #expect(try await fleet.fleetctl("status", "not an id").status == 64)
            #expect(try await fleet.fleetctl("delete", "com.example.mail").status == 64)
            #expect(try await fleet.fleetctl("get", "apps", "--target", "all").status == 64)
            #expect(try await fleet.fleetctl("get", "history", "--device", "till-1").status == 64)
            #expect(try await fleet.fleetctl("help", "nosuch").status == 64)
            for (why, mistake) in [
                (String(repeating: "x", count: 1_001), "1001 characters, where at most 1000"),
                ("a\u{7}b", "a control character"), ("a\nb", "a control character"),
            ] {
                let result = try await fleet.fleetctl("group", "delete", "kiosk", "--why", why)
                #expect(result.status == 64 && result.errors.contains(mistake), "\(result)")
            }
            let unknown = try await fleet.fleetctl("get", "histroy")
            #expect(unknown.status == 64)
            #expect(
                unknown.errors.hasPrefix(
                    "Error: unknown command 'histroy' (did you mean 'history'?): expected devices, apps, policies, history"
                ))
            #expect(try await fleet.fleetctl("--help").output.contains("EXIT STATUS"))
        }
    }

    @Test("the example policy is right")
    func example() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let data = try Data(contentsOf: root.appendingPathComponent("deploy/examples/policy.yaml"))
        let file = try PolicyFile([("policy.yaml", Array(data))])
        #expect(Set(file.changes.map(\.aspect)) == Set(Aspect.allCases))
        #expect(Set(file.changes.map(\.layer.description)) == ["all", "group/kiosk", "device/till-0001"])
        #expect(file.warnings.isEmpty)
    }
}
