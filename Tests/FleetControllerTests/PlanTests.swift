import FleetProtocol
import TestSupport
import Testing

@testable import FleetController

@Suite("Asking what a change would do")
struct PlanTests {
    private static let retirement =
        #"{"changes":[{"app":"com.example.mail","target":"all","aspect":"auth","value":{"state":"retired"}}]}"#

    private func plan(_ world: World, _ verb: Verb, _ body: String) throws -> JSONValue {
        try world.body(.plan, "{\"verb\":\"\(verb.rawValue)\",\"body\":\(body)}")
    }

    @Test("tells what a retirement would move, and changes nothing: not the store, not the bus, not the history")
    func retirement() throws {
        let world = try World()
        world.connect()
        try world.apply(mail, "all", .auth, #"{"state":"authorized"}"#)
        for device in [till, DeviceID(unchecked: "till-2")] { world.report(.fresh(device, mail, at: world.now)) }
        let before = (
            try world.store.wishes().map(\.wire), try world.store.latest(), world.published.count
        )
        let answer = try plan(world, .apply, Self.retirement)
        let document = try #require(answer["documents"]?.arrayValue?.first)
        #expect(document["old"]?["state"] == "authorized" && document["new"]?["state"] == "retired")
        #expect(document["target"] == "all" && document["aspect"] == "auth")
        let moves = try #require(answer["moves"]?.arrayValue)
        let auth = try #require(moves.first { $0["after"]?["policy"] == "auth" })
        #expect(auth["before"]?["retirement"] == nil)
        #expect(auth["after"]?["retirement"]?.jsonText == #"{"confirmed":0,"outstanding":2}"#)
        #expect(auth["after"]?["counts"]?["pending"] == 2)
        #expect(try world.store.wishes().map(\.wire) == before.0)
        #expect(try world.store.latest() == before.1)
        #expect(try world.body(.history, "{}")["history"]?.arrayValue?.count == 1)
        // The answer alone was published.
        #expect(world.published.count == before.2 + 2)
        // And it is what comes of the change.
        let done = try world.body(.apply, Self.retirement)
        #expect(done["results"]?.arrayValue?.map { $0["changed"] } == [true])
        let rows = try world.body(.status, "{}")["rows"]?.arrayValue ?? []
        #expect(rows.first { $0["policy"] == "auth" } == auth["after"])
    }

    @Test("of what is so already there is nothing to tell; once more it is a change")
    func same() throws {
        let world = try World()
        world.connect()
        try world.body(.apply, Self.retirement)
        #expect(try plan(world, .apply, Self.retirement)["documents"] == [])
        let again = #"{"again":true,"# + Self.retirement.dropFirst()
        #expect(try plan(world, .apply, again)["documents"]?.arrayValue?.count == 1)
    }

    @Test("a group that would be deleted: its members, its documents, and what that is warned of")
    func group() throws {
        let world = try World()
        world.connect()
        try world.body(.groupSet, #"{"group":"kiosk","add":["till-1"]}"#)
        try world.apply(mail, "group/kiosk", .auth, #"{"state":"retired"}"#)
        let answer = try plan(world, .groupDelete, #"{"group":"kiosk"}"#)
        let places = answer["documents"]?.arrayValue?.map { "\($0["app"]!.stringValue!) \($0["target"]!.stringValue!)" }
        #expect(places == ["_device device/till-1", "_group group/kiosk", "com.example.mail group/kiosk"])
        #expect(answer["documents"]?.arrayValue?.last?["new"] == nil)
        #expect(answer["warnings"]?.arrayValue?.count == 1)
        #expect(try world.store.groups(of: till).map(\.text) == ["kiosk"])
    }

    @Test("a group that would be deleted with the last word of an app: the doubt about removed devices goes with it")
    func forgottenApp() throws {
        let world = try World()
        world.connect()
        world.handle(.enrolments([till: 1]))
        try world.body(.groupSet, #"{"group":"kiosk","add":["till-1"]}"#)
        world.online(till, disk: 1)
        world.report(.fresh(till, mail, at: world.now))
        try world.apply(mail, "group/kiosk", .auth, #"{"state":"retired"}"#)
        try world.body(.deviceRemove, #"{"device":"till-1","incarnation":1}"#)
        let moves = try plan(world, .groupDelete, #"{"group":"kiosk"}"#)["moves"]?.arrayValue ?? []
        #expect(moves.count == 1 && moves.first?["before"]?["retirement"]?["doubtful"] == 1)
        #expect(moves.first?["after"]?["retirement"] == nil)
    }

    @Test("is refused with what the change would be refused with; what is no change of policies is named")
    func refused() throws {
        let world = try World()
        world.connect()
        let deletion = #"{"documents":[{"app":"com.example.mail","target":"all"}]}"#
        let planned = try world.failure(.plan, #"{"verb":"delete","body":\#(deletion)}"#)
        #expect(try world.failure(.delete, deletion) == planned)
        #expect(planned.code == .notFound && planned.location == "documents[0]")
        let bad = #"{"changes":[{"app":"com.example.mail","target":"all","aspect":"auth","value":{"state":"gone"}}]}"#
        let invalid = try world.failure(.plan, #"{"verb":"apply","body":\#(bad)}"#)
        #expect(invalid.code == .invalid && invalid.location?.hasPrefix("changes[0].value") == true)
        let removal = try world.failure(.plan, #"{"verb":"device-remove","body":{"device":"till-1"}}"#)
        #expect(removal.location == "verb")
        #expect(
            removal.message == "device-remove cannot be planned: expected apply, delete, group-set, group-delete")
    }

    @Test("a viewer may ask, and has still changed nothing")
    func viewer() throws {
        let world = try World()
        world.connect()
        let viewer = User.viewer(Name(unchecked: "eve"))
        let answer = try world.body(.plan, #"{"verb":"apply","body":\#(Self.retirement)}"#, as: viewer)
        #expect(answer["documents"]?.arrayValue?.count == 1)
        #expect(try world.failure(.apply, Self.retirement, as: viewer).code == .forbidden)
        #expect(try world.store.wishes().isEmpty)
    }

    @Test("what has no room in an answer is counted")
    func large() throws {
        let world = try World()
        world.connect()
        let devices = (0..<3_000).map { "\"till-\($0)\"" }.joined(separator: ",")
        let answer = try plan(world, .groupSet, #"{"group":"kiosk","add":[\#(devices)]}"#)
        let told = try #require(answer["documents"]?.arrayValue?.count)
        #expect(told > 500 && told < 3_001)
        #expect(answer["documentsLeftOut"]?.integerValue == Int64(3_001 - told))
        #expect(answer.jsonText.utf8.count < Response.pageSize + 20_000)
    }

    @Test("a change with an answer that is too large is not planned either")
    func unanswerable() throws {
        let world = try World()
        world.connect()
        let name = String(repeating: "a", count: 40)
        let changes = (0..<4_800).map { number in
            #"{"app":"\#(name).\#(number)","target":"all","aspect":"config","value":{"values":{}}}"#
        }
        let change = #"{"changes":[\#(changes.joined(separator: ","))]}"#
        let refused = try world.failure(.apply, change)
        #expect(refused.code == .tooLarge)
        #expect(try world.failure(.plan, #"{"verb":"apply","body":\#(change)}"#) == refused)
    }
}
