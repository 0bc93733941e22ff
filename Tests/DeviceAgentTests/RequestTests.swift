import DeviceAgent
import FleetProtocol
import Testing

@Suite("What an app asks its agent for")
struct RequestTests {
    private func blocked(_ device: TestDevice) -> [String?] {
        device.core.state.events.compactMap { event in
            if case .event(let event) = event.body, event.kind == .blocked { event.target } else { nil }
        }
    }

    private func attempt(_ number: Int64?) -> AppFrame { .blocked(.openIn, target: "\(number ?? 0)", number: number) }

    @Test("is confirmed when it is stored, and taken once, also by an agent that was started again")
    func once() throws {
        var device = try TestDevice()
        try device.connect()
        let (install, launch) = (RandomID.random(), RandomID.random())
        var link = try device.launch(mail, install: install, launch: launch)
        try device.answer(link)
        device.order = []
        try device.handle(.frame(link, attempt(1)), .frame(link, attempt(2)))
        #expect(device.order.first == "store")
        #expect(device.frames == [.kept(1), .kept(2)])
        try device.restart()
        device.frames = []
        link = try device.launch(mail, install: install, launch: launch, resume: .init())
        #expect(
            device.frames.first
                == .welcome(agent: "fleet-agent/test", device: device.device, kept: 2, hasPasteboard: true))
        for number in [1, 2, 3] as [Int64] { try device.handle(.frame(link, attempt(number))) }
        #expect(blocked(device) == ["1", "2", "3"])
        #expect(device.frames.contains(.kept(3)))
    }

    @Test("counts from the beginning in another launch")
    func launches() throws {
        var device = try TestDevice()
        try device.connect()
        let install = RandomID.random()
        for isAgain in [false, true] {
            let link = try device.launch(mail, install: install)
            try device.answer(link)
            try device.handle(.frame(link, attempt(1)))
            #expect(blocked(device) == (isAgain ? ["1", "1"] : ["1"]))
            try device.handle(.linkClosed(link))
        }
    }

    @Test("without a number is taken each time it comes, and not confirmed")
    func olderApp() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        for _ in 0..<2 { try device.handle(.frame(link, attempt(nil))) }
        #expect(blocked(device) == ["0", "0"])
        #expect(device.frames == [])
    }

    @Test("as the retirement of an earlier process comes before the answer to ready, and is confirmed behind it")
    func retiredBefore() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let install = RandomID.random()
        var link = try device.launch(mail, install: install)
        try device.answer(link)
        try device.handle(.linkClosed(link))
        link = try device.launch(mail, install: install)
        device.frames = []
        try device.handle(.frame(link, .retire(number: 1)), .frame(link, .ready))
        #expect(device.keys.isEmpty)
        let told = try device.answer(link)
        #expect(
            told.first
                == .policy(.auth(.retired, message: "This app has retired itself."), reason: .selfRetired))
        #expect(try device.reported(mail).authState == .retired)
    }

    @Test("as its retirement takes back nothing that an operator has allowed since")
    func retiredOnce() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        try device.apply(.all, mail, .config, .config(["a": "1"]))
        let (install, launch) = (RandomID.random(), RandomID.random())
        var link = try device.launch(mail, install: install, launch: launch)
        try device.answer(link)
        try device.handle(.frame(link, .retire(number: 1)))
        #expect(device.keys.isEmpty)
        // The agent dies before the app has read what became of it, and is told of another authorization meanwhile.
        try device.restart()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized, "again"))
        link = try device.launch(mail, install: install, launch: launch, resume: .init())
        device.frames = []
        try device.handle(.frame(link, .retire(number: 1)))
        let told = try device.answer(link)
        #expect(
            told == [
                .policy(.auth(.retired, message: "This app has retired itself."), reason: .selfRetired),
                .managed(.managed), .policy(.config(["a": "1"]), reason: .none), .availability(.available),
                .policy(.auth(.authorized, message: "again"), reason: .policy),
            ])
        #expect(device.keys == [mail])
        #expect(try device.reported(mail).authState == .authorized)
    }
}
