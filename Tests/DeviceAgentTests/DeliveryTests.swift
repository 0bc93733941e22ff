import DeviceAgent
import FleetProtocol
import Testing

@Suite("What an app is told, and when")
struct DeliveryTests {
    @Test("another reason for the same authorization is told, and what the app has answered stands")
    func reason() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        device.frames = []
        try device.apply(.all, mail, .auth, .auth(.unauthorized, ""))
        let told = device.frames.compactMap { frame -> (number: Int64, reason: AuthReason)? in
            if case .deliver(let number, .policy(.auth, let reason)) = frame { (number, reason) } else { nil }
        }
        #expect(told.map(\.reason) == [.policy])
        #expect(try device.status(mail)[.auth].attempt.outcome == .applied)
        device.frames = []
        try device.handle(.frame(link, .delivered(try #require(told.first).number)))
        #expect(try device.status(mail)[.auth].attempt.outcome == .applied)
        try device.restart()
        try device.connect()
        try device.launch(mail)
        #expect(!device.frames.contains { if case .deliver(_, .policy(.auth, _)) = $0 { true } else { false } })
    }

    @Test("where nobody is called for a reason in between, what the app has answered stands, too")
    func reasonsInBetween() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        var told: [Int64] = []
        for content in [DesiredDocument.Content.auth(.unauthorized, ""), .tombstone] {
            device.frames = []
            try device.apply(.all, mail, .auth, content)
            for case .deliver(let number, .policy(.auth, _)) in device.frames { told.append(number) }
            try device.handle(.frame(link, .taken(try #require(told.last))))
        }
        #expect(told.count == 2)
        #expect(try device.status(mail)[.auth].attempt.outcome == .applied)
        try device.handle(.frame(link, .delivered(told[1])))
        #expect(try device.status(mail)[.auth].attempt.outcome == .applied)
    }

    @Test("a reason that was lost on its way to a process is told when it comes back")
    func lostReason() throws {
        var device = try TestDevice()
        try device.connect()
        let (install, launch) = (RandomID.random(), RandomID.random())
        var link = try device.launch(mail, install: install, launch: launch)
        try device.answer(link)
        func told() -> [(number: Int64, reason: AuthReason)] {
            device.frames.compactMap { frame in
                if case .deliver(let number, .policy(.auth, let reason)) = frame { (number, reason) } else { nil }
            }
        }
        device.frames = []
        try device.apply(.all, mail, .auth, .auth(.unauthorized, ""))
        let first = try #require(told().last)
        try device.handle(.frame(link, .delivered(first.number)))
        try device.apply(.all, mail, .auth, .tombstone)
        let second = try #require(told().last)
        try device.handle(.frame(link, .taken(second.number)))
        try device.apply(.all, mail, .auth, .auth(.unauthorized, ""))
        #expect(try #require(told().last).reason == .policy)
        try device.restart()
        device.frames = []
        link = try device.launch(
            mail, install: install, launch: launch, resume: Registration.Resume(begun: [second.number]))
        try device.handle(.frame(link, .taken(second.number)))
        try device.connect()
        #expect(told().last?.reason == .policy)
    }

    @Test("a process that reads what it was never called for is told when what it was called for comes again")
    func readAndNotCalled() throws {
        var device = try TestDevice()
        try device.connect()
        let (install, launch) = (RandomID.random(), RandomID.random())
        try device.apply(.all, mail, .auth, .auth(.authorized, ""))
        let link = try device.launch(mail, install: install, launch: launch)
        try device.answer(link)
        device.frames = []
        try device.apply(.all, mail, .auth, .auth(.unauthorized, ""))
        let read = try #require(
            device.frames.compactMap { if case .deliver(let number, .policy(.auth, _)) = $0 { number } else { nil } }
                .last)
        try device.handle(.frame(link, .taken(read)))
        // The same, for another reason: that is lost with the connection.
        try device.apply(.all, mail, .auth, .tombstone)
        try device.handle(.linkClosed(link))
        try device.apply(.all, mail, .auth, .auth(.authorized, ""))
        device.frames = []
        try device.launch(mail, install: install, launch: launch, resume: Registration.Resume(begun: [read]))
        #expect(
            device.frames.contains {
                if case .deliver(_, .policy(.auth(.authorized, _), _)) = $0 { true } else { false }
            })
    }

    @Test("the first launch delivers ready and then every state, authorization last when it is a gain")
    func firstLaunch() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let link = try device.launch(mail)
        #expect(device.frames.contains { if case .ready = $0 { true } else { false } })
        let told = try device.answer(link)
        #expect(told.count == 11)
        #expect(told.last == .policy(.auth(.authorized, message: "m"), reason: .policy))
        #expect(try device.reported(mail)[.auth].attempt.outcome == .applied)
        #expect(try device.reported(mail)[.config].source == nil)
    }

    @Test("a later launch delivers only what differs from what was delivered last")
    func laterLaunch() throws {
        var device = try TestDevice()
        try device.connect()
        let install = RandomID.random()
        let link = try device.launch(mail, install: install)
        try device.answer(link)
        try device.handle(.linkClosed(link))
        try device.apply(.all, mail, .config, .config(["server": "a"]))
        #expect(try device.reported(mail)[.config].attempt.outcome == .pending)
        #expect(try device.reported(mail).isRunning == false)
        try device.restart()
        let second = try device.launch(mail, install: install)
        try device.connect()
        #expect(
            try device.answer(second).filter { $0 != .managed(.managed) }
                == [.policy(.config(["server": "a"]), reason: .none)])
        #expect(try device.reported(mail)[.config].applied == 1)
    }

