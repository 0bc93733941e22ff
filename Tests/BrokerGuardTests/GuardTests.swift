import BrokerGuard
import FleetProtocol
import Testing

@Suite("The guard")
struct GuardTests {
    private let controller = "@controller"
    private let till = "till-1"

    /// That knows the fleet's keys.
    private func trusted() throws -> Samples {
        let samples = try Samples()
        #expect(samples.publish(controller, Samples.topic(.trust), try samples.trust()) == nil)
        return samples
    }

    // MARK: Who

    @Test(
        "a client id must be the user's own name; people may put something behind it",
        arguments: [
            ("till-1", "till-1", true), ("till-1", "till-2", false), ("till-1", "@controller", false),
            ("till-1", "till-1~2", false), ("till-1", "till-", false), ("@controller", "@controller", true),
            ("@controller", "@controller~1", false), ("@operator.ann", "@operator.ann~x1", true),
            ("@operator.ann", "@operator.ann", true), ("@operator.ann", "@operator.anna", false),
            ("@operator.ann", "@operator.bob~1", false), ("@viewer.ann", "@viewer.ann~7", true),
            ("@viewer.ann", "@operator.ann~7", false), ("@bridge.edge", "@bridge.edge", true),
        ])
    func clientID(user: String, id: String, isOwn: Bool) throws {
        let samples = try Samples()
        #expect((samples.connect(user, id: id) == nil) == isOwn)
        let refusal = samples.subscribe(user, "fleet/v1/demo/control/heartbeat", id: id)
        #expect((refusal == nil) == isOwn, "also where the broker asks no plugin for passwords: \(refusal ?? "")")
    }

    @Test(
        "who is no user of the fleet may do nothing",
        arguments: [
            "", "@", "@admin", "@operator.", "@operator", "@operator.a/b", "a/b", "+", "#", "-a", "till 1", "tïll",
            String(repeating: "a", count: 49), "@controller2",
        ])
    func nobody(user: String) throws {
        let samples = try Samples()
        #expect(samples.connect(user) != nil)
        #expect(samples.subscribe(user, "fleet/v1/demo/presence/#") != nil)
        #expect(!samples.reads(user, "fleet/v1/demo/presence/@controller"))
        #expect(samples.publish(user, "fleet/v1/demo/presence/\(user)", Array("{}".utf8)) != nil)
    }

    // MARK: What the ACL file says, too

