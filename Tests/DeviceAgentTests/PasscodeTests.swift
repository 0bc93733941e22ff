import DeviceAgent
import FleetProtocol
import Testing

@Suite("Passcodes")
struct PasscodeTests {
    /// A device with one authorized app, of which the fleet asks for a passcode.
    private func device(
        _ app: AppID = mail, _ change: (inout SecureServicesValue) -> Void = { _ in }
    ) throws -> (TestDevice, LinkID) {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, app, .auth, .auth(.authorized))
        try device.ask(app, change)
        let link = try device.launch(app)
        try device.answer(link)
        return (device, link)
    }

    @Test("an app has its keys when the passcode has been entered, and none before, whatever was so before the start")
    func entered() throws {
        var (device, link) = try device()
        #expect(try device.status(mail).secureServices == .unavailable)
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.notSet))
        #expect(try device.ask(.set(new: "2468", current: nil)) == PasscodeResult(.done))
        #expect(device.sent[link]?.last == .deliver(number: device.delivery(on: link), .availability(.available)))
        #expect(device.sent[link]?.contains(.keys(device.key(of: mail))) == true)
        #expect(try device.reported(mail).secureServices == .available)
        #expect(try device.reported(mail)[.secureServices].attempt.message == nil)
        try device.restart()
        try device.connect()
        #expect(try device.status(mail).secureServices == .unavailable)
        #expect(try device.ask(.enter("1357"))?.kind == .wrong)
        #expect(try device.status(mail).secureServices == .unavailable)
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.done))
        #expect(try device.status(mail).secureServices == .available)
        #expect(try device.ask(.lock) == PasscodeResult(.done))
        #expect(try device.status(mail).secureServices == .unavailable)
    }

    @Test("one that is set is changed by who knows it, and each new one meets what every app asks for")
    func change() throws {
        var (device, _) = try device { $0.passcode?.minLength = 6 }
        try device.ask(notes) { $0.passcode?.classes = ["digit", "upper"] }
        try device.launch(notes)
        for (new, lacks) in [
            ("12345", "6 characters at least, an upper-case letter"), ("abcdefg", "a digit, an upper-case letter"),
            ("A1", "6 characters at least"),
        ] {
            let result = try #require(try device.ask(.set(new: new, current: nil)))
            #expect(result.kind == .tooWeak)
            #expect(Set(result.message?.split(separator: ", ") ?? []) == Set(lacks.split(separator: ", ")))
        }
        #expect(try device.ask(.enter("A12345")) == PasscodeResult(.notSet))
        #expect(try device.ask(.set(new: "A12345", current: nil)) == PasscodeResult(.done))
        #expect(try device.ask(.set(new: "B12345", current: nil)) == PasscodeResult(.alreadySet))
        #expect(try device.ask(.set(new: "B12345", current: "B12345"))?.kind == .wrong)
        #expect(try device.ask(.set(new: "B12345", current: "A12345")) == PasscodeResult(.done))
        #expect(try device.ask(.enter("B12345")) == PasscodeResult(.done))
        #expect(try device.ask(.enter("A12345"))?.kind == .wrong)
    }

    @Test("a passcode that does not meet a later policy opens no app that asks for more, and the operator reads why")
    func stricter() throws {
        var (device, _) = try device()
        try device.apply(.all, notes, .auth, .auth(.authorized))
        try device.ask(notes)
        try device.launch(notes)
        try device.ask(.set(new: "24", current: nil))
        #expect(try device.status(mail).secureServices == .available)
        try device.ask(mail) { $0.passcode?.minLength = 4 }
        #expect(try device.status(mail).secureServices == .unavailable)
        #expect(try device.status(notes).secureServices == .available)
        #expect(
            try device.reported(mail)[.secureServices].attempt.message
                == "the device's passcode lacks 4 characters at least")
        #expect(
            try device.ask(.enter("24")) == PasscodeResult(.done, message: "apps ask for more: 4 characters at least"))
        #expect(try device.status(mail).secureServices == .unavailable)
        try device.ask(.set(new: "2468", current: "24"))
        #expect(try device.status(mail).secureServices == .available)
    }

    @Test("wrong ones are counted before they are looked at, and slow down the next ones, also over a start")
    func slow() throws {
        var (device, _) = try device()
        try device.ask(.set(new: "2468", current: nil))
        #expect(try device.ask(.enter("1")) == PasscodeResult(.wrong))
        #expect(try device.ask(.enter("2")) == PasscodeResult(.wrong))
        #expect(try device.ask(.enter("3")) == PasscodeResult(.wrong, wait: 5))
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.tooEarly, wait: 5))
        device.now.uptime += 500
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.tooEarly, wait: 5), "a part of a second is one")
        device.now.uptime += 500
        try device.wait(3)
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.tooEarly, wait: 1))
        try device.wait(1)
        // The agent ends while it looks.
        device.arePasscodesChecked = false
        #expect(try device.ask(.enter("4")) == nil)
        #expect(try device.ask(.enter("2468"))?.kind == .tooEarly, "one at a time")
        device.arePasscodesChecked = true
        try device.restart()
        try device.connect()
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.tooEarly, wait: 9))
        try device.wait(10)
        #expect(try device.ask(.enter("5")) == PasscodeResult(.wrong, wait: 20))
        for _ in 0..<12 {
            try device.wait(900)
            #expect(try device.ask(.enter("6"))?.kind == .wrong)
        }
        #expect(try device.ask(.enter("6")) == PasscodeResult(.tooEarly, wait: 900))
        try device.wait(900)
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.done))
        #expect(try device.ask(.enter("1")) == PasscodeResult(.wrong))
    }

    @Test("too many wrong ones lock an app until a later document of secure services, for which they count anew")
    func locked() throws {
        var (device, _) = try device { $0.passcode?.maxAttempts = 2 }
        try device.ask(notes) { $0.passcode?.maxAttempts = 9 }
        try device.launch(notes)
        try device.ask(.set(new: "2468", current: nil))
        #expect(try device.ask(.enter("1")) == PasscodeResult(.wrong, left: 1))
        #expect(try device.ask(.enter("2")) == PasscodeResult(.wrong, left: 0))
        #expect(try device.status(mail).secureServices == .unavailable)
        #expect(device.events(of: mail).last?.kind == .locked)
        #expect(device.events(of: mail).last?.message == "passcodeAttempts")
        let done = try #require(try device.ask(.enter("2468")))
        #expect(done.kind == .done && done.message?.contains("have locked com.example.mail") == true)
        #expect(try device.status(mail).secureServices == .unavailable)
        #expect(device.keys == [mail, notes])
        #expect(
            try device.reported(mail)[.secureServices].attempt.message?.contains("locked by wrong passcodes") == true)
        // Signed again, but not changed.
        let all = Address.desired(.all, mail, .secureServices)
        let document = DesiredDocument.Content.aspect(
            DesiredValue(.secureServices(asking { $0.passcode?.maxAttempts = 2 })))
        try device.publish(all, device.fleet.document(all, document, change: 1))
        try device.restart()
        try device.connect()
        #expect(try device.ask(.enter("2468"))?.kind == .done)
        #expect(try device.status(mail).secureServices == .unavailable)
        try device.ask(mail) { $0.passcode?.maxAttempts = 2 }
        #expect(try device.status(mail).secureServices == .available)
        #expect(device.events(of: mail).last?.kind == .unlocked)
        #expect(try device.ask(.enter("1")) == PasscodeResult(.wrong, left: 1))
    }

    @Test(
        "too many wrong ones wipe an app, also one that does not run, until a later authorization",
        arguments: [false, true])
    func wiped(_ isKilled: Bool) throws {
        var (device, link) = try device {
            $0.passcode?.maxAttempts = 2
            $0.passcode?.then = .wipe
        }
        try device.apply(.all, notes, .auth, .auth(.authorized))
        try device.ask(notes) { value in
            value.passcode = .init(isRequired: false)
            value.passcode?.maxAttempts = 1
            value.passcode?.then = .wipe
        }
        try device.launch(notes)
        try device.ask(.set(new: "2468", current: nil))
        try device.handle(.linkClosed(link))
        try device.ask(.enter("1"))
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.done), "a right one counts anew")
        try device.ask(.enter("1"))
        #expect(device.keys == [mail, notes])
        #expect(try device.ask(.enter("2")) == PasscodeResult(.wrong, left: 0))
        #expect(try device.status(mail).secureServices == .unavailable)
        #expect(try device.store.load().apps[mail]?.isWipeDue == true, "what is due is stored before the keys go")
        #expect(device.keys == [mail, notes])
        #expect(device.core.nextTick <= device.core.state.running.total + 1)
        device.order = []
        if isKilled { try device.restart() } else { try device.handle(.tick) }
        #expect(device.order.first == "destroy \(mail)")
        #expect(device.keys == [notes], "where none is required, wrong ones do nothing")
        if isKilled { try device.connect() }
        let status = try device.reported(mail)
        #expect(status.authState == .retired && status.authReason == .passcodeAttempts && status.keys == .destroyed)
        #expect(device.events(of: mail).last?.message == "passcodeAttempts")
        try device.apply(.all, mail, .auth, .auth(.authorized))
        #expect(try device.status(mail).authState == .authorized)
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.done))
        try device.answer(device.launch(mail))
        #expect(try device.status(mail).secureServices == .available)
    }

    @Test("apps that nobody uses lock after their own time, and the use of one keeps those that are open")
    func autoLock() throws {
        var (device, link) = try device { $0.autoLock = 60 }
        #expect(device.sent[link]?.contains(.autoLock(60)) == true)
        try device.apply(.all, maps, .auth, .auth(.authorized))
        let third = try device.launch(maps)
        #expect(
            device.sent[third]?.contains(.autoLock(60, isOwn: false)) == true,
            "one that does not ask itself keeps others open")
        try device.apply(.all, notes, .auth, .auth(.authorized))
        try device.ask(notes) { $0.autoLock = 300 }
        let other = try device.launch(notes)
        try device.answer(other)
        for app in [link, other, third] {
            let told = device.sent[app]?.last { if case .autoLock = $0 { true } else { false } }
            #expect(told == .autoLock(60, isOwn: app != third), "the shortest time, for all of them")
        }
        try device.ask(.set(new: "2468", current: nil))
        try device.wait(59)
        try device.handle(.frame(other, .used))
        try device.wait(59)
        #expect(try device.status(mail).secureServices == .available)
        try device.handle(.frame(third, .used))
        try device.wait(1)
        try device.wait(58)
        #expect(try device.status(mail).secureServices == .available)
        #expect(device.core.nextTick == device.core.state.running.total + 1_000, "it wakes when the first one locks")
        // It was used in time, but is heard of later.
        try device.wait(1)
        #expect(try device.status(mail).secureServices == .unavailable)
        #expect(device.sent[link]?.contains(.keys(nil)) == true)
        #expect(try device.status(notes).secureServices == .available)
        try device.handle(.frame(other, .used))
        #expect(
            try device.status(mail).secureServices == .unavailable, "what is locked is opened by the passcode alone")
        try device.wait(200)
        try device.handle(.frame(link, .used))
        try device.wait(99)
        #expect(try device.status(notes).secureServices == .available)
        // The timer comes late: what counts is when the app was used.
        device.now.uptime += 1_000
        try device.handle(.frame(other, .used))
        #expect(try device.status(notes).secureServices == .unavailable)
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.done))
        #expect(try device.status(mail).secureServices == .available)
        #expect(try device.status(notes).secureServices == .available)
    }

    @Test("a time after which apps lock counts from when it is said: nobody was asked to say before that one is used")
    func lateAutoLock() throws {
        var (device, link) = try device()
        #expect(try device.ask(.set(new: "2468", current: nil)) == PasscodeResult(.done))
        try device.wait(3_600)
        try device.ask(mail) { $0.autoLock = 60 }
        #expect(device.sent[link]?.contains(.autoLock(60)) == true)
        #expect(try device.status(mail).secureServices == .available)
        try device.wait(59)
        #expect(try device.status(mail).secureServices == .available)
        // A shorter one does not: uses were told, and seldom.
        try device.ask(mail) { $0.autoLock = 30 }
        #expect(try device.status(mail).secureServices == .unavailable)
    }

    @Test("it goes on for an app that retires itself and is authorized again", arguments: [false, true])
    func autoLockOfRetired(_ isAtOnce: Bool) throws {
        var (device, link) = try device { $0.autoLock = 60 }
        #expect(try device.ask(.set(new: "2468", current: nil)) == PasscodeResult(.done))
        try device.wait(40)
        let all = Address.desired(.all, mail, .auth)
        let authorized = DeviceEvent.message(
            topic: all.topic(in: device.fleet.id), payload: try device.fleet.document(all, .auth(.authorized)))
        if isAtOnce {
            try device.handle(.frame(link, .retire(number: 1)), authorized)
        } else {
            try device.handle(.frame(link, .retire(number: 1)))
            try device.answer(link)
            #expect(try device.status(mail).authState == .retired)
            try device.handle(authorized)
        }
        try device.answer(link)
        #expect(try device.status(mail).secureServices == .available)
        try device.wait(20)
        #expect(try device.status(mail).secureServices == .unavailable)
    }

    @Test("it goes on for an app that its policy locks for a while")
    func autoLockOfLocked() throws {
        var (device, _) = try device { $0.autoLock = 60 }
        #expect(try device.ask(.set(new: "2468", current: nil)) == PasscodeResult(.done))
        let own = Layer.device(device.device)
        var locked = SecureServicesValue()
        locked.isLocked = true
        try device.apply(own, mail, .secureServices, .aspect(DesiredValue(.secureServices(locked))))
        try device.wait(3_600)
        try device.apply(own, mail, .secureServices, .tombstone)
        #expect(try device.status(mail).secureServices == .unavailable)
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.done))
        #expect(try device.status(mail).secureServices == .available)
    }

    @Test("of an app that comes back from its own retirement and is asked nothing, a later one counts anew")
    func laterAutoLockOfRetired() throws {
        var (device, link) = try device { $0.autoLock = 60 }
        #expect(try device.ask(.set(new: "2468", current: nil)) == PasscodeResult(.done))
        try device.handle(.frame(link, .retire(number: 1)))
        try device.answer(link)
        try device.ask(mail)
        try device.apply(.all, mail, .auth, .auth(.authorized))
        try device.answer(link)
        #expect(try device.status(mail).secureServices == .available)
        try device.wait(3_600)
        try device.ask(mail) { $0.autoLock = 60 }
        #expect(try device.status(mail).secureServices == .available)
    }

    @Test("it counts for each app from when its own policy says it, also where another app had a long one before")
    func laterAutoLockOfAnother() throws {
        var (device, link) = try device { $0.autoLock = 3_600 }
        #expect(try device.ask(.set(new: "2468", current: nil)) == PasscodeResult(.done))
        try device.apply(.all, notes, .auth, .auth(.authorized))
        try device.ask(notes)
        try device.answer(device.launch(notes))
        try device.wait(1_800)
        try device.ask(notes) { $0.autoLock = 60 }
        #expect(try device.status(notes).secureServices == .available, "nobody had to say that it is used")
        try device.wait(59)
        try device.ask(notes) { $0.autoLock = 61 }
        #expect(try device.status(notes).secureServices == .available)
        #expect(device.core.nextTick == device.core.state.running.total + 2_000, "another time begins nothing anew")
        try device.wait(2)
        #expect(try device.status(notes).secureServices == .unavailable)
        #expect(try device.status(mail).secureServices == .available)
        try device.handle(.frame(link, .used))
        try device.wait(3_599)
        #expect(try device.status(mail).secureServices == .available)
        try device.wait(1)
        #expect(try device.status(mail).secureServices == .unavailable)
    }

    @Test("a passcode is forgotten when none is required, and not when nobody says anything; then a new one is set")
    func forgotten() throws {
        var (device, link) = try device { $0.autoLock = 60 }
        #expect(try device.ask(.set(new: "2468", current: nil)) == PasscodeResult(.done))
        try device.apply(.all, mail, .secureServices, .tombstone)
        #expect(device.sent[link]?.last(where: { if case .autoLock = $0 { true } else { false } }) == .autoLock(nil))
        #expect(try device.status(mail).secureServices == .available)
        try device.ask(mail)
        #expect(try device.ask(.set(new: "1357", current: nil)) == PasscodeResult(.alreadySet))
        for _ in 0..<4 { try device.ask(.enter("1")) }
        try device.ask(notes)
        try device.launch(notes)
        try device.ask(mail) { $0.passcode?.isRequired = false }
        #expect(try device.store.load().passcode.hash != nil, "another app asks for it")
        try device.ask(notes) { $0.passcode?.isRequired = false }
        #expect(try device.store.load().passcode == PasscodeRecord())
        try device.restart()
        try device.connect()
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.notAsked))
        #expect(try device.ask(.set(new: "2468", current: nil)) == PasscodeResult(.notAsked))
        try device.ask(mail)
        #expect(try device.status(mail).secureServices == .unavailable)
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.notSet))
        #expect(try device.ask(.set(new: "1357", current: nil)) == PasscodeResult(.done))
        #expect(try device.status(mail).secureServices == .available)
    }

    @Test("a passcode is not forgotten before it is certain that none is required any more")
    func notForgottenEarly() throws {
        var (device, _) = try device()
        #expect(try device.ask(.set(new: "2468", current: nil)) == PasscodeResult(.done))
        try device.disconnect()
        device.isControllerThere = false
        try device.connect()
        // As long as it is not, it is taken at its word that the app is locked, and no further.
        try device.ask(mail) { value in
            value.isLocked = true
            value.passcode?.isRequired = false
        }
        #expect(try device.status(mail).secureServices == .unavailable)
        #expect(device.core.state.passcode.hash != nil)
        device.isControllerThere = true
        try device.disconnect()
        try device.connect()
        #expect(device.core.state.passcode.hash == nil)
    }

    @Test("an app that retires itself makes nobody forget the passcode that its policy asks for")
    func keptForSelfRetired() throws {
        var (device, link) = try device()
        #expect(try device.ask(.set(new: "2468", current: nil)) == PasscodeResult(.done))
        try device.launch(notes)
        try device.ask(notes) { $0.passcode?.isRequired = false }
        try device.answer(link)
        try device.handle(.frame(link, .retire()))
        #expect(try device.status(mail).authReason == .selfRetired)
        #expect(device.core.state.passcode.hash != nil)
        try device.ask(mail) { $0.passcode?.isRequired = false }
        #expect(device.core.state.passcode.hash == nil)
    }

    @Test("an app that is only locked makes nobody forget the passcode that another layer asks for")
    func keptForLocked() throws {
        var (device, _) = try device()
        #expect(try device.ask(.set(new: "2468", current: nil)) == PasscodeResult(.done))
        try device.launch(notes)
        try device.ask(notes) { $0.passcode?.isRequired = false }
        let own = Layer.device(device.device)
        var locked = SecureServicesValue()
        locked.isLocked = true
        try device.apply(own, mail, .secureServices, .aspect(DesiredValue(.secureServices(locked))))
        #expect(device.core.state.passcode.hash != nil)
        try device.apply(own, mail, .secureServices, .tombstone)
        #expect(try device.ask(.set(new: "1357", current: nil)) == PasscodeResult(.alreadySet))
        // To lock it, and to say that none is required, forgets it.
        locked.passcode = .init(isRequired: false)
        try device.apply(own, mail, .secureServices, .aspect(DesiredValue(.secureServices(locked))))
        #expect(device.core.state.passcode.hash == nil)
    }

    @Test(
        "what is asked for while a passcode is compared counts: a lock stays, and nothing asked for is nothing opened")
    func meanwhile() throws {
        var (device, link) = try device()
        try device.ask(.set(new: "2468", current: nil))
        try device.ask(.lock)
        device.arePasscodesChecked = false
        #expect(try device.ask(.enter("2468")) == nil)
        #expect(try device.ask(.lock) == PasscodeResult(.done))
        let check = try #require(device.check)
        try device.handle(.passcodeChecked(check, .right(new: nil)))
        #expect(try device.status(mail).secureServices == .unavailable)
        #expect(device.core.state.passcode.wrong == 0)
        #expect(try device.ask(.enter("2468")) == nil)
        try device.ask(mail) { $0.passcode?.isRequired = false }
        #expect(try device.ask(.lock) == PasscodeResult(.notAsked), "there is nothing to lock")
        try device.handle(.passcodeChecked(try #require(device.check), .right(new: nil)))
        #expect(device.frames.last == .passcodeResult(PasscodeResult(.notAsked)))
        #expect(try device.store.load().passcode == PasscodeRecord())
        try device.ask(mail)
        #expect(try device.status(mail).secureServices == .unavailable)
        #expect(device.sent[link]?.contains(.keys(nil)) == true)
    }

    @Test("an entry that cannot be compared counts for nothing")
    func unknown() throws {
        var (device, _) = try device { $0.passcode?.maxAttempts = 1 }
        try device.ask(.set(new: "2468", current: nil))
        device.arePasscodesChecked = false
        try device.ask(.enter("2468"))
        try device.handle(.passcodeChecked(try #require(device.check), .unknown))
        #expect(device.frames.last == .passcodeResult(PasscodeResult(.tooEarly, wait: 5)))
        #expect(try device.store.load().passcode.wrong == 0)
        #expect(device.core.state.apps[mail]?.passcodeLock == nil)
        device.arePasscodesChecked = true
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.done))
    }

    @Test("what an operator unlocks has all its attempts again, also before a right one")
    func anew() throws {
        var (device, _) = try device { $0.passcode?.maxAttempts = 2 }
        try device.ask(.set(new: "2468", current: nil))
        for _ in 0..<2 { try device.ask(.enter("1")) }
        #expect(device.core.state.apps[mail]?.passcodeLock != nil)
        // What is not understood unlocks nothing.
        let all = Address.desired(.all, mail, .secureServices)
        try device.publish(all, device.fleet.document(all, value: #"{"passcode":{"required":"yes"}}"#))
        #expect(device.core.state.apps[mail]?.passcodeLock != nil)
        try device.ask(mail) { $0.passcode?.maxAttempts = 2 }
        #expect(device.core.state.apps[mail]?.passcodeLock == nil)
        try device.wait(900)
        #expect(try device.ask(.enter("1"))?.left == 1)
        #expect(device.core.state.apps[mail]?.passcodeLock == nil)
        // A right one counts also for an app that does not ask at that time.
        try device.apply(.all, mail, .secureServices, .tombstone)
        try device.ask(notes)
        try device.launch(notes)
        try device.wait(900)
        #expect(try device.ask(.enter("2468")) == PasscodeResult(.done))
        try device.ask(mail) { $0.passcode?.maxAttempts = 2 }
        #expect(try device.ask(.enter("1"))?.left == 1)
    }

    @Test("an app that retires itself when wrong ones have locked it is still locked when it is authorized anew")
    func lockedAndRetired() throws {
        var (device, link) = try device { $0.passcode?.maxAttempts = 2 }
        try device.ask(.set(new: "2468", current: nil))
        for _ in 0..<2 { try device.ask(.enter("1")) }
        try device.handle(.frame(link, .retire(number: 1)))
        #expect(device.core.state.apps[mail]?.authReason == .selfRetired)
        try device.apply(.all, mail, .auth, .auth(.authorized))
        #expect(device.core.state.apps[mail]?.authState == .authorized)
        #expect(device.core.state.apps[mail]?.passcodeLock != nil)
        try device.ask(mail)
        #expect(device.core.state.apps[mail]?.passcodeLock == nil)
    }

    @Test("no passcode is empty", arguments: [#""do":"enter","passcode":"""#, #""do":"set","new":"""#])
    func empty(_ members: String) {
        #expect(throws: FleetProtocolError.self) {
            try AppFrame(json: Array(#"{"type":"passcode",\#(members)}"#.utf8), limit: 4_096)
        }
    }

    @Test("a passcode is what its hash is of, and no two hashes of it are the same")
    func hashes() throws {
        let (one, other) = (try CodeHash(of: "pässcode 1"), try CodeHash(of: "pässcode 1"))
        #expect(try one.isOf("pässcode 1") && other.isOf("pässcode 1"))
        #expect(try !one.isOf("pässcode 2") && !one.isOf(""))
        #expect(one.hash != other.hash && one.salt != other.salt)
    }

    @Test(
        "what a passcode is made of",
        arguments: [
            ("", 0, []), ("1", 1, ["digit"]), ("a", 1, ["letter", "lower"]), ("Ä", 1, ["letter", "upper"]),
            ("字", 1, ["letter"]), (" ", 1, ["symbol"]), ("🧑‍🚒", 1, ["symbol"]), ("٣", 1, ["symbol"]),
            ("aB3-", 4, ["letter", "lower", "upper", "digit", "symbol"]),
        ] as [(String, Int64, Set<String>)])
    func strength(_ text: String, _ length: Int64, _ classes: Set<String>) {
        let strength = PasscodeStrength(of: text)
        #expect(strength.length == length)
        #expect(strength.classes == classes)
    }
}

private let maps = AppID(unchecked: "com.example.maps")

private func asking(_ change: (inout SecureServicesValue) -> Void = { _ in }) -> SecureServicesValue {
    var value = SecureServicesValue()
    value.passcode = .init(isRequired: true)
    change(&value)
    return value
}

extension TestDevice {
    /// The fleet asks for a passcode.
    fileprivate mutating func ask(_ app: AppID, _ change: (inout SecureServicesValue) -> Void = { _ in }) throws {
        try apply(.all, app, .secureServices, .aspect(DesiredValue(.secureServices(asking(change)))))
    }

    fileprivate func events(of app: AppID) -> [AppEvent] {
        core.state.events.compactMap { kept in
            guard case .event(let event) = kept.body, event.header.app == app else { return nil }
            return event
        }
    }

    fileprivate func delivery(on link: LinkID) -> Int64 {
        for case .deliver(let number, _) in (sent[link] ?? []).reversed() { return number }
        return 0
    }
}