    @Test("a known app starts without contact, with what was in force")
    func offlineStart() throws {
        var device = try TestDevice()
        try device.connect()
        let install = RandomID.random()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        try device.answer(try device.launch(mail, install: install))
        try device.disconnect()
        try device.restart()
        let link = try device.launch(mail, install: install)
        let ready = device.frames.compactMap { frame -> AppProperties? in
            guard case .ready(let properties) = frame else { return nil }
            return properties
        }
        #expect(ready.first?[.auth] == .auth(.authorized, message: "m"))
        #expect(try device.answer(link).isEmpty)
    }

    @Test("a new app has no ready before barrier and hello")
    func noReadyBeforeHello() throws {
        var device = try TestDevice()
        device.isControllerThere = false
        try device.connect()
        let link = try device.launch(mail)
        #expect(!device.frames.contains { if case .ready = $0 { true } else { false } })
        let connection = try #require(device.connection)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        #expect(device.frames.contains { if case .ready = $0 { true } else { false } })
        try device.answer(link)
        #expect(try device.status(mail).managed == .unmanaged)
    }

    @Test(
        "what was delivered without an answer is delivered again at the next launch, and is neither error nor applied")
    func unanswered() throws {
        var device = try TestDevice()
        try device.connect()
        let install = RandomID.random()
        let link = try device.launch(mail, install: install)
        try device.answer(link, nil)
        #expect(try device.reported(mail)[.config].attempt.outcome == .delivered)
        try device.handle(.linkClosed(link))
        let second = try device.launch(mail, install: install)
        let told = try device.answer(second)
        #expect(told.contains(.policy(.config([:]), reason: .none)))
        #expect(try device.reported(mail)[.config].attempt.outcome == .applied)
    }

