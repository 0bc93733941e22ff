import DeviceAgent
import FleetProtocol
import Testing

@Suite("What a broker drops without a word")
struct LossTests {
    private let kiosk = GroupID(unchecked: "kiosk")

    private func presences(_ device: TestDevice) throws -> [Presence] {
        try device.published.filter { $0.address == .presence(.device(device.device)) }.map {
            try Presence(json: $0.payload, limit: Presence.maximumSize)
        }
    }

    /// What the device says of itself when the controller asks for it.
    private func answer(
        _ device: inout TestDevice, lost: Set<Hello.Lost> = [], documents: Digest? = nil
    ) throws -> Presence {
        device.isControllerThere = false
        // Greetings are answered every five seconds at most, and one may still have to be.
        for _ in 0..<2 { try device.wait(5) }
        device.published = []
        let hello = try device.fleet.hello(
            device.device, #require(device.connection), lost: lost, documents: documents)
        try device.say(.hello(device.device), hello)
        return try #require(try presences(device).last)
    }

    @Test(
        "a presence tells the newest status of each app, and the sum of the documents, once all is fetched and reported"
    )
    func tells() throws {
        var device = try TestDevice()
        try device.connect()
        let first = try #require(try presences(device).first)
        #expect(first.documents == nil)
        try device.answer(device.launch(mail))
        try device.apply(.all, mail, .config, .config(["a": "b"]))
        try device.apply(.all, notes, .config, .config(["of": "an app that is not here"]))
        try device.apply(.device(device.device), mail, .auth, .auth(.authorized))
        var wanted = Presence.Documents(trust: 1)
        for revision in [1, 3] { wanted.add(Int64(revision)) }
        var said = try answer(&device)
        #expect(said.documents == wanted)
        #expect(said.apps.map(\.reported) == [try device.reported(mail).order.sequence])
        // A tombstone takes its document away.
        try device.apply(.all, mail, .config, .tombstone)
        wanted = Presence.Documents(trust: 1)
        wanted.add(3)
        said = try answer(&device)
        #expect(said.documents == wanted)
        // What was said on an earlier connection tells nothing about this one.
        try device.disconnect()
        device.published = []
        device.underWay = []
        try device.connect()
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        #expect(try presences(device).first?.apps.map(\.reported) == [nil])
    }

    @Test("a presence tells of the epoch that the enrolment knew, though no document of it has come")
    func epoch() throws {
        var fleet = try TestFleet()
        fleet.epoch = 5
        var device = try TestDevice(fleet: fleet)
        try device.connect()
        #expect(try presences(device).first?.highest == Revision(epoch: 5, number: 0))
        var first = try TestDevice()
        try first.connect()
        #expect(try presences(first).first?.highest == nil)
    }

    @Test("membership and meta of the groups count among the documents")
    func groups() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        for (address, content) in [
            (Address.groupMeta(kiosk), DesiredDocument.Content.groupMeta(GroupMeta(priority: 3))),
            (.desired(.group(kiosk), mail, .config), .config(["a": "b"])),
            (.membership(device.device), .membership([kiosk])),
        ] {
            try device.publish(address, device.fleet.document(address, content))
        }
        var wanted = Presence.Documents(trust: 1)
        for revision in 1...3 { wanted.add(Int64(revision)) }
        #expect(try answer(&device).documents == wanted)
    }

    @Test("a hello that tells of lost statuses has every app reported again")
    func statuses() throws {
        var device = try TestDevice()
        try device.connect()
        try device.answer(device.launch(mail))
        try device.wait(1)
        let before = try device.reported(mail)
        device.retained[before.address.topic(in: device.fleet.id)] = nil
        _ = try answer(&device)
        #expect(throws: (any Error).self) { try device.reported(mail) }
        _ = try answer(&device, lost: [.statuses])
        try device.wait(1)
        #expect(try device.reported(mail).order > before.order)
    }

    /// A device that keeps two documents, one of which was deleted so long ago that the broker has nothing there any more; and
    /// which documents there should be.
    private func longAway() throws -> (device: TestDevice, deleted: Address, live: [Address: Revision]) {
        var device = try TestDevice()
        try device.connect()
        try device.answer(device.launch(mail))
        try device.apply(.all, mail, .auth, .auth(.authorized))
        try device.apply(.device(device.device), mail, .auth, .auth(.unauthorized))
        let deleted = Address.desired(.device(device.device), mail, .auth)
        device.retained[deleted.topic(in: device.fleet.id)] = nil
        return (device, deleted, [.desired(.all, mail, .auth): Revision(epoch: 1, number: 1)])
    }

