import DeviceAgent
import FleetProtocol
import Testing

@Suite("What goes on across broken connections and restarts")
struct ContinuityTests {
    private let config = Address.desired(.all, mail, .config)

    /// A device whose app has been told `{"v":"1"}` and has applied it.
    private func device(_ launch: RandomID, _ install: RandomID) throws -> (TestDevice, LinkID) {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .config, .config(["v": "1"]))
        let link = try device.launch(mail, install: install, launch: launch)
        try device.answer(link)
        device.frames = []
        return (device, link)
    }

    private func delivery(_ device: TestDevice) -> Int64? {
        device.frames.compactMap { frame -> Int64? in
            if case .deliver(let number, .policy(.config, _)) = frame { number } else { nil }
        }.last
    }

    @Test("a delivery whose callback still runs is not sent again to the process that comes back")
    func begun() throws {
        let (install, launch) = (RandomID.random(), RandomID.random())
        var (device, _) = try device(launch, install)
        try device.apply(.all, mail, .config, .config(["v": "2"]))
        let number = try #require(delivery(device))
        device.frames = []
        try device.restart()
        let link = try device.launch(
            mail, install: install, launch: launch, resume: Registration.Resume(begun: [number]))
        #expect(delivery(device) == nil)
        #expect(try device.status(mail)[.config].attempt.outcome == .pending)
        try device.handle(.frame(link, .delivered(number)))
        #expect(try device.status(mail)[.config].attempt.outcome == .delivered)
        device.frames = []
        try device.restart()
        try device.launch(mail, install: install, launch: launch, resume: Registration.Resume(delivered: [number]))
        #expect(delivery(device) == nil)
    }

    @Test("what was sent and not begun is sent again")
    func notBegun() throws {
        let (install, launch) = (RandomID.random(), RandomID.random())
        var (device, _) = try device(launch, install)
        try device.apply(.all, mail, .config, .config(["v": "2"]))
        let number = try #require(delivery(device))
        device.frames = []
        try device.restart()
        try device.launch(mail, install: install, launch: launch, resume: Registration.Resume())
        #expect(try #require(delivery(device)) > number)
    }

    @Test("a value that goes back while another is under way is not applied before the app has it back")
    func backAgain() throws {
        let (install, launch) = (RandomID.random(), RandomID.random())
        var (device, link) = try device(launch, install)
        try device.apply(.all, mail, .config, .config(["v": "2"]))
        let number = try #require(delivery(device))
        device.frames = []
        try device.apply(.all, mail, .config, .config(["v": "1"]))
        #expect(try device.status(mail)[.config].attempt.outcome == .pending)
        #expect(try device.status(mail)[.config].applied == 1)
        try device.handle(.frame(link, .delivered(number)))
        #expect(delivery(device) != nil)
        try device.answer(link)
        #expect(try device.status(mail)[.config].applied == 3)
    }

    @Test("a process that dies in a callback is told again at the next launch, though the value went back")
    func diedInCallback() throws {
        let (install, launch) = (RandomID.random(), RandomID.random())
        var (device, link) = try device(launch, install)
        try device.apply(.all, mail, .config, .config(["v": "2"]))
        try device.handle(.linkClosed(link))
        try device.apply(.all, mail, .config, .config(["v": "1"]))
        device.frames = []
        let next = try device.launch(mail, install: install)
        #expect(try device.answer(next) == [.policy(.config(["v": "1"]), reason: .none)])
        #expect(try device.status(mail)[.config].attempt.outcome == .applied)
    }

    @Test("a value that was only in a ready is taken back by a delivery")
    func readyAlone() throws {
        let (install, launch) = (RandomID.random(), RandomID.random())
        var (device, link) = try device(launch, install)
        try device.handle(.linkClosed(link))
        try device.apply(.all, mail, .config, .config(["v": "2"]))
        let next = try device.launch(mail, install: install)
        device.frames = []
        try device.apply(.all, mail, .config, .config(["v": "1"]))
        try device.handle(.frame(next, .ready))
        #expect(try device.answer(next) == [.policy(.config(["v": "1"]), reason: .none)])
    }

    @Test("a late answer to an older delivery is that delivery's, and the newer one stays pending")
    func lateAnswer() throws {
        let (install, launch) = (RandomID.random(), RandomID.random())
        var (device, link) = try device(launch, install)
        try device.apply(.all, mail, .config, .config(["v": "2"]))
        let number = try #require(delivery(device))
        try device.handle(.frame(link, .delivered(number)))
        try device.apply(.all, mail, .config, .config(["v": "3"]))
        try device.handle(
            .frame(link, .acknowledge(Acknowledgement(delivery: number, policy: .config, state: .applied))))
        let report = try device.status(mail)[.config]
        #expect(report.applied == 2)
        #expect(report.received == 3)
        #expect(report.attempt.outcome == .pending)
    }

    @Test("an agent that has lost its memory of a process tells it everything")
    func lostMemory() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail, resume: Registration.Resume(delivered: [3, 99]))
        #expect(!device.frames.contains { if case .ready = $0 { true } else { false } })
        let policies = try device.answer(link).compactMap { delivery -> Policy? in
            if case .policy(let value, _) = delivery { value.policy } else { nil }
        }
        #expect(Set(policies) == Set(Policy.allCases).subtracting([.secureServices]))
    }

    @Test("an app that has learnt a callback is told what it could not be told before")
    func learnt() throws {
        var device = try TestDevice()
        try device.connect()
        let install = RandomID.random()
        let link = try device.launch(mail, install: install, implements: [])
        try device.answer(link, .unsupported)
        try device.handle(.linkClosed(link))
        let next = try device.launch(mail, install: install, implements: [.print])
        let told = try device.answer(next)
        #expect(told.contains(.policy(.print(.unauthorized), reason: .none)))
        #expect(!told.contains(.policy(.pasteboard(.unauthorized), reason: .none)))
    }

    @Test("a connection registers once")
    func registersOnce() throws {
        var device = try TestDevice()
        let link = try device.launch(mail)
        device.frames = []
        try device.handle(
            .registered(
                link,
                Registration(app: notes, install: .random(), launch: .random(), sdk: "t", implements: [])))
        #expect(device.frames.contains { if case .refused(.invalid, _) = $0 { true } else { false } })
        try device.handle(.linkClosed(link))
        device.frames = []
        try device.launch(mail)
        #expect(!device.frames.contains { if case .refused = $0 { true } else { false } })
    }

    @Test("an app is authorized when it has all the rest, also a value that went back while another was under way")
    func gainLast() throws {
        var (device, link) = try device(.random(), .random())
        try device.apply(.all, mail, .config, .config(["v": "2"]))
        let number = try #require(delivery(device))
        try device.apply(.all, mail, .config, .config(["v": "1"]))
        device.frames = []
        try device.apply(.all, mail, .auth, .auth(.authorized))
        #expect(policies(device).isEmpty)
        try device.handle(.frame(link, .delivered(number)))
        #expect(policies(device) == [.config(["v": "1"]), .auth(.authorized, message: "m")])
    }

    @Test("nothing is told before a loss that went back while an authorization was under way")
    func lossBack() throws {
        var (device, link) = try device(.random(), .random())
        try device.apply(.all, mail, .auth, .auth(.unauthorized))
        try device.answer(link)
        try device.apply(.all, mail, .auth, .auth(.authorized))
        #expect(policies(device) == [.auth(.authorized, message: "m")])
        device.frames = []
        try device.apply(.all, mail, .auth, .auth(.unauthorized))
        try device.apply(.all, mail, .config, .config(["v": "2"]))
        #expect(policies(device).isEmpty)
    }

    private func policies(_ device: TestDevice) -> [PolicyValue] {
        device.frames.compactMap { frame in
            if case .deliver(_, .policy(let value, _)) = frame { value } else { nil }
        }
    }

    @Test("a loss is told first, also when an older authorization is still under way")
    func lossFirst() throws {
        var device = try TestDevice()
        try device.connect()
        let link = try device.launch(mail)
        try device.answer(link)
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let gain = device.frames
        device.frames = []
        try device.apply(.all, mail, .auth, .auth(.unauthorized))
        try device.apply(.all, mail, .config, .config(["v": "2"]))
        #expect(device.frames == [.keys(nil)])
        device.frames = gain
        let told = try device.answer(link).filter { if case .policy = $0 { true } else { false } }
        #expect(told.dropFirst().first == .policy(.auth(.unauthorized, message: "m"), reason: .policy))
    }
}