    @Test("a new revision with an equal value fires nothing and carries the answer over; an error is delivered again")
    func equalValue() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .config, .config(["a": "1"]))
        let link = try device.launch(mail)
        try device.answer(link)
        try device.apply(.all, mail, .config, .config(["a": "1"]))
        #expect(device.frames.isEmpty)
        #expect(try device.reported(mail)[.config].received == 2)
        #expect(try device.reported(mail)[.config].applied == 2)
        try device.apply(.all, mail, .config, .config(["a": "2"]))
        try device.answer(link, .error)
        #expect(try device.reported(mail)[.config].attempt.outcome == .error)
        #expect(try device.reported(mail)[.config].applied == 2)
        try device.apply(.all, mail, .config, .config(["a": "2"]))
        #expect(!device.frames.isEmpty)
        try device.answer(link)
        #expect(try device.reported(mail)[.config].applied == 4)
    }

    @Test("what was answered with an error is delivered again at the next launch, which may do better")
    func errorAgain() throws {
        var device = try TestDevice()
        try device.connect()
        let install = RandomID.random()
        try device.apply(.all, mail, .config, .config(["a": "1"]))
        let link = try device.launch(mail, install: install)
        try device.answer(link, .error)
        try device.handle(.linkClosed(link))
        #expect(try device.reported(mail)[.config].attempt.outcome == .error)
        let second = try device.launch(mail, install: install)
        #expect(try device.answer(second).contains(.policy(.config(["a": "1"]), reason: .none)))
        #expect(try device.reported(mail)[.config].attempt.outcome == .applied)
        try device.handle(.linkClosed(second))
        #expect(try device.answer(device.launch(mail, install: install)).isEmpty)
    }

    @Test("a text that is only written differently is delivered")
    func spelling() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .config, .config(["a": "e\u{301}"]))
        let link = try device.launch(mail)
        try device.answer(link)
        try device.apply(.all, mail, .config, .config(["a": "\u{e9}"]))
        #expect(try device.answer(link) == [.policy(.config(["a": "\u{e9}"]), reason: .none)])
    }

    @Test("a version of an app that has learnt a callback is called for what the one before could not be told")
    func learntCallbacks() throws {
        var device = try TestDevice()
        try device.connect()
        let install = RandomID.random()
        let unknown: Set<Callback> = [.managedPolicy, .logLevel, .config]
        let link = try device.launch(
            mail, install: install, implements: Set(Callback.allCases).subtracting(unknown))
        try device.answer(link)
        try device.handle(.linkClosed(link))
        let next = try device.launch(mail, install: install)
        let told = try device.answer(next)
        #expect(told.contains(.managed(.unmanaged)))
        #expect(told.contains(.policy(.logLevel(.status), reason: .none)))
        try device.handle(.linkClosed(next))
        #expect(try device.answer(device.launch(mail, install: install)).isEmpty)
    }

    @Test("an app with nobody to be called is sent every change, and of each kind the newest stays under way")
    func nobodyCalled() throws {
        var device = try TestDevice()
        try device.connect()
        let (install, launch) = (RandomID.random(), RandomID.random())
        var link = try device.launch(mail, install: install, launch: launch)
        try device.answer(link)
        func level(_ frames: [AgentFrame]) -> (number: Int64, value: PolicyValue)? {
            for case .deliver(let number, .policy(let value, _)) in frames.reversed() where value.policy == .logLevel {
                return (number, value)
            }
            return nil
        }
        var number: Int64 = 0
        for wanted in [LogLevel.info, .error, .info] {
            device.frames = []
            try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: wanted)))
            let told = try #require(level(device.frames))
            #expect(told.value == .logLevel(wanted))
            number = told.number
            try device.handle(.frame(link, .taken(number)))
        }
        // Back to what somebody was called for last.
        device.frames = []
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .status)))
        number = try #require(level(device.frames)).number
        try device.handle(.frame(link, .taken(number)), .frame(link, .taken(1)))
        try device.apply(.all, mail, .config, .config(["a": "1"]))
        #expect(try device.status(mail)[.config].attempt.outcome == .pending)
        device.frames = []
        try device.restart()
        link = try device.launch(
            mail, install: install, launch: launch, resume: Registration.Resume(begun: [number]))
        try device.handle(.frame(link, .taken(number)))
        try device.connect()
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .error)))
        #expect(try #require(level(device.frames)).value == .logLevel(.error))
        // The next launch is called for it.
        try device.handle(.linkClosed(link))
        #expect(
            try device.answer(device.launch(mail, install: install)).contains(.policy(.logLevel(.error), reason: .none))
        )
    }

    @Test("an error is not carried over to the callback that has come since")
    func errorCarriedOver() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .config, .config(["a": "1"]))
        let link = try device.launch(mail)
        try device.answer(link, .error)
        let own = Address.desired(.device(device.device), mail, .config)
        try device.publish(own, device.fleet.document(own, .config(["a": "1"])))
        let number = try #require(
            device.frames.compactMap { if case .deliver(let number, .policy(.config, _)) = $0 { number } else { nil } }
                .first)
        try device.publish(own, device.fleet.document(own, .tombstone))
        try device.handle(.frame(link, .delivered(number)))
        #expect(try device.status(mail)[.config].attempt.outcome == .delivered)
    }

    @Test("a process that comes back to a restarted agent gets no second ready, and what it said meanwhile counts")
    func resume() throws {
        var device = try TestDevice()
        try device.connect()
        let (install, launch) = (RandomID.random(), RandomID.random())
        let link = try device.launch(mail, install: install, launch: launch)
        try device.apply(.all, mail, .auth, .auth(.unauthorized))
        try device.answer(link)
        try device.apply(.all, mail, .config, .config(["a": "1"]))
        guard case .deliver(let number, .policy(.config, _)) = device.frames.last else {
            Issue.record("no delivery: \(device.frames)")
            return
        }
        device.frames = []
        try device.restart()
        try device.launch(
            mail, install: install, launch: launch,
            resume: Registration.Resume(
                delivered: [number],
                acknowledgements: [Acknowledgement(delivery: number, policy: .config, state: .applied)]))
        #expect(
            device.frames == [
                .welcome(agent: "fleet-agent/test", device: device.device, kept: 0, hasPasteboard: true), .keys(nil),
            ])
        #expect(try device.status(mail)[.config].attempt.outcome == .applied)
    }

    @Test("a launch whose ready callback returned while nobody listened has its event all the same")
    func readyUnheard() throws {
        var device = try TestDevice()
        let (install, launch) = (RandomID.random(), RandomID.random())
        func readies() -> Int {
            device.core.state.events.filter {
                if case .event(let event) = $0.body { event.kind == .ready } else { false }
            }
            .count
        }
        try device.connect()
        device.underWay = []
        let first = try device.launch(mail, install: install)
        device.underWay = nil
        try device.handle(.linkClosed(first))
        try device.disconnect()
        try device.connect()
        let second = try device.launch(mail, install: install)
        try device.answer(second)
        try device.handle(.linkClosed(second))
        let before = readies()
        let third = try device.launch(mail, install: install, launch: launch)
        try device.handle(.linkClosed(third))
        try device.restart()
        try device.launch(mail, install: install, launch: launch, resume: Registration.Resume())
        #expect(readies() == before + 1)
        try device.restart()
        try device.launch(mail, install: install, launch: launch, resume: Registration.Resume())
        #expect(readies() == before + 1)
    }

    @Test("a loss of authorization is delivered first, a gain last")
    func order() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        try device.disconnect()
        let auth = Address.desired(.all, mail, .auth)
        let config = Address.desired(.all, mail, .config)
        try device.publish(auth, device.fleet.document(auth, .auth(.authorized)))
        try device.publish(config, device.fleet.document(config, .config(["a": "1"])))
        try device.connect()
        #expect(try device.answer(link).last == .policy(.auth(.authorized, message: "m"), reason: .policy))
        try device.disconnect()
        try device.publish(auth, device.fleet.document(auth, .auth(.unauthorized)))
        try device.publish(config, device.fleet.document(config, .config([:])))
        try device.connect()
        #expect(try device.answer(link).first == .policy(.auth(.unauthorized, message: "m"), reason: .policy))
    }

    @Test("a second process with a connected app's id is refused, the same process takes its place")
    func inUse() throws {
        var device = try TestDevice()
        let launch = RandomID.random()
        let first = try device.launch(mail, launch: launch)
        device.frames = []
        let other = try device.launch(mail)
        #expect(device.frames.contains { if case .refused(.inUse, _) = $0 { true } else { false } })
        #expect(device.closed == [other])
        device.frames = []
        let again = try device.launch(mail, launch: launch)
        #expect(device.frames.contains { if case .welcome = $0 { true } else { false } })
        #expect(device.closed == [other, first])
        // The end of the earlier connection is none of the process's.
        try device.handle(.linkClosed(first))
        try device.connect()
        #expect(device.sent[again]?.contains { if case .ready = $0 { true } else { false } } == true)
    }

    @Test("who names a delivery from which no agent could count on is refused, and keeps nothing from who comes later")
    func farAhead() throws {
        var device = try TestDevice()
        try device.connect()
        let (install, launch) = (RandomID.random(), RandomID.random())
        let link = try device.launch(mail, install: install, launch: launch)
        try device.answer(link)
        let largest = Registration.Resume.largestDelivery
        for resume in [Registration.Resume(delivered: [largest]), .init(begun: [largest])] {
            device.frames = []
            try device.launch(mail, install: install, launch: launch, resume: resume)
            #expect(device.frames.count == 1)
            #expect(device.frames.allSatisfy { if case .refused(.invalid, _) = $0 { true } else { false } })
        }
        // That of an agent that has lost its memory can be as high as this one's may ever become.
        device.frames = []
        try device.launch(mail, install: install, launch: launch, resume: .init(delivered: [largest / 2]))
        let numbers = device.frames.compactMap { if case .deliver(let number, _) = $0 { number } else { nil } }
        #expect(numbers.first == largest / 2 + 1)
        device.frames = []
        try device.launch(mail, install: install, launch: launch, resume: .init(delivered: numbers))
        #expect(device.frames.contains { if case .welcome = $0 { true } else { false } })
    }

    @Test("who is refused comes again and again, and the log tells of it once a minute")
    func refusedForLong() throws {
        var device = try TestDevice()
        for app in (1...Presence.maximumApps).map({ AppID(unchecked: "app.\($0)") }) { try device.launch(app) }
        func refuseMany() throws -> Int {
            let before = device.logged.count
            for number in 1...3 {
                for app in ["app.1", "app.2", "new.\(number)"] { try device.launch(AppID(unchecked: app)) }
            }
            return device.logged[before...].filter { $0 == "refused a connection" }.count
        }
        #expect(try refuseMany() == 3, "one of each app of the device, and one of all others")
        try device.wait(59)
        #expect(try refuseMany() == 0)
        try device.wait(1)
        #expect(try refuseMany() == 3)
    }

    @Test("a device has no more apps than its presence may name, and those that it has come back")
    func tooMany() throws {
        var device = try TestDevice()
        let apps = (1...Presence.maximumApps).map { AppID(unchecked: "app.\($0)") }
        let links = try apps.map { try device.launch($0) }
        device.frames = []
        let link = try device.launch(mail)
        #expect(device.frames.contains { if case .refused(.tooMany, _) = $0 { true } else { false } })
        #expect(device.closed == [link] && device.core.state.apps[mail] == nil)
        try device.handle(.linkClosed(links[0]))
        device.frames = []
        try device.launch(apps[0])
        #expect(device.frames.contains { if case .welcome = $0 { true } else { false } })
    }
}