    @Test("it reads and publishes what the table of rights says, for every user and topic", arguments: 0..<8)
    func table(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        let samples = try trusted()
        let member = [Samples.kiosk, GroupID(unchecked: "bar")]
        #expect(
            samples.publish(controller, Samples.topic(.membership(Samples.till)), try samples.membership(member)) == nil
        )
        let users = [till, "till-2", controller, "@operator.ann", "@viewer.bob", "@bridge.edge"]
        let words =
            [
                "fleet", "v1", "demo", "other", "desired", "all", "group", "device", "reply", "presence", "control",
                "kiosk",
                "bar", "foo", "config", "com.example.mail", "heartbeat", "hello", "received", "barrier", "request",
                "response", "apply", "status", "_fleet", "trust", "$SYS", "broker", "",
            ] + users
        var allowed = 0
        for round in 0..<3_000 {
            let now = Int64(round) * 1_000
            let user = users.randomElement(using: &generator) ?? till
            let rest = (0..<Int.random(in: 1...5, using: &generator)).map { _ in
                words.randomElement(using: &generator) ?? ""
            }
            let isOurs = Int.random(in: 0..<10, using: &generator) > 0
            let topic = ((isOurs ? ["fleet", "v1", "demo"] : []) + rest).joined(separator: "/")
            let groups = user == till ? member : []
            let who = try #require(User(user))
            let isReadable = Access.rules(for: who, groups: groups).contains {
                $0.direction == .read && Self.matches($0.text(in: Samples.fleet), topic)
            }
            #expect(samples.reads(user, topic) == isReadable, "\(user) reads \(topic)")
            allowed += isReadable ? 1 : 0
            // A topic without wildcards is a filter as well; of groups it is enough that the device's are known.
            let isGroup = topic.hasPrefix("fleet/v1/demo/desired/group/")
            if !isGroup {
                #expect(
                    (samples.subscribe(user, topic, now: now) == nil) == isReadable, "\(user) subscribes to \(topic)")
            }
            let isWritable = Access.rules(for: who).contains {
                $0.direction == .publish && Self.matches($0.text(in: Samples.fleet), topic)
            }
            if !isWritable {
                #expect(samples.publish(user, topic, [], now: now) != nil, "\(user) publishes to \(topic)")
            }
        }
        #expect(allowed > 100)
    }

    /// Of a pattern that ends in `#`, something must stand there: the level above is no topic of ours.
    private static func matches(_ filter: String, _ topic: String) -> Bool {
        let levels = filter.split(separator: "/", omittingEmptySubsequences: false)
        let parts = topic.split(separator: "/", omittingEmptySubsequences: false)
        for (index, level) in levels.enumerated() {
            if level == "#" { return parts.count > index && !(parts.count == index + 1 && parts[index].isEmpty) }
            guard index < parts.count, level == parts[index] || level == "+" && !parts[index].isEmpty else {
                return false
            }
        }
        return levels.count == parts.count
    }

    @Test(
        "a filter must not stand for more than may be read",
        arguments: [
            ("till-1", "#", false), ("till-1", "fleet/#", false), ("till-1", "fleet/v1/demo/#", false),
            ("till-1", "fleet/v1/demo/desired/#", false), ("till-1", "fleet/v1/demo/desired/all/#", true),
            ("till-1", "fleet/v1/demo/desired/all/com.example.mail/+", true),
            ("till-1", "fleet/v1/demo/desired/+/com.example.mail/+", false),
            ("till-1", "fleet/v1/demo/desired/device/+/#", false), ("till-1", "fleet/v1/demo/presence/+", false),
            ("till-1", "fleet/v1/demo/desired/device/till-1/#", true), ("till-1", "$SYS/#", false),
            ("till-1", "$share/g/fleet/v1/demo/desired/all/#", false), ("till-1", "+/v1/demo/control/heartbeat", false),
            ("@operator.ann", "fleet/v1/demo/reply/+/+/status", true), ("@operator.ann", "$SYS/broker/#", true),
            ("@viewer.ann", "$SYS/broker/#", false), ("@viewer.ann", "fleet/v1/demo/desired/#", false),
            ("@viewer.ann", "fleet/v1/demo/control/response/@viewer.ann/+", true),
            ("@viewer.ann", "fleet/v1/demo/control/response/@viewer.ann/#", false),
            ("@viewer.ann", "fleet/v1/demo/control/response/+/+", false),
            ("@controller", "fleet/v1/demo/#", true), ("@controller", "fleet/v1/+/#", false),
            ("@controller", "#", false),
        ])
    func filters(user: String, filter: String, isAllowed: Bool) throws {
        #expect((try trusted().subscribe(user, filter) == nil) == isAllowed)
    }

    // MARK: Groups

    @Test("a device reads its own groups alone, as of its newest signed membership")
    func groups() throws {
        let samples = try trusted()
        let membership = Samples.topic(.membership(Samples.till))
        let (topic, wire) = try samples.config(.group(Samples.kiosk))
        let filter = "fleet/v1/demo/desired/group/kiosk/com.example.mail/+"
        #expect(samples.subscribe(till, filter) != nil, "nobody has said yet what its groups are")
        #expect(!samples.reads(till, topic, wire))

        #expect(samples.publish(controller, membership, try samples.membership([Samples.kiosk], revision: 2)) == nil)
        #expect(samples.subscribe(till, filter) == nil)
        #expect(samples.reads(till, topic, wire))
        #expect(!samples.reads("till-2", topic, wire))
        #expect(samples.subscribe("till-2", filter) != nil)

        #expect(samples.publish(controller, membership, try samples.membership([], revision: 3)) == nil)
        #expect(!samples.reads(till, topic, wire))
        let old = samples.publish(controller, membership, try samples.membership([Samples.kiosk], revision: 2))
        #expect(old?.contains("revision") == true)
        #expect(!samples.reads(till, topic, wire), "an older membership does not count again")
        #expect(samples.publish(controller, membership, try samples.membership([Samples.kiosk], revision: 4)) == nil)
        #expect(samples.reads(till, topic, wire))
        #expect(samples.publish(controller, membership, []) == nil)
        #expect(!samples.reads(till, topic, wire), "cleared")
        #expect(samples.publish(controller, membership, try samples.membership([Samples.kiosk], revision: 5)) == nil)
        let tombstone = try samples.document(.membership(Samples.till), .tombstone, revision: 6)
        #expect(samples.publish(controller, membership, tombstone) == nil)
        #expect(!samples.reads(till, topic, wire))
    }

    @Test("once the controller has repaired the broker, a device may ask for any group, and is shown its own")
    func repaired() throws {
        let samples = try trusted()
        let (topic, wire) = try samples.config(.group(Samples.kiosk))
        let filter = "fleet/v1/demo/desired/group/kiosk/com.example.mail/+"
        #expect(samples.subscribe(till, filter) != nil)
        #expect(samples.publish(till, Samples.topic(.heartbeat), Array("{}".utf8), retained: false) != nil)
        #expect(samples.subscribe(till, filter) != nil)
        #expect(samples.publish(controller, Samples.topic(.heartbeat), Array("{}".utf8), retained: false) == nil)
        #expect(samples.subscribe(till, filter) == nil, "a device of which nobody knows a membership is not locked out")
        #expect(!samples.reads(till, topic, wire))
        #expect(samples.subscribe(till, "fleet/v1/demo/desired/group/+/com.example.mail/+") != nil)
        #expect(samples.subscribe(till, "fleet/v1/demo/desired/group/#") != nil)
    }

    @Test("behind a restart it learns keys and groups from what is delivered, and believes no forger")
    func learning() throws {
        let samples = try Samples()
        let membership = Samples.topic(.membership(Samples.till))
        let (topic, wire) = try samples.config(.group(Samples.kiosk))
        let other = try SigningKey()
        let forged = try samples.document(
            .membership(Samples.till), .membership([Samples.kiosk]), revision: 9, by: other)
        #expect(samples.reads(till, membership, forged), "it is delivered: readers verify")
        #expect(samples.reads(till, Samples.topic(.trust), try samples.trust(keys: [other.publicKey], by: other)))
        #expect(samples.reads(till, membership, forged))
        #expect(!samples.reads(till, topic, wire))
        #expect(samples.reads(till, membership, try samples.membership([Samples.kiosk])), "no keys are known yet")
        #expect(!samples.reads(till, topic, wire))
        #expect(samples.reads("till-2", Samples.topic(.trust), try samples.trust()))
        #expect(samples.reads(till, topic, wire), "what it has read before the keys were known is not read again")
        let moved = try samples.membership([Samples.kiosk], of: DeviceID(unchecked: "till-2"), revision: 5)
        #expect(samples.reads(till, membership, moved), "of another device")
        #expect(!samples.reads("till-2", topic, wire))
    }

    @Test("of what is read before the keys are known it takes nothing that was forged, cleared, or is older")
    func held() throws {
        let membership = Samples.topic(.membership(Samples.till))
        let samples = try Samples()
        let (topic, wire) = try samples.config(.group(Samples.kiosk))
        let stranger = try SigningKey()
        let forged = try samples.document(.membership(Samples.till), .membership([Samples.kiosk]), by: stranger)
        #expect(samples.reads(till, membership, forged))
        #expect(samples.reads("till-2", Samples.topic(.trust), try samples.trust()))
        #expect(!samples.reads(till, topic, wire))
        let other = try Samples()
        #expect(other.reads(till, membership, try other.membership([Samples.kiosk])))
        #expect(other.publish(controller, membership, []) == nil)
        #expect(other.reads("till-2", Samples.topic(.trust), try other.trust()))
        #expect(!other.reads(till, topic, wire))
        // A key that comes with the next trust document.
        let (third, next) = (try Samples(), try SigningKey())
        #expect(third.reads(till, Samples.topic(.trust), try third.trust()))
        let later = try third.document(
            .membership(Samples.till), .membership([Samples.kiosk]), revision: 7, by: next)
        #expect(third.reads(till, membership, later))
        #expect(!third.reads(till, topic, wire))
        let trust = try third.trust(version: 2, keys: [third.signing.publicKey, next.publicKey])
        #expect(third.publish(controller, Samples.topic(.trust), trust) == nil)
        #expect(third.reads(till, topic, wire))
        let older = third.publish(controller, membership, try third.membership([], revision: 6))
        #expect(older?.contains("revision") == true)
    }

    // MARK: The controller

    @Test("desired documents are signed by a key that counts, for their own topic, and retained")
    func documents() throws {
        let samples = try Samples()
        let (topic, wire) = try samples.config()
        #expect(samples.publish(controller, topic, wire)?.contains("which keys count") == true)
        let other = try SigningKey()
        let trust = Samples.topic(.trust)
        #expect(samples.publish(controller, trust, try samples.trust(by: samples.signing))?.contains("root") == true)
        #expect(samples.publish(controller, trust, try samples.trust(version: 2)) == nil)
        #expect(samples.publish(controller, topic, wire) == nil)
        #expect(samples.publish(controller, topic, wire, retained: false)?.contains("retained") == true)
        #expect(
            samples.publish(controller, topic, try samples.config(by: other).wire)?.contains("does not count") == true)
        let elsewhere = Samples.topic(.desired(.device(Samples.till), Samples.app, .config))
        #expect(samples.publish(controller, elsewhere, wire)?.contains("another topic") == true)
        #expect(samples.publish(controller, topic, Array("{}".utf8))?.contains("missing") == true)
        #expect(samples.publish(controller, topic, Array("nonsense".utf8)) != nil)
        var broken = wire
        if let place = broken.firstIndex(of: UInt8(ascii: "h")) { broken[place] = UInt8(ascii: "H") }
        #expect(samples.publish(controller, topic, broken) != nil)
        #expect(samples.publish(controller, topic, [UInt8](repeating: 0x20, count: 70_000))?.contains("70000") == true)
        #expect(samples.publish(controller, topic, []) == nil, "what is left of the unknown may be cleared")
        #expect(samples.publish(controller, trust, [])?.contains("never cleared") == true)
        #expect(samples.publish(controller, trust, try samples.trust(version: 1))?.contains("version") == true)

        // A rotation: at once, and the old key's documents count no more.
        #expect(samples.publish(controller, trust, try samples.trust(version: 3, keys: [other.publicKey])) == nil)
        #expect(samples.publish(controller, topic, wire)?.contains("does not count") == true)
        #expect(samples.publish(controller, topic, try samples.config(by: other).wire) == nil)
    }

    @Test("a document of a later version, which the guard cannot read, passes by its signature")
    func laterDocuments() throws {
        let samples = try trusted()
        let topic = "fleet/v1/demo/desired/all/com.example.mail/geofence"
        let payload = #"{"v":1,"fleet":"\#(samples.uuid)","topic":"\#(topic)","shape":[1,2]}"#
        let wire = try SignedDocument(signing: Array(payload.utf8), as: .desired, with: samples.signing).wire
        #expect(samples.publish(controller, topic, wire) == nil)
        // Also a membership, from which it then learns nothing.
        let place = Samples.topic(.membership(Samples.till))
        let membership = #"{"v":2,"fleet":"\#(samples.uuid)","topic":"\#(place)","shape":[1,2]}"#
        let later = try SignedDocument(signing: Array(membership.utf8), as: .desired, with: samples.signing).wire
        #expect(samples.publish(controller, place, later) == nil)
        let heartbeat = try SignedDocument(signing: Array(payload.utf8), as: .heartbeat, with: samples.signing).wire
        #expect(samples.publish(controller, topic, heartbeat)?.contains("signature") == true)
    }

    @Test("the controller clears what devices have said, and says nothing in their place")
    func clearing() throws {
        let samples = try trusted()
        let status = Samples.topic(.reply(Samples.till, Samples.app, .status))
        #expect(samples.publish(controller, status, []) == nil)
        #expect(samples.publish(controller, status, Samples.status())?.contains("speaks for no device") == true)
        let presence = Samples.topic(.presence(.device(Samples.till)))
        #expect(samples.publish(controller, presence, []) == nil)
        #expect(samples.publish(controller, presence, Array("{}".utf8)) != nil)
        #expect(samples.publish(controller, Samples.topic(.presence(.controller)), Array("{}".utf8)) == nil)
        #expect(samples.publish(controller, Samples.topic(.heartbeat), Array("{}".utf8), retained: false) == nil)
        #expect(samples.publish(controller, Samples.topic(.heartbeat), Array("{}".utf8)) != nil, "retained")
    }

    // MARK: Devices

    @Test("a device's messages have their topic's form and size, and speak for itself")
    func replies() throws {
        let samples = try trusted()
        let status = Samples.topic(.reply(Samples.till, Samples.app, .status))
        let event = Samples.topic(.reply(Samples.till, Samples.app, .event))
        let good = Samples.status()
        #expect(samples.publish(till, status, good) == nil)
        #expect(samples.publish(till, event, good, retained: false) == nil)
        #expect(samples.publish("till-2", status, good)?.contains("may not publish there") == true)
        #expect(samples.publish(till, status, good, retained: false)?.contains("retained") == true)
        #expect(samples.publish(till, event, good)?.contains("retained") == true)
        #expect(samples.publish(till, status, [])?.contains("clears") == true)
        let other = Samples.status(of: DeviceID(unchecked: "till-2"))
        #expect(samples.publish(till, status, other)?.contains("another device") == true)
        #expect(samples.publish(till, status, Samples.status(app: "x"))?.contains("another app") == true)
        #expect(samples.publish(till, status, Array("nonsense".utf8)) != nil)
        #expect(samples.publish(till, status, Array("[1]".utf8)) != nil)
        #expect(samples.publish(till, status, Array("{}".utf8)) != nil)
        let large = good.dropLast() + Array(#","m":"\#(String(repeating: "x", count: 16_384))"}"#.utf8)
        #expect(samples.publish(till, status, Array(large))?.contains("16384") == true)
        for topic in ["reply/till-1/x", "reply/till-1/x/other", "reply/till-1/x/status/y", "reply/till-1/a b/status"] {
            #expect(samples.publish(till, "fleet/v1/demo/\(topic)", good)?.contains("no device") == true, "\(topic)")
        }
        let presence = Samples.topic(.presence(.device(Samples.till)))
        #expect(samples.publish(till, presence, Array("{}".utf8)) == nil)
        #expect(samples.publish(till, presence, []) != nil)
        #expect(samples.publish(till, presence, Array("{".utf8)) != nil)
        let barrier = Samples.topic(.barrier(.device(Samples.till)))
        #expect(samples.publish(till, barrier, Array("{}".utf8), retained: false) == nil)
        #expect(samples.publish(till, barrier, Array("{}".utf8)) != nil)
    }

    /// Of what a device says: the address, whether it is retained, and how long it may be.
    static let longest: [(address: Address, isRetained: Bool, limit: Int)] = [
        (.reply(Samples.till, Samples.app, .status), true, 16 * 1_024),
        (.reply(Samples.till, Samples.app, .event), false, 4 * 1_024),
        (.reply(Samples.till, Samples.app, .logLevel), false, 4 * 1_024),
        (.presence(.device(Samples.till)), true, 64 * 1_024), (.barrier(.device(Samples.till)), false, 1_024),
    ]

    @Test("each word of a device may be as long as its kind, and no longer", arguments: longest)
    func lengths(address: Address, isRetained: Bool, limit: Int) throws {
        let samples = try trusted()
        func publish(_ length: Int) -> String? {
            let text = String(decoding: Samples.status().dropLast(), as: UTF8.self) + #","m":""#
            let padding = String(repeating: "x", count: length - text.utf8.count - 2)
            return samples.publish(
                till, Samples.topic(address), Array((text + padding + #""}"#).utf8), retained: isRetained)
        }
        #expect(publish(limit) == nil)
        #expect(publish(limit + 1)?.contains("\(limit)") == true)
    }

    @Test("what the controller says before its heartbeat is no word that all is there again")
    func saidBeforeHeartbeat() throws {
        let samples = try trusted()
        let group = Samples.topic(.desired(.group(GroupID(unchecked: "bar")), Samples.app, .config))
        #expect(
            samples.publish(controller, Samples.topic(.barrier(.controller)), Array("{}".utf8), retained: false) == nil)
        #expect(samples.publish(controller, Samples.topic(.presence(.controller)), Array("{}".utf8)) == nil)
        #expect(samples.subscribe(till, group) != nil, "nobody knows yet who is in that group")
        #expect(samples.publish(controller, Samples.topic(.heartbeat), Array("{}".utf8), retained: false) == nil)
        #expect(samples.subscribe(till, group) == nil)
    }

    @Test("a device has at most 64 apps; one that was cleared makes room")
    func apps() throws {
        let samples = try trusted()
        func publish(_ number: Int) -> String? {
            let app = "app-\(number)"
            return samples.publish(till, "fleet/v1/demo/reply/till-1/\(app)/status", Samples.status(app: app))
        }
        for number in 0..<64 { #expect(publish(number) == nil) }
        #expect(publish(64)?.contains("64 apps") == true)
        #expect(publish(63) == nil)
        #expect(samples.publish(controller, "fleet/v1/demo/reply/till-1/app-7/status", []) == nil)
        #expect(publish(64) == nil)
        #expect(publish(65) != nil)
    }

    @Test("who says too much is refused for a while, and nobody else")
    func rate() throws {
        let samples = try trusted()
        func publish(_ device: String, at now: Int64) -> String? {
            samples.publish(device, "fleet/v1/demo/presence/\(device)", Array("{}".utf8), now: now)
        }
        for _ in 0..<10_000 { #expect(publish("till-1", at: 1_000) == nil) }
        #expect(publish("till-1", at: 1_000)?.contains("at once") == true)
        #expect(samples.subscribe("till-1", "fleet/v1/demo/control/heartbeat", now: 1_000)?.contains("at once") == true)
        #expect(publish("till-2", at: 1_000) == nil)
        #expect(publish("till-1", at: 1_004) != nil)
        #expect(publish("till-1", at: 1_005) == nil)
        #expect(publish("till-1", at: 1_005) != nil)
        #expect(publish("till-1", at: 1_013) == nil)
        #expect(publish("till-1", at: 1_015) == nil, "what was not enough for one counts next time")
        #expect(publish("till-1", at: 500) != nil, "a clock that goes back gives nothing")
        for _ in 0..<10_000 { #expect(publish("till-1", at: .max) == nil) }
        #expect(publish("till-1", at: .max) != nil)

        // Large ones count as several, also of people.
        let ask = "fleet/v1/demo/control/request/@viewer.ann/list"
        let large = [UInt8](repeating: 0x20, count: 1_024 * 1_024)
        let sent = (0..<100).prefix { _ in samples.publish("@viewer.ann", ask, large, retained: false) == nil }
        #expect(sent.count == 39)
        let change = "fleet/v1/demo/control/request/@operator.ann/apply"
        for _ in 0..<100 { #expect(samples.publish("@operator.ann", change, large, retained: false) == nil) }
        #expect(samples.publish("@viewer.bob", ask.replacing("ann", with: "bob"), large, retained: false) == nil)
    }

    @Test("events and changes of log levels without end keep back nothing else that a device says")
    func reports() throws {
        let samples = try trusted()
        let event = Samples.topic(.reply(Samples.till, Samples.app, .event))
        let level = Samples.topic(.reply(Samples.till, Samples.app, .logLevel))
        for _ in 0..<10_000 { #expect(samples.publish(till, event, Samples.status(), retained: false) == nil) }
        #expect(samples.publish(till, event, Samples.status(), retained: false)?.contains("at once") == true)
        #expect(samples.publish(till, level, Samples.status(), retained: false)?.contains("at once") == true)
        let presence = Samples.topic(.presence(.device(Samples.till)))
        #expect(samples.publish(till, presence, Array("{}".utf8)) == nil)
        let barrier = Samples.topic(.barrier(.device(Samples.till)))
        #expect(samples.publish(till, barrier, Array("{}".utf8), retained: false) == nil)
        let status = Samples.topic(.reply(Samples.till, Samples.app, .status))
        #expect(samples.publish(till, status, Samples.status()) == nil)
        #expect(samples.subscribe(till, Samples.topic(.heartbeat)) == nil)
        #expect(samples.publish(till, event, Samples.status(), retained: false, now: 5) == nil)
        // Nor the other way round; a device may have any name.
        let odd = "fleet/v1/demo/presence/event"
        for _ in 0..<10_000 { #expect(samples.publish("event", odd, Array("{}".utf8)) == nil) }
        #expect(samples.publish("event", odd, Array("{}".utf8)) != nil)
        let own = Samples.status(of: DeviceID(unchecked: "event"))
        let reply = "fleet/v1/demo/reply/event/\(Samples.app)/event"
        #expect(samples.publish("event", reply, own, retained: false) == nil)
    }

    @Test(
        "a subscription counts for what is retained there, so that nobody has it shown thousands of times at once",
        arguments: [
            ("@viewer.ann", "reply/#", 20), ("@viewer.ann", "presence/#", 20), ("@viewer.ann", "presence/+", 20),
            ("@viewer.ann", "reply/+/com.example.mail/status", 20), ("@viewer.ann", "reply/till-1/#", 100),
            ("@viewer.ann", "reply/till-1/com.example.mail/+", 10_000), ("@bridge.edge", "desired/#", 20),
            ("@viewer.ann", "control/response/@viewer.ann/+", 10_000),
            ("@bridge.edge", "desired/device/+/x/config", 20),
            ("till-1", "desired/all/#", 100), ("till-1", "desired/all/+/config", 100),
            ("till-1", "desired/device/till-1/#", 100), ("till-1", "desired/all/com.example.mail/+", 10_000),
            ("till-1", "desired/device/till-1/com.example.mail/+", 10_000), ("@controller", "reply/#", 20_000),
        ])
    func wideFilters(user: String, filter: String, count: Int) throws {
        let samples = try trusted()
        let granted = (0..<20_000).prefix { _ in samples.subscribe(user, "fleet/v1/demo/\(filter)") == nil }
        #expect(granted.count == count)
    }

    @Test("a device with 64 apps in 64 groups has all shown to it, and once more, and goes on")
    func largestDevice() throws {
        let samples = try trusted()
        #expect(samples.publish(controller, Samples.topic(.heartbeat), Array("{}".utf8), retained: false) == nil)
        let groups = (0..<64).map { Layer.group(GroupID(unchecked: "group-\($0)")) }
        let layers = [Layer.all] + groups + [Layer.device(Samples.till)]
        for _ in 0..<2 {
            for number in 0..<64 {
                let app = AppID(unchecked: "app-\(number)")
                let filters = layers.map { TopicFilter.aspects($0, app).text(in: Samples.fleet) }
                #expect(filters.allSatisfy { samples.subscribe(till, $0) == nil })
            }
        }
        for _ in 0..<1_000 {
            #expect(samples.publish(till, Samples.topic(.presence(.device(Samples.till))), Array("{}".utf8)) == nil)
        }
    }

    @Test("a request is said under the own name, and never retained")
    func requests() throws {
        let samples = try trusted()
        let ask = "fleet/v1/demo/control/request/@viewer.ann/list"
        #expect(samples.publish("@viewer.ann", ask, Array("{}".utf8), retained: false, id: "@viewer.ann~1") == nil)
        #expect(samples.publish("@viewer.ann", ask, Array("{}".utf8), id: "@viewer.ann~1") != nil)
        #expect(samples.publish("@operator.ann", ask, Array("{}".utf8), retained: false) != nil)
        let barrier = "fleet/v1/demo/control/barrier/@viewer.ann"
        #expect(samples.publish("@viewer.ann", barrier, Array("{}".utf8), retained: false) == nil)
        #expect(
            samples.publish("@viewer.ann", barrier, [UInt8](repeating: 0x20, count: 1_025), retained: false) != nil)
        let long = "fleet/v1/demo/reply/" + String(repeating: "x", count: 600)
        #expect(samples.subscribe("@viewer.ann", long)?.contains("too long") == true)
        let later = "fleet/v1/demo/control/request/@viewer.ann/a-verb-of-later"
        #expect(samples.publish("@viewer.ann", later, Array("{}".utf8), retained: false) == nil)
    }

    // MARK: Nonsense

    @Test("no bytes end it", arguments: 0..<8)
    func nonsense(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        let samples = try trusted()
        let wires = [
            try samples.config().wire, try samples.membership([Samples.kiosk]), try samples.trust(version: 5),
            Samples.status(), [],
        ]
        let topics = [
            try samples.config().topic, Samples.topic(.membership(Samples.till)), Samples.topic(.trust),
            Samples.topic(.reply(Samples.till, Samples.app, .status)), Samples.topic(.presence(.device(Samples.till))),
        ]
        var passed = 0
        for round in 0..<1_500 {
            let now = Int64(round) * 1_000
            var wire = wires.randomElement(using: &generator) ?? []
            var topic = Array((topics.randomElement(using: &generator) ?? "").utf8)
            for _ in 0..<Int.random(in: 0...3, using: &generator) { Self.damage(&wire, &generator) }
            for _ in 0..<Int.random(in: 0...1, using: &generator) { Self.damage(&topic, &generator) }
            let text = String(decoding: topic, as: UTF8.self)
            for user in [till, controller, "@operator.ann"] {
                if samples.publish(user, text, wire, retained: Bool.random(using: &generator), now: now) == nil {
                    passed += 1
                }
                _ = samples.reads(user, text, wire)
                _ = samples.subscribe(user, text, now: now)
            }
        }
        #expect(passed > 10)
    }

    private static func damage(_ bytes: inout [UInt8], _ generator: inout SplitMix) {
        guard let index = bytes.indices.randomElement(using: &generator) else { return }
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: bytes[index] = UInt8.random(in: .min ... .max, using: &generator)
        case 1: bytes.remove(at: index)
        case 2: bytes.insert(UInt8.random(in: .min ... .max, using: &generator), at: index)
        default: bytes.removeSubrange(index...)
        }
    }

    // MARK: Settings

    @Test("its options are read as they are written, and a mistake in them is named")
    func options() throws {
        let key = try SigningKey().publicKey
        let configuration = GuardConfiguration(fleet: Samples.fleet, uuid: .random(), root: key)
        #expect(try GuardConfiguration(options: configuration.options) == configuration)
        for (name, value) in [("fleet", "a/b"), ("uuid", "x"), ("root_key", "AAAA"), ("rot_key", "x")] {
            let options = configuration.options.filter { $0.name != name } + [(name, value)]
            let error = #expect(throws: FleetProtocolError.self) { try GuardConfiguration(options: options) }
            #expect("\(try #require(error))".contains(name == "fleet" ? "fleet id" : "plugin_opt_\(name)"))
        }
        for (name, _) in configuration.options {
            let error = #expect(throws: FleetProtocolError.self) {
                try GuardConfiguration(options: configuration.options.filter { $0.name != name })
            }
            #expect("\(try #require(error))".contains("plugin_opt_\(name)"))
        }
    }

    @Test("it writes 20 lines in 10 s into the broker's log, and says how many it left out")
    func budget() {
        var budget = LogBudget()
        for _ in 0..<20 { #expect(budget.take(at: 5) == 0) }
        for _ in 0..<7 { #expect(budget.take(at: 10_004) == nil) }
        #expect(budget.take(at: 10_005) == 7)
        #expect(budget.take(at: 10_005) == 0)
    }
}

/// The same numbers for the same seed.
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }
}
