import DeviceAgent
import FleetProtocol
import Testing

@Suite("Retirement")
struct RetirementTests {
    @Test("a retired app loses its keys before anything is stored or said, even while it is not running")
    func keysFirst() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        try device.handle(.linkClosed(link))
        #expect(device.keys == [mail])
        device.order = []
        try device.apply(.all, mail, .auth, .auth(.retired, "gone"))
        #expect(device.keys.isEmpty)
        #expect(device.order.first == "destroy \(mail)")
        #expect(device.order.dropFirst().first == "store")
        let status = try device.reported(mail)
        #expect(status.keys == .destroyed)
        #expect(status.authState == .retired)
        #expect(status.authMessage == "gone")
    }

    @Test(
        "an app that is retired and authorized again while it does not run is told of both, and has no keys in between",
        arguments: [false, true])
    func toldLate(_ isRestarted: Bool) throws {
        var device = try TestDevice()
        let install = RandomID.random()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let first = try device.launch(mail, install: install)
        try device.answer(first)
        #expect(try device.status(mail)[.auth].attempt.outcome == .applied)
        try device.handle(.linkClosed(first))
        try device.apply(.all, mail, .auth, .auth(.retired, "gone"))
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let status = try device.reported(mail)
        #expect(status.authState == .authorized && status[.auth].attempt.outcome == .pending)
        #expect(status.keys == .present && status.secureServices == .unavailable)
        if isRestarted {
            try device.restart()
            try device.connect()
        }
        let link = try device.launch(mail, install: install)
        let ready = try #require(
            device.sent[link]?.compactMap { frame -> AppProperties? in
                if case .ready(let properties) = frame { properties } else { nil }
            }.first)
        #expect(ready[.auth] == .auth(.retired, message: "gone") && ready.authReason == .policy)
        #expect(ready.availability == .unavailable)
        #expect(device.sent[link]?.contains(.keys(device.key(of: mail))) == false)
        let authorizations = try device.answer(link).compactMap { delivery -> AuthState? in
            if case .policy(.auth(let state, _), _) = delivery { state } else { nil }
        }
        #expect(authorizations == [.retired, .authorized])
        let end = try device.reported(mail)
        #expect(end[.auth].attempt.outcome == .applied && end.secureServices == .available)
        #expect(device.sent[link]?.contains(.keys(device.key(of: mail))) == true)
    }

    @Test("so is one whose first ready callback still runs")
    func toldBehindReady() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        #expect(device.sent[link]?.contains { if case .ready = $0 { true } else { false } } == true)
        try device.apply(.all, mail, .auth, .auth(.retired, "gone"))
        try device.apply(.all, mail, .auth, .auth(.authorized))
        #expect(device.sent[link]?.contains(.keys(device.key(of: mail))) == false)
        let authorizations = try device.answer(link).compactMap { delivery -> AuthState? in
            if case .policy(.auth(let state, _), _) = delivery { state } else { nil }
        }
        #expect(authorizations == [.retired, .authorized])
        #expect(device.sent[link]?.contains(.keys(device.key(of: mail))) == true)
    }

    @Test("whoever was told of a retirement, or is another installation, is not told of it once more")
    func toldOnce() throws {
        var device = try TestDevice()
        let install = RandomID.random()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let link = try device.launch(mail, install: install)
        try device.answer(link)
        try device.apply(.all, mail, .auth, .auth(.retired, "gone"))
        try device.answer(link)
        try device.handle(.linkClosed(link))
        try device.apply(.all, mail, .auth, .auth(.authorized))
        func authorizations(_ link: LinkID) throws -> [AuthState] {
            try device.answer(link).compactMap { delivery in
                if case .policy(.auth(let state, _), _) = delivery { state } else { nil }
            }
        }
        let again = try device.launch(mail, install: install)
        #expect(try authorizations(again) == [.authorized])
        try device.handle(.linkClosed(again))
        try device.apply(.all, mail, .auth, .auth(.retired, "gone"))
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let other = try device.launch(mail)
        #expect(try authorizations(other) == [.authorized])
        #expect(try device.status(mail).secureServices == .available)
    }

    @Test("of two retirements the later one is latched, whichever of them came first", arguments: [false, true])
    func laterRetirement(_ isReversed: Bool) throws {
        var device = try TestDevice()
        try device.connect()
        try device.answer(device.launch(mail))
        let (all, own) = (Address.desired(.all, mail, .auth), Address.desired(.device(device.device), mail, .auth))
        let group = GroupID(unchecked: "kiosk")
        try device.publish(
            .membership(device.device), device.fleet.document(.membership(device.device), .membership([group])))
        let retirements = [
            (own, try device.fleet.document(own, .auth(.retired, "own"))),
            (
                .desired(.group(group), mail, .auth),
                try device.fleet.document(.desired(.group(group), mail, .auth), .auth(.authorized))
            ),
            (all, try device.fleet.document(all, .auth(.retired, "all"))),
        ]
        for (address, wire) in isReversed ? retirements.reversed() : retirements { try device.publish(address, wire) }
        #expect(try device.status(mail).authMessage == "own", "the one of highest precedence gives the message")
        try device.publish(all, device.fleet.document(all, .tombstone))
        try device.publish(own, device.fleet.document(own, .tombstone))
        #expect(try device.status(mail).authState == .retired, "what was changed before the later one releases nothing")
        try device.apply(.group(group), mail, .auth, .auth(.authorized))
        #expect(try device.status(mail).authState == .authorized)
    }

    @Test("why an app is retired goes back to no earlier document while its release is still to be certain")
    func laterMessage() throws {
        var device = try TestDevice()
        try device.connect()
        try device.answer(device.launch(mail))
        let (all, own) = (Address.desired(.all, mail, .auth), Address.desired(.device(device.device), mail, .auth))
        try device.publish(own, device.fleet.document(own, .auth(.retired, "first")))
        let second = try device.fleet.document(own, .auth(.retired, "second"))
        // That of the lower layer was changed later, and comes before.
        try device.publish(all, device.fleet.document(all, .auth(.retired, "all")))
        try device.publish(own, second)
        #expect(try device.status(mail).authMessage == "second")
        try device.disconnect()
        device.isControllerThere = false
        try device.publish(all, device.fleet.document(all, .auth(.authorized)))
        try device.publish(own, device.fleet.document(own, .auth(.authorized)))
        try device.connect()
        #expect(try device.status(mail).authState == .retired)
        // Which of the two documents gives way first is chance; until the other does it decides.
        #expect(try ["second", "all"].contains(device.status(mail).authMessage))
    }

    @Test("retired at any layer wins over an override of the device")
    func wins() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.device(device.device), mail, .auth, .auth(.authorized))
        try device.apply(.all, mail, .auth, .auth(.retired))
        #expect(try device.reported(mail).authState == .retired)
        #expect(try device.reported(mail)[.auth].source == .desired(.all, mail, .auth))
    }

    @Test("among several retirements the highest layer gives source and message, whichever came first")
    func several() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.all, mail, .auth, .auth(.retired, "all"))
        try device.apply(.device(device.device), mail, .auth, .auth(.retired, "device"))
        let address = Address.desired(.device(device.device), mail, .auth)
        try device.restart()
        #expect(try device.status(mail).authMessage == "device")
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.retired, "all again"))
        #expect(try device.status(mail).authMessage == "device")
        #expect(try device.status(mail)[.auth].source == address)
    }

    @Test("a retirement ends by a later auth document, not by a tombstone, and keys begin anew")
    func latch() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.device(device.device), mail, .auth, .auth(.authorized))
        try device.apply(.all, mail, .auth, .auth(.retired))
        try device.apply(.all, mail, .auth, .tombstone)
        #expect(try device.reported(mail).authState == .retired)
        #expect(try device.reported(mail)[.auth].attempt.outcome == .rejected)
        #expect(device.keys.isEmpty)
        try device.restart()
        try device.connect()
        #expect(try device.reported(mail).authState == .retired)
        try device.apply(.device(device.device), mail, .auth, .auth(.authorized))
        #expect(try device.reported(mail).authState == .authorized)
        #expect(device.keys == [mail])
    }

    @Test("a retirement that comes before anything is certain is latched too: nothing that is older releases it")
    func latchedBeforeCertain() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.all, mail, .auth, .auth(.retired, "first"))
        try device.disconnect()
        device.isControllerThere = false
        try device.apply(.device(device.device), mail, .auth, .auth(.authorized))
        try device.apply(.all, mail, .auth, .auth(.retired, "second"))
        try device.connect()
        #expect(try device.status(mail).authMessage == "second")
        try device.apply(.all, mail, .auth, .tombstone)
        try device.disconnect()
        device.isControllerThere = true
        try device.connect()
        #expect(try device.reported(mail).authState == .retired)
        #expect(try device.reported(mail).authMessage == "second")
        #expect(device.keys.isEmpty)
    }

    @Test("a document signed again with its old change does not release a retirement")
    func resigned() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.device(device.device), mail, .auth, .auth(.authorized))
        try device.apply(.all, mail, .auth, .auth(.retired))
        try device.apply(.all, mail, .auth, .tombstone)
        let address = Address.desired(.device(device.device), mail, .auth)
        try device.publish(address, device.fleet.document(address, .auth(.authorized), change: 1))
        #expect(try device.reported(mail).authState == .retired)
    }

    @Test("an app that retires itself is unknown, at defaults, and reported")
    func itself() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        try device.apply(.all, mail, .config, .config(["a": "1"]))
        let link = try device.launch(mail)
        try device.answer(link)
        try device.handle(.frame(link, .retire()))
        try device.answer(link)
        let status = try device.reported(mail)
        #expect(status.managed == .unknown)
        #expect(status.authReason == .selfRetired)
        #expect(status.keys == .destroyed)
        #expect(status[.config].attempt.outcome == .rejected)
        try device.apply(.all, mail, .auth, .auth(.authorized))
        #expect(try device.reported(mail).authState == .authorized)
        #expect(try device.reported(mail).managed == .managed)
    }

    @Test("an app that has retired itself is managed again with the document that ends this", arguments: [true, false])
    func managedAgain(isRetired: Bool) throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        try device.handle(.frame(link, .retire()))
        try device.answer(link)
        #expect(try device.reported(mail).managed == .unknown)
        try device.apply(.all, mail, .auth, .auth(isRetired ? .retired : .authorized))
        #expect(try device.reported(mail).managed == .managed)
        #expect(try device.answer(link).contains(.managed(.managed)))
    }

    @Test(
        "what an app says of its own retirement is told, whatever the document says",
        arguments: [PolicyState.applied, .error])
    func saysOfItself(state: PolicyState) throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let link = try device.launch(mail)
        try device.answer(link)
        try device.handle(.frame(link, .retire()))
        try device.answer(link, nil)
        let before = try device.reported(mail)[.auth].attempt
        #expect(before.message?.hasSuffix("only a later auth document ends that") == true)
        let number = try #require(device.core.state.apps[mail]?[.auth].told?.number)
        let answer = Acknowledgement(delivery: number, policy: .auth, state: state, message: "the disk")
        try device.handle(.frame(link, .acknowledge(answer)))
        let attempt = try device.reported(mail)[.auth].attempt
        #expect(attempt.outcome == .rejected)
        #expect(attempt.message?.hasSuffix("; the app: \(state == .error ? "error" : "applied"): the disk") == true)
    }

    @Test("what an app that has retired itself answers to that is no answer to the document")
    func answersItself() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let link = try device.launch(mail)
        try device.handle(.frame(link, .retire()))
        try device.answer(link)
        let auth = try device.reported(mail)[.auth]
        #expect(auth.attempt.outcome == .rejected)
        #expect(auth.applied != auth.received)
    }

    @Test("an app that retires itself is told so first, also when that has ended meanwhile", arguments: [true, false])
    func endedMeanwhile(isReady: Bool) throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let link = try device.launch(mail)
        if isReady { try device.answer(link) }
        let address = Address.desired(.all, mail, .auth)
        let later = try device.fleet.document(address, .auth(.authorized, "again"))
        try device.handle(
            .frame(link, .retire()), .message(topic: address.topic(in: device.fleet.id), payload: later))
        let told = try device.answer(link).compactMap { delivery -> PolicyValue? in
            if case .policy(let value, _) = delivery, value.policy == .auth { value } else { nil }
        }
        #expect(
            told == [.auth(.retired, message: "This app has retired itself."), .auth(.authorized, message: "again")])
        #expect(try device.status(mail)[.auth].attempt.outcome == .applied)
        #expect(device.keys == [mail])
    }

    @Test("what an app was being told when it retired itself is taken back by another delivery, which it answers")
    func underWay() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        var dlp = DLP()
        dlp.print = .authorized
        try device.apply(.all, mail, .dlp, .aspect(DesiredValue(.dlp(dlp))))
        let isPrint = { (frame: AgentFrame) in
            if case .deliver(_, .policy(.print, _)) = frame { true } else { false }
        }
        #expect(device.frames.contains(where: isPrint))
        // Its callback has begun, and has not returned.
        device.frames = []
        try device.handle(.frame(link, .retire()))
        #expect(try device.answer(link).contains(.policy(.print(.unauthorized), reason: .none)))
        #expect(try device.status(mail)[.print].attempt.outcome == .rejected)
    }

    @Test("an authorized app has no secure services while they are locked, or ask for a passcode that nobody has set")
    func unavailable() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let link = try device.launch(mail)
        try device.answer(link)
        #expect(try device.status(mail).secureServices == .available)
        var locked = SecureServicesValue()
        locked.isLocked = true
        try device.apply(.all, mail, .secureServices, .aspect(DesiredValue(.secureServices(locked))))
        #expect(try device.answer(link) == [.availability(.unavailable)])
        try device.apply(.all, mail, .secureServices, .tombstone)
        #expect(try device.answer(link) == [.availability(.available)])
        var asking = SecureServicesValue()
        asking.passcode = .init(isRequired: true)
        try device.apply(.all, mail, .secureServices, .aspect(DesiredValue(.secureServices(asking))))
        #expect(try device.answer(link) == [.availability(.unavailable)])
        #expect(try device.reported(mail).secureServices == .unavailable)
        let attempt = try device.reported(mail)[.secureServices].attempt
        #expect(attempt.outcome == .applied)
        #expect(attempt.message?.contains("no passcode") == true)
    }

    @Test("out of contact an app is blocked by the larger clock, wiped by running time alone, and unblocked by contact")
    func offline() throws {
        var device = try TestDevice()
        try device.connect()
        var value = SecureServicesValue()
        value.offline = SecureServicesValue.Offline(blockAfter: 60, wipeAfter: 600)
        try device.apply(.all, mail, .auth, .auth(.authorized))
        try device.apply(.all, mail, .secureServices, .aspect(DesiredValue(.secureServices(value))))
        try device.launch(mail)
        #expect(try device.status(mail).authState == .authorized)
        try device.disconnect()
        // A wall clock that jumps blocks, and wipes nobody.
        device.now.wall = Timestamp(milliseconds: 4_070_908_800_000)
        try device.handle(.tick)
        #expect(try device.status(mail).authReason == .outOfContact)
        #expect(try device.status(mail).authState == .unauthorized)
        #expect(device.keys == [mail])
        try device.connect()
        #expect(try device.status(mail).authState == .authorized)
        try device.disconnect()
        try device.wait(590)
        #expect(try device.status(mail).authState == .unauthorized)
        try device.restart()
        try device.wait(20)
        #expect(try device.status(mail).authState == .retired)
        #expect(device.keys.isEmpty)
        try device.connect()
        #expect(try device.status(mail).authState == .retired)
        try device.apply(.all, mail, .auth, .auth(.authorized))
        #expect(try device.status(mail).authState == .authorized)
    }

    @Test("the document that withdraws a limit does not block by it, whatever the clock has done meanwhile")
    func withdrawnLimit() throws {
        var device = try TestDevice()
        try device.connect()
        var value = SecureServicesValue()
        value.offline = SecureServicesValue.Offline(blockAfter: 60)
        try device.apply(.all, mail, .secureServices, .aspect(DesiredValue(.secureServices(value))))
        try device.launch(mail)
        device.now.wall = Timestamp(milliseconds: 4_070_908_800_000)
        try device.apply(.all, mail, .secureServices, .tombstone)
        #expect(try device.status(mail).authReason != .outOfContact)
    }

    @Test("a limit that somebody withdraws counts until that is certain", arguments: [true, false])
    func uncertainlyWithdrawn(isTombstone: Bool) throws {
        var device = try TestDevice()
        try device.connect()
        var value = SecureServicesValue()
        value.offline = SecureServicesValue.Offline(blockAfter: 60, wipeAfter: 600)
        try device.apply(.all, mail, .auth, .auth(.authorized))
        try device.apply(.all, mail, .secureServices, .aspect(DesiredValue(.secureServices(value))))
        try device.launch(mail)
        try device.disconnect()
        try device.wait(30)
        device.isControllerThere = false
        try device.connect()
        try device.apply(
            .all, mail, .secureServices,
            isTombstone ? .tombstone : .aspect(DesiredValue(.secureServices(SecureServicesValue()))))
        try device.wait(40)
        #expect(try device.status(mail).authReason == .outOfContact)
        try device.wait(600)
        #expect(try device.status(mail).authState == .retired)
        #expect(device.keys.isEmpty)
    }

    @Test("a limit that has passed when it comes blocks at once")
    func passedBlock() throws {
        var device = try TestDevice()
        try device.connect()
        var value = SecureServicesValue()
        value.offline = SecureServicesValue.Offline(blockAfter: 60)
        try device.apply(.all, mail, .auth, .auth(.authorized))
        try device.launch(mail)
        device.underWay = []
        try device.wait(200)
        let address = Address.desired(.all, mail, .secureServices)
        try device.say(address, device.fleet.document(address, .aspect(DesiredValue(.secureServices(value)))))
        #expect(try device.status(mail).authReason == .outOfContact)
    }

    @Test("a limit that has passed when it comes wipes with the passing of time, not before it can be withdrawn")
    func passedLimit() throws {
        for isWithdrawn in [true, false] {
            var device = try TestDevice()
            try device.connect()
            var value = SecureServicesValue()
            value.offline = SecureServicesValue.Offline(wipeAfter: 100)
            try device.apply(.all, mail, .auth, .auth(.authorized))
            try device.launch(mail)
            // Nothing of the controller's arrives by itself any more.
            device.underWay = []
            try device.wait(200)
            func say(_ aspect: Aspect, _ content: DesiredDocument.Content) throws {
                try device.say(
                    .desired(.all, mail, aspect), try device.fleet.document(.desired(.all, mail, aspect), content))
            }
            try say(.secureServices, .aspect(DesiredValue(.secureServices(value))))
            try say(.config, .aspect(DesiredValue(.config(["a": "b"]))))
            #expect(device.keys == [mail])
            if isWithdrawn { try say(.secureServices, .tombstone) }
            try device.handle(.tick)
            #expect(device.keys == (isWithdrawn ? [mail] : []))
        }
    }
}
