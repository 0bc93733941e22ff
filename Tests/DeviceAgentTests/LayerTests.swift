import DeviceAgent
import FleetProtocol
import Testing

@Suite("Layers, groups and what is accepted")
struct LayerTests {
    private let kiosk = GroupID(unchecked: "kiosk")
    private let lobby = GroupID(unchecked: "lobby")

    private func join(_ device: inout TestDevice, _ groups: [GroupID]) throws {
        let address = Address.membership(device.device)
        try device.publish(address, device.fleet.document(address, .membership(groups)))
    }

    @Test("device beats group beats all, and deleting an override goes back to the layer below")
    func precedence() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try join(&device, [kiosk])
        try device.apply(.all, mail, .config, .config(["from": "all"]))
        try device.apply(.group(kiosk), mail, .config, .config(["from": "group"]))
        try device.apply(.device(device.device), mail, .config, .config(["from": "device"]))
        #expect(try device.status(mail)[.config].source == .desired(.device(device.device), mail, .config))
        try device.apply(.device(device.device), mail, .config, .tombstone)
        #expect(try device.status(mail)[.config].source == .desired(.group(kiosk), mail, .config))
        #expect(try device.status(mail)[.config].received == 3)
        try device.apply(.group(kiosk), mail, .config, .tombstone)
        #expect(try device.status(mail)[.config].received == 2)
    }

    /// What a controller says to a device of which it has found that it has other documents than it should.
    private func tell(_ device: inout TestDevice, of documents: [Address: Revision]) throws {
        let hello = try device.fleet.hello(
            device.device, #require(device.connection), lost: [.documents], documents: Digest(of: documents))
        try device.say(.hello(device.device), hello)
    }

    @Test("what a restored controller has not signed again counts no more once it says so, and never comes back")
    func earlierEpoch() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try join(&device, [kiosk])
        try device.apply(.group(kiosk), mail, .config, .config(["from": "group"]))
        try device.apply(.all, mail, .config, .config(["from": "all"]))
        #expect(try device.status(mail)[.config].source == .desired(.group(kiosk), mail, .config))
        let held = device.retained
        try device.disconnect()
        device.fleet.epoch = 2
        device.isControllerThere = false
        try device.connect()
        // Nothing is forgotten before the controller has greeted.
        #expect(try device.status(mail)[.config].source == .desired(.group(kiosk), mail, .config))
        try device.apply(.all, mail, .config, .config(["from": "all"]))
        let connection = try #require(device.connection)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        #expect(try device.status(mail)[.config].source == .desired(.group(kiosk), mail, .config))
        let live = [Address.desired(.all, mail, .config): Revision(epoch: 2, number: device.fleet.revision)]
        try tell(&device, of: live)
        #expect(try device.status(mail)[.config].source == .desired(.all, mail, .config))
        #expect(!device.subscriptions.contains { $0.contains("/kiosk/") })
        #expect(device.core.state.groups == [])
        for (topic, payload) in held { try device.handle(.message(topic: topic, payload: payload)) }
        #expect(device.core.state.groups == [])
        #expect(try device.status(mail)[.config].source == .desired(.all, mail, .config))
    }

    @Test("what a restored controller has signed again counts also when it was dropped on its way here")
    func laterEpochDropped() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        let own = Address.desired(.device(device.device), mail, .auth)
        try device.apply(.all, mail, .auth, .auth(.authorized))
        try device.publish(own, try device.fleet.document(own, .auth(.unauthorized)))
        device.fleet.epoch = 2
        try device.apply(.all, mail, .auth, .auth(.authorized))
        // The broker has it, and has not delivered it.
        device.retained[own.topic(in: device.fleet.id)] = try device.fleet.document(own, .auth(.unauthorized))
        device.underWay = []
        let connection = try #require(device.connection)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        #expect(try device.status(mail)[.auth].source == own)
        while device.underWay?.isEmpty == false {
            try device.receiveNext()
            #expect(try device.status(mail)[.auth].source == own)
        }
        // That in the place of which nothing was signed goes.
        device.retained[own.topic(in: device.fleet.id)] = nil
        device.fleet.epoch = 3
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        #expect(try device.status(mail)[.auth].source == own)
        try tell(&device, of: [:])
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        #expect(try device.status(mail)[.auth].source == nil)
    }

    @Test("what a broker withholds behind a restore stays in force, and a retirement that comes counts all the same")
    func withheldBehindRestore() throws {
        var device = try TestDevice()
        try device.connect()
        try device.answer(device.launch(mail))
        var services = SecureServicesValue()
        services.offline = SecureServicesValue.Offline(blockAfter: 600)
        try device.apply(.all, mail, .secureServices, .aspect(DesiredValue(.secureServices(services))))
        try device.apply(.all, mail, .auth, .auth(.authorized))
        device.isControllerThere = false
        device.fleet.epoch = 2
        var live: [Address: Revision] = [:]
        for aspect in [Aspect.secureServices, .auth] {
            device.fleet.revision += 1
            live[.desired(.all, mail, aspect)] = Revision(epoch: 2, number: device.fleet.revision)
        }
        // What is signed again does not come.
        device.retained = [:]
        let connection = try #require(device.connection)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        for isCompared in [false, true] {
            if isCompared { try tell(&device, of: live) }
            #expect(try device.status(mail).authState == .authorized)
            #expect(device.core.state.apps[mail]?.secureServices.offline?.blockAfter == 600)
        }
        // It says what it has, for the controller to compare.
        try device.wait(5)
        let presence = try #require(device.published.last { $0.address == .presence(.device(device.device)) })
        #expect(try Presence(json: presence.payload, limit: Presence.maximumSize).documents?.count == 2)
        try device.apply(.device(device.device), mail, .auth, .auth(.retired))
        #expect(try device.status(mail).authState == .retired)
        #expect(device.keys.isEmpty)
    }

    @Test("until what is left of an earlier epoch is gone, nothing is loosened in the app that it speaks to")
    func uncertainBehindRestore() throws {
        var device = try TestDevice()
        try device.connect()
        for app in [mail, notes] { try device.answer(device.launch(app)) }
        let own = Address.desired(.device(device.device), mail, .dlp)
        try device.publish(own, device.fleet.document(own, .aspect(DesiredValue(.dlp(DLP())))))
        // Neither the broker nor the restored controller has it any more.
        device.retained[own.topic(in: device.fleet.id)] = nil
        device.isControllerThere = false
        device.fleet.epoch = 2
        let connection = try #require(device.connection)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        var live: [Address: Revision] = [:]
        for app in [mail, notes] {
            try device.apply(.all, app, .config, .config(["of": "now"]))
            live[.desired(.all, app, .config)] = Revision(epoch: 2, number: device.fleet.revision)
        }
        #expect(try device.status(mail)[.config].source == nil)
        #expect(try device.status(notes)[.config].source == .desired(.all, notes, .config))
        #expect(device.core.signedDocuments[own] != nil)
        try tell(&device, of: live)
        #expect(try device.status(mail)[.config].source == .desired(.all, mail, .config))
        #expect(device.core.signedDocuments[own] == nil)
    }

    @Test("a membership that a restored controller does not know of goes, also where its group's documents are shown")
    func membershipOfNobody() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.group(kiosk), mail, .config, .config(["from": "group"]))
        try join(&device, [kiosk])
        device.retained[Address.membership(device.device).topic(in: device.fleet.id)] = nil
        device.isControllerThere = false
        device.fleet.epoch = 2
        try device.apply(.group(kiosk), mail, .config, .config(["from": "group"]))
        let connection = try #require(device.connection)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        #expect(device.core.state.groups == [kiosk])
        try tell(&device, of: [:])
        #expect(device.core.state.groups == [])
        #expect(try device.status(mail)[.config].source == nil)
    }

    @Test("among groups the higher priority decides, then the smaller id")
    func priority() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try join(&device, [lobby, kiosk])
        try device.apply(.group(lobby), mail, .config, .config(["from": "lobby"]))
        try device.apply(.group(kiosk), mail, .config, .config(["from": "kiosk"]))
        #expect(try device.status(mail)[.config].source == .desired(.group(kiosk), mail, .config))
        let meta = Address.groupMeta(lobby)
        try device.publish(meta, device.fleet.document(meta, .groupMeta(GroupMeta(priority: 5))))
        #expect(try device.status(mail)[.config].source == .desired(.group(lobby), mail, .config))
    }

    @Test("what a group said that never came to count is forgotten on the next connection")
    func groupThatNeverCounted() throws {
        var device = try TestDevice()
        try device.connect()
        try device.answer(device.launch(mail))
        let document = Address.desired(.group(kiosk), mail, .config)
        try device.publish(document, device.fleet.document(document, .config(["a": "b"])))
        device.underWay = []
        try join(&device, [kiosk])
        // All but the marker behind it arrives.
        while device.core.signedDocuments[document] == nil, device.underWay?.isEmpty == false {
            try device.receiveNext()
        }
        #expect(device.core.signedDocuments[document] != nil)
        #expect(device.core.state.groups.isEmpty)
        device.underWay = nil
        try device.disconnect()
        try join(&device, [])
        try device.connect()
        #expect(device.core.signedDocuments[document] == nil)
        #expect(device.core.state.marks[document] != nil)
    }

    @Test("when groups change, the new group's documents are here before the old group's stop counting")
    func change() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.apply(.group(kiosk), mail, .auth, .auth(.authorized))
        try device.apply(.group(lobby), mail, .auth, .auth(.authorized))
        try join(&device, [kiosk])
        try device.answer(link)
        try join(&device, [lobby])
        let told = try device.answer(link)
        #expect(!told.contains { if case .policy(.auth(.unauthorized, _), _) = $0 { true } else { false } })
        #expect(try device.status(mail)[.auth].source == .desired(.group(lobby), mail, .auth))
        #expect(!device.subscriptions.contains { $0.contains("/kiosk/") })
    }

    @Test("before the hello only what tightens takes effect")
    func tightening() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        try device.apply(.all, mail, .config, .config(["a": "1"]))
        let link = try device.launch(mail)
        try device.answer(link)
        try device.disconnect()
        device.isControllerThere = false
        let config = Address.desired(.all, mail, .config)
        let auth = Address.desired(.all, mail, .auth)
        try device.publish(config, device.fleet.document(config, .config(["a": "2"])))
        try device.publish(auth, device.fleet.document(auth, .auth(.unauthorized)))
        try device.connect()
        #expect(try device.status(mail).authState == .unauthorized)
        #expect(try device.status(mail)[.config].received == 2)
        let connection = try #require(device.connection)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        #expect(try device.status(mail)[.config].received == 3)
    }

    @Test(
        "what is forged, moved, rolled back, another fleet's or equal in revision with other bytes is refused and reported"
    )
    func refused() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        let address = Address.desired(.all, mail, .config)
        let old = try device.fleet.document(address, .config(["v": "1"]))
        try device.publish(address, old)
        let good = try device.fleet.document(address, .config(["v": "2"]))
        try device.publish(address, good)
        let before = try device.status(mail).policies
        var stranger = try TestFleet()
        stranger.revision = 100
        var foreign = device.fleet
        foreign = try TestFleet()
        foreign.signing = device.fleet.signing
        foreign.revision = 100
        let moved = try device.fleet.document(.desired(.all, notes, .config), .config(["v": "3"]))
        let equal = try device.fleet.document(address, .config(["v": "4"]), revision: 2)
        var changed = good
        changed[changed.count / 2] ^= 1
        for (wire, reason) in [
            (try stranger.document(address, .config(["v": "5"])), "unknown key"),
            (try foreign.document(address, .config(["v": "6"])), "another fleet"),
            (moved, "belongs to"), (old, "was here already"), (equal, "other content"), (changed, ""),
            (Array("{".utf8), "expected"), ([UInt8](repeating: 0xFF, count: 70_000), "at most"),
        ] {
            try device.say(address, wire)
            #expect(try device.status(mail).policies == before)
            let refusal = try #require(try device.status(mail).refusals.last)
            #expect(refusal.reason.contains(reason) || reason.isEmpty, "\(refusal.reason)")
        }
    }

    @Test("a document of a new key counts once the trust document that names it has come, and an old version does not")
    func rotation() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        let first = device.fleet.signing
        let firstTrust = try device.fleet.trust()
        device.fleet.signing = try SigningKey()
        try device.disconnect()
        let address = Address.desired(.all, mail, .config)
        try device.publish(address, device.fleet.document(address, .config(["v": "1"])))
        try device.publish(.trust, device.fleet.trust(version: 2).wire)
        try device.connect()
        #expect(try device.status(mail)[.config].received == 1)
        try device.say(.trust, firstTrust.wire)
        #expect(device.core.trust.version == 2)
        device.fleet.signing = first
        try device.apply(.all, mail, .config, .config(["v": "2"]))
        #expect(try device.status(mail)[.config].received == 1)
    }

    @Test("a trust document that was lost on its way is asked for when an unknown key has signed something")
    func lostTrust() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        device.fleet.signing = try SigningKey()
        device.retained[Address.trust.topic(in: device.fleet.id)] = try device.fleet.trust(version: 2).wire
        try device.apply(.all, mail, .config, .config(["v": "1"]))
        #expect(device.core.trust.version == 2)
        #expect(try device.status(mail)[.config].received == 1)
        #expect(try device.status(mail).refusals.isEmpty)

        // A key that no trust document names does not have it asked for again and again.
        let subscribed = device.subscriptions.count
        device.fleet.signing = try SigningKey()
        for value in ["2", "3"] {
            try device.wait(31)
            try device.apply(.all, mail, .config, .config(["v": value]))
            try device.apply(.all, mail, .config, .config(["v": value + "b"]))
        }
        #expect(device.subscriptions.count == subscribed + 2)
        #expect(try device.status(mail)[.config].received == 1)
        #expect(try #require(try device.status(mail).refusals.last).reason.contains("unknown key"))
    }

    @Test("what was kept back while the broker had a membership that could not be read is fetched with the next one")
    func unreadMembership() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        let (membership, config) = (Address.membership(device.device), Address.desired(.group(kiosk), mail, .config))
        try device.publish(membership, device.fleet.document(membership, .membership([kiosk])))
        try device.apply(.group(kiosk), mail, .config, .config(["v": "1"]))
        try device.disconnect()
        let stale = try device.fleet.document(membership, .membership([]))
        device.fleet.signing = try SigningKey()
        device.retained = [Address.trust.topic(in: device.fleet.id): try device.fleet.trust(version: 2).wire]
        try device.connect()
        try device.publish(membership, stale)
        #expect(device.core.state.groups == [kiosk])
        // Published while the guard knew of no group: nobody is shown it.
        let hidden = try device.fleet.document(config, .config(["v": "2"]))
        device.retained[config.topic(in: device.fleet.id)] = hidden
        try device.publish(membership, device.fleet.document(membership, .membership([kiosk])))
        #expect(device.core.state.apps[mail]?[.config].value == .config(["v": "2"]))
    }

    @Test("unknown values count as unauthorized for that policy alone, and are reported")
    func unknownValues() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        let address = Address.desired(.all, mail, .dlp)
        let text = #"{"openIn":{"policy":"someday"},"print":"authorized","pasteboard":7}"#
        let value = try JSONReader.read(Array(text.utf8), limit: 1_000) { try DesiredValue(of: .dlp, from: &$0) }
        #expect(value.problems.keys.sorted() == [.openIn, .pasteboard])
        try device.publish(address, device.fleet.document(address, value: text))
        try device.answer(link)
        let status = try device.status(mail)
        #expect(status[.openIn].attempt.outcome == .rejected)
        #expect(status[.pasteboard].attempt.outcome == .rejected)
        #expect(status[.print].attempt.outcome == .applied)
    }

    @Test("secure services of which something is unknown are locked, until there are others")
    func unknownSecureServices() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let link = try device.launch(mail)
        try device.answer(link)
        #expect(try device.status(mail).secureServices == .available)
        let address = Address.desired(.all, mail, .secureServices)
        let text = #"{"passcode":{"required":true,"then":"explode"},"offline":{"wipeAfter":86400}}"#
        try device.publish(address, device.fleet.document(address, value: text))
        let status = try device.status(mail)
        #expect(status[.secureServices].attempt.outcome == .rejected && status.authState == .authorized)
        #expect(status.secureServices == .unavailable)
        #expect(device.sent[link]?.contains(.keys(nil)) == true)
        try device.apply(.all, mail, .secureServices, .aspect(DesiredValue(.secureServices(SecureServicesValue()))))
        #expect(try device.status(mail).secureServices == .available)
    }

    @Test(
        "until a looser document is certain, the list of authorized apps before it loses who is none any more",
        arguments: [(false, false), (true, false), (true, true)], [DLP.Opening.authorized, .whitelist([mail, notes])])
    func keptAppConnectApps(place: (isSame: Bool, isRestarted: Bool), target: DLP.Opening) throws {
        var device = try TestDevice()
        try device.connect()
        var dlp = DLP()
        dlp.openIn = .appConnectApps
        try device.apply(.all, mail, .dlp, .aspect(DesiredValue(.dlp(dlp))))
        for app in [mail, notes] {
            try device.apply(.all, app, .auth, .auth(.authorized))
            try device.answer(try device.launch(app))
        }
        try device.disconnect()
        device.isControllerThere = false
        try device.connect()
        dlp.openIn = target
        let layer = place.isSame ? Layer.all : .device(device.device)
        try device.apply(layer, mail, .dlp, .aspect(DesiredValue(.dlp(dlp))))
        if place.isRestarted {
            try device.restart()
            try device.connect()
        }
        try device.apply(.all, notes, .auth, .auth(.unauthorized))
        #expect(device.core.state.apps[mail]?[.openIn].value == .openIn(.whitelist, whitelist: [mail]))
        #expect(device.core.state.apps[mail]?[.openIn].source == .desired(.all, mail, .dlp))
    }

    @Test("an app that is authorized again, and blocked by the limits that come with it, is in no list of others")
    func blockedAppConnectApps() throws {
        var device = try TestDevice()
        try device.connect()
        var dlp = DLP()
        dlp.openIn = .appConnectApps
        try device.apply(.all, mail, .dlp, .aspect(DesiredValue(.dlp(dlp))))
        for app in [mail, notes] { try device.apply(.all, app, .auth, .auth(.authorized)) }
        try device.answer(try device.launch(mail))
        let link = try device.launch(notes)
        try device.answer(link)
        try device.handle(.frame(link, .retire(number: 1)))
        try device.answer(link)
        var services = SecureServicesValue()
        services.offline = SecureServicesValue.Offline(blockAfter: 600)
        try device.apply(.all, notes, .secureServices, .aspect(DesiredValue(.secureServices(services))))
        device.now.wall = device.now.wall.advanced(bySeconds: 3_600)
        try device.apply(.device(device.device), notes, .auth, .auth(.authorized))
        #expect(device.core.state.apps[notes]?.latch == nil)
        #expect(device.core.state.apps[notes]?.authReason == .outOfContact)
        #expect(device.core.state.apps[mail]?[.openIn].value == .openIn(.whitelist, whitelist: [mail]))
    }

    @Test("all authorized apps of the device are a whitelist that follows their authorization")
    func appConnectApps() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.launch(notes)
        var dlp = DLP()
        dlp.openIn = .appConnectApps
        try device.apply(.all, mail, .dlp, .aspect(DesiredValue(.dlp(dlp))))
        try device.answer(link)
        try device.apply(.all, notes, .auth, .auth(.authorized))
        #expect(try device.answer(link).contains(.policy(.openIn(.whitelist, whitelist: [notes]), reason: .none)))
    }

    @Test("an app that may drag to all authorized ones is told which these are, and each change of it")
    func dragToAppConnectApps() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.launch(notes)
        var dlp = DLP()
        dlp.dragAndDrop = .appConnectApps
        try device.apply(.all, mail, .dlp, .aspect(DesiredValue(.dlp(dlp))))
        #expect(try device.answer(link).contains(.policy(.dragAndDrop(.appConnectApps, apps: []), reason: .none)))
        try device.apply(.all, notes, .auth, .auth(.authorized))
        #expect(
            try device.answer(link).contains(.policy(.dragAndDrop(.appConnectApps, apps: [notes]), reason: .none)))
        #expect(try device.status(mail)[.dragAndDrop].attempt.outcome == .applied)
        try device.apply(.all, notes, .auth, .auth(.retired))
        #expect(try device.answer(link) == [.policy(.dragAndDrop(.appConnectApps, apps: []), reason: .none)])
    }
}
