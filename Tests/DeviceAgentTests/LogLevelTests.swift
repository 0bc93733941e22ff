import DeviceAgent
import FleetProtocol
import Testing

@Suite("How long a log level lasts")
struct LogLevelTests {
    private let kiosk = GroupID(unchecked: "kiosk")
    private let code = CodeHash(salt: Array("saltsalt".utf8), hash: Array(repeating: 1, count: 32), n: 16, r: 1, p: 1)

    @Test("it ends while the device is offline, also after the machine has started anew")
    func offline() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .debug, duration: 600)))
        try device.disconnect()
        try device.wait(300)
        device.now.bootID = "boot-2"
        device.now.uptime = 0
        try device.restart()
        #expect(try device.status(mail).logLevel == .debug)
        try device.wait(301)
        #expect(try device.status(mail).logLevel == .status)
        #expect(try device.status(mail)[.logLevel].attempt.outcome == .expired)
    }

    @Test("what is not certain yet keeps no level in force whose time is over")
    func uncertain() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .info, duration: 600)))
        #expect(try device.status(mail).logLevel == .info)
        try device.disconnect()
        try device.restart()
        device.underWay = []
        try device.connect()
        let own = Address.desired(.device(device.device), mail, .logLevel)
        try device.say(own, try device.fleet.document(own, .level(LogLevelWish(level: .debug))))
        #expect(try device.status(mail).logLevel == .info)
        try device.wait(601)
        #expect(try device.status(mail).logLevel == .status)
        #expect(try device.status(mail)[.logLevel].attempt.outcome == .expired)
    }

    @Test(
        "the level of an app that has retired itself waits for certainty when a document retires it too",
        arguments: [false, true])
    func selfRetired(isKnown: Bool) throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        if isKnown { try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .info))) }
        try device.handle(.frame(link, .retire()))
        #expect(try device.status(mail).logLevel == .status)
        try device.disconnect()
        try device.restart()
        device.underWay = []
        try device.connect()
        let (level, auth) = (Address.desired(.all, mail, .logLevel), Address.desired(.all, mail, .auth))
        if !isKnown { try device.say(level, try device.fleet.document(level, .level(LogLevelWish(level: .info)))) }
        try device.say(auth, try device.fleet.document(auth, .auth(.retired)))
        #expect(try device.status(mail).authReason == .policy)
        #expect(try device.status(mail).logLevel == .status)
        try device.disconnect()
        device.underWay = nil
        try device.connect()
        #expect(try device.status(mail).logLevel == .info)
    }

    @Test("a stricter level that is not certain yet ends in time too")
    func uncertainEnds() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        let membership = Address.membership(device.device)
        try device.publish(membership, device.fleet.document(membership, .membership([kiosk])))
        try device.disconnect()
        try device.restart()
        device.underWay = []
        try device.connect()
        let group = Address.desired(.group(kiosk), mail, .logLevel)
        try device.say(group, try device.fleet.document(group, .level(LogLevelWish(level: .warning, duration: 5))))
        #expect(try device.status(mail).logLevel == .warning)
        try device.wait(6)
        #expect(try device.status(mail).logLevel == .status)
        #expect(try device.status(mail)[.logLevel].attempt.outcome == .expired)
    }

    @Test("a newer document that is not certain yet makes the level before it no longer, and is followed once it is")
    func newerWaits() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        let all = Address.desired(.all, mail, .logLevel)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .info, duration: 600)))
        try device.disconnect()
        try device.restart()
        device.underWay = []
        try device.connect()
        try device.say(all, try device.fleet.document(all, .level(LogLevelWish(level: .info))))
        let before = try device.status(mail)[.logLevel]
        try device.wait(300)
        #expect(try device.status(mail).logLevel == .info)
        try device.wait(301)
        #expect(try device.status(mail).logLevel == .status)
        let after = try device.status(mail)[.logLevel]
        #expect(after.attempt.outcome == .expired)
        #expect(after.received == before.received)
        // A stricter one needs nobody's leave.
        try device.say(all, try device.fleet.document(all, .level(LogLevelWish(level: .error))))
        #expect(try device.status(mail).logLevel == .error)
        try device.disconnect()
        device.underWay = nil
        try device.connect()
        try device.say(all, try device.fleet.document(all, .level(LogLevelWish(level: .info))))
        #expect(try device.status(mail).logLevel == .info)
    }

    @Test("a level that has ended stays ended: no clock that is set back, no other group and no restart begins it anew")
    func ended() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        let end = device.now.wall.advanced(bySeconds: 60)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .verbose, notAfter: end)))
        #expect(try device.status(mail).logLevel == .verbose)
        // A hello of a minute ago would be one to ask about.
        device.isControllerThere = false
        try device.wait(61)
        #expect(try device.status(mail).logLevel == .status)
        #expect(device.core.nextTick > device.core.state.running.total + 1_000)
        device.now.wall = device.now.wall.advanced(bySeconds: -3_600)
        try device.handle(.tick)
        try device.restart()
        try device.connect()
        #expect(try device.status(mail).logLevel == .status)
    }

    @Test("leaving a group and joining it again does not restart its level's time")
    func groups() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        let membership = Address.membership(device.device)
        try device.apply(.group(kiosk), mail, .logLevel, .level(LogLevelWish(level: .debug, duration: 600)))
        try device.publish(membership, device.fleet.document(membership, .membership([kiosk])))
        try device.wait(500)
        try device.publish(membership, device.fleet.document(membership, .membership([])))
        #expect(try device.status(mail).logLevel == .status)
        try device.publish(membership, device.fleet.document(membership, .membership([kiosk])))
        #expect(try device.status(mail).logLevel == .debug)
        try device.wait(100)
        #expect(try device.status(mail).logLevel == .status)
    }

    @Test("a document that was signed again goes on with its time, another change begins anew")
    func change() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        let address = Address.desired(.all, mail, .logLevel)
        let wish = DesiredDocument.Content.level(LogLevelWish(level: .debug, duration: 600))
        try device.publish(address, device.fleet.document(address, wish))
        try device.wait(500)
        try device.publish(address, device.fleet.document(address, wish, change: 1))
        try device.wait(100)
        #expect(try device.status(mail).logLevel == .status)
        try device.publish(address, device.fleet.document(address, wish))
        #expect(try device.status(mail).logLevel == .debug)
    }

    @Test("what waits for its code leaves the level, but keeps nothing sensitive alive that has lost its end")
    func waiting() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .info)))
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .debug, code: code)))
        #expect(try device.status(mail).logLevel == .info)
        #expect(try device.status(mail)[.logLevel].attempt.outcome == .awaitingCode)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .debug, duration: 600)))
        #expect(try device.status(mail).logLevel == .debug)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .debug, code: code)))
        #expect(try device.status(mail).logLevel == .status)
    }

    /// That of 2468.
    private let rightCode: CodeHash = {
        // python3 -c 'import hashlib; print(hashlib.scrypt(b"2468", salt=b"saltsalt", n=16, r=1, p=1, dklen=32).hex(" "))'
        let hash: [UInt8] = [
            0x14, 0xad, 0x63, 0x20, 0xf7, 0x69, 0x51, 0xba, 0xd4, 0x9f, 0xb1, 0x0d, 0x87, 0x40, 0xbd, 0xbb,
            0xcf, 0x54, 0x98, 0x14, 0xc0, 0x03, 0x03, 0xee, 0x26, 0x52, 0xdb, 0xbc, 0x93, 0x67, 0xf7, 0xcd,
        ]
        return CodeHash(salt: Array("saltsalt".utf8), hash: hash, n: 16, r: 1, p: 1)
    }()

    @Test("a level whose code was typed before its app retired itself waits for certainty, too")
    func typedBefore() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .debug, code: rightCode)))
        try device.handle(.frame(link, .code(mail, "2468")))
        #expect(try device.status(mail).logLevel == .debug)
        try device.handle(.frame(link, .retire()))
        #expect(try device.status(mail).logLevel == .status)
        try device.disconnect()
        device.underWay = []
        try device.connect()
        let auth = Address.desired(.all, mail, .auth)
        try device.say(auth, try device.fleet.document(auth, .auth(.retired)))
        #expect(try device.status(mail).authReason == .policy)
        #expect(try device.status(mail).logLevel == .status)
        try device.disconnect()
        device.underWay = nil
        try device.connect()
        #expect(try device.status(mail).logLevel == .debug)
    }

    @Test("what is said no more below a level that has ended loosens nothing before that is certain")
    func vanishedBelow() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        let membership = Address.membership(device.device)
        try device.publish(membership, device.fleet.document(membership, .membership([kiosk])))
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .debug)))
        try device.apply(.group(kiosk), mail, .logLevel, .level(LogLevelWish(level: .warning)))
        let own = Layer.device(device.device)
        try device.apply(own, mail, .logLevel, .level(LogLevelWish(level: .info, duration: 60)))
        try device.wait(60)
        #expect(try device.status(mail).logLevel == .warning)
        try device.disconnect()
        device.isControllerThere = false
        try device.connect()
        try device.apply(.group(kiosk), mail, .logLevel, .tombstone)
        #expect(try device.status(mail).logLevel == .warning)
        device.isControllerThere = true
        try device.disconnect()
        try device.connect()
        #expect(try device.status(mail).logLevel == .debug)
        #expect(try device.status(mail)[.logLevel].attempt.outcome == .expired)
    }

    @Test("a level whose code was typed comes back by policy, and nobody is said to have typed it again")
    func typedOnce() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .debug, code: rightCode)))
        try device.handle(.frame(link, .code(mail, "2468")))
        let own = Layer.device(device.device)
        try device.apply(own, mail, .logLevel, .level(LogLevelWish(level: .info)))
        try device.apply(own, mail, .logLevel, .tombstone)
        #expect(try device.status(mail).logLevel == .debug)
        #expect(whys(device) == [.codeEntered, .policy, .policy])
    }

    @Test("whoever types the code of a level has it at once, also before it is certain that the level still stands")
    func typedEarly() throws {
        let code = rightCode
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        let all = Address.desired(.all, mail, .logLevel)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .debug, code: code)))
        try device.disconnect()
        device.isControllerThere = false
        try device.connect()
        try device.publish(all, device.fleet.document(all, .level(LogLevelWish(level: .verbose, code: code))))
        try device.handle(.frame(link, .code(mail, "1357")))
        #expect(try device.status(mail).logLevel == .status)
        try device.handle(.frame(link, .code(mail, "2468")))
        #expect(device.frames.last == .codeResult(true))
        #expect(try device.status(mail).logLevel == .verbose)
        #expect(try device.status(mail)[.logLevel].attempt.outcome == .applied)
    }

    @Test("a level that waits for certainty is not said to be applied, though another one has ended meanwhile")
    func waitsForCertainty() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        let (all, own) = (
            Address.desired(.all, mail, .logLevel), Address.desired(.device(device.device), mail, .logLevel)
        )
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .info)))
        try device.disconnect()
        device.isControllerThere = false
        try device.connect()
        let debug = try device.fleet.document(own, .level(LogLevelWish(level: .debug)))
        try device.publish(own, debug)
        try device.publish(all, device.fleet.document(all, .tombstone))
        #expect(try device.status(mail).logLevel == .status)
        #expect(try device.status(mail)[.logLevel].attempt.outcome == .pending)
        try device.disconnect()
        device.isControllerThere = true
        try device.connect()
        #expect(try device.status(mail).logLevel == .debug)
        #expect(try device.status(mail)[.logLevel].attempt.outcome == .applied)
    }

    private func whys(_ device: TestDevice) -> [LogLevelChange.Why] {
        device.core.state.events.compactMap { event in
            guard case .logLevel(let change) = event.body else { return nil }
            return change.why
        }
    }

    @Test("a change of another layer is told as policy, though the deciding document has expired")
    func why() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.device(device.device), mail, .logLevel, .level(LogLevelWish(level: .debug, duration: 60)))
        try device.wait(60)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .info)))
        #expect(whys(device) == [.policy, .expired, .policy])
        #expect(try device.status(mail)[.logLevel].attempt.outcome == .expired)
    }

    @Test("where a level ends before it is certain what is said below it, nothing of that takes its place")
    func uncertainBelow() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.device(device.device), mail, .logLevel, .level(LogLevelWish(level: .debug, duration: 600)))
        try device.disconnect()
        device.isControllerThere = false
        try device.connect()
        let all = Address.desired(.all, mail, .logLevel)
        try device.publish(all, device.fleet.document(all, .level(LogLevelWish(level: .verbose))))
        try device.wait(601)
        #expect(try device.status(mail).logLevel == .status)
        device.isControllerThere = true
        try device.disconnect()
        try device.connect()
        #expect(try device.status(mail).logLevel == .verbose)
    }

    @Test("a level of a newer controller keeps what was said before, no longer than that would have lasted")
    func unknownLevel() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        let address = Address.desired(.all, mail, .logLevel)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .debug, duration: 600)))
        try device.wait(300)
        try device.publish(address, device.fleet.document(address, value: #"{"level":"trace"}"#))
        #expect(try device.status(mail).logLevel == .debug)
        #expect(try device.status(mail)[.logLevel].attempt.outcome == .rejected)
        try device.wait(290)
        #expect(try device.status(mail).logLevel == .debug)
        try device.restart()
        try device.wait(20)
        #expect(try device.status(mail).logLevel == .status)
        #expect(try device.status(mail)[.logLevel].attempt.outcome == .rejected)
    }

    @Test("a level ends while a layer above it waits for its code, or cannot be read", arguments: [true, false])
    func endsBelow(isReadable: Bool) throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .info, duration: 60)))
        if isReadable {
            try device.apply(.device(device.device), mail, .logLevel, .level(LogLevelWish(level: .debug, code: code)))
        } else {
            let own = Address.desired(.device(device.device), mail, .logLevel)
            try device.publish(own, device.fleet.document(own, value: #"{"level":"trace"}"#))
        }
        #expect(try device.status(mail).logLevel == .info)
        try device.wait(61)
        #expect(try device.status(mail).logLevel == .status)
        #expect(try device.status(mail)[.logLevel].attempt.outcome == (isReadable ? .awaitingCode : .rejected))
    }

    @Test("a reboot right after a level began makes it no longer than what the reboot lost since")
    func reboot() throws {
        var device = try TestDevice()
        try device.connect()
        try device.launch(mail)
        device.now.uptime += 40_000
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .info, duration: 60)))
        let begin = device.core.state.running.total
        device.now.bootID = "another"
        device.now.uptime = 5_000
        try device.restart()
        #expect(device.core.state.running.total >= begin)
    }
}
