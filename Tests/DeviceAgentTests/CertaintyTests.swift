import DeviceAgent
import FleetProtocol
import Testing

@Suite("Nothing is decided on stale or half-heard news")
struct CertaintyTests {
    private let kiosk = GroupID(unchecked: "kiosk")

    @Test("an app that registers while groups change has its documents of the new group")
    func registersDuringChange() throws {
        var device = try TestDevice()
        try device.connect()
        let address = Address.desired(.group(kiosk), mail, .config)
        try device.publish(address, device.fleet.document(address, .config(["from": "group"])))
        device.underWay = []
        let membership = Address.membership(device.device)
        try device.publish(membership, device.fleet.document(membership, .membership([kiosk])))
        try device.receiveNext()
        try device.launch(mail)
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        #expect(try device.status(mail)[.config].source == address)
    }

    @Test("while the documents of a new group are on their way, nothing is loosened without them")
    func loosenedDuringChange() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.all, mail, .auth, .auth(.unauthorized))
        try device.apply(.group(kiosk), mail, .auth, .auth(.unauthorized, "by the group"))
        device.underWay = []
        let membership = Address.membership(device.device)
        try device.publish(membership, device.fleet.document(membership, .membership([kiosk])))
        try device.apply(.all, mail, .auth, .auth(.authorized))
        while device.underWay?.isEmpty == false {
            try device.receiveNext()
            #expect(device.core.state.apps[mail]?.authState == .unauthorized)
        }
        #expect(try device.status(mail)[.auth].source == .desired(.group(kiosk), mail, .auth))
    }

    @Test("a group that a device was taken out of while it was away retires nothing there any more")
    func retiredInLeftGroup() throws {
        var device = try TestDevice()
        let membership = Address.membership(device.device)
        try device.publish(membership, device.fleet.document(membership, .membership([kiosk])))
        try device.connect()
        try device.answer(device.launch(mail))
        try device.apply(.group(kiosk), mail, .auth, .auth(.authorized))
        try device.disconnect()
        try device.publish(membership, device.fleet.document(membership, .membership([])))
        try device.apply(.group(kiosk), mail, .auth, .auth(.retired))
        device.underWay = []
        try device.connect()
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        #expect(device.core.state.apps[mail]?.latch == nil)
        #expect(device.keys == [mail])
        #expect(device.core.state.groups.isEmpty)
    }

    @Test("a group that a device is taken out of retires nothing while the documents of another one are on their way")
    func retiredInLeavingGroup() throws {
        var device = try TestDevice()
        try device.connect()
        try device.answer(device.launch(mail))
        let membership = Address.membership(device.device)
        try device.publish(membership, device.fleet.document(membership, .membership([kiosk])))
        device.underWay = []
        let other = GroupID(unchecked: "other")
        try device.publish(membership, device.fleet.document(membership, .membership([other])))
        try device.apply(.group(kiosk), mail, .auth, .auth(.retired))
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        #expect(device.core.state.apps[mail]?.latch == nil)
        #expect(device.core.state.groups == [other])
    }

    @Test("a group that a device left and came back to has said nothing that it missed", arguments: [true, false])
    func leftAndBack(isConnecting: Bool) throws {
        var device = try TestDevice()
        let membership = Address.membership(device.device)
        try device.publish(membership, device.fleet.document(membership, .membership([kiosk])))
        try device.connect()
        try device.answer(device.launch(mail))
        device.underWay = []
        if isConnecting {
            try device.disconnect()
            try device.publish(membership, device.fleet.document(membership, .membership([])))
            try device.connect()
        } else {
            try device.publish(membership, device.fleet.document(membership, .membership([])))
        }
        // What has come by now was decided without the group.
        let meta = try device.fleet.document(.groupMeta(kiosk), .groupMeta(GroupMeta(priority: 7)))
        try device.publish(.groupMeta(kiosk), meta)
        try device.apply(.group(kiosk), mail, .config, .config(["from": "group"]))
        try device.publish(membership, device.fleet.document(membership, .membership([kiosk])))
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        #expect(device.core.state.groups == [kiosk])
        #expect(device.core.signedDocuments[.groupMeta(kiosk)] == meta)
        #expect(try device.status(mail)[.config].source == .desired(.group(kiosk), mail, .config))
    }

    @Test("the answer to an old connection's subscription opens no barrier of the new one")
    func oldAnswer() throws {
        var device = try TestDevice()
        try device.connect()
        device.underWay = []
        try device.launch(mail)
        let late = device.underWay ?? []
        try device.disconnect()
        device.isControllerThere = true
        try device.connect()
        device.published = []
        for case .subscribed(let barrier) in late { try device.handle(.subscribed(barrier: barrier)) }
        #expect(!device.published.contains { if case .barrier = $0.address { true } else { false } })
    }

    @Test("what was decided for a connection that is gone in the same moment is not done on the next one")
    func goneInOneMoment() throws {
        var device = try TestDevice()
        try device.connect()
        device.underWay = []
        device.subscriptions = []
        let registration = Registration(
            app: notes, install: .random(), launch: .random(), sdk: "test/1", implements: [], resume: nil)
        try device.handle(.registered(LinkID(9), registration), .disconnected, .connected(connection: .random()))
        #expect(!device.subscriptions.isEmpty)
        #expect(!device.subscriptions.contains { $0.contains(notes.text) })
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        #expect(device.subscriptions.contains { $0.contains(notes.text) })
    }

    @Test("what a right key has signed for another fleet or topic is no contact", arguments: [true, false])
    func signedForOthers(isOtherFleet: Bool) throws {
        var device = try TestDevice()
        try device.connect()
        try device.wait(90)
        let contact = try #require(device.core.state.contact)
        let ours = device.fleet.clock(isOtherFleet ? .heartbeat : .hello(device.device))
        let clock = ControllerClock(
            fleet: isOtherFleet ? .random() : ours.fleet, topic: ours.topic, epoch: ours.epoch, revision: ours.revision,
            at: device.now.wall)
        let heartbeat = Heartbeat(clock: clock).json
        try device.say(
            .heartbeat, SignedDocument(signing: heartbeat, as: .heartbeat, with: device.fleet.signing).wire)
        #expect(device.core.state.contact == contact)
        try device.say(.heartbeat, device.fleet.heartbeat())
        #expect(device.core.state.contact != contact)
    }

    @Test("what the controller has of another device's events makes nothing forgotten here")
    func othersMarks() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        let boot = device.core.state.boot
        let number = try #require(device.core.state.events.last?.header.number)
        let mark = EventMark(incarnation: 1, boot: boot, number: number)
        let other = try device.fleet.received(DeviceID(unchecked: "till-2"), mark)
        try device.say(.received(device.device), other)
        #expect(!device.core.state.events.isEmpty)
        try device.say(.received(device.device), device.fleet.received(device.device, mark))
        #expect(device.core.state.events.isEmpty)
    }

    @Test("a replayed hello is no contact, and lets no older heartbeat count")
    func replayedHello() throws {
        var device = try TestDevice()
        device.isControllerThere = false
        try device.connect()
        let connection = try #require(device.connection)
        let hello = try device.fleet.hello(device.device, connection)
        let heartbeat = try device.fleet.heartbeat()
        try device.say(.hello(device.device), hello)
        try device.wait(100)
        try device.say(.heartbeat, heartbeat)
        let contact = device.core.state.contact
        try device.wait(100)
        try device.say(.hello(device.device), hello)
        try device.say(.heartbeat, heartbeat)
        #expect(device.core.state.contact == contact)
        try device.say(.heartbeat, device.fleet.heartbeat())
        #expect(device.core.state.contact != contact)
    }

    @Test("the times of a new epoch count although they are earlier, and those of the old one no more")
    func earlierTimesOfNewEpoch() throws {
        var device = try TestDevice()
        device.isControllerThere = false
        try device.connect()
        let connection = try #require(device.connection)
        device.fleet.time = device.fleet.time.advanced(bySeconds: 3_600)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        let old = try device.fleet.heartbeat()
        device.fleet.epoch = 2
        device.fleet.time = device.fleet.time.advanced(bySeconds: -3_600)
        let before = device.core.state.contact
        try device.wait(100)
        // How old that is, the device cannot know before it is greeted anew.
        try device.say(.heartbeat, device.fleet.heartbeat())
        #expect(device.core.state.contact == before)
        try device.wait(5)
        let presence = try #require(device.published.last { $0.address == .presence(.device(device.device)) })
        let nonce = try Presence(json: presence.payload, limit: Presence.maximumSize).nonce
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection, nonce: nonce))
        let contact = device.core.state.contact
        #expect(contact != before)
        try device.wait(100)
        try device.say(.heartbeat, old)
        #expect(device.core.state.contact == contact)
    }

    @Test("a document of an epoch that a restored controller knows nothing of ends no retirement")
    func documentOfNobody() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        try device.handle(.frame(link, .retire()))
        try device.answer(link)
        try device.disconnect()
        // It comes before the controller dies, and is in no backup.
        device.isControllerThere = false
        try device.connect()
        let auth = Address.desired(.all, mail, .auth)
        try device.say(auth, device.fleet.document(auth, .auth(.authorized)))
        #expect(try device.status(mail).authReason == .selfRetired)
        try device.disconnect()
        device.fleet.epoch = 2
        device.isControllerThere = true
        try device.connect()
        #expect(try device.status(mail).authReason == .selfRetired)
        let hello = try device.fleet.hello(
            device.device, #require(device.connection), lost: [.documents], documents: Digest(of: [:]))
        try device.say(.hello(device.device), hello)
        #expect(try device.status(mail).authReason == .selfRetired)
        #expect(device.keys.isEmpty)
        #expect(device.core.signedDocuments[auth] == nil, "it is forgotten")
    }

    @Test("a controller that greets every presence and the device come to an end with each other")
    func greetings() throws {
        var device = try TestDevice()
        try device.connect()
        device.published = []
        try device.launch(mail)
        let presences = device.published.filter { $0.address == .presence(.device(device.device)) }
        #expect(presences.count <= 2)
    }

    @Test("a hello of a key that is not known yet counts once the trust document names the key")
    func helloBeforeTrust() throws {
        var device = try TestDevice()
        device.isControllerThere = false
        try device.connect()
        try device.launch(mail)
        device.fleet.signing = try SigningKey()
        let connection = try #require(device.connection)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        #expect(device.core.state.contact == nil)
        #expect(try device.status(mail).refusals.count == 1)
        try device.say(.trust, device.fleet.trust(version: 2).wire)
        #expect(device.core.state.contact != nil)
        #expect(device.frames.contains { if case .ready = $0 { true } else { false } })
    }

    @Test("an app that comes between the first subscription and its barrier stands in the presence")
    func presence() throws {
        var device = try TestDevice()
        device.underWay = []
        try device.connect()
        // The answer to the subscription, and an app, at one moment.
        guard case .subscribed(let barrier)? = device.underWay?.first else {
            Issue.record("no subscription: \(String(describing: device.underWay))")
            return
        }
        try device.handle(.subscribed(barrier: barrier))
        try device.launch(mail)
        let topic = Address.presence(.device(device.device)).topic(in: device.fleet.id)
        let wire = try #require(device.retained[topic])
        #expect(try Presence(json: wire, limit: Presence.maximumSize).apps.map(\.id) == [mail])
    }

    @Test("an agent that takes leave does not answer its own goodbye")
    func goodbye() throws {
        var device = try TestDevice()
        try device.connect()
        try device.handle(.stopping)
        let presence = Address.presence(.device(device.device))
        let wire = try #require(device.retained[presence.topic(in: device.fleet.id)])
        device.published = []
        try device.say(presence, wire)
        #expect(device.published.isEmpty)
        let hello = try device.fleet.hello(device.device, #require(device.connection))
        try device.say(.hello(device.device), hello)
        try device.wait(60)
        #expect(!device.published.contains { $0.0 == presence })
    }

    @Test("joined and left again before the answer came, a group leaves nothing behind; rejoined, it counts")
    func quickly() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.group(kiosk), mail, .config, .config(["from": "group"]))
        let membership = Address.membership(device.device)
        device.underWay = []
        for content in [DesiredDocument.Content.membership([kiosk]), .tombstone] {
            try device.publish(membership, device.fleet.document(membership, content))
        }
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        #expect(try device.status(mail)[.config].source == nil)
        #expect(device.core.signedDocuments.keys.allSatisfy { $0.path.contains("kiosk") == false })
        #expect(!device.subscriptions.contains { $0.contains("kiosk") })
        for groups in [[kiosk], [], [kiosk]] {
            try device.publish(membership, device.fleet.document(membership, .membership(groups)))
            while device.underWay?.isEmpty == false { try device.receiveNext() }
        }
        #expect(try device.status(mail)[.config].source == .desired(.group(kiosk), mail, .config))
    }

    @Test("of a group that was left and joined again before others came to count, what was said meanwhile is fetched")
    func leftMeanwhile() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        let other = GroupID(unchecked: "other")
        let membership = Address.membership(device.device)
        func join(_ groups: [GroupID]) throws {
            try device.publish(membership, device.fleet.document(membership, .membership(groups)))
        }
        try join([kiosk])
        try device.apply(.group(kiosk), mail, .config, .config(["from": "before"]))
        device.underWay = []
        try join([other])
        // The guard lets nobody read that who is not in the group.
        let address = Address.desired(.group(kiosk), mail, .config)
        let newer = try device.fleet.document(address, .config(["from": "meanwhile"]))
        device.retained[address.topic(in: device.fleet.id)] = newer
        try join([kiosk, other])
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        #expect(device.core.state.groups == [kiosk, other])
        #expect(device.core.state.apps[mail]?[.config].value == .config(["from": "meanwhile"]))
    }

    @Test("the state of another device or fleet is left alone")
    func foreignState() throws {
        let device = try TestDevice()
        let state = try device.store.load()
        #expect(throws: DeviceAgentError.self) {
            try DeviceCore(
                enrollment: device.fleet.enrollment("till-2"), agentVersion: "t", state: state, secret: .random(),
                at: device.now)
        }
        #expect(throws: DeviceAgentError.self) {
            try DeviceCore(
                enrollment: TestFleet().enrollment(), agentVersion: "t", state: state, secret: .random(), at: device.now
            )
        }
        var again = try device.fleet.enrollment()
        again.incarnation = 2
        #expect(throws: Never.self) {
            try DeviceCore(enrollment: again, agentVersion: "t", state: state, secret: .random(), at: device.now)
        }
    }

    @Test("before the first barrier the timer does not spin for unanswered events")
    func noSpinning() throws {
        var device = try TestDevice()
        let link = try device.launch(mail)
        device.underWay = []
        try device.connect()
        try device.handle(.frame(link, .blocked(.copy, target: nil)))
        try device.wait(40)
        #expect(device.core.nextTick > device.core.state.running.total + 1)
    }

    @Test("beyond a thousand events the oldest go, and each send names the oldest that is kept")
    func manyEvents() throws {
        var device = try TestDevice()
        device.comparesStore = false
        let link = try device.launch(mail)
        for _ in 0..<1_100 { try device.handle(.frame(link, .blocked(.copy, target: nil))) }
        #expect(device.core.state.events.count == device.core.maximumEvents)
        device.published = []
        try device.connect()
        let oldest = Set(
            try device.published.compactMap { address, wire -> Int64? in
                guard case .reply(let id, let app, .event) = address else { return nil }
                return try AppEvent(wire: wire, device: id, app: app).header.oldest
            })
        #expect(oldest == [101])
        try device.compareStore()
    }

    @Test("an app that floods its agent, or is started again and again, drives out no other's events")
    func floods() throws {
        var device = try TestDevice()
        device.comparesStore = false
        let link = try device.launch(mail)
        try device.apply(.all, notes, .auth, .auth(.authorized))
        let other = try device.launch(notes)
        try device.answer(other)
        func events(of app: AppID) -> [EventHeader] {
            device.core.state.events.map(\.header).filter { $0.app == app }
        }
        for number in 1..<600 as Range<Int64> {
            try device.handle(.frame(link, .blocked(.copy, target: nil, number: number)))
        }
        try device.handle(.frame(other, .blocked(.print, target: nil)), .frame(other, .retire()))
        let said = events(of: notes)
        #expect(said.count >= 2)
        for number in 600..<2_000 as Range<Int64> {
            try device.handle(.frame(link, .blocked(.copy, target: nil, number: number)))
        }
        #expect(device.core.state.events.count == device.core.maximumEvents)
        #expect(events(of: notes) == said)
        try device.compareStore()
    }

    @Test("of what is dropped while the controller is away the log tells once a minute")
    func droppedForLong() throws {
        var device = try TestDevice()
        device.comparesStore = false
        let link = try device.launch(mail)
        func drops() -> Int { device.logged.filter { $0.hasPrefix("events are dropped") }.count }
        for number in 1...1_100 as ClosedRange<Int64> {
            try device.handle(.frame(link, .blocked(.copy, target: nil, number: number)))
        }
        #expect(drops() == 1)
        try device.wait(60)
        for number in 1_101...1_110 as ClosedRange<Int64> {
            try device.handle(.frame(link, .blocked(.copy, target: nil, number: number)))
        }
        #expect(drops() == 2)
    }

    @Test("what was dropped between others is told of as soon as the controller has come to it")
    func holes() throws {
        var device = try TestDevice()
        device.comparesStore = false
        let link = try device.launch(mail)
        for number in 1...5 as ClosedRange<Int64> {
            try device.handle(.frame(link, .blocked(.copy, target: nil, number: number)))
        }
        try device.handle(.frame(link, .retire(number: 6)))
        for number in 7..<1_100 as Range<Int64> {
            try device.handle(.frame(link, .blocked(.copy, target: nil, number: number)))
        }
        let kept = device.core.state.events.map(\.header.number)
        let wiped = try #require(kept.first)
        #expect(kept[1] > wiped + 1)
        try device.connect()
        device.published = []
        try device.say(
            .received(device.device),
            device.fleet.received(device.device, EventMark(incarnation: 1, boot: device.core.state.boot, number: wiped))
        )
        let told = try device.published.compactMap { address, wire -> EventHeader? in
            guard case .reply(let id, let app, .event) = address else { return nil }
            return try AppEvent(wire: wire, device: id, app: app).header
        }
        #expect(told.map(\.number) == [kept[1]])
        #expect(told.first?.oldest == kept[1])
    }

    @Test("of an earlier boot the last event stays, and tells what is missing before it")
    func lastOfBoot() throws {
        var device = try TestDevice()
        device.comparesStore = false
        let link = try device.launch(mail)
        for _ in 0..<5 { try device.handle(.frame(link, .blocked(.copy, target: nil))) }
        let earlier = device.core.state.boot
        let last = try #require(device.core.state.events.last).header.number
        try device.restart()
        let again = try device.launch(mail)
        for _ in 0..<1_100 { try device.handle(.frame(again, .blocked(.copy, target: nil))) }
        let events = device.core.state.events
        #expect(events.count == device.core.maximumEvents)
        #expect(events.filter { $0.header.boot == earlier }.map(\.header.number) == [last])
        device.published = []
        try device.connect()
        let sent = try device.published.compactMap { address, wire -> EventHeader? in
            guard case .reply(let id, let app, .event) = address else { return nil }
            return try AppEvent(wire: wire, device: id, app: app).header
        }
        #expect(sent.first?.number == last)
        #expect(sent.first?.oldest == last)
        try device.compareStore()
    }

    @Test("refused registrations do not drive events out")
    func manyRefusals() throws {
        var device = try TestDevice()
        try device.launch(mail)
        let count = device.core.state.events.count
        for _ in 0..<50 { try device.handle(.registrationRefused(mail, reason: "no")) }
        #expect(device.core.state.events.count == count + 1)
        // Seldom, and for days.
        try device.apply(.all, mail, .auth, .auth(.retired))
        try device.connect()
        try device.disconnect()
        device.comparesStore = false
        for _ in 0..<1_100 {
            try device.wait(60)
            try device.handle(.registrationRefused(mail, reason: "no"))
        }
        let isWipeKept = device.core.state.events.contains { event in
            if case .event(let event) = event.body { event.kind == .wiped } else { false }
        }
        #expect(device.core.state.events.count == 1_000)
        #expect(isWipeKept)
    }
}
