import FleetProtocol
import Testing

@testable import FleetController

@Suite("The list of events")
struct EventListTests {
    private func numbers(_ world: World, _ body: String = "{}") throws -> [String] {
        try world.body(.events, body)["events"]?.arrayValue?.map { row in
            "\(row["device"]?.stringValue ?? "")/\(row["number"]?.integerValue ?? 0)"
        } ?? []
    }

    private func tell(_ world: World, _ reply: Address.Reply, _ number: Int64, _ rest: String) {
        let text =
            #"{"v":1,"device":"till-1","app":"\#(mail)","incarnation":1,"boot":1,"number":\#(number),"oldest":1,"#
            + #""at":"\#(World.start)",\#(rest)}"#
        world.receive(.reply(till, mail, reply), Array(text.utf8))
    }

    @Test("the newest stored comes first, those of one moment as their device has numbered them")
    func order() throws {
        let world = try World()
        world.connect()
        world.event(till2, notes, number: 1)
        world.pass(seconds: 10)
        world.event(till, mail, number: 2)
        world.event(till, mail, number: 1)
        #expect(try numbers(world) == ["till-1/2", "till-1/1", "till-2/1"])
        let since = world.now.advanced(bySeconds: -5)
        #expect(try numbers(world, #"{"since":"\#(since)"}"#) == ["till-1/2", "till-1/1"])
        #expect(try numbers(world, #"{"since":"\#(world.now.advanced(bySeconds: 1))"}"#) == [])
        #expect(try numbers(world, #"{"device":"till-2"}"#) == ["till-2/1"])
        #expect(try numbers(world, #"{"device":"till-3"}"#) == [])
        #expect(try numbers(world, #"{"app":"\#(mail)"}"#) == ["till-1/2", "till-1/1"])
        #expect(try numbers(world, #"{"app":"\#(mail)","device":"till-2"}"#) == [])
        #expect(try numbers(world, #"{"kind":"wiped"}"#) == [])
    }

