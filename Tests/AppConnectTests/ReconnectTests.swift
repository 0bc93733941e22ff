import FleetProtocol
import Testing

@testable import AppConnect

@Suite("After a lost connection")
struct ReconnectTests {
    private func registration(_ frames: [AppFrame]) throws -> Registration {
        guard case .register(let registration) = frames.first else { throw Missing() }
        return registration
    }

    private struct Missing: Error {}

    @Test("a launch that had no ready yet begins again, with the same launch id")
    func beforeReady() throws {
        var session = Session()
        try session.session.start(as: Session.registration())
        session.connect()
        let first = try registration(session.sent())
        session.receive(.ready(.initial))
        session.lose()
        #expect(session.run() == [])
        session.connect(welcome: false)
        #expect(try registration(session.sent()) == first)
    }

    @Test("the registration says what was delivered and how it was answered, also while nobody listened")
    func resume() throws {
        var session = try Session.ready()
        session.deliver(1, .config(["a": "1"]))
        session.deliver(2, .print(.authorized))
        session.run()
        session.deliver(3, .config(["a": "2"]))
        session.run()
        session.deliver(4, .pasteboard(.authorized))
        session.lose()
        try session.acknowledge(.config, .applied)
        session.effects = []
        #expect(session.run() == [])
        session.connect(welcome: false)
        #expect(
            try registration(session.sent()).resume
                == Registration.Resume(
                    delivered: [2, 3],
                    acknowledgements: [Acknowledgement(delivery: 3, policy: .config, state: .applied)]))
        session.welcome()
        #expect(session.sent() == [])
        session.deliver(5, .pasteboard(.authorized))
        #expect(session.run() == [changed(5, .pasteboard(.authorized))])
    }

    @Test("the process comes back when a running callback has returned, and names it as delivered")
    func whileRunning() throws {
        var session = try Session.ready()
        session.deliver(1, .config(["a": "1"]))
        let call = try session.mustBegin()
        session.lose()
        session.connect(welcome: false)
        #expect(session.sent() == [])
        session.finish(call)
        #expect(try registration(session.sent()).resume?.delivered == [1])
    }

    @Test("no second ready is sent for one that ran meanwhile")
    func readyMeanwhile() throws {
        var session = Session()
        try session.session.start(as: Session.registration())
        session.connect()
        session.receive(.ready(.initial))
        let call = try session.mustBegin()
        session.lose()
        session.connect(welcome: false)
        _ = session.sent()
        session.finish(call)
        #expect(try registration(session.sent()).resume == Registration.Resume())
        session.welcome()
        #expect(session.sent() == [])
    }

    @Test("an agent that has lost its memory is answered that the app is ready, and its deliveries count")
    func agentLostItsMemory() throws {
        var session = try Session.ready()
        session.deliver(5, .config(["a": "1"]))
        session.run()
        session.lose()
        session.connect()
        _ = session.sent()
        session.receive(.ready(.initial))
        #expect(session.sent() == [.ready])
        session.deliver(1, .config(["a": "2"]))
        #expect(session.run() == [changed(1, .config(["a": "2"]))])
        #expect(session.sent() == [.delivered(1)])
    }

    @Test("what was sent twice is not called twice")
    func sentTwice() throws {
        var session = try Session.ready()
        session.deliver(5, .config(["a": "1"]))
        session.run()
        _ = session.sent()
        session.deliver(5, .config(["a": "1"]))
        #expect(session.run() == [])
        #expect(session.sent() == [.delivered(5)])
    }

    @Test("blocked attempts are reported, and a display is answered no")
    func attemptsAndDisplays() throws {
        var session = try Session.ready()
        let (id, effects) = session.session.display("hello")
        #expect(effects == [.send(.display(id: try #require(id), text: "hello"))])
        session.lose()
        #expect(session.effects.contains(.answered(id: try #require(id), .unanswered)))
        #expect(session.session.display("again").0 == nil)
        _ = try session.session.request(.copy)
        #expect(session.run() == [.attempted(.copy(.unauthorized))])
        session.connect()
        #expect(session.sent().last == .blocked(.copy, target: nil, number: 1))
    }

    @Test("stop ends it")
    func stopped() throws {
        var session = try Session.ready()
        _ = session.session.stop()
        session.lose()
        session.connect(welcome: false)
        #expect(session.sent() == [])
    }
}
