import FleetProtocol
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
        #expect(hello.received == EventMark(incarnation: 1, boot: 1, number: 1))
        #expect(hello.clock.fleet == world.identity.fleet)
        // The controller's own reconnect is a new one to everybody.
        world.connect()
        #expect(world.topics(of: "/hello/").count == 2)
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

    @Test("heartbeats come every minute, with times that rise also when the clock is set back")
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

    @Test("a removed device is gone from store and broker, and cleared again if it speaks")
    func removal() throws {
        let world = try World()
        world.connect()
        world.online(till)
        world.report(.fresh(till, mail, at: world.now))
        try world.body(.groupSet, #"{"group":"kiosk","devices":["till-1"]}"#)
        try world.apply(mail, "device/till-1", .config, #"{"values":{}}"#)
        try world.body(.deviceRemove, #"{"device":"till-1"}"#)
        #expect(world.retained.keys.filter { $0.contains("till-1") }.isEmpty)
        #expect(try world.body(.devices, "{}")["devices"] == [])
        #expect(try world.body(.groups, "{}")["groups"]?.arrayValue?.first?["devices"] == [])
        world.online(till)
        #expect(world.retained[world.identity.topic(.presence(.device(till)))] == nil)
        #expect(try world.body(.devices, "{}")["devices"] == [])
        try world.body(.enroll, #"{"device":"till-1"}"#)
        world.online(till)
        #expect(try world.body(.devices, "{}")["devices"]?.arrayValue?.count == 1)
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
