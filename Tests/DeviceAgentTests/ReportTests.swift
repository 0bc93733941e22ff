import DeviceAgent
import FleetProtocol
import Testing

@Suite("What a device reports")
struct ReportTests {
    @Test("the order of reports never goes back, also across restarts")
    func order() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        var last = try device.reported(mail).order
        for round in 0..<5 {
            try device.apply(.all, mail, .config, .config(["round": "\(round)"]))
            let next = try device.reported(mail).order
            #expect(next > last)
            last = next
            if round == 2 {
                try device.restart()
                try device.connect()
            }
        }
    }

    @Test("a status waits for the end of its moment, and is said once with all that happened in it")
    func oneStatusAMoment() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        let address = Address.desired(.all, mail, .config)
        let wire = try device.fleet.document(address, .aspect(DesiredValue(.config(["round": "1"]))))
        var core = device.core
        func reports(_ effects: [DeviceEffect]) -> [Status] {
            effects.compactMap { if case .report(let status) = $0 { status } else { nil } }
        }
        core.handle(.message(topic: address.topic(in: device.fleet.id), payload: wire), at: device.now)
        let first = core.takeEffects(at: device.now, isOver: false)
        #expect(reports(first).isEmpty)
        let number = first.compactMap { effect -> Int64? in
            if case .send(_, .deliver(let number, .policy(.config, _))) = effect { number } else { nil }
        }.first
        let acknowledgement = Acknowledgement(delivery: try #require(number), policy: .config, state: .applied)
        core.handle(.frame(link, .acknowledge(acknowledgement)), at: device.now)
        #expect(reports(core.takeEffects(at: device.now, isOver: false)).isEmpty)
        let said = reports(core.takeEffects(at: device.now))
        #expect(said.map(\.app) == [mail])
        #expect(said.first?[.config].attempt.outcome == .applied)
        #expect(reports(core.takeEffects(at: device.now)).isEmpty)
    }

    @Test("events are sent again until the controller has them, across restarts, with their numbers")
    func events() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        let count = device.core.state.events.count
        try device.handle(.frame(link, .blocked(.copy, target: nil)))
        #expect(device.core.state.events.count == count + 1)
        let boot = device.core.state.boot
        try device.restart()
        device.published = []
        try device.connect()
        let sent = device.published.filter { if case .reply(_, _, .event) = $0.address { true } else { false } }
        #expect(sent.count >= count + 1)
        let number = Int64(count + 1)
        try device.say(
            .received(device.device),
            device.fleet.received(device.device, EventMark(incarnation: 1, boot: boot, number: number)))
        #expect(device.core.state.events.allSatisfy { $0.header.boot > boot })
    }

    @Test(
        "each start is a boot of its own, later than the one before, also from one image, and with a clock that begins anew",
        arguments: [false, true])
    func boots(hasClock: Bool) throws {
        var device = try TestDevice()
        if !hasClock { device.now.wall = Timestamp(milliseconds: 10_000) }
        try device.restart()
        let image = device.core.state
        func start() throws -> DeviceCore {
            try DeviceCore(
                enrollment: device.core.enrollment, agentVersion: "fleet-agent/test", state: image, secret: .random(),
                at: device.now)
        }
        let starts = try (0..<4).map { _ in
            device.now.wall = hasClock ? device.now.wall.advanced(bySeconds: 1) : device.now.wall
            return try start()
        }
        let boots = starts.map(\.state.boot)
        #expect(Set(boots).count > 1)
        #expect(boots.allSatisfy { $0 > image.boot })
        #expect(starts.allSatisfy { $0.previousBoot == image.boot })
        if hasClock { #expect(boots == boots.sorted() && Set(boots).count == 4, "what was put back is later") }
    }

    @Test("a presence says which boot was before this one, and a will does not; both name the disk")
    func previousBoot() throws {
        var device = try TestDevice()
        #expect(device.core.previousBoot == 0)
        let first = device.core.state
        try device.restart()
        try device.connect()
        let said = try #require(device.published.last { $0.address == .presence(.device(device.device)) })
        let presence = try Presence(json: said.payload, limit: Presence.maximumSize)
        #expect(presence.previousBoot == first.boot)
        #expect(presence.will.previousBoot == nil)
        #expect(presence.disk == first.disk && presence.will.disk == first.disk, "the first start names the disk")
        #expect(device.core.will.presence(on: .random(), at: presence.since).disk == first.disk)
        #expect(try presence.disk != TestDevice().core.state.disk, "also another one's at the same time")
    }

    @Test("a presence that somebody has cleared is said again, and not again and again to who clears it")
    func clearedPresence() throws {
        var device = try TestDevice()
        try device.connect()
        device.isControllerThere = false
        func presences() -> Int {
            device.published.filter { $0.address == .presence(.device(device.device)) }.count
        }
        for _ in 0..<2 { try device.wait(10) }
        device.published = []
        try device.say(.presence(.device(device.device)), [])
        #expect(presences() == 1)
        for _ in 0..<5 { try device.say(.presence(.device(device.device)), []) }
        #expect(presences() == 1)
        try device.wait(5)
        #expect(presences() == 2)
    }

    @Test("a second hello on a connection is answered with presence, so that a controller that came back knows of it")
    func secondHello() throws {
        var device = try TestDevice()
        try device.connect()
        let connection = try #require(device.connection)
        device.isControllerThere = false
        try device.wait(10)
        try device.wait(10)
        func presences() -> Int {
            device.published.filter { $0.address == .presence(.device(device.device)) }.count
        }
        device.published = []
        let hello = try device.fleet.hello(device.device, connection)
        try device.say(.hello(device.device), hello)
        try device.say(.hello(device.device), hello)
        #expect(presences() == 1, "one that comes at once has to wait")
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        #expect(presences() == 1, "and so has the next")
        try device.wait(5)
        #expect(presences() == 2)
    }

    @Test("an old will that arrives late is answered with presence online")
    func oldWill() throws {
        var device = try TestDevice()
        try device.connect()
        device.isControllerThere = false
        device.published = []
        let old = device.core.will.presence(on: .random(), at: device.now.wall)
        try device.say(.presence(.device(device.device)), old.json)
        let said = device.published.compactMap { address, payload in
            address == .presence(.device(device.device))
                ? try? Presence(json: payload, limit: Presence.maximumSize) : nil
        }
        #expect(said.map(\.state) == [.online])
    }

    @Test("a log level lasts its time, is not restarted by a restart of the agent, and tells each change")
    func logLevel() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .info)))
        try device.apply(
            .device(device.device), mail, .logLevel, .level(LogLevelWish(level: .debug, duration: 600)))
        #expect(try device.status(mail).logLevel == .debug)
        try device.wait(500)
        try device.restart()
        try device.connect()
        #expect(try device.status(mail).logLevel == .debug)
        try device.wait(100)
        #expect(try device.status(mail).logLevel == .info)
        #expect(try device.status(mail)[.logLevel].attempt.outcome == .expired)
        let changes = device.core.state.events.compactMap { event -> String? in
            guard case .logLevel(let change) = event.body else { return nil }
            return "\(change.old) \(change.new) \(change.why.rawValue)"
        }
        #expect(changes == ["status info policy", "info debug policy", "debug info expired"])
    }

    @Test("a log level with a code waits for the person who knows it")
    func code() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        let code = CodeHash(
            salt: Array("saltsalt".utf8),
            hash: [
                0x70, 0x2e, 0xdf, 0x08, 0x2a, 0xa0, 0xd0, 0xe3, 0x58, 0xa5, 0xc8, 0x3a, 0x0a, 0xb8, 0x4d, 0x6b, 0xf4,
                0xc0, 0x1c, 0x31, 0x51, 0xf0, 0x9b, 0x63, 0xdb, 0x8a, 0x48, 0x61, 0x5c, 0x87, 0x8b, 0x61,
            ], n: 16, r: 1, p: 1)
        try device.apply(.all, mail, .logLevel, .level(LogLevelWish(level: .debug, code: code)))
        #expect(try device.status(mail)[.logLevel].attempt.outcome == .awaitingCode)
        #expect(try device.status(mail).logLevel == .status)
        try device.handle(.frame(link, .code(mail, "wrong")))
        #expect(try device.status(mail).logLevel == .status)
        #expect(device.frames.contains(.codeResult(false)))
    }
}