    @Test("what was deleted so long ago that nobody has the tombstone any more is forgotten, and stays refused")
    func forgotten() throws {
        var (device, deleted, live) = try longAway()
        let old = try device.fleet.document(deleted, .auth(.authorized), revision: 1)
        _ = try answer(&device, lost: [.documents])
        #expect(try device.status(mail)[.auth].source == deleted, "a controller of before does not say which there are")
        _ = try answer(&device, lost: [.documents], documents: Digest(of: live))
        #expect(try device.status(mail)[.auth].source == .desired(.all, mail, .auth))
        #expect(try device.status(mail).authState == .authorized)
        #expect(try answer(&device).documents?.count == 1)
        try device.publish(deleted, old)
        #expect(try device.status(mail)[.auth].source == .desired(.all, mail, .auth), "its mark stays")
        try device.restart()
        #expect(try device.status(mail).authState == .authorized)
    }

    @Test("a broker that withholds or shows anything else than the controller has signed for makes nothing forgotten")
    func withheld() throws {
        var (device, deleted, live) = try longAway()
        let topic = Address.desired(.all, mail, .auth).topic(in: device.fleet.id)
        let shown = device.retained[topic]
        device.retained[topic] = nil
        _ = try answer(&device, lost: [.documents], documents: Digest(of: live))
        #expect(try device.status(mail)[.auth].source == deleted)
        device.retained[topic] = shown
        live[deleted] = Revision(epoch: 1, number: 2)
        _ = try answer(&device, lost: [.documents], documents: Digest(of: live))
        #expect(try device.status(mail)[.auth].source == deleted, "the controller still wants it")
    }

    @Test(
        "a hello that was signed before something came makes nothing forgotten, whatever the broker withholds by then")
    func keptBack() throws {
        var (device, deleted, live) = try longAway()
        let connection = try #require(device.connection)
        device.fleet.time = device.fleet.time.advanced(bySeconds: 60)
        let early = try device.fleet.hello(
            device.device, connection, lost: [.documents], documents: Digest(of: live))
        let later = Address.desired(.device(device.device), mail, .config)
        try device.apply(.device(device.device), mail, .config, .config(["a": "b"]))
        device.retained[later.topic(in: device.fleet.id)] = nil
        try device.say(.hello(device.device), early)
        #expect(try device.status(mail)[.config].source == later)
        #expect(try device.status(mail)[.auth].source == deleted)
    }

    @Test("an app that comes while the broker shows all once more loses nothing of what it is told")
    func comesMeanwhile() throws {
        var (device, _, live) = try longAway()
        let connection = try #require(device.connection)
        try device.apply(.all, notes, .config, .config(["a": "b"]))
        device.fleet.time = device.fleet.time.advanced(bySeconds: 60)
        device.underWay = []
        try device.launch(notes)
        // Its documents are here, and the marker behind them is not.
        for _ in 0..<(device.underWay?.count ?? 0) { try device.receiveNext() }
        let hello = try device.fleet.hello(
            device.device, connection, lost: [.documents], documents: Digest(of: live))
        try device.say(.hello(device.device), hello)
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        #expect(try device.status(mail)[.auth].source == .desired(.all, mail, .auth), "what is deleted is forgotten")
        #expect(try device.status(notes)[.config].source == .desired(.all, notes, .config))
    }

