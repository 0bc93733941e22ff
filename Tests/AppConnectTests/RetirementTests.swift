import FleetProtocol
import Testing

@testable import AppConnect

@Suite("An app that retires itself")
struct RetirementTests {
    private let retired = PolicyValue.auth(.retired, message: "This app has retired itself.")

    private func authorized() throws -> Session {
        var properties = AppProperties.initial
        properties.managed = .managed
        properties.availability = .available
        properties[.auth] = .auth(.authorized, message: "")
        properties[.config] = .config(["a": "1"])
        return try Session.ready(properties)
    }

    @Test("is retired at once, by its own properties, and the agent is told")
    func atOnce() throws {
        var session = try authorized()
        session.effects = try session.session.retire()
        #expect(session.sent() == [.retire(number: 1)])
        #expect(try session.session.reads(.auth) == retired)
        #expect(try session.session.reads(.config) == .config([:]))
        #expect(session.session.properties.managed == .unknown)
        #expect(session.session.properties.authReason == .selfRetired)
        #expect(session.session.properties.availability == .unavailable)
        #expect(try session.session.retire() == [])
    }

    @Test("gets the callbacks when the agent has taken note")
    func callbacks() throws {
        var session = try authorized()
        session.effects = try session.session.retire()
        session.deliver(1, retired, reason: .selfRetired)
        session.deliver(2, .config([:]))
        #expect(session.run() == [changed(1, retired, reason: .selfRetired), changed(2, .config([:]))])
    }

    @Test("is not disturbed by what the agent sent before it knew")
    func overtaken() throws {
        var session = try authorized()
        session.deliver(1, .auth(.authorized, message: "hello"))
        session.effects = try session.session.retire()
        session.deliver(2, .config(["a": "2"]))
        #expect(session.run() == [])
        #expect(session.sent() == [.retire(number: 1), .delivered(1), .delivered(2)])
        #expect(try session.session.reads(.auth) == retired)
        #expect(throws: AppConnectError.self) { try session.acknowledge(.config, .applied) }
        session.deliver(3, retired, reason: .selfRetired)
        #expect(session.run() == [changed(3, retired, reason: .selfRetired)])
        session.deliver(4, .auth(.authorized, message: "again"), reason: .policy)
        #expect(session.run() == [changed(4, .auth(.authorized, message: "again"), reason: .policy)])
        #expect(try session.session.reads(.auth) == .auth(.authorized, message: "again"))
    }

    @Test("takes another retirement that was under way for no answer")
    func crossing() throws {
        var session = try authorized()
        session.effects = try session.session.retire()
        session.deliver(1, .auth(.retired, message: "gone"), reason: .policy)
        session.deliver(2, .logLevel(.info))
        #expect(session.run() == [])
        #expect(try session.session.reads(.auth) == retired)
        session.deliver(3, retired, reason: .selfRetired)
        #expect(session.run() == [changed(3, retired, reason: .selfRetired)])
        #expect(try session.session.reads(.logLevel) == .logLevel(.status))
    }

    @Test("tells the agent when it is there again, until the agent has said that it knows")
    func withoutAgent() throws {
        var session = try authorized()
        session.lose()
        session.effects = try session.session.retire()
        #expect(session.sent() == [])
        session.connect()
        #expect(session.sent().last == .retire(number: 1))
        session.lose()
        session.connect()
        #expect(session.sent().last == .retire(number: 1))
        session.deliver(1, retired, reason: .selfRetired)
        session.run()
        session.lose()
        session.connect()
        #expect(!session.sent().contains(.retire(number: 1)))
    }

