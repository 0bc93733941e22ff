import FleetProtocol
import TestSupport
import Testing

@testable import FleetController

@Suite("What devices report is counted")
struct StatusTests {
    @Test("every outcome is counted once, and only the revision that is wanted counts")
    func partition() throws {
        let world = try World()
        world.connect()
        let revision = try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        for (index, outcome) in Outcome.allCases.enumerated() {
            let device = DeviceID(unchecked: "d\(index)")
            world.online(device)
            world.report(.fresh(device, mail, at: world.now).then(.config, from: .all, revision, outcome))
        }
        let row = try world.counts(mail, .config)
        #expect(row.counts.applied == 2)  // applied and expired
        #expect(row.counts.pending == 2)  // pending and awaitingCode
        #expect([row.counts.error, row.counts.unsupported, row.counts.rejected, row.counts.delivered] == [1, 1, 1, 1])
        #expect(row.counts.total == Int64(Outcome.allCases.count))
        #expect(try world.counts(mail, .secureFileIO).counts.applied == Int64(Outcome.allCases.count))
        try world.apply(mail, "all", .config, #"{"values":{"a":"2"}}"#)
        #expect(try world.counts(mail, .config).counts.pending == Int64(Outcome.allCases.count))
    }

    @Test("an override counts for its device alone, comes and goes without another status")
    func overrides() throws {
        let world = try World()
        world.connect()
        let all = try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        for device in [till, till2] {
            world.report(.fresh(device, mail, at: world.now).then(.config, from: .all, all, .applied))
        }
        #expect(try world.counts(mail, .config).counts.applied == 2)
        try world.apply(mail, "device/till-1", .config, #"{"values":{"a":"2"}}"#)
        #expect(try world.counts(mail, .config).counts.applied == 1)
        #expect(try world.counts(mail, .config).counts.pending == 1)
        try world.body(.delete, #"{"documents":[{"app":"com.example.mail","target":"device/till-1"}]}"#)
        #expect(try world.counts(mail, .config).counts.applied == 2)
    }

    @Test("membership decides whether a group's document counts, and priority which group's")
    func groups() throws {
        let world = try World()
        world.connect()
        let kioskRevision = try world.apply(mail, "group/kiosk", .config, #"{"values":{"a":"k"}}"#)
        let eastRevision = try world.apply(mail, "group/east", .config, #"{"values":{"a":"e"}}"#)
        world.report(.fresh(till, mail, at: world.now))
        #expect(try world.counts(mail, .config).counts.applied == 1)
        try world.body(.groupSet, #"{"group":"kiosk","devices":["till-1"]}"#)
        #expect(try world.counts(mail, .config).counts.pending == 1)
        let inKiosk = Status.fresh(till, mail, at: world.now)
            .then(.config, from: .group(kiosk), kioskRevision, .applied)
        world.report(inKiosk)
        #expect(try world.counts(mail, .config).counts.applied == 1)
        // Of equal priority the smaller id decides.
        try world.body(.groupSet, #"{"group":"east","devices":["till-1"]}"#)
        #expect(try world.counts(mail, .config).counts.pending == 1)
        try world.body(.groupSet, #"{"group":"kiosk","priority":1}"#)
        #expect(try world.counts(mail, .config).counts.applied == 1)
        try world.body(.groupSet, #"{"group":"kiosk","devices":[]}"#)
        world.report(inKiosk.then(.config, from: .group(GroupID(unchecked: "east")), eastRevision, .error))
        #expect(try world.counts(mail, .config).counts.error == 1)
        try world.body(.groupDelete, #"{"group":"east"}"#)
        #expect(try world.counts(mail, .config).counts.pending == 1)
    }

    @Test("retired at any layer is what is expected, whatever an override says")
    func retired() throws {
        let world = try World()
        world.connect()
        let authorized = try world.apply(mail, "device/till-1", .auth, #"{"state":"authorized"}"#)
        let status = Status.fresh(till, mail, at: world.now).then(.auth, from: .device(till), authorized, .applied)
        world.report(status)
        #expect(try world.counts(mail, .auth).counts.applied == 1)
        let retired = try world.apply(mail, "all", .auth, #"{"state":"retired"}"#)
        #expect(try world.counts(mail, .auth).counts.pending == 1)
        world.report(status.then(.auth, from: .all, retired, .applied))
        #expect(try world.counts(mail, .auth).counts.applied == 1)
    }

    @Test("whoever ends a retirement that is not confirmed everywhere is told so; where it is, or was never meant, not")
    func endedRetirement() throws {
        let world = try World()
        world.connect()
        for device in [till, till2] {
            world.online(device)
            world.report(.fresh(device, mail, at: world.now))
        }
        func warnings(_ verb: Verb, _ body: String) throws -> [String] {
            let told = try world.body(verb, body)["warnings"]?.arrayValue ?? []
            return told.compactMap(\.stringValue).filter { $0.contains("not confirmed") }
        }
        func authorize(_ target: String) throws -> [String] {
            let change =
                #"{"app":"com.example.mail","target":"\#(target)","aspect":"auth","value":{"state":"authorized"}}"#
            return try warnings(.apply, #"{"changes":[\#(change)]}"#)
        }
        #expect(try authorize("all") == [])
        let revision = try world.apply(mail, "all", .auth, #"{"state":"retired"}"#)
        #expect(try authorize("device/till-1") == [], "it stays in force")
        var gone = Status.fresh(till, mail, at: world.now).then(.auth, from: .all, revision, .delivered)
        gone.keys = .destroyed
        world.report(gone)
        let text =
            "the retirement of com.example.mail for all was not confirmed on 1 device: keys and data may stay there"
        let select = #"{"documents":[{"app":"com.example.mail","target":"all"}]}"#
        #expect(try warnings(.plan, #"{"verb":"delete","body":\#(select)}"#) == [text])
        #expect(try authorize("all") == [text])
        #expect(try authorize("all") == [])
        try world.apply(mail, "all", .auth, #"{"state":"retired"}"#)
        #expect(try warnings(.delete, select) == [text.replacing("1 device", with: "2 devices")])
    }

    @Test(
        "whoever ends a retirement of which keys are in doubt, or takes such a device out of it, is told: behind it nobody is",
        arguments: ["all", "group/kiosk"])
    func endedDoubt(target: String) throws {
        let world = try World()
        world.connect()
        let apps = [Presence.App(id: mail, sdk: "1", implements: [], reported: nil)]
        try world.body(.groupSet, #"{"group":"kiosk","devices":["till-1","till-2"]}"#)
        world.online(till, boot: 500, after: 400, disk: 100, apps: apps)
        for device in [till, till2] { world.report(.fresh(device, mail, boot: 500, at: world.now)) }
        try world.apply(mail, target, .auth, #"{"state":"retired"}"#)
        world.online(till, boot: 800, after: 700, disk: 700, apps: apps)
        func warnings(_ verb: Verb, _ body: String) throws -> [String] {
            let answer = try world.body(verb, body)
            return answer["warnings"]?.arrayValue?.compactMap(\.stringValue).filter { $0.contains("in doubt") } ?? []
        }
        let text =
            "the retirement of com.example.mail for \(target) leaves keys of 1 device in doubt: they may be on other"
            + " disks, on copies or on removed devices, and nobody is told of those any more"
        #expect(try warnings(.groupSet, #"{"group":"kiosk","remove":["till-2"]}"#) == [], "it has no other disk")
        if target != "all" {
            let removal = #"{"group":"kiosk","remove":["till-1"]}"#
            #expect(try warnings(.plan, #"{"verb":"group-set","body":\#(removal)}"#) == [text])
            #expect(try warnings(.groupSet, removal) == [text])
            try world.body(.groupSet, #"{"group":"kiosk","add":["till-1"]}"#)
        }
        let select = #"{"documents":[{"app":"com.example.mail","target":"\#(target)"}]}"#
        #expect(try warnings(.delete, select) == [text])
    }

    @Test("a document that somebody has changed since is named to whoever asks how far it has come")
    func superseded() throws {
        let world = try World()
        world.connect()
        let revision = try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        func superseded(_ revision: Int64?) throws -> [JSONValue]? {
            let at = revision.map { ",\"revision\":\($0)" } ?? ""
            let select = #"{"app":"com.example.mail","target":"all","aspect":"config"\#(at)}"#
            return try world.body(.progress, #"{"documents":[\#(select)]}"#)["superseded"]?.arrayValue
        }
        #expect(try superseded(revision) == nil)
        #expect(try superseded(nil) == nil)
        try world.apply(mail, "all", .dlp, #"{"pasteboard":"unauthorized"}"#)
        #expect(try superseded(revision) == nil, "another aspect")
        let next = try world.apply(mail, "all", .config, #"{"values":{"a":"2"}}"#)
        let found = try #require(try superseded(revision))
        #expect(found.count == 1 && found.first?["revision"] == .integer(next))
        #expect(found.first?["by"] == .string(World.operatorName.text) && found.first?["deleted"] == false)
        #expect(try superseded(next) == nil)
        try world.body(.delete, #"{"documents":[{"app":"com.example.mail","target":"all","aspect":"config"}]}"#)
        #expect(try superseded(next)?.first?["deleted"] == true)
    }

    @Test("a retirement is confirmed by who knows of it and has no keys; who has not is waited for, there or not")
    func retirement() throws {
        let world = try World()
        world.connect()
        world.online(till)
        world.online(till2)
        for device in [till, till2] { world.report(.fresh(device, mail, at: world.now)) }
        #expect(try world.counts(mail, .auth).retirement == nil)
        let revision = try world.apply(mail, "all", .auth, #"{"state":"retired"}"#)
        let select = #"{"documents":[{"app":"com.example.mail","target":"all"}]}"#
        func expect(_ counts: RetirementCounts, due: Int64, waiting: [String], _ what: Comment) throws {
            let row = try world.counts(mail, .auth)
            #expect(row.retirement == counts && row.due == due, what)
            #expect(try world.counts(mail, .config).retirement == nil, what)
            let progress = try world.body(.progress, select)
            let told = progress["waiting"]?.arrayValue?.filter { $0["policy"] == "auth" }
            #expect(told?.compactMap { $0["device"]?.stringValue }.sorted() == waiting, what)
            let counted = try world.body(
                .progress, #"{"documents":[{"app":"com.example.mail","target":"all"}],"names":false}"#)
            #expect(counted["rows"] == progress["rows"] && counted["waiting"] == [], what)
            let apps = try world.body(.apps, #"{"retirement":"outstanding"}"#)["apps"]?.arrayValue
            #expect(apps?.count == Int(counts.outstanding), what)
            #expect(
                try world.body(.apps, #"{"retirement":"confirmed"}"#)["apps"]?.arrayValue?.count
                    == Int(counts.confirmed))
        }
        try expect(.init(outstanding: 2), due: 2, waiting: ["till-1", "till-2"], "nobody knows of it")
        // Its keys are gone, and its app runs: it has still to say that it has erased its files.
        var gone = Status.fresh(till, mail, at: world.now).then(.auth, from: .all, revision, .delivered)
        gone.keys = .destroyed
        world.report(gone)
        try expect(.init(confirmed: 1, outstanding: 1), due: 2, waiting: ["till-1", "till-2"], "the app runs")
        // It does not run: there is nobody to wait for.
        gone = gone.then(.auth, from: .all, revision, .pending)
        gone.isRunning = false
        world.report(gone)
        try expect(.init(confirmed: 1, outstanding: 1), due: 1, waiting: ["till-2"], "the app is closed")
        #expect(try world.counts(mail, .auth).counts.pending == 2)
        // Who has other keys of before, and was never told of this, has confirmed nothing.
        var earlier = Status.fresh(till2, mail, at: world.now).then(.auth, from: .all, revision - 1, .applied)
        earlier.keys = .destroyed
        world.report(earlier)
        try expect(.init(confirmed: 1, outstanding: 1), due: 1, waiting: ["till-2"], "it knows of another one")
        let connection = RandomID.random()
        world.online(till2, connection: connection)
        world.offline(till2, connection: connection)
        try expect(.init(confirmed: 1, outstanding: 1), due: 1, waiting: ["till-2"], "it is offline")
        world.report(earlier.then(.auth, from: .all, revision, .applied))
        try expect(.init(confirmed: 2), due: 0, waiting: [], "both are gone")
        try world.apply(mail, "all", .auth, #"{"state":"authorized"}"#)
        #expect(try world.counts(mail, .auth).retirement == nil)
    }

    @Test("who waits for a change does not wait for a retirement that another document wants, of a device that is away")
    func otherRetirement() throws {
        let world = try World()
        world.connect()
        for device in [till, till2] {
            world.online(device)
            world.report(.fresh(device, mail, at: world.now))
        }
        try world.apply(mail, "device/till-2", .auth, #"{"state":"retired"}"#)
        let connection = RandomID.random()
        world.online(till2, connection: connection)
        world.offline(till2, connection: connection)
        let revision = try world.apply(mail, "all", .auth, #"{"state":"authorized"}"#)
        var status = Status.fresh(till, mail, at: world.now).then(.auth, from: .all, revision, .applied)
        world.report(status)
        func auth(_ targets: String...) throws -> (row: JSONValue?, waiting: [JSONValue]) {
            let documents = targets.map { "{\"app\":\"\(mail)\",\"target\":\"\($0)\",\"aspect\":\"auth\"}" }
            let body = try world.body(.progress, "{\"documents\":[\(documents.joined(separator: ","))]}")
            return (body["rows"]?.arrayValue?.first, body["waiting"]?.arrayValue ?? [])
        }
        let changed = try auth("all")
        #expect(changed.row?["due"] == 0 && changed.row?["retirement"] == nil)
        #expect(changed.waiting.map { $0["device"] } == ["till-2"], "it is named where there is room")
        #expect(changed.waiting.first?["retirement"] == nil)
        for targets in [["device/till-2"], ["all", "device/till-2"]] {
            let both = try targets.count == 1 ? auth(targets[0]) : auth(targets[0], targets[1])
            #expect(both.row?["due"] == 1 && both.row?["retirement"]?["outstanding"] == 1)
            #expect(both.waiting.first?["retirement"] == "outstanding")
        }
        #expect(try world.counts(mail, .auth).retirement == .init(outstanding: 1), "the summary tells of it")
        // A retirement of all wants it gone there, too.
        let retired = try world.apply(mail, "all", .auth, #"{"state":"retired"}"#)
        status = status.then(.auth, from: .all, retired, .applied)
        status.keys = .destroyed
        world.report(status)
        #expect(try auth("all").row?["retirement"]?.jsonText == #"{"confirmed":1,"outstanding":1}"#)
    }

    @Test("the devices behind a count are listed as they are counted, page after page")
    func listed() throws {
        let world = try World()
        world.connect()
        let revision = try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        for number in 0..<5 {
            let status = Status.fresh(DeviceID(unchecked: "d\(number)"), mail, at: world.now)
            world.report(
                number < 2 ? status : status.then(.config, from: .all, revision, number < 4 ? .error : .expired))
        }
        let connection = RandomID.random()
        world.online(DeviceID(unchecked: "d1"), connection: connection)
        world.offline(DeviceID(unchecked: "d1"), connection: connection)
        func devices(_ request: ListRequest) throws -> [String] {
            try world.core.rows(of: .apps, request, now: world.now, pageSize: 1_500)
                .compactMap { $0["device"]?.stringValue }
        }
        #expect(try devices(ListRequest(outcome: .pending)) == ["d0", "d1"])
        #expect(try devices(ListRequest(app: mail, outcome: .error, policy: .config)) == ["d2", "d3"])
        #expect(try devices(ListRequest(outcome: .error, policy: .auth)) == [])
        #expect(
            try devices(ListRequest(outcome: .applied, policy: .config)) == ["d4"], "one that has expired is counted so"
        )
        #expect(try devices(ListRequest(device: DeviceID(unchecked: "d3"), outcome: .error)) == ["d3"])
        let rows = try world.core.rows(of: .apps, ListRequest(outcome: .pending), now: world.now)
        #expect(rows.map { $0["connection"] } == ["online", "offline"])
        #expect(rows.map { $0["counted"]?["config"] } == ["pending", "pending"])
        #expect(rows.map { $0["policies"]?["config"]?["attempt"]?["outcome"] } == ["applied", "applied"])
        #expect(try world.failure(.apps, #"{"policy":"auth"}"#).location == "policy")
        // Found by their shapes or in the order of the rows, they are the same.
        for count: Int64 in [1, 1_000_000] {
            let found = try world.store.transaction { transaction in
                var selection = FleetStore.Transaction.Selection()
                for rows in try transaction.summary(of: mail) where rows.count == 1 {
                    selection.add(
                        Tally.Rows(
                            shape: rows.shape, overrides: rows.overrides, state: rows.state,
                            connection: rows.connection, count: count))
                }
                return try transaction.statuses(
                    in: World.fleetID, app: nil, device: nil, among: selection, after: 0, limit: 10)
            }
            #expect(found.map(\.status.device.text) == ["d0", "d1", "d4"], "selected \(count)")
        }
    }

    @Test("a document for all rewrites no row of a device, whoever has overrides")
    func noRewrites() throws {
        let world = try World()
        world.connect()
        try world.apply(mail, "device/till-1", .config, #"{"values":{"a":"2"}}"#)
        for device in [till, till2] { world.report(.fresh(device, mail, at: world.now)) }
        func changes() throws -> Int64 {
            try world.store.transaction { try $0.number("SELECT sum(class) * 1000 + sum(shape) FROM device_apps") ?? 0 }
        }
        let before = try changes()
        try world.apply(mail, "all", .config, #"{"values":{"a":"3"}}"#)
        try world.apply(mail, "device/till-1", .config, #"{"values":{"a":"4"}}"#)
        #expect(try changes() == before)
    }

    @Test("pending is overdue when a device that is online could have answered for five minutes; offline is said so")
    func overdue() throws {
        let world = try World()
        world.connect()
        let connection = RandomID.random()
        world.online(till)
        world.online(till2, connection: connection)
        for device in [till, till2] { world.report(.fresh(device, mail, at: world.now)) }
        try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        world.pass(seconds: 299)
        #expect(try world.counts(mail, .config).counts.overdue == 0)
        world.pass(seconds: 1)
        #expect(try world.counts(mail, .config).counts.overdue == 2)
        world.offline(till2, connection: connection)
        var row = try world.counts(mail, .config)
        #expect((row.counts.overdue, row.offline) == (1, 1))
        #expect(row.counts.pending == 2)
        // Back just now: it has not had its five minutes.
        world.online(till2)
        row = try world.counts(mail, .config)
        #expect((row.counts.overdue, row.offline) == (1, 0))
        // On a new connection of the controller's own nobody is known to be there.
        world.connect()
        row = try world.counts(mail, .config)
        #expect((row.counts.overdue, row.offline) == (0, 0))
    }

    @Test("a device that follows what the store has no memory of has five minutes from when that is withdrawn")
    func overdueOfUnknown() throws {
        let lost = try World()
        lost.connect()
        let unknown = try lost.apply(mail, "device/till-1", .config, #"{"values":{"a":"1"}}"#)
        let world = try World(identity: lost.identity)
        world.connect()
        for value in 1...9 { try world.apply(notes, "all", .config, #"{"values":{"a":"\#(value)"}}"#) }
        let connection = RandomID.random()
        world.online(till, connection: connection)
        world.report(.fresh(till, mail, at: world.now).then(.config, from: .device(till), unknown, .applied))
        world.pass(seconds: 600)
        #expect(try world.counts(mail, .config).counts.overdue == 1)
        world.retained.merge(lost.retained) { $1 }
        world.connect()
        world.online(till, connection: connection)
        #expect(world.document(.desired(.device(till), mail, .config))?.isTombstone == true)
        #expect(try world.counts(mail, .config).counts.overdue == 0)
        world.pass(seconds: 300)
        #expect(try world.counts(mail, .config).counts.overdue == 1)
    }

    @Test("a device that comes to a group, or an app to a device, has five minutes of its own, and gives nobody others")
    func overdueOfNewcomers() throws {
        let world = try World()
        world.connect()
        for device in [till, till2] {
            world.online(device)
            world.report(.fresh(device, mail, at: world.now))
        }
        try world.body(.groupSet, #"{"group":"kiosk","devices":["till-1"]}"#)
        try world.apply(mail, "group/kiosk", .config, #"{"values":{"a":"1"}}"#)
        world.pass(seconds: 300)
        #expect(try world.counts(mail, .config).counts.overdue == 1)
        try world.body(.groupSet, #"{"group":"kiosk","add":["till-2"]}"#)
        for seconds: Int64 in [0, 299] {
            world.pass(seconds: seconds)
            let counts = try world.counts(mail, .config).counts
            #expect((counts.pending, counts.overdue) == (2, 1))
            let progress = try world.body(
                .progress, #"{"documents":[{"app":"com.example.mail","target":"group/kiosk","aspect":"config"}]}"#)
            let row = try #require(progress["rows"]?.arrayValue?.first)
            #expect(try StatusRow(json: row.json, limit: 10_000).counts == counts)
        }
        world.pass(seconds: 1)
        #expect(try world.counts(mail, .config).counts.overdue == 2)
        try world.apply(notes, "all", .config, #"{"values":{"a":"1"}}"#)
        world.report(.fresh(till, notes, at: world.now))
        world.pass(seconds: 3_600)
        world.report(.fresh(till2, notes, at: world.now))
        #expect(try world.counts(notes, .config).counts.overdue == 1)
        world.pass(seconds: 300)
        #expect(try world.counts(notes, .config).counts.overdue == 2)
    }

    @Test("what was noted while the controller's clock was far ahead hides nobody who is late")
    func overdueByWrongClock() throws {
        let world = try World()
        let right = world.now
        world.now = right.advanced(bySeconds: 86_400 * 365)
        world.connect()
        world.online(till)
        world.report(.fresh(till, mail, at: world.now))
        try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        #expect(try world.counts(mail, .config).counts.overdue == 0)
        world.now = right
        world.pass(seconds: 1)
        #expect(try world.counts(mail, .config).counts.overdue == 1)
        let progress = try world.body(
            .progress, #"{"documents":[{"app":"com.example.mail","target":"device/till-1"}]}"#)
        let rows = try #require(progress["rows"]?.arrayValue).map { try StatusRow(json: $0.json, limit: 10_000) }
        #expect(rows.contains { $0.counts.overdue == 1 })
    }

    @Test("a status that goes back in order is not stored; a boot that goes back is a warning on the device")
    func order() throws {
        let world = try World()
        world.connect()
        let revision = try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        var newer = Status.fresh(till, mail, boot: 5, sequence: 9, at: world.now)
            .then(.config, from: .all, revision, .applied)
        world.report(newer)
        var older = newer
        older.order.sequence -= 1
        older.policies = Status.fresh(till, mail, at: world.now).policies
        world.report(older)
        #expect(try world.counts(mail, .config).counts.applied == 1)
        older.order.boot = 4
        world.report(older, isRetained: true)
        #expect(try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["warnings"] == [])
        world.report(older)
        #expect(try world.counts(mail, .config).counts.applied == 1)
        let warnings = try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["warnings"]?.arrayValue ?? []
        #expect(warnings.first?.stringValue?.contains("cloned or restored") == true)
        // Of this app nothing else is known.
        world.report(Status.fresh(till, notes, boot: 4, at: world.now))
        #expect(try world.store.statuses(in: World.fleetID).count == 2)
        newer.order.incarnation = 2
        newer.order.boot = 6
        world.report(newer)
        let apps = [mail, notes].map { Presence.App(id: $0, sdk: "1", implements: [], reported: nil) }
        world.online(till, incarnation: 2, boot: 6, after: 5, apps: apps)
        #expect(try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["warnings"] == [])
    }

    @Test("a presence that statuses of the device's next start have overtaken is no copy's")
    func overtaken() throws {
        let world = try World()
        world.connect()
        func warnings() throws -> JSONValue? {
            try world.body(.devices, "{}")["devices"]?.arrayValue?.first?["warnings"]
        }
        let (first, second) = (RandomID.random(), RandomID.random())
        world.online(till, boot: 1, connection: first)
        // Statuses do not wait at the broker for what waits there with an acknowledgement.
        world.report(.fresh(till, mail, boot: 2, at: world.now))
        world.online(till, boot: 1, connection: first)
        world.offline(till, connection: first)
        world.online(till, boot: 1, connection: .random())
        world.online(till, boot: 2, connection: second)
        #expect(try warnings() == [])
        #expect(try world.store.onlineDevices() == [till])
        // Behind the presence of the next start nothing of the one before may come.
        world.online(till, boot: 1, connection: .random())
        #expect(try warnings()?.arrayValue?.count == 2, "of the copy, and of the keys there")
    }

    @Test("a whole status comes out as it came in")
    func wholeStatus() throws {
        let world = try World()
        world.connect()
        let revision = try world.apply(mail, "all", .dlp, #"{}"#)
        var status = Status.fresh(till, mail, at: world.now)
            .then(.dlp, from: .all, revision, .error, message: "no printer: \"x\"")
        status.policies[Policy.print.index].attempt.at = world.now.advanced(bySeconds: -77)
        status.policies[Policy.config.index].applied = nil
        status.refusals = [.init(topic: "fleet/v1/demo/desired/all/x/auth", reason: "signature", at: world.now)]
        status.isReady = false
        status.keys = .destroyed
        status.logLevel = .debug
        world.report(status)
        let apps = try world.body(.apps, #"{"device":"till-1"}"#)["apps"]?.arrayValue ?? []
        #expect(apps.count == 1)
        let back = try Status(
            wire: #require(apps.first).json, fleet: World.fleetID, device: till, app: mail)
        #expect(back == status)
        // A million of them should fit into memory.
        let fresh = Status.fresh(till, mail, at: world.now)
        #expect(StatusDetail.encode(fresh).count < 120 && fresh.wire.count > 1_400)
    }

    @Test("the summary that triggers keep is the one that a count of all rows gives")
    func summary() throws {
        let world = try World()
        world.connect()
        let revision = try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        var generator = SeededGenerator(seed: 7)
        var statuses: [DeviceID: Status] = [:]
        for step in 0..<400 {
            let device = DeviceID(unchecked: "d\(Int.random(in: 0..<9, using: &generator))")
            switch Int.random(in: 0..<7, using: &generator) {
            case 0: world.online(device)
            case 1:
                if let known = try world.store.transaction({ try $0.device(device)?.connection }) {
                    world.offline(device, connection: known)
                }
            case 2: try world.apply(mail, "device/\(device)", .config, #"{"values":{"a":"\#(step)"}}"#)
            case 3:
                _ = try world.ask(
                    .delete, #"{"documents":[{"app":"com.example.mail","target":"device/\#(device)"}]}"#)
            case 4:
                if step % 40 == 0 {
                    _ = try world.ask(.deviceRemove, #"{"device":"\#(device)"}"#)
                    _ = try world.ask(.enroll, #"{"device":"\#(device)"}"#)
                } else {
                    try world.body(.groupSet, #"{"group":"kiosk","add":["\#(device)"]}"#)
                }
            default:
                let outcome = Outcome.allCases.randomElement(using: &generator) ?? .applied
                let status = (statuses[device] ?? .fresh(device, mail, at: world.now))
                    .then(.config, from: .all, revision, outcome)
                statuses[device] = status
                world.report(status)
            }
            if step % 50 == 0 { world.connect() }
        }
        let difference = try world.store.transaction { transaction in
            try transaction.rows(
                """
                SELECT shape, class, state, sum(n) FROM (
                    SELECT shape, class, state, count AS n FROM summary UNION ALL
                    SELECT shape, class, state, -1 FROM device_apps JOIN devices ON devices.id = device_apps.id >> 16
                ) GROUP BY shape, class, state HAVING sum(n) <> 0
                """)
        }
        #expect(difference.isEmpty)
    }

    @Test("progress names those who are there first: nobody waits for the others", arguments: ["all", "group/kiosk"])
    func whoIsNamed(target: String) throws {
        let world = try World()
        world.connect()
        let devices = (0..<30).map { DeviceID(unchecked: "till-\($0)") }
        let names = devices.map { "\"\($0)\"" }.joined(separator: ",")
        try world.body(.groupSet, "{\"group\":\"kiosk\",\"devices\":[\(names)]}")
        for device in devices {
            let connection = RandomID.random()
            world.online(device, connection: connection)
            world.report(.fresh(device, mail, at: world.now))
            if device != devices[29] { world.offline(device, connection: connection) }
        }
        try world.apply(mail, target, .config, #"{"values":{"a":"1"}}"#)
        let body = try world.body(
            .progress, "{\"documents\":[{\"app\":\"\(mail)\",\"target\":\"\(target)\",\"aspect\":\"config\"}]}")
        let waiting = try #require(body["waiting"]?.arrayValue)
        #expect(waiting.count == 20)
        #expect(waiting.first?["device"] == "till-29")
    }

    @Test("progress names who is waited for, however many others there are: of other apps, and offline")
    func othersAreMany() throws {
        let world = try World()
        world.connect()
        let notes = AppID(unchecked: "com.example.notes")
        for number in 0..<30 {
            let (device, connection) = (DeviceID(unchecked: "till-\(number)"), RandomID.random())
            world.online(device, connection: connection)
            world.report(.fresh(device, mail, at: world.now))
            if number == 29 { world.report(.fresh(device, notes, at: world.now)) }
            world.offline(device, connection: connection)
        }
        world.online(DeviceID(unchecked: "till-29"))
        world.offline(till, connection: .random())
        try world.apply(mail, "all", .auth, #"{"state":"retired"}"#)
        try world.apply(notes, "all", .config, #"{"values":{"a":"1"}}"#)
        let body = try world.body(
            .progress,
            #"{"documents":[{"app":"com.example.mail","target":"all"},{"app":"com.example.notes","target":"all"}]}"#)
        let waiting = try #require(body["waiting"]?.arrayValue)
        #expect(waiting.count == 20)
        #expect(waiting.first?["online"] == true)
        #expect(waiting.contains { $0["app"] == "com.example.notes" && $0["online"] == true })
        #expect(waiting.contains { $0["app"] == "com.example.mail" && $0["online"] == false })
    }

    @Test("progress counts those whom the documents speak to, and names who is missing")
    func progress() throws {
        let world = try World()
        world.connect()
        world.online(till)
        for device in [till, till2, DeviceID(unchecked: "till-3")] { world.report(.fresh(device, mail, at: world.now)) }
        try world.body(.groupSet, #"{"group":"kiosk","devices":["till-1","till-2"]}"#)
        let revision = try world.apply(mail, "group/kiosk", .config, #"{"values":{"a":"1"}}"#)
        world.report(.fresh(till2, mail, at: world.now).then(.config, from: .group(kiosk), revision, .applied))
        let body = try world.body(
            .progress, #"{"documents":[{"app":"com.example.mail","target":"group/kiosk","aspect":"config"}]}"#)
        let rows = body["rows"]?.arrayValue ?? []
        #expect(rows.count == 1)
        #expect(rows.first?["counts"]?["applied"] == 1)
        #expect(rows.first?["counts"]?["pending"] == 1)
        let waiting = body["waiting"]?.arrayValue ?? []
        #expect(waiting.count == 1)
        #expect(waiting.first?["device"] == "till-1")
        #expect(waiting.first?["online"] == true)
        #expect(waiting.first?["outcome"] == "pending")
        try world.apply(mail, "all", .dlp, "{}")
        let all = try world.body(
            .progress, #"{"documents":[{"app":"com.example.mail","target":"all","aspect":"dlp"}]}"#)
        #expect(
            all["rows"]?.arrayValue?.map { $0["policy"] } == [
                "openIn", "openFrom", "pasteboard", "print", "dragAndDrop",
            ])
        #expect(all["rows"]?.arrayValue?.allSatisfy { $0["counts"]?["pending"] == 3 } == true)
        #expect(all["waiting"]?.arrayValue?.count == 15)
    }
}
