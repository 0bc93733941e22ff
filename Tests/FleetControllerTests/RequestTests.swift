import FleetProtocol
import Foundation
import TestSupport
import Testing

@testable import FleetController

@Suite("Requests")
struct RequestTests {
    private static let change =
        #"{"changes":[{"app":"com.example.mail","target":"all","aspect":"config","value":{"values":{"a":"1"}}}]}"#

    @Test("the same request again gets the same bytes, and is carried out once", arguments: [Verb.apply, .status])
    func idempotence(verb: Verb) throws {
        let world = try World()
        world.connect()
        let id = RandomID.random()
        let body = verb == .apply ? Self.change : "{}"
        let text =
            #"{"v":1,"id":"\#(id)","replyTo":"here","notAfter":"\#(world.now.advanced(bySeconds: 10))","body":\#(body)}"#
        let first = try #require(world.raw(verb, text))
        try world.apply(mail, "all", .config, #"{"values":{"a":"2"}}"#)
        world.pass(seconds: 3_600)
        #expect(world.raw(verb, text) == first)
        #expect(try world.body(.policies, "{}")["policies"]?.arrayValue?.first?["value"]?["values"]?["a"] == "2")
    }

    @Test("a change that was refused stays refused for its id; another user's id is another request")
    func users() throws {
        let world = try World()
        world.connect()
        let id = RandomID.random()
        _ = try world.ask(.apply, Self.change, id: id)
        let other = try world.ask(.apply, Self.change, as: .operator(Name(unchecked: "eve")), id: id)
        guard case .success(let body, _) = other.result else { return #expect(Bool(false)) }
        #expect(body["results"]?.arrayValue?.first?["changed"] == false)
        // Nothing to delete at first; the same request later must not delete what has come since.
        let deletion = #"{"documents":[{"app":"com.example.notes","target":"all"}]}"#
        let second = RandomID.random()
        let refused = try world.ask(.delete, deletion, id: second)
        try world.apply(notes, "all", .config, #"{"values":{}}"#)
        #expect(try world.ask(.delete, deletion, id: second) == refused)
        #expect(world.document(.desired(.all, notes, .config))?.isTombstone == false)
    }

    @Test("what state or clock have refused stays refused for its id, also by a controller that was started again")
    func refusedBefore() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "fleet.db").path
            let world = try World(path: path)
            world.connect()
            for number in 0..<DesiredChange.maximumGroups {
                try world.body(.groupSet, #"{"group":"g\#(number)","devices":["till-1"]}"#)
            }
            let (oneMore, early) = (RandomID.random(), RandomID.random())
            let notAfter = world.now.advanced(bySeconds: 86_401)
            func ask() throws -> [Response] {
                [
                    try world.ask(.groupSet, #"{"group":"kiosk","devices":["till-1"]}"#, id: oneMore),
                    try world.ask(.apply, Self.change, id: early, notAfter: notAfter),
                ]
            }
            let refused = try ask()
            let codes: [Response.Failure.Code] = refused.compactMap {
                if case .failure(let failure) = $0.result { failure.code } else { nil }
            }
            #expect(codes == [.invalid, .invalid])
            // Now both could be done.
            try world.body(.groupDelete, #"{"group":"g0"}"#)
            world.pass(seconds: 2)
            try world.restart(path: path)
            world.connect()
            #expect(try ask() == refused)
            #expect(try world.store.groups(of: till).count == DesiredChange.maximumGroups - 1)
            #expect(try world.body(.policies, "{}")["policies"] == [])
        }
    }

    @Test("viewers read, and change nothing")
    func viewers() throws {
        let world = try World()
        world.connect()
        #expect(try world.failure(.apply, Self.change, as: World.viewerName).code == .forbidden)
        #expect(try world.failure(.enroll, #"{"device":"x"}"#, as: World.viewerName).code == .forbidden)
        #expect(try world.body(.policies, "{}", as: World.viewerName)["policies"] == [])
        #expect(try world.failure(.status, "{}", as: .device(till)).code == .forbidden)
        // Also what is too late, or no request, leaves nothing in the store.
        let late = try world.ask(
            .apply, Self.change, as: World.viewerName, notAfter: world.now.advanced(bySeconds: -1))
        let torn = try #require(
            world.raw(.apply, #"{"v":1,"id":"\#(RandomID.random())","replyTo":"here","body":"#, as: World.viewerName))
        for response in [late, try Response(json: torn, limit: 4_096)] {
            guard case .failure(let failure) = response.result else { return #expect(Bool(false)) }
            #expect(failure.code == .forbidden)
        }
        #expect(try world.store.transaction { try $0.number("SELECT count(*) FROM requests") } == 0)
    }

    @Test("a request that comes too late is not carried out")
    func expired() throws {
        let world = try World()
        world.connect()
        let response = try world.ask(.apply, Self.change, notAfter: world.now.advanced(bySeconds: -1))
        guard case .failure(let failure) = response.result else { return #expect(Bool(false)) }
        #expect(failure.code == .expired)
        #expect(try world.body(.policies, "{}")["policies"] == [])
    }

    @Test("a change that may come again when its answer is forgotten is refused")
    func longLived() throws {
        let world = try World()
        world.connect()
        let response = try world.ask(.apply, Self.change, notAfter: world.now.advanced(bySeconds: 86_401))
        guard case .failure(let failure) = response.result else { return #expect(Bool(false)) }
        #expect(failure.code == .invalid)
        #expect(failure.location == "notAfter")
        #expect(try world.body(.policies, "{}")["policies"] == [])
    }

    @Test(
        "a mistake in a body is answered with its member",
        arguments: [
            (
                Verb.apply, #"{"changes":[{"app":"a","target":"all","aspect":"auth","value":{"state":"maybe"}}]}"#,
                "changes[0].value"
            ),
            (.apply, #"{"changes":[{"app":"a","target":"all","aspect":"auht","value":{}}]}"#, "changes[0].aspect"),
            (.apply, #"{"changes":[{"app":"a/b","target":"all","aspect":"auth","value":{}}]}"#, "changes[0].app"),
            (.apply, #"{"change":[]}"#, "changes"),
            (.delete, #"{"documents":[{"app":"a","target":"everyone"}]}"#, "documents[0].target"),
            (.groupSet, #"{"group":"g","priority":"high"}"#, "priority"),
            (.devices, #"{"device":"_x"}"#, "device"),
            (.history, #"{"page":"yesterday"}"#, "page"),
            (
                .apply,
                #"{"changes":[{"app":"a","target":"all","aspect":"config","value":{"values":{}}},{"app":"a","target":"all","aspect":"config","value":{"values":{}}}]}"#,
                "changes[1]"
            ),
        ])
    func mistakes(verb: Verb, body: String, location: String) throws {
        let world = try World()
        world.connect()
        let failure = try world.failure(verb, body)
        #expect(failure.code == .invalid)
        #expect(failure.location == location)
    }

    @Test("what is no request is answered as far as it says where to, and disturbs nothing")
    func malformed() throws {
        let world = try World()
        world.connect()
        let id = RandomID.random()
        let answer = try #require(
            world.raw(.apply, #"{"v":1,"id":"\#(id)","replyTo":"here","notAfter":"tomorrow","body":{}}"#))
        guard case .failure(let failure) = try Response(json: answer, limit: 4_096).result else {
            return #expect(Bool(false))
        }
        #expect(failure.location == "notAfter")
        #expect(world.raw(.apply, "{") == nil)
        #expect(world.raw(.apply, #"{"v":1,"id":"1","replyTo":"../x"}"#) == nil)
        #expect(world.logs.contains { $0.message == "a request cannot be read" })
        #expect(world.stopped == nil)
    }

    @Test("what is left of a request is answered as that is, and the whole as what was left of it")
    func torn() throws {
        let world = try World()
        world.connect()
        func whole(_ id: RandomID) -> String {
            #"{"v":1,"id":"\#(id)","replyTo":"here","notAfter":"\#(world.now.advanced(bySeconds: 30))","#
                + #""body":\#(Self.change)}"#
        }
        let (first, second) = (whole(.random()), whole(.random()))
        let done = try #require(world.raw(.apply, first))
        #expect(world.raw(.apply, first.dropLast(4) + "]") == done)
        let refused = try #require(world.raw(.apply, second.dropLast(4) + "]"))
        #expect(try Response(json: refused, limit: 4_096).result != Response(json: done, limit: 4_096).result)
        let restarted = try World(identity: world.identity, store: world.store)
        restarted.now = world.now
        restarted.connect()
        #expect(restarted.raw(.apply, second) == refused)
        #expect(restarted.raw(.apply, first) == done)
    }

    @Test("requests that come before the broker is repaired are answered afterwards")
    func deferred() throws {
        let world = try World()
        world.handle(.disconnected)
        let id = RandomID.random()
        // Comes with the retained messages, before the barrier.
        world.retained[world.identity.topic(.request(World.operatorName, .status))] = Array(
            #"{"v":1,"id":"\#(id)","replyTo":"here","notAfter":"\#(world.now.advanced(bySeconds: 9))","body":{}}"#.utf8)
        world.handle(.connected(.random()))
        let topics = world.published.map(\.topic)
        let response = try #require(topics.firstIndex { $0.contains("/response/") })
        #expect(try #require(topics.firstIndex { $0.hasSuffix("/presence/@controller") }) < response)
    }

    @Test(
        "long lists come in pages of at most 256 KiB, complete and in order",
        arguments: [Verb.apps, .devices, .policies, .history, .status])
    func pages(verb: Verb) throws {
        let world = try World()
        world.connect()
        var expected = 0
        switch verb {
        case .apps, .devices:
            expected = verb == .apps ? 400 : 2_500
            world.handle(
                .messages(
                    (0..<expected).map { number in
                        var status = Status.fresh(DeviceID(unchecked: "device-number-\(number)"), mail, at: world.now)
                        if verb == .apps { status.authMessage = String(repeating: "m", count: 900) }
                        return .init(
                            topic: world.identity.topic(.reply(status.device, mail, .status)), payload: status.wire,
                            isRetained: true)
                    }))
        case .policies, .history, .status:
            expected = 400
            let text = String(repeating: "v", count: 1_000)
            let changes = (0..<expected).map {
                #"{"app":"app-\#($0)","target":"all","aspect":"config","value":{"values":{"a":"\#(text)"}}}"#
            }
            try world.body(.apply, #"{"changes":[\#(changes.joined(separator: ","))]}"#)
        default: break
        }
        var rows: [JSONValue] = []
        var pages = 0
        var page: String?
        repeat {
            let request = page.map { #"{"page":"\#($0)"}"# } ?? "{}"
            let response = try world.ask(verb, request)
            guard case .success(let body, let next) = response.result else { return #expect(Bool(false)) }
            #expect(body.json.count <= Response.pageSize)
            rows += body.memberValues?.first?.value.arrayValue ?? []
            page = next
            pages += 1
        } while page != nil && pages < 100
        #expect(pages > 1)
        #expect(rows.count == (verb == .status ? expected * 10 : expected))
        #expect(Set(rows).count == rows.count)
    }

    @Test("a group with very many members goes over several pages")
    func largeGroup() throws {
        let world = try World()
        world.connect()
        try world.store.transaction { transaction in
            try transaction.setGroup(kiosk, priority: 1)
            try transaction.setGroup(GroupID(unchecked: "zone"), priority: 1)
            for number in 0..<15_000 {
                try transaction.setMember(
                    DeviceID(unchecked: "device-with-a-long-name-\(number)"), of: kiosk, true)
            }
        }
        var members: [JSONValue] = []
        var groups: [JSONValue?] = []
        var page: String?
        repeat {
            let response = try world.ask(.groups, page.map { #"{"page":"\#($0)"}"# } ?? "{}")
            guard case .success(let body, let next) = response.result else { return #expect(Bool(false)) }
            for row in body["groups"]?.arrayValue ?? [] {
                groups.append(row["group"])
                if row["group"] == "kiosk" { members += row["devices"]?.arrayValue ?? [] }
            }
            page = next
        } while page != nil
        #expect(members.count == 15_000)
        #expect(Set(members).count == 15_000)
        #expect(groups.last == "zone")
    }

    @Test("a group without members that ended a page does not come again on the next")
    func emptyGroup() throws {
        let world = try World()
        world.connect()
        for group in ["kiosk", "zone"] {
            try world.body(.groupSet, #"{"group":"\#(group)","priority":1}"#)
        }
        let rows = try world.body(.groups, #"{"page":"kiosk/"}"#)["groups"]?.arrayValue ?? []
        #expect(rows.map { $0["group"] } == ["zone"])
    }

    @Test("an answer that nobody could read is refused, with what to do instead")
    func answerTooLarge() throws {
        let world = try World()
        world.connect()
        let documents = (0..<500).map { #"{"app":"app-\#($0)-\#(String(repeating: "x", count: 30))","target":"all"}"# }
        let failure = try world.failure(.progress, #"{"documents":[\#(documents.joined(separator: ","))]}"#)
        #expect(failure.code == .tooLarge)
        #expect(failure.message.contains("fewer documents at a time"))
    }

    @Test("of a device it is told which document decides: the highest layer, but a retirement wherever it stands")
    func deciding() throws {
        let world = try World()
        world.connect()
        for (group, priority) in [("kiosk", 1), ("shop", 2)] {
            try world.body(.groupSet, #"{"group":"\#(group)","priority":\#(priority),"devices":["till-1"]}"#)
            try world.apply(mail, "group/\(group)", .config, #"{"values":{}}"#)
        }
        for target in ["all", "device/till-1"] { try world.apply(mail, target, .auth, #"{"state":"authorized"}"#) }
        try world.apply(mail, "group/kiosk", .auth, #"{"state":"retired"}"#)
        try world.apply(mail, "device/till-2", .config, #"{"values":{}}"#)
        func deciding(_ body: String) throws -> [String?] {
            try world.body(.policies, body)["policies"]?.arrayValue?.map { row in
                let place = [row["target"]?.stringValue, row["aspect"]?.stringValue].compactMap(\.self)
                return row["decides"] == true ? place.joined(separator: " ") : nil
            } ?? []
        }
        let till = try deciding(#"{"device":"till-1"}"#)
        #expect(till.count == 5 && till.compactMap(\.self) == ["group/kiosk auth", "group/shop config"])
        #expect(try deciding(#"{"device":"till-2"}"#).compactMap(\.self) == ["all auth", "device/till-2 config"])
        #expect(try world.body(.policies, "{}")["policies"]?.arrayValue?.allSatisfy { $0["decides"] == nil } == true)
    }
}
