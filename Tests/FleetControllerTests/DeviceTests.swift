import FleetProtocol
import Foundation
import GRDB
import TestSupport
import Testing

@testable import FleetController

@Suite("Devices, events and presence")
struct DeviceTests {
    private func marks(_ world: World) throws -> [EventMark] {
        try world.published.filter { $0.topic.contains("/control/received/") }.map {
            try Received(json: SignedDocument(wire: $0.payload).payload, limit: 4_096).mark
        }
    }

    @Test("an event is stored once, and told to be stored at most once a second, after the commit")
    func events() throws {
        let world = try World()
        world.connect()
        world.event(till, mail, number: 1)
        world.event(till, mail, number: 2)
        world.event(till, mail, number: 2)
        world.event(till, notes, number: 3)
        #expect(try marks(world).map(\.number) == [1])
        world.pass(seconds: 1)
        #expect(try marks(world).map(\.number) == [1, 3])
        #expect(try world.store.transaction { try $0.number("SELECT count(*) FROM events") } == 3)
        // Sent again, since the device has not heard: told again.
        world.event(till, mail, number: 1)
        world.pass(seconds: 1)
        #expect(try marks(world).last == EventMark(incarnation: 1, boot: 1, number: 3))
    }

    @Test("what a newer agent tells of is stored as it came, and nothing behind it waits for it")
    func newerEvents() throws {
        let world = try World()
        world.connect()
        func tell(_ reply: Address.Reply, _ number: Int64, _ rest: String) -> [UInt8] {
            let text =
                #"{"v":1,"device":"till-1","app":"\#(mail)","incarnation":1,"boot":1,"number":\#(number),"oldest":1,"#
                + #""at":"\#(world.now)",\#(rest)}"#
            world.receive(.reply(till, mail, reply), Array(text.utf8))
            return Array(text.utf8)
        }
        let told = [
            tell(.event, 1, #""event":"exploded","with":{"force":3}"#),
            tell(.event, 2, #""event":"blocked","action":"dance""#),
            tell(.logLevel, 3, #""old":"status","new":"trace","why":"mood""#),
            tell(.event, 4, #""event":"ready""#),
        ]
        world.pass(seconds: 1)
        #expect(try marks(world).last?.number == 4)
        #expect(try Set(world.store.events().values) == Set(told))
        // Without its number nothing can be said of it.
        _ = tell(.event, 0, #""event":"ready""#)
        #expect(try world.store.events().count == 4)
    }

    @Test("the mark stops before a gap; what the device has dropped is named")
    func gaps() throws {
        let world = try World()
        world.connect()
        world.event(till, mail, number: 1)
        world.event(till, mail, number: 4)
        world.event(till, mail, number: 6)
        world.pass(seconds: 1)
        #expect(try marks(world).last?.number == 1)
        world.event(till, mail, number: 2)
        world.pass(seconds: 1)
        #expect(try marks(world).last?.number == 2)
        world.event(till, mail, number: 9, oldest: 6)
        world.pass(seconds: 1)
        #expect(try marks(world).last?.number == 6)
        let warnings = try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["warnings"]?.arrayValue ?? []
        #expect(warnings.compactMap(\.stringValue).contains { $0.hasPrefix("event 3 of boot 1") })
        #expect(warnings.compactMap(\.stringValue).contains { $0.hasPrefix("event 5 of boot 1") })
        for number in [7, 8] { world.event(till, mail, number: Int64(number), oldest: 6) }
        world.pass(seconds: 1)
        #expect(try marks(world).last?.number == 9)
    }

    @Test("what a device has said before it was removed is not missed when it is enrolled again")
    func gapsOfRemoved() throws {
        let world = try World()
        world.connect()
        for number in [1, 2] { world.event(till, mail, number: Int64(number)) }
        try world.body(.deviceRemove, #"{"device":"till-1"}"#)
        try world.body(.enroll, #"{"device":"till-1"}"#)
        world.event(till, mail, number: 3, oldest: 3)
        world.pass(seconds: 1)
        #expect(try marks(world).last?.number == 3)
        #expect(try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["warnings"] == [])
    }

    @Test("each connection of a device has one hello, signed, with how far its events are stored")
    func hello() throws {
        let world = try World()
        world.connect()
        world.event(till, mail, number: 1)
        let connection = RandomID.random()
        world.online(till, connection: connection)
        world.online(till, connection: connection)
        let hellos = world.published.filter { $0.topic == world.identity.topic(.hello(till)) }
        #expect(hellos.count == 1)
        let signed = try SignedDocument(wire: try #require(hellos.first).payload)
        #expect(signed.kind == .hello)
        #expect(signed.isSigned(by: world.identity.signingKey.publicKey))
        let hello = try Hello(json: signed.payload, limit: 4_096)
        #expect(hello.connection == connection)
        #expect(hello.nonce == connection)
        #expect(hello.received == EventMark(incarnation: 1, boot: 1, number: 1))
        #expect(hello.clock.fleet == world.identity.fleet)
        // The controller's own reconnect is a new one to everybody.
        world.connect()
        #expect(world.topics(of: "/hello/").count == 2)
    }

    @Test("a device that says again that it is there has missed its hello, and has one more: one a heartbeat at most")
    func lostHello() throws {
        let world = try World()
        world.connect()
        // Its turn in the round is far.
        for number in 10..<34 { world.online(DeviceID(unchecked: "till-\(number)")) }
        let last = DeviceID(unchecked: "till-9")
        let connection = RandomID.random()
        func hellos() -> Int { world.topics(of: "/hello/till-9").count }
        // A broker may double each.
        for _ in 0..<2 { world.online(last, connection: connection) }
        #expect(hellos() == 1)
        world.pass(seconds: 60)
        #expect(hellos() == 1)
        world.online(last, connection: connection)
        #expect(hellos() == 2)
        // It answers that one, and gets no other for it.
        for _ in 0..<2 { world.online(last, connection: connection) }
        world.pass(seconds: 60)
        #expect(hellos() == 2)
    }

    @Test("a nonce that a device says is answered at once, once, and is still the one that later hellos answer")
    func nonces() throws {
        let world = try World()
        world.connect()
        let (connection, first, second) = (RandomID.random(), RandomID.random(), RandomID.random())
        world.online(till, connection: connection)
        for nonce in [first, first, second, second] { world.online(till, connection: connection, nonce: nonce) }
        #expect(try hellos(world).map(\.nonce) == [connection, first, second])
        world.online(till, connection: connection)
        #expect(try hellos(world).count == 3)
        world.pass(seconds: 60)
        #expect(try hellos(world).last?.nonce == second)
        // A controller that comes back finds it with what the broker has kept.
        world.online(till, connection: connection, nonce: second)
        world.published = []
        world.connect()
        #expect(try hellos(world).first?.nonce == second)
    }

    /// What the hellos to a device have told it to be lost, since the last look.
    private func lost(_ world: World) throws -> [Set<Hello.Lost>] {
        defer { world.published = [] }
        return try hellos(world).map(\.lost)
    }

    private func hellos(_ world: World) throws -> [Hello] {
        try world.published.filter { $0.topic == world.identity.topic(.hello(till)) }.map {
            try Hello(json: SignedDocument(wire: $0.payload).payload, limit: 4_096)
        }
    }

    @Test("each device is greeted again within ten heartbeats, unless it has left; one that has left is not")
    func rounds() throws {
        let world = try World()
        world.connect()
        let devices = (0..<25).map { DeviceID(unchecked: "till-\($0)") }
        let connection = RandomID.random()
        for device in devices { world.online(device, connection: device == till2 ? connection : .random()) }
        world.offline(till2, connection: connection)
        world.published = []
        for _ in 0..<8 { world.pass(seconds: 60) }
        let asked = world.topics(of: "/hello/")
        #expect(Set(asked) == Set(devices.filter { $0 != till2 }.map { world.identity.topic(.hello($0)) }))
        #expect(asked.count == 24)
    }

    @Test(
        "one that comes later is greeted again within ten heartbeats too, and who speaks itself takes nobody's turn",
        arguments: [7, 10, 25])
    func rounds(ofNewcomers count: Int) throws {
        let world = try World()
        world.connect()
        func ids(_ numbers: Range<Int>) -> [DeviceID] { numbers.map { DeviceID(unchecked: "till-\($0)") } }
        var connections: [DeviceID: RandomID] = [:]
        func come(_ devices: [DeviceID]) {
            for device in devices {
                connections[device] = .random()
                world.online(device, connection: connections[device] ?? .random())
            }
        }
        come(ids(0..<count))
        world.pass(seconds: 60)
        come(ids(count..<count + 3))
        world.published = []
        var greetedAt: [String: Int] = [:]
        for beat in 1...30 {
            // The first one says each time that it has missed something.
            world.online(ids(0..<1)[0], connection: connections[ids(0..<1)[0]] ?? .random(), nonce: .random())
            world.pass(seconds: 60)
            for topic in world.topics(of: "/hello/") { greetedAt[topic] = beat }
            world.published = []
            for device in ids(1..<count + 3) {
                let last = greetedAt[world.identity.topic(.hello(device))] ?? 0
                #expect(beat - last < 11, "\(device) at heartbeat \(beat)")
            }
        }
    }

    @Test("a status that a presence tells of and that never came is asked for, once a round")
    func lostStatus() throws {
        let world = try World()
        world.connect()
        let connection = RandomID.random()
        func online(reported: Int64?) {
            world.online(
                till, connection: connection,
                apps: [Presence.App(id: mail, sdk: "1.0", implements: [], reported: reported)])
        }
        online(reported: nil)
        #expect(try lost(world) == [[]])
        online(reported: 1)
        #expect(try lost(world) == [[.statuses]])
        online(reported: 1)
        #expect(try lost(world).isEmpty, "what did not help is not tried at once again")
        world.report(.fresh(till, mail, sequence: 4, at: world.now))
        for _ in 0..<20 { world.pass(seconds: 60) }
        _ = try lost(world)
        online(reported: 4)
        #expect(try lost(world).isEmpty)
        online(reported: 5)
        #expect(try lost(world) == [[.statuses]])
    }

    @Test("what a device is to be told is kept while nobody may be greeted, also when it says again that it is there")
    func lostWhileRepairing() throws {
        let world = try World()
        world.connect()
        try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        world.retained[world.identity.topic(.desired(.all, mail, .config))] = nil
        world.dropsDocuments = true
        world.connect()
        let connection = RandomID.random()
        for reported in [1, 1, nil] as [Int64?] {
            world.online(
                till, connection: connection,
                apps: [Presence.App(id: mail, sdk: "1.0", implements: [], reported: reported)])
        }
        #expect(try lost(world).isEmpty)
        world.dropsDocuments = false
        for _ in 0..<2 { world.pass(seconds: 60) }
        #expect(try lost(world) == [[.statuses]])
    }

    @Test("a device that is there says again what somebody has cleared; one that was taken out does not")
    func cleared() throws {
        let world = try World()
        world.connect()
        let connection = RandomID.random()
        world.online(till, connection: connection)
        #expect(try lost(world) == [[]])
        world.receive(.reply(till2, mail, .status), [])
        world.receive(.reply(till, mail, .logLevel), [])
        #expect(try lost(world).isEmpty)
        world.receive(.presence(.device(till)), [])
        world.receive(.reply(till, mail, .status), [])
        #expect(try lost(world) == [[], [.statuses]])
        world.offline(till, connection: connection)
        world.receive(.reply(till, mail, .status), [])
        #expect(try lost(world).isEmpty)
        world.online(till)
        _ = try lost(world)
        try world.body(.deviceRemove, #"{"device":"till-1"}"#)
        #expect(try lost(world).isEmpty)
    }

    @Test("what is cleared of a device while the controller looks around is said again with the next heartbeat")
    func clearedWhileLooking() throws {
        let world = try World()
        let devices = (0..<25).map { DeviceID(unchecked: "till-\($0)") }
        let last = try #require(devices.max())
        let effects = world.core.handle(.connected(.random()), at: world.now)
        for device in devices { world.online(device) }
        world.receive(.reply(last, mail, .status), [])
        for case .publish(let topic, let payload, false) in effects {
            world.handle(.messages([.init(topic: topic, payload: payload, isRetained: false)]))
        }
        #expect(world.topics(of: "/hello/").count == 25)
        world.published = []
        world.pass(seconds: 60)
        let asked = try #require(world.published.first { $0.topic == world.identity.topic(.hello(last)) })
        let hello = try Hello(json: SignedDocument(wire: asked.payload).payload, limit: 4_096)
        #expect(hello.lost == [.statuses])
        #expect(world.topics(of: "/hello/").count == 4, "it, and the first three of the round")
    }

    @Test("a device that has other documents than it should is told so, when they have had the time to arrive")
    func lostDocument() throws {
        let world = try World()
        world.connect()
        let connection = RandomID.random()
        func online(_ revisions: [Int64]?, trust: Int64 = 1) {
            world.online(
                till, connection: connection, apps: [Presence.App(id: mail, sdk: "1.0", implements: [])],
                documents: revisions?.reduce(into: Presence.Documents(trust: trust)) { $0.add($1) })
        }
        online(nil)
        try world.body(.groupSet, "{\"group\":\"kiosk\",\"priority\":2,\"add\":[\"till-1\"]}")
        let all = try world.apply(mail, "all", .config, "{\"values\":{\"a\":\"b\"}}")
        let group = try world.apply(mail, "group/kiosk", .config, "{\"values\":{\"a\":\"c\"}}")
        try world.apply(notes, "all", .config, "{\"values\":{\"a\":\"d\"}}")
        try world.apply(mail, "device/till-2", .config, "{\"values\":{\"a\":\"e\"}}")
        let meta = try #require(world.document(.groupMeta(kiosk))).revision.number
        let membership = try #require(world.document(.membership(till))).revision.number
        _ = try lost(world)
        online([])
        #expect(try lost(world).isEmpty, "they may be under way")
        world.pass(seconds: 31)
        online([all, group, meta, membership])
        #expect(try lost(world).isEmpty)
        online([all, meta, membership])
        let wanted = [
            Address.desired(.all, mail, .config), .desired(.group(kiosk), mail, .config), .groupMeta(kiosk),
            .membership(till),
        ].reduce(into: [:]) { $0[$1] = world.document($1)?.revision }
        #expect(try hellos(world).last?.documents == Digest(of: wanted))
        #expect(try lost(world) == [[.documents]])
        // A tombstone that did not arrive is missed as well.
        try world.body(
            .delete, "{\"documents\":[{\"app\":\"\(mail)\",\"target\":\"all\",\"aspect\":\"config\"}]}")
        for _ in 0..<20 { world.pass(seconds: 60) }
        _ = try lost(world)
        online([group, meta, membership])
        #expect(try lost(world).isEmpty)
        online([all, group, meta, membership])
        #expect(try lost(world) == [[.documents]])
        for _ in 0..<20 { world.pass(seconds: 60) }
        _ = try lost(world)
        online([group, meta, membership], trust: 0)
        #expect(try lost(world) == [[.documents]])
        // One that was issued while the clock was ahead is missed too, and not only when that time has come.
        world.pass(seconds: 86_400)
        try world.apply(mail, "all", .config, "{\"values\":{\"a\":\"f\"}}")
        world.pass(seconds: -86_400)
        for _ in 0..<20 { world.pass(seconds: 60) }
        _ = try lost(world)
        online([group, meta, membership])
        #expect(try lost(world) == [[.documents]])
    }

    @Test(
        "a device that keeps other documents although it is told so is shown with a warning, until it has them")
    func deafDevice() throws {
        let world = try World()
        world.connect()
        let connection = RandomID.random()
        func online(_ revisions: [Int64], connection: RandomID) {
            world.online(
                till, connection: connection, apps: [Presence.App(id: mail, sdk: "1.0", implements: [])],
                documents: revisions.reduce(into: Presence.Documents(trust: 1)) { $0.add($1) })
        }
        func warnings() throws -> [String] {
            let rows = try world.body(.devices, "{}")["devices"]?.arrayValue ?? []
            return rows.flatMap { $0["warnings"]?.arrayValue ?? [] }.compactMap(\.stringValue)
        }
        /// It answers every minute; answers how often it is told.
        func pass(minutes: Int, _ revisions: [Int64]) throws -> Int {
            _ = try lost(world)
            for _ in 0..<minutes {
                world.pass(seconds: 60)
                online(revisions, connection: connection)
            }
            return try lost(world).count { $0.contains(.documents) }
        }
        online([], connection: connection)
        let revision = try world.apply(mail, "all", .config, "{\"values\":{\"a\":\"b\"}}")
        #expect(try pass(minutes: 20, []) == 20, "it is the only one, and asked in each minute")
        #expect(try warnings().isEmpty, "some of it may have been lost again")
        // That it has them for once begins it all anew.
        #expect(try pass(minutes: 1, [revision]) == 0)
        #expect(try pass(minutes: 20, []) == 20)
        #expect(try warnings().isEmpty)
        _ = try pass(minutes: 5, [])
        #expect(try warnings() == [DeviceWarning.hasOthers])
        #expect(world.logs.count { $0.details["what"] == DeviceWarning.hasOthers } == 1)
        // A new connection has not been told anything yet, and what is shown stays until it is otherwise: it is asked with
        // the next heartbeat, wherever its turn is.
        for device in (0..<25).map({ DeviceID(unchecked: "till-0\($0)") }) { world.online(device) }
        world.offline(till, connection: connection)
        world.published = []
        let next = RandomID.random()
        online([], connection: next)
        #expect(try warnings() == [DeviceWarning.hasOthers])
        #expect(world.topics(of: "/hello/\(till)").count == 1, "its first")
        world.pass(seconds: 60)
        #expect(world.topics(of: "/hello/\(till)").count == 2)
        online([revision], connection: next)
        #expect(try warnings().isEmpty)
    }

    @Test("a device that invents apps takes no number from those that others have")
    func inventedApps() throws {
        let world = try World()
        world.connect()
        world.online(till)
        for number in 0..<100 {
            world.report(.fresh(till, AppID(unchecked: "app-\(number)"), at: world.now))
        }
        #expect(try world.body(.apps, "{}")["apps"]?.arrayValue?.count == Presence.maximumApps)
        let names = try world.store.transaction { try $0.number("SELECT count(*) FROM apps") }
        #expect(names == Int64(Presence.maximumApps))
        #expect(world.logs.contains { $0.details["what"]?.contains("app-99 is left out") == true })
    }

    @Test("the controller's own marker is said again while it does not come back")
    func lostBarrier() throws {
        let world = try World()
        let effects = world.core.handle(.connected(.random()), at: world.now)
        func barriers(_ effects: [ControllerCore.Effect]) -> Int {
            effects.count { if case .publish(let topic, _, _) = $0 { topic.contains("/barrier/") } else { false } }
        }
        #expect(barriers(effects) == 1)
        let asleep = world.core.handle(.enrolments([:]), at: world.now)
        #expect(asleep.contains(.wake(at: world.now.advanced(bySeconds: 30))))
        #expect(barriers(world.core.handle(.tick, at: world.now.advanced(bySeconds: 29))) == 0)
        world.pass(seconds: 30)
        #expect(!world.topics(of: "control/heartbeat").isEmpty, "it serves")
        #expect(world.topics(of: "/barrier/").count == 2, "and says it behind each heartbeat")
    }

    @Test("a connection on which the broker shows nothing of what the controller says is left for another one")
    func clogged() throws {
        let world = try World()
        /// Seconds until the controller has had enough.
        func patience() -> Int64 {
            let before = world.reconnects
            var seconds: Int64 = 0
            while world.reconnects == before, seconds < 10_000 {
                world.pass(seconds: 10)
                seconds += 10
            }
            return seconds
        }
        world.connect()
        world.pass(seconds: 3_000)
        for _ in 0..<100 { world.pass(seconds: 60) }
        #expect(world.reconnects == 0)
        world.dropsMarkers = true
        #expect((300...360).contains(patience()))
        for _ in 0..<100 { world.pass(seconds: 60) }
        #expect(world.reconnects == 1, "it is asked for once, and then waited for")
        // Now it does not even begin to serve, and waits twice as long.
        world.connect()
        #expect((600...660).contains(patience()))
        world.connect()
        for _ in 0..<200 {
            world.pass(seconds: 30)
            world.handle(.messages([ControllerCore.Message(topic: "other", payload: [], isRetained: true)]))
        }
        #expect(world.reconnects == 2, "a broker that still shows what it keeps has not had the time")
        world.dropsMarkers = false
        world.pass(seconds: 30)
        world.dropsMarkers = true
        #expect((300...360).contains(patience()))
    }

    @Test("who is woken too early, since the clock was set back meanwhile, asks to be woken again")
    func earlyWake() throws {
        let world = try World()
        world.connect()
        _ = world.core.handle(.enrolments([:]), at: world.now)
        let next = world.now.advanced(bySeconds: 60)
        for seconds: Int64 in [30, 30, 59] {
            let effects = world.core.handle(.tick, at: world.now.advanced(bySeconds: seconds))
            #expect(effects.contains(.wake(at: next)))
        }
    }

    @Test("a device whose first word is cleared in the same moment is asked again with the next heartbeat")
    func clearedAtOnce() throws {
        let world = try World()
        world.connect()
        for number in 10..<29 { world.online(DeviceID(unchecked: "till-\(number)")) }
        let last = DeviceID(unchecked: "till-9")
        let topic = world.identity.topic(.presence(.device(last)))
        let presence = Presence(
            state: .online, incarnation: 1, boot: 1, connection: .random(), since: world.now, agent: "fleet-agent/1",
            apps: [])
        let effects = world.core.handle(
            .messages([
                .init(topic: topic, payload: presence.json, isRetained: false),
                .init(topic: topic, payload: [], isRetained: false),
            ]), at: world.now)
        func greets(_ effects: [ControllerCore.Effect]) -> Bool {
            effects.contains {
                if case .publish(let topic, _, _) = $0 { topic.hasSuffix("/hello/till-9") } else { false }
            }
        }
        #expect(greets(effects))
        #expect(greets(world.core.handle(.tick, at: world.now.advanced(bySeconds: 60))))
    }

    @Test("the home is read again when a reading of it has not come to its end")
    func failedReading() throws {
        let world = try World()
        let next = world.now.advanced(bySeconds: 10)
        let effects = world.core.handle(.connected(.random()), at: world.now)
        #expect(effects.contains(.readEnrolments) && effects.contains(.wake(at: next)))
        #expect(!world.core.handle(.tick, at: next.advanced(bySeconds: -1)).contains(.readEnrolments))
        #expect(world.core.handle(.tick, at: next).contains(.readEnrolments))
    }

    @Test("the will of an earlier connection is dropped, and a retained presence is not heard from the device itself")
    func presence() throws {
        let world = try World()
        world.connect()
        func state(_ world: World) throws -> JSONValue? {
            try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["state"]
        }
        let (first, second) = (RandomID.random(), RandomID.random())
        world.online(till, connection: first)
        world.online(till, connection: second)
        world.offline(till, connection: first)
        #expect(try state(world) == "online")
        world.offline(till, connection: second)
        #expect(try state(world) == "offline")
        world.online(till)
        world.connect()
        #expect(try state(world) == "unknown")
        world.report(.fresh(till, mail, at: world.now))
        #expect(try state(world) == "online")
    }

    @Test("a device that came and went while the controller was away is offline, by what the broker has kept of it")
    func cameAndWent() throws {
        let world = try World()
        world.connect()
        func state() throws -> JSONValue? {
            try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["state"]
        }
        world.online(till)
        world.handle(.disconnected)
        world.offline(till, connection: .random())
        world.handle(.connected(.random()))
        #expect(try state() == "offline")
        world.online(till, boot: 2)
        #expect(try state() == "online")
        // A broker with an old database.
        world.handle(.disconnected)
        world.offline(till, connection: .random())
        world.handle(.connected(.random()))
        #expect(try state() == "unknown")
        // Who has spoken on this connection is there, whatever is shown behind it.
        world.report(.fresh(till, mail, boot: 2, at: world.now))
        let will = Presence(
            state: .offline, incarnation: 1, boot: 2, connection: .random(), since: world.now, agent: "1.0", apps: [])
        world.receive(.presence(.device(till)), will.json, isRetained: true)
        #expect(try state() == "online")
    }

    @Test("heartbeats come every minute, with times that go on evenly also when the clock is set back")
    func heartbeats() throws {
        let world = try World()
        world.connect()
        world.pass(seconds: 60)
        world.pass(seconds: -3_600)
        world.pass(seconds: 30)
        world.pass(seconds: 30)
        let times = try world.published.filter { $0.topic.hasSuffix("control/heartbeat") }.map {
            try Heartbeat(json: SignedDocument(wire: $0.payload).payload, limit: 4_096).clock.at
        }
        #expect(times.count == 4)
        #expect(times == times.sorted() && Set(times).count == times.count)
        #expect(zip(times, times.dropFirst()).map { $1.milliseconds - $0.milliseconds } == [60_000, 1, 59_999])
    }

    @Test(
        "however many are greeted at one moment, the times that are signed run no faster for it, and each device hears later ones"
    )
    func timesOfMany() throws {
        let world = try World()
        world.connect()
        let connections = (0..<1_200).map { _ in RandomID.random() }
        for round in 0..<3 {
            for (number, connection) in connections.enumerated() {
                let nonce = round == 0 ? nil : RandomID.random()
                world.online(DeviceID(unchecked: "till-\(number)"), connection: connection, nonce: nonce)
            }
            world.pass(seconds: 60)
            world.pass(seconds: 3_600)
            world.pass(seconds: -3_600)
        }
        var last: [String: Timestamp] = [:]
        var heartbeats: [Timestamp] = []
        for message in world.published where message.topic.contains("/control/h") {
            let payload = try SignedDocument(wire: message.payload).payload
            let isHello = message.topic.contains("/hello/")
            let time =
                isHello
                ? try Hello(json: payload, limit: 4_096).clock.at : try Heartbeat(json: payload, limit: 4_096).clock.at
            if isHello { #expect(time > last["heartbeat", default: World.start.advanced(bySeconds: -1)]) }
            let key = isHello ? message.topic : "heartbeat"
            #expect(last[key].map { time > $0 } ?? true)
            last[key] = time
            if !isHello { heartbeats.append(time) }
        }
        let passed = try #require(heartbeats.last).milliseconds - heartbeats[0].milliseconds
        #expect(passed >= world.uptime - World.start.milliseconds)
        #expect(passed < world.uptime - World.start.milliseconds + 10)
    }

    @Test("a clock that was set back before a restart takes nobody's contact away")
    func clockBackOverRestart() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "fleet.db").path
            let world = try World(path: path)
            func lastBeat() throws -> Timestamp {
                let wire = try #require(world.published.last { $0.topic.hasSuffix("control/heartbeat") }).payload
                return try Heartbeat(json: SignedDocument(wire: wire).payload, limit: 4_096).clock.at
            }
            world.pass(seconds: 86_400)
            world.connect()
            for _ in 0..<5 { world.pass(seconds: 60) }
            let before = try lastBeat()
            world.pass(seconds: -86_400)
            try world.restart(path: path)
            world.connect()
            let after = try lastBeat()
            #expect(after > before && after < before.advanced(bySeconds: 120))
        }
    }

    @Test(
        "who was enrolled and has never said a word is shown, and who was removed is not until it is enrolled again")
    func enrolledAndSilent() throws {
        let world = try World()
        world.connect()
        func devices() throws -> [String] {
            try #require(try world.body(.devices, "{}")["devices"]?.arrayValue).map {
                "\($0["device"]?.stringValue ?? "") \($0["state"]?.stringValue ?? "") \($0["warnings"]?.arrayValue?.count ?? 0)"
            }
        }
        let other = DeviceID(unchecked: "till-2")
        world.handle(.enrolments([till: 1, other: 3]))
        #expect(try devices() == ["till-1 unknown 0", "till-2 unknown 0"])
        world.online(till)
        #expect(try devices() == ["till-1 online 0", "till-2 unknown 0"])
        try world.body(.deviceRemove, #"{"device":"till-2"}"#)
        world.handle(.enrolments([till: 1]))
        #expect(try devices() == ["till-1 online 0"])
        world.handle(.enrolments([till: 1, other: 4]))
        #expect(try devices() == ["till-1 online 0", "till-2 unknown 0"])
        world.handle(.enrolments([till: 1]))
        #expect(try devices() == ["till-1 online 0", "till-2 unknown 1"], "the home has it no more")
    }

    @Test(
        "who was removed, and is let in again by a home that was put back, is shown with a warning until it is removed or enrolled"
    )
    func letInAgain() throws {
        let world = try World()
        world.connect()
        world.handle(.enrolments([till: 1]))
        world.online(till)
        world.report(.fresh(till, mail, at: world.now))
        func counted() throws -> Int64 { try world.store.transaction { try $0.warnedDeviceCount() } }
        for end in [Verb.deviceRemove, .enroll] {
            try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
            world.pass(seconds: 10)
            world.handle(.enrolments([:]))
            #expect(try world.body(.devices, "{}")["devices"] == [])
            let asked = world.asksForEnrolments
            world.pass(seconds: 10)
            world.online(till)
            world.online(till)
            #expect(world.asksForEnrolments == asked, "not with each word")
            world.pass(seconds: 60)
            #expect(world.asksForEnrolments > asked, "who speaks can connect")
            let said = world.logs.filter { $0.details["what"] == DeviceWarning.isFormer }
            #expect(said.map { $0.details["device"] } == ["till-1"], "once in a run")
            world.handle(.enrolments([till: 1]))
            #expect(
                try warnings(world).first?.stringValue?.hasPrefix("was removed, and stands in the fleet") == true)
            #expect(try counted() == 1)
            world.online(till)
            world.report(.fresh(till, mail, at: world.now))
            let row = try world.body(.devices, "{}")["devices"]?.arrayValue?.first
            #expect(row?["state"] == "online" && row?["apps"] == 1)
            #expect(try warnings(world).count == 1, "whatever it says")
            if end == .enroll {
                #expect(try world.body(.enroll, #"{"device":"till-1"}"#)["incarnation"] == 2)
                world.pass(seconds: 10)
                world.handle(.enrolments([till: 2]))
                world.online(till, incarnation: 2)
                let left = try warnings(world).compactMap(\.stringValue)
                #expect(!left.contains { $0.hasPrefix("was removed") }, "\(left)")
            }
        }
    }

    @Test(
        "keys of a group's app, of who is in it no more, are in doubt until they are gone, also on a device that is let in again"
    )
    func keysOfLetIn() throws {
        let world = try World()
        world.connect()
        try world.body(.groupSet, #"{"group":"kiosk","add":["till-1"]}"#)
        world.handle(.enrolments([till: 1]))
        world.online(till, boot: 500, after: 400, disk: 100)
        var status = Status.fresh(till, mail, boot: 500, at: world.now)
        world.report(status)
        try world.body(
            .apply,
            #"{"changes":[{"app":"\#(mail)","target":"group/kiosk","aspect":"auth","value":{"state":"retired"}}]}"#)
        func doubtful() throws -> Int64 {
            try world.store.transaction { try $0.leftKeys(of: mail, retiredBy: $0.retirements(of: mail)).devices }
        }
        for _ in 0..<2 {
            try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
            #expect(try doubtful() == 1)
            world.handle(.enrolments([till: 1]))
            world.online(till, boot: 500, after: 400, disk: 100)
            status.order.sequence += 1
            world.report(status)
            #expect(try doubtful() == 1, "it is not told of the group's retirement any more")
        }
        status.order.sequence += 1
        status.keys = .destroyed
        world.report(status)
        #expect(try doubtful() == 0)
    }

    @Test(
        "those who were enrolled stand in the store by their names: what a batch of reports writes lies close together")
    func enrolledInOrder() throws {
        let world = try World()
        world.connect()
        let names = (0..<200).map { DeviceID(unchecked: "till-\(1_000 + $0)") }
        world.handle(.enrolments(Dictionary(uniqueKeysWithValues: names.map { ($0, 7) })))
        let stored = try world.store.transaction {
            try $0.rows("SELECT name, enrolled FROM devices ORDER BY id").map { ($0[0] as String, $0[1] as Int64?) }
        }
        #expect(stored.map(\.0) == names.map(\.text))
        #expect(stored.allSatisfy { $0.1 == 7 })
    }

    @Test("who has come and gone while nobody listened is shown as what it was")
    func enrolledAndGone() throws {
        let world = try World()
        world.connect()
        world.handle(.enrolments([till: 3]))
        world.offline(till, incarnation: 3, boot: 7, connection: .random(), isRetained: true)
        let device = try world.body(.devices, "{}")["devices"]?.arrayValue?.first
        #expect(
            device?["state"] == "offline" && device?["incarnation"] == 3 && device?["boot"] == 7, "\(device ?? .null)")
    }

    @Test("an incarnation that the home never gave out is a warning")
    func incarnation() throws {
        let world = try World()
        world.connect()
        world.online(till, incarnation: 7)
        #expect(world.asksForEnrolments > 0)
        world.handle(.enrolments([till: 2]))
        let warnings = try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["warnings"]?.arrayValue ?? []
        #expect(warnings.first?.stringValue?.contains("never given out") == true)
    }

    @Test("a registry that is right again takes its warning back")
    func registryPutRight() throws {
        let world = try World()
        world.connect()
        world.online(till, incarnation: 7)
        world.handle(.enrolments([till: 2]))
        #expect(try warnings(world).count == 1)
        world.handle(.enrolments([till: 7]))
        #expect(try warnings(world).isEmpty)
    }

    @Test("a copy's warning stays when the home is read first")
    func copyBeforeHome() throws {
        let world = try World()
        world.connect()
        world.online(till, boot: 3)
        world.online(till, boot: 1)
        #expect(try warnings(world).count == 1)
        world.handle(.enrolments([till: 1]))
        #expect(try warnings(world).count == 1)
    }

    @Test("a device that goes on from an earlier boot than its last one was put back from an image, or runs twice")
    func earlierBranch() throws {
        let world = try World()
        world.connect()
        world.online(till, boot: 100, after: 0)
        world.online(till, boot: 200, after: 100)
        world.online(till, boot: 300, after: 200)
        world.online(till, boot: 300, after: 200)
        #expect(try warnings(world).isEmpty)
        world.online(till, boot: 400, after: 200)
        let warning = "goes on from boot 200, where 300 was the last: a cloned or restored image"
        #expect(try warnings(world) == [.string(warning)])
        world.online(till, boot: 500, after: 400)
        #expect(try warnings(world) == [.string(warning)], "until it is enrolled again")
        world.handle(.enrolments([till: 2]))
        world.online(till, incarnation: 2, boot: 600, after: 500)
        #expect(try warnings(world).isEmpty)
    }

    @Test("also where the start's own statuses have overtaken its presence, and while the controller was away")
    func earlierBranchLate() throws {
        let world = try World()
        world.connect()
        world.online(till, boot: 1, after: 0)
        world.event(till, mail, number: 1)
        world.report(.fresh(till, mail, boot: 2, at: world.now))
        world.online(till, boot: 2, after: 0)
        #expect(try warnings(world).count == 1)
        let other = DeviceID(unchecked: "till-2")
        world.online(other, boot: 100, after: 0)
        world.connect()
        world.online(other, boot: 300, after: 200)
        let times: [Int64] = [1_800_000_000_000, 1_800_000_060_000]
        world.handle(.enrolments([till: 2]))
        world.online(till, incarnation: 2, boot: times[1], after: 0)
        world.online(till, incarnation: 2, boot: times[0], after: 0)
        let backwards = "speaks of boot 2027-01-15T08:00:00.000Z, where 2027-01-15T08:01:00.000Z was the last"
        #expect(try warnings(world).first?.stringValue?.hasPrefix(backwards) == true)
        let row = try world.body(.devices, #"{"device":"till-2"}"#)["devices"]?.arrayValue?.first
        #expect(row?["warnings"]?.arrayValue == [], "what the controller has not heard of is no branch")
    }

    @Test("a device that was enrolled and removed after the backup is a warning too, once the home was read for it")
    func enrolledAndRemovedSince() throws {
        let world = try World()
        world.connect()
        world.handle(.enrolments([:]))
        world.report(.fresh(till, mail, at: world.now), isRetained: true)
        world.handle(.enrolments([:]))
        #expect(try warnings(world).isEmpty, "it came while the home was read")
        world.pass(seconds: 10)
        world.handle(.enrolments([:]))
        #expect(try warnings(world).first?.stringValue?.contains("not enrolled any more") == true)
        try world.body(.deviceRemove, #"{"device":"till-1"}"#)
        #expect(try warnings(world).isEmpty)
    }

    @Test("whoever removes a device is told which of its apps have their keys")
    func removedWithKeys() throws {
        let world = try World()
        world.connect()
        world.online(till)
        var retired = Status.fresh(till, notes, at: world.now)
        retired.keys = .destroyed
        world.report(retired)
        world.report(.fresh(till, mail, at: world.now))
        let warnings = try world.body(.deviceRemove, #"{"device":"till-1"}"#)["warnings"]?.arrayValue ?? []
        #expect(warnings.count == 1)
        #expect(warnings.first?.stringValue?.hasPrefix("till-1 had the keys of an app (\(mail)), and is told") == true)
        #expect(try world.body(.deviceRemove, #"{"device":"till-1"}"#)["warnings"] == [])
    }

    @Test("the keys that whoever removes a device is told of are listed before: also while an app has still to report")
    func listedKeys() throws {
        for hasReported in [false, true] {
            let world = try World()
            world.connect()
            world.handle(.enrolments([till: 1]))
            let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
            world.online(till, boot: 500, after: 400, disk: 100, apps: apps)
            var status = Status.fresh(till, mail, boot: 500, at: world.now)
            status.keys = .destroyed
            world.report(status)
            // On the same disk, as far as is known: a copy may be what has destroyed them.
            world.handle(.enrolments([till: 2]))
            world.online(till, incarnation: 2, boot: 800, after: 500, disk: 100, apps: apps)
            (status.order.incarnation, status.order.boot) = (2, 800)
            if hasReported { world.report(status) }
            let listed = try world.body(.devices, "{}")["devices"]?.arrayValue?.first
            #expect(listed?["leftKeys"] == (hasReported ? nil : ["com.example.mail"]))
            #expect(listed?["warnings"] == [], "nothing is known to be wrong")
            let removal = try world.body(.deviceRemove, #"{"device":"till-1","incarnation":2}"#)
            #expect("\(removal)".contains("till-1 had the keys of") == !hasReported)
        }
    }

    @Test("who was removed, by whom and why, and what was known of its keys, stays in the history")
    func removedInHistory() throws {
        let world = try World()
        world.connect()
        world.online(till)
        try world.body(.groupSet, #"{"group":"kiosk","add":["till-1"]}"#)
        world.report(.fresh(till, mail, at: world.now))
        world.event(till, notes, .wiped, number: 1)
        let wiped = world.now
        world.pass(seconds: 60)
        var retired = Status.fresh(till, notes, at: world.now)
        (retired.authState, retired.keys) = (.retired, .destroyed)
        world.report(retired)
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1,"why":"sold"}"#)
        func history(_ body: String) throws -> [JSONValue] {
            try world.body(.history, body)["history"]?.arrayValue ?? []
        }
        let row = try #require(try history(#"{"target":"device/till-1"}"#).first)
        #expect(row["aspect"] == "removal" && row["app"] == "_device" && row["by"] == "@operator.alice")
        #expect(row["why"] == "sold" && row["new"] == nil)
        #expect(row["revision"]?.integerValue == (try world.store.transaction { try $0.latest().number }))
        let told = [
            #"{"app":"\#(mail)","at":"\#(wiped)","auth":"unauthorized","keys":"present"}"#,
            #"{"app":"\#(notes)","at":"\#(world.now)","auth":"retired","keys":"destroyed","wipedAt":"\#(wiped)"}"#,
        ]
        #expect(
            row["old"]?.jsonText == #"{"incarnation":1,"groups":["kiosk"],"apps":[\#(told.joined(separator: ","))]}"#)
        #expect(
            try history(#"{"target":"group/kiosk"}"#).first?["why"] == "sold", "with it the device has left the group")
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
        #expect(try history(#"{"target":"device/till-1"}"#).first == row, "that is no removal")
        #expect(try world.failure(.deviceRemove, #"{"device":"till-2"}"#).code == .notFound)
        #expect(try history(#"{"target":"device/till-2"}"#).isEmpty)
    }

    @Test("a device that is enrolled again is not shown as online before it has spoken anew")
    func enrolledAgain() throws {
        let world = try World()
        world.connect()
        world.handle(.enrolments([till: 1]))
        world.online(till)
        func state() throws -> JSONValue? { try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["state"] }
        try world.body(.enroll, #"{"device":"till-1"}"#)
        let before = world.asksForEnrolments
        world.handle(.enrolments([till: 1]))
        #expect(try state() == "online", "it is not written down yet")
        world.pass(seconds: 10)
        #expect(world.asksForEnrolments > before)
        world.handle(.enrolments([till: 2]))
        #expect(try state() == "unknown")
        // What it said before that was still under way.
        world.online(till)
        world.report(.fresh(till, mail, at: world.now))
        #expect(try state() == "unknown")
        world.online(till, incarnation: 2)
        #expect(try state() == "online")
    }

    @Test("an event of a device that was taken out, and comes when it is enrolled again, shows nobody as online")
    func eventOfRemoved() throws {
        let world = try World()
        world.connect()
        world.online(till)
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
        try world.body(.enroll, #"{"device":"till-1","incarnation":2}"#)
        func state() throws -> String? {
            try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["state"]?.stringValue
        }
        world.event(till, mail, number: 1)
        #expect(try state() == "unknown")
        world.handle(.enrolments([till: 2]))
        world.event(till, mail, number: 2)
        #expect(try state() == "unknown")
        world.online(till, incarnation: 2)
        #expect(try state() == "online")
    }

    @Test("what was asked for stands beside what is told in the same batch")
    func askedAndTold() throws {
        let world = try World()
        world.connect()
        let connection = RandomID.random()
        let apps = [Presence.App(id: mail, sdk: "1.0", implements: [])]
        world.online(till, connection: connection, apps: apps, documents: Presence.Documents(trust: 1))
        try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        world.pass(seconds: 60)
        _ = try lost(world)
        let presence = Presence(
            state: .online, incarnation: 1, boot: 1, connection: connection, since: world.now, agent: "1.0", apps: apps,
            documents: Presence.Documents(trust: 1))
        world.handle(
            .messages([
                .init(topic: world.identity.topic(.reply(till, mail, .status)), payload: [], isRetained: false),
                .init(topic: world.identity.topic(.presence(.device(till))), payload: presence.json, isRetained: false),
            ]))
        #expect(try lost(world) == [[.documents, .statuses]])
    }

    @Test("which documents a device is to have is told as of the revision that the hello names")
    func askedAndChanged() throws {
        let world = try World()
        world.connect()
        let connection = RandomID.random()
        let apps = [Presence.App(id: mail, sdk: "1.0", implements: [])]
        world.online(till, connection: connection, apps: apps, documents: Presence.Documents(trust: 1))
        world.pass(seconds: 60)
        world.published = []
        // An earlier trust document: it has lost one. A change comes with that.
        let presence = Presence(
            state: .online, incarnation: 1, boot: 1, connection: connection, since: world.now, agent: "1.0", apps: apps,
            documents: Presence.Documents(trust: 0))
        let body = #"{"changes":[{"app":"\#(mail)","target":"all","aspect":"config","value":{"values":{}}}]}"#
        let change = Request(
            id: .random(), replyTo: Name(unchecked: "here"), notAfter: world.now.advanced(bySeconds: 30),
            body: try JSONValue(json: Array(body.utf8), limit: 1_024))
        let operatorTopic = world.identity.topic(.request(World.operatorName, .apply))
        world.handle(
            .messages([
                .init(topic: world.identity.topic(.presence(.device(till))), payload: presence.json, isRetained: false),
                .init(topic: operatorTopic, payload: change.json, isRetained: false),
            ]))
        let said = try #require(world.published.last { $0.topic.hasSuffix("/hello/till-1") })
        let hello = try Hello(json: SignedDocument(wire: said.payload).payload, limit: 4_096)
        #expect(hello.lost == [.documents] && hello.clock.revision == 1)
        let revisions = try world.store.transaction { try $0.revisions(for: till, apps: [mail]) }
        #expect(revisions.count == 1 && hello.documents == Digest(of: revisions))
    }

    @Test("which documents a device is to have is told of the apps that it has by then")
    func askedAndInstalled() throws {
        let world = try World()
        world.connect()
        try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        try world.apply(notes, "all", .config, #"{"values":{"a":"2"}}"#)
        world.pass(seconds: 31)
        // The broker has lost the trust document, and until it has that again nobody is greeted.
        world.retained[world.identity.topic(.trust)] = nil
        world.dropsDocuments = true
        world.connect()
        let connection = RandomID.random()
        var apps = [Presence.App(id: mail, sdk: "1.0", implements: [])]
        world.online(till, connection: connection, apps: apps, documents: Presence.Documents(trust: 1))
        apps.append(Presence.App(id: notes, sdk: "1.0", implements: []))
        world.online(till, connection: connection, apps: apps)
        #expect(try hellos(world).isEmpty)
        // Behind a heartbeat it has its documents, and something else is lost.
        world.pass(seconds: 60)
        apps[0].reported = 1
        world.online(till, connection: connection, apps: apps)
        let trust = try #require(world.published.last { $0.topic.hasSuffix("/trust") })
        world.receive(.trust, trust.payload)
        let hello = try #require(try hellos(world).last)
        let revisions = try world.store.transaction { try $0.revisions(for: till, apps: [mail, notes]) }
        #expect(hello.lost == [.documents, .statuses] && revisions.count == 2)
        #expect(hello.documents == Digest(of: revisions))
    }

    /// But for those of keys on a copy, which come with those of the copy.
    private func warnings(_ world: World) throws -> [JSONValue] {
        let warnings = try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["warnings"]?.arrayValue ?? []
        return warnings.filter { $0.stringValue?.contains("may be on a copy of its disk") == false }
    }

    @Test("the home is asked again for a device that it had not enrolled when the device's floors were asked for")
    func enrolledLater() throws {
        let world = try World()
        world.connect()
        try world.body(.enroll, #"{"device":"till-1"}"#)
        world.handle(.enrolments([:]))
        world.pass(seconds: 10)
        world.handle(.enrolments([:]))
        let before = world.asksForEnrolments
        world.online(till, incarnation: 3)
        world.pass(seconds: 10)
        #expect(world.asksForEnrolments > before)
        world.handle(.enrolments([till: 3]))
        #expect(try world.store.device(till)?.enrolled == 3)
    }

    @Test("also where what was heard last is the status of the later start alone, or that it has left")
    func earlierBranchHidden() throws {
        for isWill in [false, true] {
            let world = try World()
            world.connect()
            world.online(till, boot: 100, after: 0)
            world.online(till, boot: 200, after: 100)
            if isWill {
                world.offline(till, boot: 300, connection: .random(), isRetained: true)
                world.report(.fresh(till, mail, boot: 300, at: world.now), isRetained: true)
            } else {
                world.report(.fresh(till, mail, boot: 300, at: world.now))
            }
            world.online(till, boot: 300, after: 100)
            let warning = "goes on from boot 100, where 200 was the last: a cloned or restored image"
            #expect(try warnings(world) == [.string(warning)])
        }
    }

    @Test("whoever enrols a device from a home that was put back is told of an incarnation that nobody has had")
    func enrolledFromOldHome() throws {
        func next(_ body: String) throws -> Int64? {
            try world.body(.enroll, body)["incarnation"]?.integerValue
        }
        let world = try World()
        world.connect()
        #expect(try next(#"{"device":"till-1"}"#) == 1, "nobody has heard of it")
        world.handle(.enrolments([till: 3]))
        world.online(till, incarnation: 3)
        #expect(try next(#"{"device":"till-1","incarnation":4}"#) == 4)
        #expect(try next(#"{"device":"till-1","incarnation":2}"#) == 5, "4 was just named to somebody")
        world.handle(.enrolments([till: 3]))
        world.pass(seconds: 20)
        world.handle(.enrolments([:]))
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":3}"#)
        #expect(try next(#"{"device":"till-1","incarnation":2}"#) == 4)
        #expect(try world.store.device(till) == nil, "it is as it was")
        world.handle(.enrolments([till: 4]))
        world.online(till, incarnation: 4)
        #expect(try world.store.device(till)?.incarnation == 4)
    }

    @Test("an incarnation that a device has made up is none that others must be above, or that is removed")
    func madeUpIncarnation() throws {
        let world = try World()
        world.connect()
        world.handle(.enrolments([till: 1]))
        world.online(till, incarnation: JSONValue.largestInteger)
        #expect(try world.body(.enroll, #"{"device":"till-1"}"#)["incarnation"] == 2)
        world.pass(seconds: 20)
        world.handle(.enrolments([:]))
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
        #expect(try world.body(.enroll, #"{"device":"till-1","incarnation":2}"#)["incarnation"] == 2)
        world.handle(.enrolments([till: 2]))
        world.online(till, incarnation: 2)
        #expect(try world.store.device(till)?.incarnation == 2)
        #expect(try warnings(world).isEmpty)
    }

    @Test("a presence that the status of its next start has overtaken is no copy's")
    func overtakenPresence() throws {
        let world = try World()
        world.connect()
        world.online(till, boot: 100, after: 0)
        world.report(.fresh(till, mail, boot: 300, at: world.now))
        world.online(till, boot: 200, after: 100)
        world.online(till, boot: 300, after: 200)
        #expect(try warnings(world).isEmpty)
        world.handle(.enrolments([till: 2]))
        let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
        world.online(till, incarnation: 2, boot: 250, after: 120, apps: apps)
        world.online(till, incarnation: 2, boot: 350, after: 250, apps: apps)
        #expect(try warnings(world).isEmpty, "another incarnation begins anew")
    }

    @Test("a device that the home does not have any more is a warning, as after a backup from before its removal")
    func notEnrolled() throws {
        let world = try World()
        world.connect()
        world.online(till, incarnation: 1)
        func warnings() throws -> [JSONValue] {
            try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["warnings"]?.arrayValue ?? []
        }
        world.handle(.enrolments([till: 1]))
        #expect(try warnings().isEmpty)
        world.handle(.enrolments([:]))
        #expect(try warnings().first?.stringValue?.contains("not enrolled any more") == true)
        // The home was put back.
        world.handle(.enrolments([till: 1]))
        #expect(try warnings().isEmpty)
        world.handle(.enrolments([:]))
        #expect(try !warnings().isEmpty)
        // Whoever enrols it again has looked at it.
        world.online(till, incarnation: 2)
        world.handle(.enrolments([till: 2]))
        #expect(try warnings().isEmpty)
    }

    @Test("of keys that may be on an earlier disk operators are told until the device is enrolled once more")
    func earlierDisk() throws {
        let world = try World()
        world.connect()
        func warnings() throws -> [JSONValue] {
            try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["warnings"]?.arrayValue ?? []
        }
        world.online(till, boot: 500, after: 0)
        for app in [mail, notes] { world.report(.fresh(till, app, at: world.now)) }
        var gone = Status.fresh(till, notes, at: world.now)
        gone.order.sequence += 1
        gone.keys = .destroyed
        world.report(gone)
        // The same disk, enrolled again.
        let apps = [mail, notes].map { Presence.App(id: $0, sdk: "1", implements: [], reported: nil) }
        world.online(till, incarnation: 2, boot: 600, after: 500, apps: apps)
        #expect(try warnings().isEmpty)
        for _ in 0..<2 { world.online(till, incarnation: 3, boot: 700, after: 0, apps: apps) }
        let expected = JSONValue.string(
            "came back on another disk: the keys of an app (com.example.mail) may be on the one before")
        #expect(try warnings() == [expected])
        var status = Status.fresh(till, mail, at: world.now)
        (status.order.incarnation, status.order.boot) = (3, 700)
        world.report(status)
        world.online(till, incarnation: 3, boot: 800, after: 700)
        #expect(try warnings() == [expected])
        // Whoever waits for a retirement is told, where it is for this device.
        func otherDisks(_ app: AppID, _ target: String) throws -> JSONValue? {
            let select = #"{"documents":[{"app":"\#(app)","target":"\#(target)","aspect":"auth"}]}"#
            return try world.body(.progress, select)["otherDisks"]
        }
        #expect(try otherDisks(mail, "all") == nil)
        for app in [mail, notes] { try world.apply(app, "all", .auth, #"{"state":"retired"}"#) }
        try world.apply(mail, "device/till-2", .auth, #"{"state":"retired"}"#)
        #expect(try otherDisks(mail, "all") == [.object(["device": "till-1", "app": "com.example.mail"])])
        #expect(try otherDisks(mail, "device/till-2") == nil)
        #expect(try otherDisks(notes, "all") == nil)
        // Nobody can have confirmed a retirement that is for a device that is not there: that is told, and of no other policy.
        let select = #"{"documents":[{"app":"\#(mail)","target":"device/till-2"}]}"#
        let rows = try world.body(.progress, select)["rows"]?.arrayValue ?? []
        #expect(
            rows.compactMap { $0["retirement"] } == [.object(["confirmed": 0, "outstanding": 0])] && rows.count > 1)
        try world.body(.delete, #"{"documents":[{"app":"com.example.mail","target":"all"}]}"#)
        #expect(try otherDisks(mail, "all") == nil)
        world.online(till, incarnation: 4, boot: 900, after: 800, apps: apps)
        #expect(try warnings().isEmpty)
    }

    @Test(
        "also where the first start on the other disk was not heard of, and whatever else is to be said of the device")
    func earlierDiskHeardLate() throws {
        for isControllerAway in [false, true] {
            let world = try World()
            world.connect()
            func device() throws -> JSONValue? {
                try world.body(.devices, "{}")["devices"]?.arrayValue?.first
            }
            world.handle(.enrolments([till: 1]))
            world.online(till, boot: 500, after: 0)
            for app in [mail, notes] { world.report(.fresh(till, app, boot: 500, at: world.now)) }
            try world.apply(mail, "all", .auth, #"{"state":"retired"}"#)
            let apps = [Presence.App(id: notes, sdk: "1", implements: [], reported: nil)]
            if isControllerAway {
                // It is there before the controller is, and its presence waits at the broker.
                let presence = Presence(
                    state: .online, incarnation: 2, boot: 700, previousBoot: 650, connection: .random(),
                    since: world.now,
                    agent: "1.0", apps: apps)
                world.retained[world.identity.topic(.presence(.device(till)))] = presence.json
                world.connect()
            } else {
                world.online(till, incarnation: 2, boot: 700, after: 650, apps: apps)
            }
            let select = #"{"documents":[{"app":"com.example.mail","target":"all","aspect":"auth"}]}"#
            func left() throws -> [JSONValue] { try world.body(.progress, select)["otherDisks"]?.arrayValue ?? [] }
            let expected = JSONValue.object(["device": "till-1", "app": "com.example.mail"])
            #expect(try left() == [expected])
            #expect(try device()?["leftKeys"] == ["com.example.mail"])
            // The home has lost it for a while, and knows it again.
            world.handle(.enrolments([till: 2]))
            world.pass(seconds: 60)
            world.handle(.enrolments([:]))
            #expect(try device()?["warnings"]?.arrayValue?.count == 2)
            world.handle(.enrolments([till: 2]))
            #expect(try device()?["warnings"]?.arrayValue?.count == 1)
            #expect(try left() == [expected])
            // Removed, it is still named to those who wait for that retirement, and not for a later one.
            let removal = try world.body(.deviceRemove, #"{"device":"till-1","incarnation":2}"#)
            #expect("\(removal)".contains("till-1 had the keys of"))
            #expect(
                try left() == [.object(["device": "till-1", "app": "com.example.mail", "removed": true])])
            #expect(try world.counts(mail, .auth).retirement == RetirementCounts(doubtful: 1), "no device is left")
            let change = #"{"app":"com.example.mail","target":"all","aspect":"auth","value":{"state":"retired"}}"#
            try world.body(.apply, #"{"changes":[\#(change)],"again":true}"#)
            #expect(try left() == [])
            #expect(try world.counts(mail, .auth).retirement == nil)
        }
    }

    @Test("also where the app runs on both disks, and nobody has heard of the first start: disks have names")
    func namedDisks() throws {
        for incarnation: Int64 in [1, 2] {
            let world = try World()
            world.connect()
            func left() throws -> JSONValue? {
                try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["leftKeys"]
            }
            let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
            world.online(till, boot: 500, after: 400, disk: 100, apps: apps)
            world.report(.fresh(till, mail, boot: 500, at: world.now))
            world.online(till, boot: 600, after: 500, disk: 100, apps: apps)
            #expect(try left() == nil)
            world.online(till, incarnation: incarnation, boot: 800, after: 700, disk: 700, apps: apps)
            #expect(try left() == ["com.example.mail"])
            var status = Status.fresh(till, mail, boot: 800, at: world.now)
            status.order.incarnation = incarnation
            world.report(status)
            world.online(till, incarnation: incarnation, boot: 900, after: 800, disk: 700, apps: apps)
            world.connect()
            #expect(try left() == ["com.example.mail"])
            world.online(till, incarnation: 3, boot: 950, after: 900, disk: 700, apps: apps)
            #expect(try left() == nil, "somebody has looked at it")
        }
    }

    @Test("also where it came and went while the controller was away, and left no more than its will and a status")
    func diskOfWill() throws {
        for (disk, isFirst) in [(700, true), (700, false), (100, false)] as [(Int64, Bool)] {
            for isWillFirst in [true, false] {
                let world = try World()
                let will = Presence(
                    state: .offline, incarnation: 1, boot: 500, disk: 100, connection: .random(), since: world.now,
                    agent: "1.0", apps: [])
                world.connect()
                if !isWillFirst { world.report(.fresh(till, mail, boot: 500, at: world.now), isRetained: true) }
                world.receive(.presence(.device(till)), will.json, isRetained: true)
                if isWillFirst { world.report(.fresh(till, mail, boot: 500, at: world.now), isRetained: true) }
                let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
                world.online(till, incarnation: 2, boot: 800, after: isFirst ? 0 : 700, disk: disk, apps: apps)
                let left = try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["leftKeys"]
                #expect(left == (disk == 700 ? ["com.example.mail"] : nil), "\(disk) \(isFirst) \(isWillFirst)")
            }
        }
    }

    @Test(
        "what one of two with the same disk has destroyed, the other may have: until the device is enrolled once more")
    func copiedDisks() throws {
        let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
        let copied = JSONValue.object(["device": "till-1", "app": "com.example.mail", "copied": true])
        let heard: [(World) -> Void] = [
            // The other one goes on from where they parted; or an older state was put back; or its report alone comes.
            { $0.online(till, boot: 700, after: 500, disk: 100, apps: apps) },
            { $0.online(till, boot: 550, after: 500, disk: 100, apps: apps) },
            { $0.report(.fresh(till, mail, boot: 500, sequence: 9, at: $0.now)) },
        ]
        for hear in heard {
            let world = try World()
            world.connect()
            func device() throws -> JSONValue? { try world.body(.devices, "{}")["devices"]?.arrayValue?.first }
            func elsewhere(_ target: String = "all") throws -> [JSONValue] {
                let select = #"{"documents":[{"app":"com.example.mail","target":"\#(target)","aspect":"auth"}]}"#
                return try world.body(.progress, select)["otherDisks"]?.arrayValue ?? []
            }
            world.handle(.enrolments([till: 1, till2: 1]))
            world.online(till, boot: 500, after: 400, disk: 100, apps: apps)
            world.online(till, boot: 600, after: 500, disk: 100, apps: apps)
            for name in [till, till2] {
                var status = Status.fresh(name, mail, boot: 600, at: world.now)
                status.keys = .destroyed
                world.report(status)
            }
            for target in ["all", "device/till-2"] { try world.apply(mail, target, .auth, #"{"state":"retired"}"#) }
            #expect(try elsewhere() == [] && device()?["leftKeys"] == nil)
            #expect(try world.counts(mail, .auth).retirement == RetirementCounts(outstanding: 2))
            hear(world)
            #expect(try elsewhere() == [copied])
            #expect(try world.counts(mail, .auth).retirement?.doubtful == 1, "also whoever asks later is told")
            #expect(try elsewhere("device/till-2") == [])
            #expect(try device()?["leftKeys"] == ["com.example.mail"])
            let warning = "the keys of an app (com.example.mail) may be on a copy of its disk, whatever it says of them"
            #expect(try device()?["warnings"]?.arrayValue?.last == .string(warning))
            // Another warning does not take its place.
            world.handle(.enrolments([till2: 1]))
            #expect(try elsewhere() == [copied])
            let count = try device()?["warnings"]?.arrayValue?.count
            #expect(count == 3, "that it is not enrolled any more, is one of two, and may have keys there")
            #expect(try world.store.transaction { try $0.warnedDeviceCount() } == 1)
            world.handle(.enrolments([till: 2, till2: 1]))
            world.online(till, incarnation: 2, boot: 800, after: 700, disk: 100, apps: apps)
            #expect(try elsewhere() == [.object(["device": "till-1", "app": "com.example.mail"])])
            #expect(try world.counts(mail, .auth).retirement?.doubtful == 1, "the other one may have destroyed them")
            var status = Status.fresh(till, mail, boot: 800, at: world.now)
            status.order.incarnation = 2
            world.report(status)
            #expect(try elsewhere() == [], "somebody has looked at it, and it speaks for itself")
        }
    }

    @Test("a device of which there is a copy had keys when it was removed, whatever it had said")
    func copyRemoved() throws {
        let world = try World()
        world.connect()
        world.handle(.enrolments([till: 1]))
        let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
        for (boot, previous) in [(500, 400), (600, 500), (700, 500)] as [(Int64, Int64)] {
            world.online(till, boot: boot, after: previous, disk: 100, apps: apps)
        }
        var status = Status.fresh(till, mail, boot: 700, at: world.now)
        status.keys = .destroyed
        world.report(status)
        try world.apply(mail, "all", .auth, #"{"state":"retired"}"#)
        let removal = try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
        #expect("\(removal)".contains("till-1 had the keys of an app"))
        let select = #"{"documents":[{"app":"com.example.mail","target":"all","aspect":"auth"}]}"#
        #expect(
            try world.body(.progress, select)["otherDisks"]
                == [.object(["device": "till-1", "app": "com.example.mail", "removed": true])])
        // One of the two is back, and does not speak for the other.
        world.handle(.enrolments([till: 2]))
        world.online(till, incarnation: 2, boot: 900, after: 700, disk: 100, apps: apps)
        (status.order.incarnation, status.order.boot) = (2, 900)
        world.report(status)
        #expect(try world.store.leftKeys(of: till) == [])
        #expect(try world.counts(mail, .auth).retirement?.doubtful == 1)
    }

    @Test("also where the app's status on the other disk comes before the presence, and not where it is the same disk")
    func statusBeforePresence() throws {
        for (disk, incarnation) in [(100, 2), (700, 2), (100, 1), (700, 1)] as [(Int64, Int64)] {
            let world = try World()
            world.connect()
            let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
            world.online(till, boot: 500, after: 400, disk: 100, apps: apps)
            world.report(.fresh(till, mail, boot: 500, at: world.now))
            var status = Status.fresh(till, mail, boot: 800, at: world.now)
            status.order.incarnation = incarnation
            status.keys = .destroyed
            world.report(status)
            world.online(till, incarnation: incarnation, boot: 800, after: 600, disk: disk, apps: apps)
            #expect(try world.store.leftKeys(of: till) == (disk == 100 ? [] : [mail]))
            func listed() throws -> JSONValue? { try world.body(.apps, "{}")["apps"]?.arrayValue?.first }
            #expect(try listed()?["doubtful"] == nil)
            try world.apply(mail, "all", .auth, #"{"state":"retired"}"#)
            #expect(try listed()?["doubtful"] == (disk == 100 ? nil : true))
        }
    }

    @Test("also where nobody had told of the disk before: then the presence says whether it is the first start there")
    func statusBeforeFirstPresence() throws {
        for isFirst in [true, false] {
            let world = try World()
            world.connect()
            for app in [mail, notes] { world.report(.fresh(till, app, boot: 500, at: world.now)) }
            var status = Status.fresh(till, mail, boot: 800, at: world.now)
            status.order.incarnation = 2
            world.report(status)
            let apps = [mail, notes].map { Presence.App(id: $0, sdk: "1", implements: [], reported: nil) }
            world.online(till, incarnation: 2, boot: 800, after: isFirst ? 0 : 500, disk: 9, apps: apps)
            #expect(try world.store.leftKeys(of: till) == (isFirst ? [mail, notes] : []))
            // What has been decided is not decided anew.
            world.online(till, incarnation: 2, boot: 900, after: 800, disk: 9, apps: apps)
            #expect(try world.store.leftKeys(of: till) == (isFirst ? [mail, notes] : []))
        }
    }

    @Test("a first start that is told of again is told to operators once, and the keys were on one disk")
    func firstStartToldAgain() throws {
        for disk: Int64? in [700, nil] {
            let world = try World()
            world.connect()
            let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
            world.online(till, boot: 500, after: 400, disk: 100, apps: apps)
            world.report(.fresh(till, mail, boot: 500, at: world.now))
            let connection = RandomID.random()
            for _ in 0..<2 {
                world.online(
                    till, incarnation: 2, boot: 800, after: 0, disk: disk, connection: connection, apps: apps)
            }
            world.connect()
            let disks = try world.store.transaction { try $0.rows("SELECT disk FROM left_keys").map { $0[0] as Int64 } }
            #expect(disks == [100])
            #expect(world.logs.count { "\($0)".contains("came back on another disk") } == 1)
        }
    }

    @Test("also where an older agent runs on the other disk, which it does not name: its reports are not of the first")
    func firstOnDiskWithoutName() throws {
        let world = try World()
        world.connect()
        let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
        world.online(till, boot: 500, after: 400, disk: 100, apps: apps)
        world.report(.fresh(till, mail, boot: 500, at: world.now))
        world.online(till, incarnation: 2, boot: 800, after: 0, apps: apps)
        #expect(try world.store.leftKeys(of: till) == [mail])
        var status = Status.fresh(till, mail, boot: 800, at: world.now)
        status.order.incarnation = 2
        world.report(status)
        world.online(till, incarnation: 2, boot: 900, after: 800, apps: apps)
        #expect(try world.store.leftKeys(of: till) == [mail])
        #expect(try world.store.transaction { try $0.keysOnEarlierDisks(of: till) } == [mail])
    }

    @Test("of a removed device that had not destroyed the keys whoever waits is told, if it was to")
    func removedUnconfirmed() throws {
        let world = try World()
        world.connect()
        world.handle(.enrolments([till: 1, till2: 1]))
        try world.body(.groupSet, #"{"group":"kiosk","devices":["till-1"]}"#)
        for device in [till, till2] {
            world.online(device, disk: 1)
            world.report(.fresh(device, mail, at: world.now))
        }
        for target in ["group/kiosk", "group/other", "device/till-2"] {
            try world.apply(mail, target, .auth, #"{"state":"retired"}"#)
        }
        func left(_ target: String) throws -> [JSONValue] {
            let select = #"{"documents":[{"app":"com.example.mail","target":"\#(target)","aspect":"auth"}]}"#
            return try world.body(.progress, select)["otherDisks"]?.arrayValue ?? []
        }
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
        #expect(
            try left("group/kiosk") == [.object(["device": "till-1", "app": "com.example.mail", "removed": true])])
        for other in ["group/other", "device/till-2"] { #expect(try left(other) == [], "\(other)") }
        // Another machine has its name; then it is back itself, and what it has is counted again.
        world.handle(.enrolments([till: 2, till2: 1]))
        let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
        world.online(till, incarnation: 2, boot: 700, after: 0, disk: 700, apps: apps)
        #expect(try left("group/kiosk").count == 1)
        world.handle(.enrolments([till: 3, till2: 1]))
        world.online(till, incarnation: 3, boot: 800, after: 1, disk: 1, apps: apps)
        #expect(try left("group/kiosk").count == 1, "nobody counts it before it has said what it has")
        var status = Status.fresh(till, mail, boot: 800, at: world.now)
        status.order.incarnation = 3
        world.report(status)
        #expect(try left("group/kiosk") == [])
    }

    @Test(
        "whoever retires an app anew with other words is told of removed devices that are told of no more",
        arguments: [false, true])
    func removedForgotten(isAgain: Bool) throws {
        let world = try World()
        world.connect()
        world.handle(.enrolments([till: 1]))
        world.online(till, disk: 1)
        world.report(.fresh(till, mail, at: world.now))
        func warnings(_ value: String, isAgain: Bool = false) throws -> [String] {
            let change = #"{"app":"com.example.mail","target":"all","aspect":"auth","value":\#(value)}"#
            let answer = try world.body(.apply, #"{"changes":[\#(change)],"again":\#(isAgain)}"#)
            return answer["warnings"]?.arrayValue?.compactMap(\.stringValue).filter { $0.contains("in doubt") } ?? []
        }
        let (first, second) = (#"{"state":"retired"}"#, #"{"state":"retired","message":"sold"}"#)
        let text =
            "the retirement of com.example.mail for all leaves keys of 1 device in doubt: they may be on other disks,"
            + " on copies or on removed devices, and nobody is told of those any more"
        #expect(try warnings(first) == [])
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
        #expect(try warnings(first) == [], "nothing is new")
        #expect(try warnings(second, isAgain: isAgain) == (isAgain ? [] : [text]))
        #expect(try warnings(first) == [], "there is nobody any more of whom it was told")
    }

    @Test("keys on two disks of a removed device are of two: that one of them is back says nothing of the other")
    func removedWithTwoDisks() throws {
        let world = try World()
        world.connect()
        world.handle(.enrolments([till: 1]))
        let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
        for (boot, previous, disk) in [(500, 400, 100), (800, 700, 700)] as [(Int64, Int64, Int64)] {
            world.online(till, boot: boot, after: previous, disk: disk, apps: apps)
            world.report(.fresh(till, mail, boot: boot, at: world.now))
        }
        try world.apply(mail, "all", .auth, #"{"state":"retired"}"#)
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
        world.handle(.enrolments([till: 2]))
        world.online(till, incarnation: 2, boot: 900, after: 800, disk: 700, apps: apps)
        var status = Status.fresh(till, mail, boot: 900, at: world.now)
        status.order.incarnation = 2
        status.keys = .destroyed
        world.report(status)
        #expect(try world.counts(mail, .auth).retirement?.doubtful == 1)
    }

    @Test("keys of a removed device whose disk had no name stay in doubt when another machine has its name")
    func removedWithoutDisk() throws {
        let world = try World()
        world.connect()
        world.handle(.enrolments([till: 1]))
        let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
        world.online(till, boot: 500, after: 400, apps: apps)
        world.report(.fresh(till, mail, boot: 500, at: world.now))
        try world.apply(mail, "all", .auth, #"{"state":"retired"}"#)
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
        world.handle(.enrolments([till: 2]))
        world.online(till, incarnation: 2, boot: 900, after: 0, disk: 700, apps: [])
        #expect(try world.counts(mail, .auth).retirement?.doubtful == 1)
        #expect(try world.store.leftKeys(of: till) == [], "they are not of the machine that is there")
        let change = #"{"app":"com.example.mail","target":"all","aspect":"auth","value":{"state":"retired"}}"#
        try world.body(.apply, #"{"changes":[\#(change)],"again":true}"#)
        #expect(try world.counts(mail, .auth).retirement == nil)
    }

    @Test(
        "an image of a removed device's disk on another machine says nothing of what that device has",
        arguments: [true, false])
    func imageOfRemoved(hasApp: Bool) throws {
        for (previous, doubtful) in [(500, 1), (799, 1), (800, 0), (850, 0)] as [(Int64, Int64)] {
            let world = try World()
            world.connect()
            world.handle(.enrolments([till: 1]))
            let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
            for (boot, before) in [(500, 400), (800, 500)] as [(Int64, Int64)] {
                world.online(till, boot: boot, after: before, disk: 100, apps: apps)
                world.report(.fresh(till, mail, boot: boot, at: world.now))
            }
            try world.apply(mail, "all", .auth, #"{"state":"retired"}"#)
            try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
            world.handle(.enrolments([till: 2]))
            world.online(till, incarnation: 2, boot: 900, after: previous, disk: 100, apps: hasApp ? apps : [])
            if hasApp {
                var status = Status.fresh(till, mail, boot: 900, at: world.now)
                status.order.incarnation = 2
                world.report(status)
            }
            let counts = try world.counts(mail, .auth).retirement ?? RetirementCounts()
            #expect(counts == RetirementCounts(outstanding: hasApp ? 1 : 0, doubtful: doubtful), "after \(previous)")
        }
    }

    @Test("of a removed device tombstones are left, until nobody can have what they withdraw; what it says is cleared")
    func removal() throws {
        let world = try World()
        world.connect()
        world.online(till)
        world.report(.fresh(till, mail, at: world.now))
        try world.body(.groupSet, #"{"group":"kiosk","devices":["till-1"]}"#)
        try world.apply(mail, "device/till-1", .config, #"{"values":{}}"#)
        try world.body(.deviceRemove, #"{"device":"till-1"}"#)
        let left = world.retained.keys.filter { $0.contains("till-1") }
        let told = [Address.membership(till), .desired(.device(till), mail, .config)]
        #expect(left.sorted() == told.map(world.identity.topic).sorted())
        for topic in left {
            let signed = try SignedDocument(wire: try #require(world.retained[topic]))
            #expect(try DesiredDocument(payload: signed.payload, in: world.identity.fleetID).isTombstone)
        }
        #expect(try world.body(.devices, "{}")["devices"] == [])
        #expect(try world.body(.groups, "{}")["groups"]?.arrayValue?.first?["devices"] == [])
        world.online(till)
        #expect(world.retained[world.identity.topic(.presence(.device(till)))] == nil)
        #expect(try world.body(.devices, "{}")["devices"] == [])
        try world.body(.enroll, #"{"device":"till-1"}"#)
        world.online(till)
        #expect(try world.body(.devices, "{}")["devices"]?.arrayValue?.count == 1)
    }

    @Test("a device that was enrolled since is one of the fleet, also where a backup has it as removed")
    func enrolledSince() throws {
        let world = try World()
        world.connect()
        world.online(till, incarnation: 1)
        try world.body(.deviceRemove, #"{"device":"till-1"}"#)
        // Nobody has given this out, as far as the controller knows.
        world.online(till, incarnation: 2)
        #expect(world.retained[world.identity.topic(.presence(.device(till)))] == nil)
        #expect(try world.body(.devices, "{}")["devices"] == [])
        world.handle(.enrolments([till: 2]))
        // What a broker gives back of the one that was removed is none of it.
        world.online(till, incarnation: 1)
        world.report(.fresh(till, mail, at: world.now), isRetained: true)
        let device = try world.body(.devices, "{}")["devices"]?.arrayValue?.first
        #expect(
            device?["state"] == "unknown" && device?["incarnation"] == 0 && device?["apps"] == 0, "\(device ?? .null)")
        #expect(world.retained[world.identity.topic(.reply(till, mail, .status))] == nil)
        world.online(till, incarnation: 2)
        #expect(try world.body(.devices, "{}")["devices"]?.arrayValue?.count == 1)
        try world.body(.deviceRemove, #"{"device":"till-1"}"#)
        world.handle(.enrolments([:]))
        world.online(till, incarnation: 2)
        #expect(try world.body(.devices, "{}")["devices"] == [], "the home has not given out another since")
        // Removing what is removed is done already.
        try world.body(.deviceRemove, #"{"device":"till-1"}"#)
    }

    @Test("what a broker has kept of a device from before it was removed shows nothing when it is enrolled again")
    func leftovers() throws {
        let world = try World()
        world.connect()
        world.online(till)
        let status = Status.fresh(till, mail, at: world.now)
        let topic = world.identity.topic(.reply(till, mail, .status))
        world.report(status)
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
        try world.body(.enroll, #"{"device":"till-1"}"#)
        // Before the home is read, and after.
        for _ in 0..<2 {
            world.report(status, isRetained: true)
            #expect(try world.body(.apps, "{}")["apps"] == [])
            #expect(world.retained[topic] == nil)
            world.handle(.enrolments([till: 2]))
        }
        world.online(till, incarnation: 2)
        var own = status
        own.order.incarnation = 2
        world.report(own, isRetained: true)
        #expect(try world.body(.apps, "{}")["apps"]?.arrayValue?.count == 1)
        // A registry that was restored gives out what it gave out before: its word counts.
        world.handle(.enrolments([till: 1]))
        world.report(.fresh(till, notes, at: world.now))
        #expect(try world.body(.apps, "{}")["apps"]?.arrayValue?.count == 2)
    }

    @Test("an app that a device does not have any more when it is enrolled again waits for nothing")
    func appsOfEarlierDisk() throws {
        let world = try World()
        world.connect()
        world.online(till)
        for app in [mail, notes] { world.report(.fresh(till, app, at: world.now)) }
        // The same disk: all is as it was.
        world.online(till, incarnation: 2, apps: [mail, notes].map { .init(id: $0, sdk: "1", implements: []) })
        #expect(try world.body(.apps, "{}")["apps"]?.arrayValue?.count == 2)
        world.online(till, incarnation: 2, apps: [.init(id: notes, sdk: "1", implements: [])])
        #expect(try world.body(.apps, "{}")["apps"]?.arrayValue?.map { $0["app"]?.stringValue } == [notes.text])
        #expect(world.retained[world.identity.topic(.reply(till, mail, .status))] == nil)
        #expect(world.retained[world.identity.topic(.reply(till, notes, .status))] != nil)
        // A broker's older database.
        world.report(.fresh(till, mail, at: world.now), isRetained: true)
        #expect(world.retained[world.identity.topic(.reply(till, mail, .status))] == nil)
        try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        #expect(try world.counts(mail, .config).counts.pending == 0)
    }

    @Test("what an app says behind the presence that did not name it yet is not cleared with what was said before it")
    func appOfNewDisk() throws {
        let world = try World()
        world.connect()
        world.online(till)
        world.report(.fresh(till, mail, at: world.now))
        let presence = Presence(
            state: .online, incarnation: 2, boot: 1, connection: .random(), since: world.now, agent: "1.0", apps: [])
        var status = Status.fresh(till, mail, at: world.now)
        status.order.incarnation = 2
        let topic = world.identity.topic(.reply(till, mail, .status))
        world.retained[topic] = status.wire
        world.handle(
            .messages([
                .init(topic: world.identity.topic(.presence(.device(till))), payload: presence.json, isRetained: false),
                .init(topic: topic, payload: status.wire, isRetained: false),
            ]))
        #expect(world.retained[topic] == status.wire)
    }

    @Test("the removal of a device of which nothing has come yet is remembered, where the home vouches for it")
    func removalOfUnknown() throws {
        let world = try World()
        world.connect()
        #expect(try world.failure(.deviceRemove, #"{"device":"till-1"}"#).code == .notFound)
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":2}"#)
        world.online(till, incarnation: 2)
        #expect(world.retained[world.identity.topic(.presence(.device(till)))] == nil)
        #expect(try world.body(.devices, "{}")["devices"] == [])
        world.handle(.enrolments([till: 3]))
        world.online(till, incarnation: 3)
        #expect(try world.body(.devices, "{}")["devices"]?.arrayValue?.count == 1)
    }

    @Test("a removal that comes when the device is enrolled again already leaves it alone")
    func lateRemoval() throws {
        let world = try World()
        world.connect()
        world.online(till, incarnation: 1)
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
        try world.body(.enroll, #"{"device":"till-1"}"#)
        world.online(till, incarnation: 2)
        // Nobody has asked the home yet.
        #expect(try world.failure(.deviceRemove, #"{"device":"till-1","incarnation":1}"#).code == .unavailable)
        world.handle(.enrolments([till: 2]))
        #expect(try world.failure(.deviceRemove, #"{"device":"till-1","incarnation":1}"#).code == .conflict)
        #expect(try world.body(.devices, "{}")["devices"]?.arrayValue?.count == 1)
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":2}"#)
        #expect(try world.body(.devices, "{}")["devices"] == [])
    }

    @Test(
        "a removal of what a device was before waits until the home has been read, also when its enrolment is answered again"
    )
    func removalDuringEnrolment() throws {
        let world = try World()
        world.connect()
        world.online(till, incarnation: 1)
        world.handle(.enrolments([till: 1]))
        let id = RandomID.random()
        try world.ask(.enroll, #"{"device":"till-1"}"#, id: id)
        // The controller dies, reads the home at its start, and is asked once more by who has not heard its answer.
        world.core = try ControllerCore(
            store: world.store, identity: world.identity, isRestoring: false, startedAt: world.now)
        world.connect()
        world.handle(.enrolments([till: 1]))
        let asked = world.asksForEnrolments
        try world.ask(.enroll, #"{"device":"till-1"}"#, id: id)
        let removal = #"{"device":"till-1","incarnation":1}"#
        #expect(try world.failure(.deviceRemove, removal).code == .unavailable)
        world.pass(seconds: 11)
        #expect(world.asksForEnrolments == asked + 1)
        world.handle(.enrolments([till: 2]))
        #expect(try world.failure(.deviceRemove, removal).code == .conflict)
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":2}"#)
        // Two enrolments in a row, and the home says nothing of them yet.
        try world.ask(.enroll, #"{"device":"till-1","incarnation":3}"#)
        try world.ask(.enroll, #"{"device":"till-1","incarnation":4}"#)
        #expect(try world.failure(.deviceRemove, #"{"device":"till-1","incarnation":3}"#).code == .unavailable)
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":4}"#)
    }

    @Test("what a device that was enrolled again has no more is gone, also when its presence waits at the broker")
    func missingApps() throws {
        let world = try World()
        world.connect()
        world.online(till, incarnation: 1)
        world.report(.fresh(till, mail, at: world.now))
        let topic = world.identity.topic(.reply(till, mail, .status))
        #expect(world.retained[topic] != nil)
        let again = Presence(
            state: .online, incarnation: 2, boot: 1, connection: .random(), since: world.now, agent: "1.0", apps: [])
        world.retained[world.identity.topic(.presence(.device(till)))] = again.json
        world.connect()
        #expect(try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["apps"] == 0)
        #expect(world.retained[topic] == nil)
    }

    @Test("reports that cannot be read disturb nothing, and more apps than one may have are left out")
    func malformed() throws {
        let world = try World()
        world.connect()
        world.receive(.reply(till, mail, .status), Array("{\"v\":1".utf8))
        world.receive(.reply(till, mail, .event), Array("[]".utf8))
        world.receive(.presence(.device(till)), [0xFF])
        var lying = Status.fresh(till, mail, at: world.now).then(.config, from: .all, 1 << 52, .applied)
        world.report(lying)
        lying.device = till2
        world.receive(.reply(till, mail, .status), lying.wire)
        #expect(world.stopped == nil)
        #expect(try world.body(.devices, "{}")["devices"] == [])
        for number in 0..<70 {
            world.report(.fresh(till, AppID(unchecked: "app\(number)"), at: world.now))
        }
        #expect(try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["apps"] == 64)
    }
}