    @Test("and stops before it is welcomed again says so behind the welcome, with its answers")
    func stopsBeforeWelcome() throws {
        var session = try authorized()
        session.deliver(1, .config(["a": "2"]))
        session.run()
        session.lose()
        session.connect(welcome: false)
        session.effects = []
        try session.acknowledge(.config, .applied)
        session.effects += try session.session.retire()
        session.effects += session.session.stop()
        #expect(session.effects == [.retirementOwed(true), .close])
        #expect(session.session.isParting)
        session.effects = []
        session.welcome()
        #expect(
            session.effects == [
                .send(.retire(number: 1)),
                .send(.acknowledge(Acknowledgement(delivery: 1, policy: .config, state: .applied))), .send(.stop),
            ])
        #expect(!session.session.isParting)
        session.receive(.ready(.initial))
        #expect(session.run() == [])
    }

    @Test("and stops while a callback of before the loss still runs registers at once, to say so")
    func stopsWhileRunning() throws {
        var session = try authorized()
        session.deliver(1, .config(["a": "2"]))
        let call = try session.mustBegin()
        session.lose()
        session.connect(welcome: false)
        session.effects = try session.session.retire()
        session.effects += session.session.stop()
        guard case .register(let registration)? = session.sent().first else {
            Issue.record("no registration")
            return
        }
        #expect(registration.resume?.begun == [1])
        session.finish(call)
        session.welcome()
        #expect(session.sent() == [.retire(number: 1), .stop])
    }

    @Test("and stops right behind it goes when its agent has stored it")
    func stopsBehind() throws {
        var session = try authorized()
        session.effects = try session.session.retire()
        session.effects += session.session.stop()
        #expect(session.session.awaitsRetirement)
        session.effects = []
        session.receive(.kept(1))
        #expect(session.effects == [.retirementOwed(false)])
        #expect(!session.session.awaitsRetirement)
    }

    @Test("owes that beyond the end of its process, until an agent has stored it", arguments: [0, nil] as [Int64?])
    func owed(kept: Int64?) throws {
        var session = try authorized()
        session.lose()
        session.effects = try session.session.retire()
        #expect(session.effects == [.retirementOwed(true)])
        session.connect(kept: kept)
        #expect(!session.effects.contains(.retirementOwed(false)))
        // An agent that does not count says so with its own word alone.
        if kept != nil {
            session.receive(.kept(1))
        } else {
            session.deliver(1, retired, reason: .selfRetired)
            session.run()
        }
        #expect(session.effects.contains(.retirementOwed(false)))
    }

    /// A launch behind a process that has retired the app, and knows of no agent that has stored it.
    private func launched(_ properties: AppProperties) throws -> Session {
        var session = Session()
        try session.session.start(as: Session.registration())
        session.effects = session.session.connected(isRetirementOwed: true)
        session.welcome()
        session.receive(.ready(properties))
        session.effects = []
        return session
    }

    @Test("without an agent is retired from its next ready on, and asks again")
    func nextLaunch() throws {
        var session = try launched(authorized().session.properties)
        #expect(session.run() == [.ready])
        #expect(session.sent() == [.retire(number: 1), .ready])
        #expect(try session.session.reads(.auth) == retired)
        #expect(session.session.properties.availability == .unavailable)
        session.deliver(1, retired, reason: .selfRetired)
        #expect(session.run() == [changed(1, retired, reason: .selfRetired)])
        #expect(session.effects.contains(.retirementOwed(false)))
    }

    @Test("asks for nothing again where the agent says with ready that it knows")
    func nextLaunchKnown() throws {
        var properties = AppProperties.initial
        properties[.auth] = retired
        properties.authReason = .selfRetired
        var session = try launched(properties)
        #expect(session.run() == [.ready])
        #expect(session.effects.contains(.retirementOwed(false)))
        #expect(session.sent() == [.ready])
    }

    @Test("waits for no welcome when it stops with nothing to say")
    func stopsWithNothingToSay() throws {
        var session = try authorized()
        session.lose()
        session.connect(welcome: false)
        session.effects = session.session.stop()
        #expect(session.effects == [.close])
        #expect(!session.session.isParting)
        session.effects = []
        session.welcome()
        #expect(session.effects == [])
    }
}
