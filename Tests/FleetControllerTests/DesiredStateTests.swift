import FleetProtocol
import Testing

@testable import FleetController

@Suite("Desired state")
struct DesiredStateTests {
    @Test("revisions rise strictly, and the bytes that are stored are those that are published")
    func revisions() throws {
        let world = try World()
        world.connect()
        let first = try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        let second = try world.apply(mail, "all", .config, #"{"values":{"a":"2"}}"#)
        let third = try world.apply(notes, "all", .config, #"{"values":{"a":"2"}}"#)
        #expect(first < second && second < third)
        let address = Address.desired(.all, mail, .config)
        let stored = try #require(try world.store.transaction { try $0.document(at: address) })
        #expect(stored.wire == world.retained[world.identity.topic(address)])
        #expect(world.document(address)?.revision == Revision(epoch: 1, number: second))
        #expect(world.document(address)?.change == Revision(epoch: 1, number: second))
    }

    /// What was published below desired/ since the last look, in this order: layer, app, aspect.
    private func told(_ world: World) -> [String] {
        defer { world.published = [] }
        return world.published.map(\.topic).filter { $0.contains("/desired/") }.map { topic in
            topic.split(separator: "/").drop { $0 != "desired" }.dropFirst().joined(separator: "/")
        }
    }

    @Test("of one change devices are told last what lets an app in, and then what keeps it out elsewhere")
    func authorizationsLast() throws {
        let world = try World()
        world.connect()
        _ = told(world)
        let changes = [
            ("mail", "all", "auth", #"{"state":"unauthorized"}"#),
            ("mail", "device/till-1", "auth", #"{"state":"authorized"}"#),
            ("notes", "all", "auth", #"{"state":"retired"}"#), ("game", "all", "auth", #"{"state":"unauthorized"}"#),
            ("mail", "all", "secure-services", #"{"locked":true}"#), ("mail", "all", "config", #"{"values":{}}"#),
        ]
        let body = try world.body(
            .apply,
            #"{"changes":[\#(changes.map { #"{"app":"\#($0)","target":"\#($1)","aspect":"\#($2)","value":\#($3)}"# }.joined(separator: ","))]}"#
        )
        let results = try #require(body["results"]?.arrayValue)
        #expect(results.map { $0["app"]?.stringValue } == changes.map(\.0))
        #expect(results.map { $0["revision"]?.integerValue } == [6, 5, 1, 2, 3, 4], "as they are published")
        #expect(
            told(world) == [
                "all/notes/auth", "all/game/auth", "all/mail/secure-services", "all/mail/config",
                "device/till-1/mail/auth", "all/mail/auth",
            ])
        // What kept it out goes last, too.
        try world.body(
            .apply,
            #"{"changes":[{"app":"mail","target":"group/g","aspect":"auth","value":{"state":"unauthorized"}},{"app":"mail","target":"group/g","aspect":"config","value":{"values":{}}}]}"#
        )
        _ = told(world)
        let deleted = try world.body(
            .delete, #"{"documents":[{"app":"mail","target":"group/g"},{"app":"mail","target":"all"}]}"#)
        #expect(deleted["results"]?.arrayValue?.count == 5)
        #expect(
            told(world) == [
                "all/mail/config", "all/mail/secure-services", "group/g/mail/config", "all/mail/auth",
                "group/g/mail/auth",
            ])
        let twice = #"{"documents":[{"app":"notes","target":"all"},{"app":"notes","target":"all","aspect":"auth"}]}"#
        #expect(try world.failure(.delete, twice).code == .notFound)
        #expect(told(world).isEmpty)
    }

    @Test("of one change nothing decides for a moment on a device that did not before, and does not in the end")
    func inTheOrderOfLayers() throws {
        let world = try World()
        world.connect()
        try world.body(.groupSet, #"{"group":"low","priority":1,"devices":["till-1"]}"#)
        try world.body(.groupSet, #"{"group":"top","priority":2,"devices":["till-1"]}"#)
        _ = told(world)
        let layers = ["all", "group/low", "device/till-1", "group/top"]
        func ask(_ verb: Verb, _ aspect: String, _ value: (String) -> String) throws {
            let documents = layers.map { layer in
                let value = verb == .apply ? #","value":\#(value(layer))"# : ""
                return #"{"app":"mail","target":"\#(layer)","aspect":"\#(aspect)"\#(value)}"#
            }.joined(separator: ",")
            try world.body(verb, #"{"\#(verb == .apply ? "changes" : "documents")":[\#(documents)]}"#)
        }
        let falling = ["device/till-1", "group/top", "group/low", "all"]
        try ask(.apply, "config") { _ in #"{"values":{}}"# }
        #expect(told(world) == falling.map { "\($0)/mail/config" })
        try ask(.delete, "config") { _ in "" }
        #expect(told(world) == falling.reversed().map { "\($0)/mail/config" })
        // Whom it exempts, it does not let in for a moment; what retires is there before all, and goes behind all.
        try ask(.apply, "auth") { layer in
            let state =
                switch layer {
                case "device/till-1": "unauthorized"
                case "group/low": "retired"
                default: "authorized"
                }
            return #"{"state":"\#(state)"}"#
        }
        #expect(told(world) == ["group/low", "device/till-1", "group/top", "all"].map { "\($0)/mail/auth" })
        try ask(.delete, "auth") { _ in "" }
        #expect(told(world) == ["all", "group/top", "device/till-1", "group/low"].map { "\($0)/mail/auth" })
    }

    @Test("an equal value is no change: nothing is published")
    func equalValue() throws {
        let world = try World()
        world.connect()
        let first = try world.apply(mail, "all", .config, #"{"values":{"a":"1","b":"2"}}"#)
        world.published = []
        let again = try world.body(
            .apply,
            #"{"changes":[{"app":"com.example.mail","target":"all","aspect":"config","value":{"values":{"b":"2","a":"1"}}}]}"#
        )
        #expect(again["results"]?.arrayValue?.first?["changed"] == false)
        #expect(again["results"]?.arrayValue?.first?["revision"]?.integerValue == first)
        #expect(world.topics(of: "/desired/").isEmpty)
    }

    @Test("a text that is only written differently is a change")
    func spelling() throws {
        let world = try World()
        world.connect()
        let first = try world.apply(mail, "all", .config, #"{"values":{"a":"e\u0301"}}"#)
        let second = try world.apply(mail, "all", .config, #"{"values":{"a":"\u00e9"}}"#)
        #expect(second > first)
    }

    @Test("an equal value applied again is a change, so that it ends retirements that came later")
    func again() throws {
        let world = try World()
        world.connect()
        let first = try world.apply(mail, "all", .auth, #"{"state":"authorized"}"#)
        let body = try world.body(
            .apply,
            #"{"changes":[{"app":"com.example.mail","target":"all","aspect":"auth","value":{"state":"authorized"}}],"again":true}"#
        )
        let second = try #require(body["results"]?.arrayValue?.first?["revision"]?.integerValue)
        #expect(second > first)
        #expect(world.document(.desired(.all, mail, .auth))?.change.number == second)
    }

    @Test("a change made from a revision that has moved is refused, with its place, and nothing of it happens")
    func conflict() throws {
        let world = try World()
        world.connect()
        let first = try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        try world.apply(mail, "all", .config, #"{"values":{"a":"2"}}"#)
        let failure = try world.failure(
            .apply,
            """
            {"changes":[{"app":"com.example.notes","target":"all","aspect":"config","value":{"values":{}}},
            {"app":"com.example.mail","target":"all","aspect":"config","value":{"values":{}},"basedOn":\(first)}]}
            """)
        #expect(failure.code == .conflict)
        #expect(failure.location == "changes[1].basedOn")
        #expect(world.document(.desired(.all, notes, .config)) == nil)
    }

    @Test("deleting publishes a tombstone, which stays; deleting nothing is an error with its place")
    func tombstones() throws {
        let world = try World()
        world.connect()
        let revision = try world.apply(mail, "device/till-1", .config, #"{"values":{"a":"1"}}"#)
        let selector = #"{"documents":[{"app":"com.example.mail","target":"device/till-1"}],"why":"over"}"#
        let answer = try world.body(.delete, selector)
        let address = Address.desired(.device(till), mail, .config)
        #expect(answer["results"]?.arrayValue?.count == 1)
        #expect(world.document(address)?.isTombstone == true)
        #expect((world.document(address)?.revision.number ?? 0) > revision)
        let failure = try world.failure(.delete, selector)
        #expect(failure.code == .notFound)
        #expect(failure.location == "documents[0]")
        world.pass(seconds: 90 * 86_400)
        world.connect()
        #expect(world.document(address)?.isTombstone == true)
        // A clock that jumps says nothing of how long it has been: only one that has gone evenly for hours.
        world.pass(seconds: 75 * 365 * 86_400)
        for _ in 1...5 { world.pass(seconds: 3_600) }
        #expect(world.document(address)?.isTombstone == true)
        world.pass(seconds: 3_600)
        #expect(world.retained[world.identity.topic(address)] == nil)
    }

    @Test("a tombstone is not forgotten while its topic cannot be cleared")
    func tombstonesAway() throws {
        let world = try World()
        world.connect()
        try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        try world.body(.delete, #"{"documents":[{"app":"com.example.mail","target":"all"}]}"#)
        let topic = world.identity.topic(.desired(.all, mail, .config))
        let latest = try world.store.latest()
        world.pass(seconds: 92 * 86_400)
        world.handle(.disconnected)
        for _ in 1...8 { world.pass(seconds: 3_600) }
        world.handle(.connected(.random()))
        #expect(world.retained[topic] != nil)
        world.pass(seconds: 3_600)
        #expect(world.retained[topic] == nil)
        world.connect()
        #expect(world.retained[topic] == nil)
        #expect(try world.store.latest() == latest, "nobody has changed anything")
    }

    @Test("history says who changed what, why, from what and to what, the newest first")
    func history() throws {
        let world = try World()
        world.connect()
        try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        try world.body(
            .apply,
            #"{"why":"louder","changes":[{"app":"com.example.mail","target":"all","aspect":"config","value":{"values":{"a":"2"}}}]}"#
        )
        let entries = try world.body(.history, "{}")["history"]?.arrayValue ?? []
        #expect(entries.count == 2)
        #expect(entries.first?["by"] == "@operator.alice")
        #expect(entries.first?["why"] == "louder")
        #expect(entries.first?["old"]?["values"]?["a"] == "1")
        #expect(entries.first?["new"]?["values"]?["a"] == "2")
        #expect(entries.last?["old"] == nil)
    }

    @Test("the history of a group tells who has joined and who has left")
    func groupHistory() throws {
        let world = try World()
        world.connect()
        for group in ["groups", "kiosk"] {
            try world.body(.groupSet, #"{"group":"\#(group)","priority":1,"devices":["till-1"]}"#)
        }
        try world.apply(mail, "group/kiosk", .config, #"{"values":{"a":"1"}}"#)
        try world.body(.groupSet, #"{"group":"kiosk","add":["till-2"]}"#)
        try world.body(.groupSet, #"{"group":"groups","devices":[]}"#)
        try world.body(.groupDelete, #"{"group":"kiosk"}"#)
        func changes(_ filter: String) throws -> [String] {
            try (world.body(.history, filter)["history"]?.arrayValue ?? []).map { change in
                [change["target"], change["aspect"], change["new"]].map { $0?.jsonText ?? "-" }.joined(separator: " ")
                    .replacing("\"", with: "")
            }
        }
        #expect(
            try changes(#"{"target":"group/kiosk"}"#) == [
                "group/kiosk config -", "group/kiosk meta -", "device/till-2 membership {groups:[]}",
                "device/till-1 membership {groups:[]}", "device/till-2 membership {groups:[kiosk]}",
                "group/kiosk config {values:{a:1}}", "device/till-1 membership {groups:[groups,kiosk]}",
                "group/kiosk meta {priority:1}",
            ])
        #expect(
            try changes(#"{"target":"group/groups"}"#) == [
                "device/till-1 membership {groups:[kiosk]}", "device/till-1 membership {groups:[groups]}",
                "group/groups meta {priority:1}",
            ])
        #expect(try changes(#"{"target":"group/kiosk","app":"com.example.mail"}"#).count == 2)
    }

    @Test("a document beyond 64 KiB on the wire is refused, and nothing of the request happens")
    func tooLarge() throws {
        let world = try World()
        world.connect()
        let text = String(repeating: "x", count: 65_400)
        let failure = try world.failure(
            .apply,
            """
            {"changes":[{"app":"com.example.notes","target":"all","aspect":"config","value":{"values":{}}},
            {"app":"com.example.mail","target":"all","aspect":"config","value":{"values":{"a":"\(text)"}}}]}
            """)
        #expect(failure.code == .tooLarge)
        #expect(failure.location == "changes[1].value")
        #expect(world.topics(of: "/desired/all/com").isEmpty)
    }

    @Test("the largest document that may be can be signed again after a restore, which makes it longer")
    func largestRestored() throws {
        let world = try World()
        world.connect()
        func isTaken(_ count: Int) throws -> Bool {
            let value = #"{"values":{"a":"\#(String(repeating: "x", count: count))"}}"#
            let change = #"{"app":"\#(mail)","target":"all","aspect":"config","value":\#(value)}"#
            if case .success = try world.ask(.apply, #"{"changes":[\#(change)]}"#).result { return true }
            return false
        }
        var (taken, refused) = (64_000, 65_536)
        while refused - taken > 1 {
            let middle = (taken + refused) / 2
            if try isTaken(middle) { taken = middle } else { refused = middle }
        }
        #expect(try isTaken(taken))
        let restored = try World(identity: world.identity, store: world.store, isRestoring: true)
        restored.retained = world.retained
        restored.online(till, highest: Revision(epoch: 1 << 49, number: 1 << 49))
        restored.connect()
        #expect(restored.stopped == nil)
        #expect(restored.document(.desired(.all, mail, .config))?.revision.epoch == Int64(1 << 49) + 1)
    }

    @Test("a retirement elsewhere, and a short limit for being out of contact, are warned about")
    func warnings() throws {
        let world = try World()
        world.connect()
        try world.apply(mail, "group/kiosk", .auth, #"{"state":"retired","message":"gone"}"#)
        let auth = try world.body(
            .apply,
            #"{"changes":[{"app":"com.example.mail","target":"device/till-1","aspect":"auth","value":{"state":"authorized"}}]}"#
        )
        let texts = auth["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
        #expect(texts.contains { $0.contains("retired by group/kiosk") })
        #expect(texts.contains { $0.contains("till-1 is not known") })
        let deletion = try world.body(
            .delete, #"{"documents":[{"app":"com.example.mail","target":"group/kiosk","aspect":"auth"}]}"#)
        #expect(deletion["warnings"]?.arrayValue?.first?.stringValue?.contains("changed after it decides") == true)
        let limits = try world.body(
            .apply,
            #"{"changes":[{"app":"com.example.mail","target":"all","aspect":"secure-services","value":{"offline":{"blockAfter":60,"wipeAfter":50}}}]}"#
        )
        let risks = limits["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
        #expect(risks.count == 3 && risks.contains { $0.hasSuffix("and 50 s are fewer than three") })
        let longer = try world.body(
            .apply,
            #"{"changes":[{"app":"com.example.mail","target":"all","aspect":"secure-services","value":{"offline":{"blockAfter":180}}}]}"#
        )
        #expect(longer["warnings"]?.arrayValue?.count == 1)
    }

    @Test("that a group retires an app is said however many devices have retirements of their own")
    func manyRetirements() throws {
        let world = try World()
        world.connect()
        func change(_ app: AppID, _ target: String) -> String {
            #"{"app":"\#(app)","target":"\#(target)","aspect":"auth","value":{"state":"authorized"}}"#
        }
        func warnings(_ changes: [String]) throws -> [String] {
            let answer = try world.body(.apply, "{\"changes\":[\(changes.joined(separator: ","))]}")
            let texts = answer["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
            return texts.filter { $0.contains("is retired by") }
        }
        for number in 0..<100 { try world.apply(mail, "device/lost-\(number)", .auth, #"{"state":"retired"}"#) }
        try world.apply(mail, "group/kiosk", .auth, #"{"state":"retired"}"#)
        let kiosk = "com.example.mail is retired by group/kiosk, which wins over every layer"
        #expect(try warnings([change(mail, "device/till-1")]) == [kiosk])
        let all = try warnings([change(mail, "all")])
        #expect(all.count == 100 && all.first == kiosk)
        let unknown = (0..<100).map { change(notes, "device/gone-\($0)") }
        #expect(try warnings(unknown + [change(mail, "device/till-1")]) == [kiosk], "behind a hundred unknown devices")
    }

    @Test("what a large change is warned of is looked for no more often than it is told, and once for each app")
    func largeChange() throws {
        let world = try World()
        world.connect()
        let devices = (0..<150).map { DeviceID(unchecked: "till-\($0)") }
        for device in devices { world.report(.fresh(device, mail, at: world.now)) }
        func change(_ state: String) throws -> [String] {
            let changes = devices.map {
                #"{"app":"\#(mail)","target":"device/\#($0)","aspect":"auth","value":{"state":"\#(state)"}}"#
            }
            let answer = try world.body(.apply, "{\"changes\":[\(changes.joined(separator: ","))]}")
            return answer["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
        }
        let lookUps = try world.statements(with: "retired = 1") { _ = try change("authorized") }
        #expect(lookUps == 1)
        #expect(try change("retired") == [])
        var warnings: [String] = []
        let counts = try world.statements(with: "FROM shapes WHERE app =") { warnings = try change("authorized") }
        #expect(warnings.count == 100 && warnings.allSatisfy { $0.contains("was not confirmed on 1 device") })
        #expect(counts == 100)
    }

    @Test("whoever takes a device out of a group that retires an app, or deletes the group, is warned")
    func retiredGroup() throws {
        let world = try World()
        world.connect()
        func warnings(_ verb: Verb, _ body: String) throws -> [String] {
            try world.body(verb, body)["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
        }
        world.online(till)
        world.online(till2)
        try world.body(.groupSet, #"{"group":"kiosk","devices":["till-1","till-2"]}"#)
        try world.apply(notes, "group/kiosk", .auth, #"{"state":"authorized"}"#)
        #expect(try warnings(.groupSet, #"{"group":"kiosk","remove":["till-2"]}"#) == [])
        let added = try warnings(.groupSet, #"{"group":"kisok","add":["till-2"]}"#)
        #expect(added == ["there was no group kisok: it is a new one now, with priority 0"])
        #expect(try warnings(.groupSet, #"{"group":"kisok","priority":3}"#) == [])
        let absent = try warnings(.groupSet, #"{"group":"kiosk","remove":["till-2"]}"#)
        #expect(absent == ["the device till-2 is not in the group kiosk"])
        try world.apply(mail, "group/kiosk", .auth, #"{"state":"retired"}"#)
        #expect(try warnings(.groupSet, #"{"group":"kiosk","priority":7,"add":["till-2"]}"#) == [])
        let others = (0..<100).map { "\"lost-\($0)\"" }.joined(separator: ",")
        let among = try warnings(.groupSet, "{\"group\":\"kiosk\",\"remove\":[\(others),\"till-2\"]}")
        #expect(among.count == 100 && among.first?.hasPrefix("com.example.mail is retired by group/kiosk") == true)
        try world.body(.groupSet, #"{"group":"kiosk","add":["till-2"]}"#)
        let left = try warnings(.groupSet, #"{"group":"kiosk","devices":["till-1"]}"#)
        #expect(left.count == 1)
        #expect(left.first?.hasPrefix("com.example.mail is retired by group/kiosk: a device that leaves it") == true)
        let deleted = try warnings(.groupDelete, #"{"group":"kiosk"}"#)
        #expect(deleted.count == 1)
        #expect(deleted.first?.hasPrefix("deleting the retirement of com.example.mail for group/kiosk") == true)
    }

    @Test("groups and memberships are documents; deleting a group withdraws what it said")
    func groups() throws {
        let world = try World()
        world.connect()
        try world.body(.groupSet, #"{"group":"kiosk","priority":5,"devices":["till-1","till-2"]}"#)
        try world.body(.groupSet, #"{"group":"east","add":["till-1"]}"#)
        try world.apply(mail, "group/kiosk", .config, #"{"values":{}}"#)
        #expect(world.document(.groupMeta(kiosk))?.content == .groupMeta(GroupMeta(priority: 5)))
        #expect(
            world.document(.membership(till))?.content == .membership([GroupID(unchecked: "east"), kiosk]))
        let listed = try world.body(.groups, "{}")["groups"]?.arrayValue ?? []
        #expect(listed.map { $0["group"] } == ["east", "kiosk"])
        #expect(listed.last?["devices"] == ["till-1", "till-2"])
        try world.body(.groupDelete, #"{"group":"kiosk"}"#)
        #expect(world.document(.membership(till))?.content == .membership([GroupID(unchecked: "east")]))
        #expect(world.document(.membership(till2))?.content == .membership([]))
        #expect(world.document(.groupMeta(kiosk))?.isTombstone == true)
        #expect(world.document(.desired(.group(kiosk), mail, .config))?.isTombstone == true)
        #expect(try world.failure(.groupDelete, #"{"group":"kiosk"}"#).code == .notFound)
    }

    @Test("who leaves a group has left before its priority is another one, and who comes, comes behind that")
    func groupOrder() throws {
        let world = try World()
        world.connect()
        try world.body(.groupSet, #"{"group":"kiosk","priority":1,"devices":["till-1"]}"#)
        try world.body(.groupSet, #"{"group":"kiosk","priority":7,"devices":["till-2"]}"#)
        let history = try world.body(.history, "{}")["history"]?.arrayValue ?? []
        let order = history.prefix(3).reversed().map {
            "\($0["target"]?.stringValue ?? "") \($0["aspect"]?.stringValue ?? "")"
        }
        #expect(order == ["device/till-1 membership", "group/kiosk meta", "device/till-2 membership"])
    }

    @Test("a device gets the floors of what it could read, and of nothing else")
    func floors() throws {
        let world = try World()
        world.connect()
        try world.body(.groupSet, #"{"group":"kiosk","devices":["till-1"]}"#)
        let all = try world.apply(mail, "all", .config, #"{"values":{}}"#)
        try world.apply(mail, "group/kiosk", .config, #"{"values":{"k":"1"}}"#)
        try world.apply(mail, "group/other", .config, #"{"values":{}}"#)
        try world.apply(mail, "device/till-2", .config, #"{"values":{}}"#)
        let body = try world.body(.enroll, #"{"device":"till-1"}"#)
        let floors = body["floors"]?.memberValues ?? []
        #expect(
            Set(floors.map(\.name))
                == Set(
                    [
                        Address.desired(.all, mail, .config), .desired(.group(kiosk), mail, .config), .groupMeta(kiosk),
                        .membership(till),
                    ].map(world.identity.topic)))
        #expect(body["floors"]?[world.identity.topic(.desired(.all, mail, .config))] == [1, .integer(all)])
        #expect(body["epoch"] == 1)
        #expect(body["trust"]?.stringValue == String(decoding: world.identity.trustWire, as: UTF8.self))
    }
}
