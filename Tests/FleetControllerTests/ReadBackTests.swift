import FleetProtocol
import GRDB
import Testing

@testable import FleetController

@Suite("The broker is read back and repaired")
struct ReadBackTests {
    private func world() throws -> World {
        let world = try World()
        world.connect()
        try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        try world.apply(mail, "all", .auth, #"{"state":"authorized"}"#)
        return world
    }

    @Test("a document that does not come back is published again, and does not keep its topic from being watched")
    func lostEcho() throws {
        let world = try World()
        world.connect()
        world.pass(seconds: 60)
        world.dropsDocuments = true
        try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        let address = Address.desired(.all, mail, .config)
        #expect(world.document(address) == nil)
        world.dropsDocuments = false
        for _ in 0..<2 { world.pass(seconds: 60) }
        let wire = try #require(world.retained[world.identity.topic(address)])
        world.published = []
        for _ in 0..<3 { world.pass(seconds: 60) }
        #expect(!world.published.contains { $0.topic == world.identity.topic(address) })
        world.receive(address, [])
        #expect(world.published.last { $0.topic == world.identity.topic(address) }?.payload == wire)
    }

    @Test("what does not come back is published again in the order of the first time, on whatever layers it is")
    func lostEchoesInOrder() throws {
        let world = try World()
        world.connect()
        world.pass(seconds: 60)
        world.dropsDocuments = true
        try world.apply(mail, "all", .secureServices, #"{"locked":true}"#)
        try world.apply(mail, "device/till-1", .auth, #"{"state":"authorized"}"#)
        try world.apply(mail, "all", .auth, #"{"state":"authorized"}"#)
        world.dropsDocuments = false
        world.published = []
        for _ in 0..<2 { world.pass(seconds: 60) }
        let order = world.topics(of: "/desired/").map { topic in
            let levels = topic.split(separator: "/").drop { $0 != "desired" }
            return "\(levels.dropFirst().first ?? "") \(levels.last ?? "")"
        }
        #expect(order == ["all secure-services", "device auth", "all auth"])
    }

    @Test("what the broker lost, rolled back or replaced is put back, byte for byte, before anybody is greeted")
    func repair() throws {
        let world = try world()
        let config = world.identity.topic(.desired(.all, mail, .config))
        let auth = world.identity.topic(.desired(.all, mail, .auth))
        let old = world.retained[config]
        try world.apply(mail, "all", .config, #"{"values":{"a":"2"}}"#)
        let wanted = world.retained
        world.retained[config] = old
        world.retained[auth] = Array("nonsense".utf8)
        world.retained[world.identity.topic(.trust)] = nil
        world.online(till)
        world.published = []
        world.connect()
        #expect(world.retained[config] == wanted[config])
        #expect(world.retained[auth] == wanted[auth])
        #expect(world.retained[world.identity.topic(.trust)] == world.identity.trustWire)
        let topics = world.published.map(\.topic)
        let hello = try #require(topics.firstIndex(of: world.identity.topic(.hello(till))))
        #expect(try #require(topics.firstIndex(of: config)) < hello)
        #expect(try #require(topics.firstIndex(of: auth)) < hello)
    }

    @Test(
        "nobody is told that all is there before what the broker lacked has come back, also the trust document",
        arguments: ["config", "trust"])
    func greetsBehindRepair(what: String) throws {
        let world = try world()
        world.online(till)
        let lost: Address = what == "trust" ? .trust : .desired(.all, mail, .config)
        world.retained[world.identity.topic(lost)] = nil
        world.published = []
        // The broker refuses it, and takes all else.
        world.dropsDocuments = true
        world.connect()
        for _ in 0..<5 { world.pass(seconds: 60) }
        #expect(world.topics(of: "/heartbeat").count == 6)
        #expect(world.topics(of: lost.path).count > 1)
        #expect(world.topics(of: "/hello/").isEmpty)
        world.dropsDocuments = false
        world.published = []
        for _ in 0..<2 { world.pass(seconds: 60) }
        let topics = world.published.map(\.topic)
        let hello = try #require(topics.firstIndex(of: world.identity.topic(.hello(till))))
        #expect(try #require(topics.firstIndex(of: world.identity.topic(lost))) < hello)
    }

    @Test("a broker that never shows what it takes is told of once, until it has shown all")
    func neverShown() throws {
        let world = try world()
        let config = world.identity.topic(.desired(.all, mail, .config))
        func told() -> [String] {
            world.logs.filter { $0.message.hasPrefix("the broker takes documents and does not show them") }
                .map { "\($0.details["topic"] ?? "") \($0.details["documents"] ?? "")" }
        }
        world.dropsDocuments = true
        for round in 1...2 {
            if round == 1 {
                world.retained[config] = nil
                world.connect()
            } else {
                try world.apply(mail, "all", .config, #"{"values":{"a":"2"}}"#)
            }
            for _ in 0..<4 { world.pass(seconds: 60) }
            #expect(told().count == round - 1)
            for _ in 0..<10 { world.pass(seconds: 60) }
            #expect(told() == Array(repeating: "\(config) 1", count: round))
            world.dropsDocuments = false
            for _ in 0..<2 { world.pass(seconds: 60) }
            world.dropsDocuments = true
        }
    }

    @Test("what is cleared while the controller looks is put back, though it has been seen")
    func clearedMeanwhile() throws {
        let world = try world()
        let config = world.identity.topic(.desired(.all, mail, .config))
        world.handle(.disconnected)
        let effects = world.core.handle(.connected(.random()), at: world.now)
        let marker = try #require(
            effects.compactMap { effect -> ControllerCore.Message? in
                guard case .publish(let topic, let payload, false) = effect else { return nil }
                return ControllerCore.Message(topic: topic, payload: payload, isRetained: false)
            }.first)
        let shown = world.retained.map { ControllerCore.Message(topic: $0.key, payload: $0.value, isRetained: true) }
        let cleared = ControllerCore.Message(topic: config, payload: [], isRetained: false)
        let repairs = world.core.handle(.messages(shown + [cleared, marker]), at: world.now)
        let wire = try #require(world.retained[config])
        #expect(repairs.contains(.publish(topic: config, payload: wire, retain: true)))
    }

    @Test("a broker that has kept everything gets nothing again")
    func intact() throws {
        let world = try world()
        world.connect()
        world.published = []
        world.connect()
        #expect(world.topics(of: "/desired/").isEmpty)
        #expect(world.topics(of: "/heartbeat").count == 1)
    }

    @Test("topics of nobody are cleared, and a forgotten document is withdrawn")
    func foreign() throws {
        let world = try world()
        let stray = Address.desired(.group(kiosk), notes, .config)
        let document = DesiredDocument(
            fleet: world.identity.fleet, fleetID: World.fleetID, address: stray,
            revision: Revision(epoch: 1, number: 1), change: Revision(epoch: 1, number: 1), issuedAt: world.now,
            content: .tombstone)
        world.retained[world.identity.topic(stray)] = try world.identity.sign(document, as: .desired)
        let unsigned = world.identity.topic(.desired(.all, notes, .dlp))
        world.retained[unsigned] = Array(#"{"openIn":{}}"#.utf8)
        world.retained["fleet/v1/demo/desired/x"] = [1]
        world.connect()
        #expect(world.retained[unsigned] == nil)
        #expect(world.retained["fleet/v1/demo/desired/x"] == nil)
        #expect(world.document(stray)?.isTombstone == true)
        #expect((world.document(stray)?.revision.number ?? 0) > 2)
    }

    @Test("what the store has forgotten of a device that was taken out is cleared: there is nobody to withdraw it from")
    func foreignOfRemoved() throws {
        let world = try world()
        world.online(till)
        try world.body(.deviceRemove, #"{"device":"till-1"}"#)
        let stray = Address.desired(.device(till), notes, .config)
        let document = DesiredDocument(
            fleet: world.identity.fleet, fleetID: World.fleetID, address: stray,
            revision: Revision(epoch: 1, number: 1), change: Revision(epoch: 1, number: 1), issuedAt: world.now,
            content: .tombstone)
        world.retained[world.identity.topic(stray)] = try world.identity.sign(document, as: .desired)
        world.connect()
        #expect(world.retained[world.identity.topic(stray)] == nil)
    }

    @Test("who publishes below desired/ while the controller serves is overruled at once")
    func overruled() throws {
        let world = try world()
        let topic = Address.desired(.all, mail, .config)
        let wanted = world.retained[world.identity.topic(topic)]
        world.retained[world.identity.topic(topic)] = [1]
        world.receive(topic, [1])
        #expect(world.retained[world.identity.topic(topic)] == wanted)
    }

    @Test("a document that the store has no memory of stops the controller, with the way out in its message")
    func newer() throws {
        let world = try world()
        let other = try World(identity: world.identity)
        other.connect()
        for value in 1...4 {
            try other.apply(mail, "all", .dlp, #"{"openFrom":{"policy":"whitelist","apps":["x\#(value)"]}}"#)
        }
        world.retained = other.retained
        world.connect()
        #expect(world.stopped?.contains("fleet-controller run --restored") == true)
        #expect(world.stopped?.contains("revision 4") == true)
    }

    @Test("a document of equal revision and other content stops it too: the counter has been here before")
    func diverged() throws {
        let world = try world()
        let other = try World(identity: world.identity)
        other.connect()
        try other.apply(mail, "all", .config, #"{"values":{"other":"history"}}"#)
        world.retained = other.retained
        world.connect()
        #expect(world.stopped?.contains("--restored") == true)
    }

    @Test("behind what stops the controller nothing is changed: nobody would be told so")
    func stoppedForGood() throws {
        let world = try world()
        world.connect()
        let other = try World(identity: world.identity)
        other.connect()
        for value in 1...4 {
            try other.apply(mail, "all", .dlp, #"{"openFrom":{"policy":"whitelist","apps":["x\#(value)"]}}"#)
        }
        let newer = Address.desired(.all, mail, .dlp)
        world.receive(newer, try #require(other.retained[world.identity.topic(newer)]))
        #expect(world.stopped?.contains("revision 4") == true)
        let before = try world.store.latest()
        let request = """
            {"v":1,"id":"\(RandomID.random())","replyTo":"here","notAfter":"\(world.now.advanced(bySeconds: 30))","body":
            {"changes":[{"app":"\(notes)","target":"all","aspect":"config","value":{"values":{"a":"1"}}}]}}
            """
        #expect(world.raw(.apply, request) == nil)
        #expect(try world.store.latest() == before)
    }

    @Test("a status that has received a newer revision stops the controller")
    func newerStatus() throws {
        let world = try world()
        world.report(.fresh(till, mail, at: world.now).then(.config, from: .all, 77, .applied))
        #expect(world.stopped?.contains("received revision 77") == true)
    }

    @Test(
        "a device that knows of a newer revision stops it, though the broker has lost everything; it ends beyond that")
    func newerDevice() throws {
        let world = try world()
        world.online(till, highest: Revision(epoch: 1, number: 2))
        #expect(world.stopped == nil)
        world.online(till, highest: Revision(epoch: 1, number: 3))
        #expect(world.stopped?.contains("knows of revision 3") == true)
        let restored = try World(identity: world.identity, isRestoring: true)
        restored.retained = world.retained
        restored.online(till, highest: Revision(epoch: 9_000_000_000_000, number: 70_000))
        restored.connect()
        #expect(restored.stopped == nil)
        #expect(try restored.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#) > 70_000)
        #expect(try restored.core.store.latest().epoch == 9_000_000_000_001)
    }

    @Test("a device that is to be disregarded stops nothing, and leads no restore astray; others stop it")
    func disregarded() throws {
        let world = try world()
        world.online(till, highest: Revision(epoch: 1, number: 77))
        #expect(world.stopped?.hasSuffix("with: fleet-controller run --disregard till-1") == true)
        for isRestoring in [true, false] {
            let doubting = try World(
                identity: world.identity, store: world.store, isRestoring: isRestoring, disregarded: [till])
            doubting.retained = world.retained
            doubting.online(till, highest: Revision(epoch: 5_000, number: 1_000_000_000_000_000))
            doubting.connect()
            let status = Status.fresh(till, mail, at: world.now)
            doubting.report(status.then(.config, from: .all, 1_000_000_000_000_000, .applied))
            #expect(doubting.stopped == nil)
            var latest = try doubting.core.store.latest()
            #expect(latest.epoch < 5_000_000_000_000 && latest.number < 1_000_000_000_000_000)
            guard !isRestoring else { continue }
            try doubting.body(.deviceRemove, #"{"device":"till-1"}"#)
            latest.number += 2
            doubting.online(DeviceID(unchecked: "till-2"), highest: latest)
            #expect(doubting.stopped?.contains("--disregard till-2") == true)
        }
    }

    @Test("what a withdrawn key has signed is signed again, once, as the change that it was; what counts still is left")
    func withdrawnKey() throws {
        let world = try world()
        try world.body(.delete, #"{"documents":[{"app":"com.example.mail","target":"all","aspect":"auth"}]}"#)
        let (config, auth) = (Address.desired(.all, mail, .config), Address.desired(.all, mail, .auth))
        let old = try #require(world.document(config))
        let (key, next) = (world.identity.signingKey, try SigningKey())
        let rotated = try world.renewed(2, [next, key])
        rotated.connect()
        #expect(rotated.document(config)?.revision == old.revision)
        let withdrawn = try rotated.renewed(3, [next])
        withdrawn.connect()
        let new = try #require(withdrawn.document(config))
        #expect(new.revision > old.revision)
        #expect(new.change == old.change)
        #expect(new.content == old.content)
        #expect(withdrawn.document(auth)?.isTombstone == true)
        for address in [config, auth] {
            let wire = try #require(withdrawn.retained[withdrawn.identity.topic(address)])
            #expect(try SignedDocument(wire: wire).isSigned(by: next.publicKey))
        }
        withdrawn.connect()
        let again = try withdrawn.renewed(3, [next])
        again.connect()
        #expect(again.document(config)?.revision == new.revision)
    }

    @Test(
        "a retirement that was confirmed is so when it is signed again, also of who is away; what is not the same is not"
    )
    func withdrawnKeyOfRetirement() throws {
        let world = try world()
        world.connect()
        let next = try SigningKey()
        func retire(_ world: World) throws {
            let revision = try world.apply(mail, "all", .auth, #"{"state":"retired"}"#)
            var status = Status.fresh(till, mail, at: world.now).then(.auth, from: .all, revision, .delivered)
            status.keys = .destroyed
            world.report(status)
        }
        try retire(world)
        let key = world.identity.signingKey
        try world.renewed(2, [next, key]).connect()
        let withdrawn = try world.renewed(3, [next])
        withdrawn.connect()
        #expect(withdrawn.document(.desired(.all, mail, .auth))?.isTombstone == false)
        #expect(try withdrawn.counts(mail, .auth).retirement == RetirementCounts(confirmed: 1))
        #expect(try withdrawn.counts(mail, .auth).counts.pending == 1, "its answer was to the one before")
        try withdrawn.apply(mail, "all", .auth, #"{"state":"authorized"}"#)
        try withdrawn.apply(mail, "all", .auth, #"{"state":"retired"}"#)
        #expect(try withdrawn.counts(mail, .auth).retirement == RetirementCounts(outstanding: 1))
    }

    @Test("a home that is older than its keys stops, and says so; nobody else's word on keys does that")
    func newerTrust() throws {
        let world = try world()
        let topic = world.identity.topic(.trust)
        let newer = try world.renewed(2, [SigningKey()]).identity.trustWire
        let foreign = try SignedDocument(
            signing: SignedDocument(wire: newer).payload, as: .trust, with: SigningKey()
        ).wire
        for wire in [foreign, [UInt8]("{}".utf8), []] {
            world.receive(.trust, wire)
            #expect(world.stopped == nil)
            #expect(world.retained[topic] == world.identity.trustWire)
        }
        world.retained[topic] = newer
        world.handle(.disconnected)
        world.handle(.connected(.random()))
        #expect(world.stopped?.contains("fleetctl key rotate") == true)
        #expect(world.retained[topic] == newer)
    }

    @Test("what a removed device says, or has left at the broker, stops nothing, whatever it claims to know")
    func newerRemoved() throws {
        let world = try world()
        world.online(till)
        try world.body(.deviceRemove, #"{"device":"till-1"}"#)
        func claim() {
            world.online(till, highest: Revision(epoch: 1, number: 77))
            world.report(.fresh(till, mail, at: world.now).then(.config, from: .all, 77, .applied))
        }
        claim()
        #expect(!world.retained.keys.contains { $0.contains("till-1/") || $0.hasSuffix("presence/till-1") })
        world.handle(.disconnected)
        claim()
        world.handle(.connected(.random()))
        #expect(!world.retained.keys.contains { $0.contains("till-1/") || $0.hasSuffix("presence/till-1") })
        #expect(world.stopped == nil)
        // A later incarnation was not removed.
        world.online(till, incarnation: 2, highest: Revision(epoch: 1, number: 77))
        #expect(world.stopped?.contains("knows of revision 77") == true)
    }

    @Test(
        "three connections in a minute of a controller that has started later end this one; what is kept of one does not"
    )
    func rivals() throws {
        /// Words of connections, and the seconds before each is seen.
        func meets(since: Int64 = 5, _ words: [(connection: RandomID, pause: Int64)]) throws -> String? {
            let world = try world()
            for word in words {
                let other = Presence(
                    state: .offline, incarnation: 1, boot: 1, connection: word.connection,
                    since: World.start.advanced(bySeconds: since), agent: "fleet-controller", apps: [])
                world.pass(seconds: word.pause)
                world.connect()
                world.receive(.presence(.controller), other.json, isRetained: true)
            }
            return world.stopped
        }
        let names = (0..<6).map { _ in RandomID.random() }
        // An earlier run whose clock was ahead has left that.
        #expect(try meets(names.map { _ in (names[0], 1) }) == nil)
        #expect(try meets(names.map { ($0, 31) }) == nil)
        #expect(try meets(since: -5, names.map { ($0, 1) }) == nil)
        #expect(try meets(names.prefix(2).map { ($0, 1) }) == nil)
        #expect(try meets(names.prefix(3).map { ($0, 1) })?.contains("taken over") == true)
    }

    @Test(
        "wills of an earlier run, which began later by a clock that was set back since, end this one no sooner than they can come"
    )
    func earlierRuns() throws {
        /// Whether three connections of a run that began so many seconds later end this one, so long after its start.
        func ends(since: Int64, after pause: Int64, minutes: Int = 2) throws -> Bool {
            let earlier = try World()
            earlier.connect()
            for _ in 0..<minutes { earlier.pass(seconds: 60) }
            let world = try World(identity: earlier.identity, store: earlier.store)
            world.connect()
            world.pass(seconds: pause)
            for _ in 0..<3 {
                let other = Presence(
                    state: .offline, incarnation: 1, boot: 1, connection: .random(),
                    since: World.start.advanced(bySeconds: since), agent: "fleet-controller", apps: [])
                world.pass(seconds: 1)
                world.receive(.presence(.controller), other.json)
            }
            return world.stopped?.contains("taken over") ?? false
        }
        #expect(try !ends(since: 30, after: 1))
        #expect(try ends(since: 30, after: 400), "it is there all the same")
        #expect(try ends(since: 600, after: 1), "nothing was signed so late")
        #expect(try ends(since: 1, after: 1, minutes: 0), "that an earlier run has ended just now excuses nobody")
    }

    @Test("a device that lies about the epoch keeps nobody else from being heard after the restore")
    func lyingDevice() throws {
        let restored = try World(isRestoring: true)
        restored.online(till, highest: Revision(epoch: Collector.largestRevision, number: 0))
        restored.connect()
        let latest = try restored.core.store.latest()
        #expect(latest.epoch == Collector.largestRevision + 1)
        let other = DeviceID(unchecked: "till-2")
        restored.online(other, highest: Revision(epoch: latest.epoch, number: latest.number))
        #expect(restored.topics(of: "/hello/till-2").count == 1)
    }

    @Test("a restore that a full disk has rolled back with what came beside it is done all the same")
    func restoreRolledBack() throws {
        let restored = try World(isRestoring: true)
        let effects = restored.core.handle(.connected(.random()), at: restored.now)
        let barrier = try #require(
            effects.lazy.compactMap { effect -> ControllerCore.Message? in
                guard case .publish(let topic, let payload, false) = effect else { return nil }
                return .init(topic: topic, payload: payload, isRetained: false)
            }.first)
        let disk = OnceFullDisk()
        restored.store.database.add(transactionObserver: disk)
        let request = ControllerCore.Message(
            topic: restored.identity.topic(.request(World.operatorName, .groups)), payload: [1], isRetained: false)
        restored.handle(.messages([barrier, request]))
        #expect(disk.wasFull)
        #expect(restored.stopped == nil)
        #expect(try restored.core.store.latest().epoch > 1)
    }

    private final class OnceFullDisk: TransactionObserver {
        private(set) var wasFull = false

        func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
        func databaseDidChange(with event: DatabaseEvent) {}
        func databaseDidCommit(_ db: Database) {}
        func databaseDidRollback(_ db: Database) {}

        func databaseWillCommit() throws {
            guard !wasFull else { return }
            wasFull = true
            throw DatabaseError(resultCode: .SQLITE_FULL, message: "database or disk is full")
        }
    }

    @Test("a database that is behind what was noted of it does not start, though nobody else knows better")
    func behind() throws {
        let world = try world()
        let backup = try FleetStore(copying: world.store)
        let old = try #require(world.noted)
        let restore = { (noted: StorePosition?, isRestoring: Bool) in
            try World(
                identity: world.identity, store: FleetStore(copying: backup), noted: noted, isRestoring: isRestoring)
        }
        func refusal() -> String? {
            do { _ = try restore(world.noted, false) } catch { return "\(error)" }
            return nil
        }
        #expect(refusal() == nil)
        world.connect()
        #expect(
            refusal()?.contains("session 2, and has been at revision 2 and session 3") == true, "\(refusal() ?? "")")
        let lost = try world.apply(mail, "all", .config, #"{"values":{"a":"lost"}}"#)
        #expect(refusal()?.contains("fleet-controller run --restored") == true)
        _ = try restore(old, false)

        let restored = try restore(world.noted, true)
        #expect(restored.noted == nil)
        restored.connect()
        #expect(restored.stopped == nil)
        #expect(restored.noted?.latest.number ?? 0 > lost)
        // It may die before it has noted its new epoch.
        let sessions = StorePosition(latest: try #require(world.noted).latest, session: 9)
        _ = try World(identity: world.identity, store: FleetStore(copying: restored.store), noted: sessions)
    }

    @Test("revisions of a restore begin behind what was noted, whatever the clock says")
    func restoredBehindTheClock() throws {
        let noted = StorePosition(latest: Revision(epoch: 9_000_000_000_000, number: 9_000_000_000_000), session: 7)
        let world = try World(noted: noted, isRestoring: true)
        world.connect()
        let revision = try #require(try? world.store.latest())
        #expect(revision.epoch == 9_000_000_000_001 && revision.number > 9_000_000_000_000)
    }

    @Test("two restores from one backup begin two epochs, also when the second sees nothing of the first")
    func restoredTwice() throws {
        let first = try World(isRestoring: true)
        first.connect()
        let lost = try first.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        let second = try World(identity: first.identity, isRestoring: true)
        second.now = first.now.advanced(bySeconds: 1)
        second.connect()
        #expect(try first.core.store.latest() < second.core.store.latest())
        #expect(try second.apply(mail, "all", .config, #"{"values":{"a":"2"}}"#) > lost)
        // The clock was wrong then: a device tells of it.
        second.online(till, highest: Revision(epoch: second.now.milliseconds + 1, number: 1))
        #expect(second.stopped != nil)
    }

    @Test("a restored controller begins a new epoch beyond all it sees, signs everything again, and withdraws the rest")
    func restored() throws {
        let lost = try World()
        lost.connect()
        let kept = try lost.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        // The backup is of this moment.
        let world = try World(identity: lost.identity, isRestoring: true)
        world.connect()
        world.core.isRestoring = true
        world.retained = [:]
        #expect(try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#) > kept)
        let change = try #require(world.document(.desired(.all, mail, .config))?.change)
        try lost.apply(notes, "all", .config, #"{"values":{}}"#)
        for value in 1...9 { try lost.apply(mail, "all", .config, #"{"values":{"a":"9\#(value)"}}"#) }
        world.retained = lost.retained
        var status = Status.fresh(till, mail, at: world.now).then(.config, from: .all, 2_500, .applied)
        status.order.boot = 3
        world.retained[world.identity.topic(.reply(till, mail, .status))] = status.wire
        world.connect()
        #expect(world.stopped == nil)
        let config = try #require(world.document(.desired(.all, mail, .config)))
        #expect(config.revision.epoch == world.now.milliseconds + 1)
        #expect(config.revision.number > 3_500)
        #expect(config.change == change)
        #expect(config.content.valueText == #"{"values":{"a":"1"}}"#)
        #expect(world.document(.desired(.all, notes, .config))?.isTombstone == true)
        // It is an ordinary controller again.
        world.connect()
        #expect(world.stopped == nil)
        #expect(try world.counts(mail, .config).counts.pending == 1)
    }

    @Test("who waits for a change that a restore has undone is told of another epoch; by its revision nobody can tell")
    func undone() throws {
        let lost = try World()
        lost.connect()
        try lost.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        let world = try World(identity: lost.identity)
        world.connect()
        try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        let place = #""app":"com.example.mail","target":"all","aspect":"config""#
        let change = try lost.body(.apply, #"{"changes":[{\#(place),"value":{"values":{"a":"2"}}}]}"#)
        #expect(change["epoch"] == 1 && change["results"]?.arrayValue?.first?["revision"] == 2)
        let select = #"{"documents":[{\#(place),"revision":2}]}"#
        #expect(try lost.body(.progress, select)["epoch"] == 1)
        world.retained = lost.retained
        world.core.isRestoring = true
        world.connect()
        let progress = try world.body(.progress, select)
        #expect(progress["superseded"] == nil)
        #expect(progress["epoch"] == .integer(try world.store.latest().epoch) && progress["epoch"] != 1)
    }

    @Test("retirements that a restore ends are named, and those that stand are not")
    func endedRetirements() throws {
        let lost = try World()
        lost.connect()
        let retired = #"{"state":"retired"}"#
        try lost.apply(mail, "group/kiosk", .auth, retired)
        // What the copy has: one is authorized, another retired.
        let restored = try World(identity: lost.identity)
        restored.connect()
        try restored.apply(mail, "all", .auth, #"{"state":"authorized"}"#)
        try restored.apply(mail, "group/kiosk", .auth, retired)
        for target in ["all", "device/till-1"] { try lost.apply(mail, target, .auth, retired) }
        restored.retained = lost.retained
        restored.core.isRestoring = true
        restored.connect()
        #expect(restored.stopped == nil)
        let named = restored.logs.filter { "\($0.message)".contains("a retirement is not in this database") }
        #expect(
            named.map { $0.details["topic"] } == [
                "fleet/v1/demo/desired/all/com.example.mail/auth",
                "fleet/v1/demo/desired/device/till-1/com.example.mail/auth",
            ])
        #expect(named.first?.details["instead"]?.contains("authorized") == true)
        #expect(named.last?.details["instead"] == "nothing")
    }
}