    @Test("a hello that tells of lost documents has them fetched again, behind a barrier")
    func documents() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        // The broker has them, and does not say so.
        for (address, content) in [
            (Address.desired(.all, mail, .config), DesiredDocument.Content.config(["a": "b"])),
            (.desired(.group(kiosk), mail, .auth), .auth(.authorized)),
            (.membership(device.device), .membership([kiosk])),
        ] {
            device.retained[address.topic(in: device.fleet.id)] = try device.fleet.document(address, content)
        }
        _ = try answer(&device)
        #expect(try device.status(mail)[.config].source == nil)
        _ = try answer(&device, lost: [.documents])
        #expect(try device.status(mail)[.config].source == .desired(.all, mail, .config))
        #expect(try device.status(mail)[.auth].source == .desired(.group(kiosk), mail, .auth))
    }

    @Test("presence and marker are said again while nobody answers, ever more rarely, and then no more")
    func retries() throws {
        var device = try TestDevice()
        device.isControllerThere = false
        try device.connect()
        device.published = []
        for _ in 0..<36 { try device.wait(100) }
        #expect(try (4...9).contains(presences(device).count))
        device.published = []
        let hello = try device.fleet.hello(device.device, #require(device.connection))
        try device.say(.hello(device.device), hello)
        // As that may have waited for an hour, a fresh one is asked for.
        try device.wait(5)
        let nonce = try #require(presences(device).last?.nonce)
        try device.say(
            .hello(device.device), device.fleet.hello(device.device, #require(device.connection), nonce: nonce))
        device.published = []
        for _ in 0..<8 { try device.wait(100) }
        #expect(try presences(device).count <= 1)
        device.published = []
        for _ in 0..<4 { try device.wait(100) }
        #expect(try !presences(device).isEmpty, "greeted so long ago, it may not be known any more")

        device = try TestDevice()
        device.isControllerThere = false
        device.underWay = []
        try device.connect()
        try device.receiveNext()
        while let next = device.underWay?.first {
            // The first marker is lost.
            if case .message(let topic, _) = next, topic.contains("/barrier/") { device.underWay?.removeFirst() }
            try device.receiveNext()
        }
        #expect(device.published.filter { $0.address == .barrier(.device(device.device)) }.count == 1)
        try device.wait(38)
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        #expect(device.published.filter { $0.address == .barrier(.device(device.device)) }.count == 2)
        let name = try #require(device.connection)
        try device.say(.hello(device.device), device.fleet.hello(device.device, name))
        try device.wait(100)
        #expect(device.core.nextTick - device.core.state.running.total > 31_000, "nothing more is waited for")
    }

    @Test("a connection on which the broker leaves something unanswered is left for another one, ever more rarely")
    func reconnects() throws {
        var device = try TestDevice()
        device.isControllerThere = false
        device.underWay = []
        /// Seconds until the device has had enough.
        func patience() throws -> Int {
            let before = device.reconnects
            var seconds = 0
            while device.reconnects == before, seconds < 10_000 {
                try device.wait(10)
                seconds += 10
            }
            return seconds
        }
        // Not even a subscription is answered.
        try device.connect()
        #expect((290...310).contains(try patience()))
        try device.wait(10_000)
        #expect(device.reconnects == 1, "it is asked for once, and then waited for")
        try device.disconnect()
        try device.connect()
        #expect((590...610).contains(try patience()))
        try device.disconnect()
        // All is well, and the controller away: nothing is left unanswered.
        device.underWay = nil
        try device.connect()
        for _ in 0..<100 { try device.wait(100) }
        #expect(device.reconnects == 2)
        // From now on the broker sends nothing. With a marker the device finds out.
        let name = try #require(device.connection)
        try device.say(.hello(device.device), device.fleet.hello(device.device, name))
        device.underWay = []
        #expect((890...1_500).contains(try patience()))
    }

    @Test("a lost marker is said again in half a minute, also when others have been waited for until pauses were long")
    func grownPauses() throws {
        var device = try TestDevice()
        device.isControllerThere = false
        try device.connect()
        for _ in 0..<30 { try device.wait(60) }
        device.underWay = []
        try device.launch(mail)
        // All that was asked for stands, and the marker behind it is lost.
        for event in device.underWay ?? [] { if case .subscribed = event { try device.handle(event) } }
        device.underWay = []
        device.published = []
        try device.wait(38)
        #expect(device.published.contains { $0.address == .barrier(.device(device.device)) })
    }

    @Test("a lost marker is said again in half a minute, also when its subscription took longer than pauses first are")
    func grownPausesOfSubscription() throws {
        var device = try TestDevice()
        try device.connect()
        device.underWay = []
        try device.launch(mail)
        let subscribed = (device.underWay ?? []).filter { if case .subscribed = $0 { true } else { false } }
        #expect(!subscribed.isEmpty)
        for _ in 0..<4 { try device.wait(55) }
        for event in subscribed { try device.handle(event) }
        device.underWay = []
        device.published = []
        try device.wait(38)
        #expect(device.published.contains { $0.address == .barrier(.device(device.device)) })
    }
}