    @Test("each says what it tells of; what only a newer agent knows is there by its number")
    func content() throws {
        let world = try World()
        world.connect()
        world.pass(seconds: 10)
        tell(world, .event, 1, #""event":"blocked","action":"openURL","target":"https://a.example\u202e""#)
        tell(world, .logLevel, 2, #""old":"status","new":"debug","why":"codeEntered","until":"\#(World.start)""#)
        tell(world, .event, 3, #""event":"exploded""#)
        tell(world, .event, 4, #""event":"wiped","message":"policy""#)
        let rows = try #require(try world.body(.events, "{}")["events"]?.arrayValue)
        let start = World.start.description
        func row(_ number: Int64, _ kind: JSONValue, _ rest: [JSONValue.Member]) -> JSONValue {
            .object(
                [
                    .init("device", "till-1"), .init("app", .string(mail.text)), .init("kind", kind),
                    .init("at", .string(start)), .init("storedAt", .string(world.now.description)),
                    .init("incarnation", 1), .init("boot", 1), .init("number", .integer(number)),
                ] + rest)
        }
        #expect(
            rows == [
                row(4, "wiped", [.init("message", "policy")]), row(3, "unknown", []),
                row(
                    2, "logLevel",
                    [
                        .init("old", "status"), .init("new", "debug"), .init("why", "codeEntered"),
                        .init("until", .string(start)),
                    ]),
                row(1, "blocked", [.init("action", "openURL"), .init("target", "https://a.example")]),
            ])
        for (kind, number) in [("wiped", 4), ("unknown", 3), ("logLevel", 2), ("blocked", 1)] {
            #expect(try numbers(world, #"{"kind":"\#(kind)"}"#) == ["till-1/\(number)"])
        }
    }

    @Test(
        "a rare kind among very many is found page after page, each looking through so many",
        arguments: [
            #""kind":"wiped""#, #""kind":"wiped","app":"com.example.mail""#, #""kind":"wiped","device":"till-1""#,
        ])
    func rare(filter: String) throws {
        let world = try World()
        world.connect()
        world.event(till, mail, number: 1)
        try world.store.transaction {
            try $0.run(
                """
                WITH RECURSIVE more (number) AS (SELECT 2 UNION ALL SELECT number + 1 FROM more WHERE number < 240000)
                INSERT INTO events
                SELECT 1, 1, 1, number, '\(mail)', iif(number % 80000 = 7, 'wiped', 'ready'), 0, number / 100, X'7B7D'
                FROM more
                """)
        }
        var found: [Int64?] = []
        var pages = 0
        var page: String?
        repeat {
            let next = page.map { #","page":"\#($0)""# } ?? ""
            guard case .success(let body, let more) = try world.ask(.events, "{\(filter)\(next)}").result else {
                Issue.record("refused")
                return
            }
            found += body["events"]?.arrayValue?.map { $0["number"]?.integerValue } ?? []
            page = more
            pages += 1
        } while page != nil && pages < 100
        #expect(found == [160_007, 80_007, 7])
        #expect(pages == (filter.contains("device") ? 1 : 3))
    }

    @Test(
        "old events go when that was asked for, but what tells of destroyed keys, and what waits behind a hole",
        arguments: [10 * 86_400, nil])
    func old(life: Int64?) throws {
        let world = try World(eventLife: life)
        world.connect()
        world.event(till, mail, number: 1)
        tell(world, .event, 2, #""event":"wiped","message":"policy""#)
        world.event(till, mail, number: 4)
        for _ in 1...230 { world.pass(seconds: 3_600) }
        #expect(try numbers(world) == ["till-1/4", "till-1/2", "till-1/1"])
        for _ in 1...11 { world.pass(seconds: 3_600) }
        #expect(try numbers(world) == ["till-1/4", "till-1/2"] + (life == nil ? ["till-1/1"] : []))
        // Nothing comes back, and the numbers go on.
        for number in [1, 3, 5] as [Int64] { world.event(till, mail, number: number) }
        world.pass(seconds: 3_600)
        let old = life == nil ? ["till-1/4", "till-1/2", "till-1/1"] : ["till-1/2"]
        #expect(try numbers(world) == ["till-1/5", "till-1/3"] + old)
    }

    @Test("of many old events some go with each heartbeat")
    func manyOld() throws {
        var batches = ControllerCore.Batches()
        batches.oldEvents = 2
        let world = try World(eventLife: 86_400, batches: batches)
        world.connect()
        for number in 1...7 as ClosedRange<Int64> { world.event(till, mail, number: number) }
        for _ in 1...24 { world.pass(seconds: 3_600) }
        #expect(try numbers(world).count == 7)
        // Housekeeping and a heartbeat at once.
        world.pass(seconds: 3_600)
        #expect(try numbers(world) == ["till-1/7", "till-1/6", "till-1/5"])
        world.pass(seconds: 60)
        #expect(try numbers(world) == ["till-1/7"])
        for _ in 1...5 { world.pass(seconds: 60) }
        #expect(try numbers(world) == [])
    }

    @Test("those that are left of many old events go by the time of before, also when the clock is set meanwhile")
    func manyOldAndSetClock() throws {
        var batches = ControllerCore.Batches()
        batches.oldEvents = 2
        let world = try World(eventLife: 86_400, batches: batches)
        world.connect()
        for number in 1...5 as ClosedRange<Int64> { world.event(till, mail, number: number) }
        for _ in 1...24 { world.pass(seconds: 3_600) }
        for number in 6...9 as ClosedRange<Int64> { world.event(till, mail, number: number) }
        world.pass(seconds: 3_600)
        world.pass(seconds: 75 * 365 * 86_400)
        for _ in 1...5 { world.pass(seconds: 60) }
        #expect(try numbers(world) == ["till-1/9", "till-1/8", "till-1/7", "till-1/6"])
    }

    @Test("by a clock that has just been set no event is dropped")
    func setClock() throws {
        let world = try World(eventLife: 86_400)
        world.connect()
        world.event(till, mail, number: 1)
        world.pass(seconds: 75 * 365 * 86_400)
        for _ in 1...5 { world.pass(seconds: 3_600) }
        #expect(try numbers(world) == ["till-1/1"])
        for _ in 1...2 { world.pass(seconds: 3_600) }
        #expect(try numbers(world) == [])
    }

    @Test("a question that only a later version knows is answered so")
    func unknownVerb() throws {
        let world = try World()
        world.connect()
        let id = RandomID.random()
        func ask(_ topic: String, _ payload: String) -> [String] {
            let before = world.published.count
            let prefix = Address.prefix(of: world.identity.fleetID)
            world.handle(
                .messages([.init(topic: prefix + topic, payload: Array(payload.utf8), isRetained: false)]))
            return world.published.dropFirst(before).filter { $0.topic.contains("/response/") }.map {
                $0.topic + " " + String(decoding: $0.payload, as: UTF8.self)
            }
        }
        let payload = #"{"v":1,"id":"\#(id)","replyTo":"here"}"#
        let answers = ask("control/request/@viewer.x/forecast", payload)
        #expect(answers.count == 1)
        #expect(answers.first?.contains("/control/response/@viewer.x/here {") == true)
        #expect(
            answers.first?.contains(#""code":"invalid","message":"the controller does not know 'forecast'"#) == true)
        for (topic, payload) in [
            ("control/request/@viewer.x/forecast", "{"), ("control/request/@viewer.x/forecast", "[]"),
            ("control/request/@viewer.x/forecast/more", payload), ("control/request/nobody@/forecast", payload),
            ("control/request/@viewer.x", payload), ("control/inquiry/@viewer.x/forecast", payload),
        ] {
            #expect(ask(topic, payload).isEmpty, "\(topic) \(payload)")
        }
        #expect(world.stopped == nil)
    }
}
