import FleetProtocol
import GRDB
import Testing

@testable import FleetController

@Suite("Requests that come together")
struct TogetherTests {
    private func request(_ verb: Verb, _ body: String, _ replyTo: String, _ world: World) -> ControllerCore.Message {
        let text =
            "{\"v\":1,\"id\":\"\(RandomID.random())\",\"replyTo\":\"\(replyTo)\","
            + "\"notAfter\":\"\(world.now.advanced(bySeconds: 30))\",\"body\":\(body)}"
        return .init(
            topic: world.identity.topic(.request(World.operatorName, verb)), payload: Array(text.utf8),
            isRetained: false)
    }

    private func config(_ app: String, _ value: String) -> String {
        "{\"changes\":[{\"app\":\"\(app)\",\"target\":\"all\",\"aspect\":\"config\",\"value\":{\"values\":{\"a\":\"\(value)\"}}}]}"
    }

    private func answer(_ replyTo: String, _ world: World) throws -> Response {
        let topic = world.identity.topic(.response(World.operatorName, Name(unchecked: replyTo)))
        let payload = try #require(world.published.last { $0.topic == topic }?.payload)
        return try Response(json: payload, limit: Response.maximumSize)
    }

    private func isDone(_ response: Response) -> Bool { if case .success = response.result { true } else { false } }

    @Test("each gets its own answer; one that is refused takes nothing of the others with it")
    func refused() throws {
        let world = try World()
        world.connect()
        world.handle(
            .messages([
                request(.apply, config("com.example.mail", "1"), "first", world),
                request(.delete, #"{"documents":[{"app":"com.example.gone","target":"all"}]}"#, "second", world),
                request(.apply, config("com.example.notes", "2"), "third", world),
                request(.apply, #"{"changes":[{"app":"com.example.mail"}]}"#, "fourth", world),
            ]))
        #expect(try isDone(answer("first", world)))
        #expect(try !isDone(answer("second", world)))
        #expect(try isDone(answer("third", world)))
        #expect(try !isDone(answer("fourth", world)))
        #expect(world.document(.desired(.all, mail, .config)) != nil)
        #expect(world.document(.desired(.all, notes, .config)) != nil)
        #expect(try world.core.store.latest().number == 2)
    }

    @Test("when the disk cannot take all of them, it takes what it can, and says which it could not")
    func full() throws {
        let world = try World()
        world.connect()
        try world.apply(mail, "all", .config, #"{"values":{"a":"0"}}"#)
        let pages: Int64 = try world.core.store.database.writeWithoutTransaction { database in
            let count = try Int64.fetchOne(database, sql: "PRAGMA page_count") ?? 0
            return try Int64.fetchOne(database, sql: "PRAGMA max_page_count = \(count + 6)") ?? 0
        }
        #expect(pages > 6)
        world.handle(
            .messages([
                request(.apply, config("com.example.mail", "1"), "first", world),
                request(.apply, config("com.example.notes", String(repeating: "x", count: 60_000)), "second", world),
                request(.apply, config("com.example.mail", "3"), "third", world),
            ]))
        #expect(world.stopped == nil)
        #expect(try isDone(answer("first", world)))
        guard case .failure(let failure) = try answer("second", world).result else { return #expect(Bool(false)) }
        #expect(failure.code == .unavailable)
        #expect(try isDone(answer("third", world)))
        #expect(world.document(.desired(.all, notes, .config)) == nil)
        let stored = try #require(try world.core.store.wishes().first { $0.address == .desired(.all, mail, .config) })
        #expect(world.retained[world.identity.topic(stored.address)] == stored.wire)
        #expect(stored.value?.contains("3") == true)
    }

    @Test(
        "a commit that fails once has done nothing: what a withdrawn key has signed is signed again by the next attempt"
    )
    func failedOnce() throws {
        let world = try World()
        world.connect()
        try world.apply(mail, "all", .config, #"{"values":{"a":"0"}}"#)
        let next = try SigningKey()
        let withdrawn = try world.renewed(2, [next])
        withdrawn.dropsMarkers = true
        withdrawn.connect()
        let topic = withdrawn.identity.topic(.barrier(.controller))
        let marker = try #require(withdrawn.published.last { $0.topic == topic })
        withdrawn.core.store.onFullDisk(after: 0, for: 1) {
            withdrawn.handle(
                .messages([
                    .init(topic: topic, payload: marker.payload, isRetained: false),
                    request(.apply, config("com.example.notes", "1"), "here", withdrawn),
                ]))
        }
        #expect(try isDone(answer("here", withdrawn)))
        let wire = try #require(withdrawn.retained[withdrawn.identity.topic(.desired(.all, mail, .config))])
        #expect(try SignedDocument(wire: wire).isSigned(by: next.publicKey))
    }

    @Test("a damaged database ends it, and nobody hears of what had come with the request that has found it")
    func damaged() throws {
        let world = try World()
        world.connect()
        try world.apply(mail, "all", .config, #"{"values":{"a":"0"}}"#)
        try world.store.transaction { try $0.run("UPDATE documents SET path = 'nowhere'") }
        world.store.forgetCaches()
        world.published = []
        world.handle(
            .messages([
                request(.apply, config("com.example.notes", "1"), "first", world),
                request(.policies, "{}", "second", world),
            ]))
        #expect(world.stopped?.contains("nowhere") == true)
        #expect(world.published.allSatisfy { $0.topic == world.identity.topic(.presence(.controller)) })
        #expect(try world.store.latest().number == 1)
    }

    @Test("what a full disk has refused is not done when its message comes a second time")
    func fullThenRepeated() throws {
        let world = try World()
        world.connect()
        try world.apply(mail, "all", .config, #"{"values":{"a":"0"}}"#)
        let message = request(.apply, config("com.example.mail", "1"), "here", world)
        world.core.store.onFullDisk(after: 0) { world.handle(.messages([message])) }
        let refusal = try answer("here", world)
        #expect(!isDone(refusal))
        world.handle(.messages([message]))
        #expect(try answer("here", world) == refusal)
        #expect(try world.core.store.latest().number == 1)
        world.handle(.messages([request(.apply, config("com.example.mail", "1"), "here", world)]))
        #expect(try isDone(answer("here", world)))
    }

    @Test(
        "what was said to be refused for good is not done behind a restart, wherever the disk was full",
        arguments: 0...4)
    func fullRefusal(transactions: Int) throws {
        let world = try World()
        world.connect()
        let body = #"{"documents":[{"app":"com.example.mail","target":"all","aspect":"config"}]}"#
        let message = request(.delete, body, "here", world)
        world.core.store.onFullDisk(after: transactions) { world.handle(.messages([message])) }
        guard case .failure(let refusal) = try answer("here", world).result else { return #expect(Bool(false)) }
        try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        let restarted = try World(identity: world.identity, store: world.store)
        restarted.retained = world.retained
        restarted.connect()
        restarted.handle(.messages([message]))
        #expect(try refusal.code == .unavailable || !isDone(answer("here", restarted)))
    }
}
