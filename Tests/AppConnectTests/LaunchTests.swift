import FleetProtocol
import Testing

@testable import AppConnect

@Suite("A launch")
struct LaunchTests {
    @Test("begins with the registration, without a resume")
    func registers() throws {
        var session = Session()
        let registration = Session.registration()
        try session.session.start(as: registration)
        session.connect(welcome: false)
        #expect(session.sent() == [.register(registration)])
    }

    @Test("calls ready first, with all properties set, and answers when it has returned")
    func readyFirst() throws {
        var session = Session()
        try session.session.start(as: Session.registration())
        session.connect()
        _ = session.sent()
        var properties = AppProperties.initial
        properties[.config] = .config(["server": "a"])
        session.receive(.ready(properties))
        session.deliver(1, .config(["server": "a"]))
        #expect(throws: AppConnectError.self) { try session.session.reads(.config) }

        let call = try session.mustBegin()
        #expect(call == .ready)
        #expect(session.session.hasBeenReady)
        #expect(try session.session.reads(.config) == .config(["server": "a"]))
        #expect(session.sent() == [])
        session.finish(call)
        #expect(session.sent() == [.ready])
        #expect(session.run() == [changed(1, .config(["server": "a"]))])
    }

    @Test("delivers every state callback of a first launch in the order it came, each property first")
    func firstLaunch() throws {
        var session = try Session.ready()
        let values: [PolicyValue] = [
            .config(["a": "b"]), .openIn(.whitelist, whitelist: [Session.app]), .openFrom(.authorized, whitelist: []),
            .pasteboard(.secureCopy), .print(.authorized), .secureFileIO(.required), .logLevel(.info),
            .auth(.authorized, message: ""),
        ]
        session.receive(.deliver(number: 1, .managed(.managed)))
        session.receive(.deliver(number: 2, .availability(.available)))
        for (index, value) in values.enumerated() { session.deliver(Int64(index + 3), value) }

        #expect(session.begin() == .changed(number: 1, .managed(.managed)))
        #expect(try session.session.property("managed") { $0.managed } == .managed)
        session.finish(.changed(number: 1, .managed(.managed)))
        #expect(session.sent() == [.delivered(1)])
        #expect(session.begin() == .changed(number: 2, .availability(.available)))
        session.finish(.changed(number: 2, .availability(.available)))
        #expect(session.sent() == [.delivered(2)])
        for (index, value) in values.enumerated() {
            let call = try session.mustBegin()
            #expect(call == changed(Int64(index + 3), value))
            #expect(try session.session.reads(value.policy) == value)
            #expect(session.sent() == [])
            session.finish(call)
            #expect(session.sent() == [.delivered(Int64(index + 3))])
        }
        #expect(session.begin() == nil)
    }

    @Test("reads nothing but log level and availability before ready and after stop, and says so by name")
    func readability() throws {
        var session = Session()
        try session.session.start(as: Session.registration())
        session.connect()
        #expect(session.session.logLevel == .status)
        let error = #expect(throws: AppConnectError.self) { try session.session.reads(.auth) }
        #expect(error?.name == "ACPropertyAccessException")
        session.receive(.ready(.initial))
        session.run()
        #expect(try session.session.reads(.auth) == .default(of: .auth))
        _ = session.session.stop()
        #expect(session.session.hasBeenReady)
        #expect(throws: AppConnectError.self) { try session.session.reads(.auth) }
    }

    @Test("is over with stop: whoever waits for a text is told, nothing is taken, said or called any more")
    func stopped() throws {
        var session = try Session.ready()
        let (shown, effects) = session.session.display("hello")
        let id = try #require(shown)
        #expect(effects == [.send(.display(id: id, text: "hello"))])
        session.deliver(7, .config([:]))
        session.receive(.activity(isActive: false))
        session.effects = []
        #expect(session.session.stop() == [.send(.stop), .answered(id: id, .unanswered), .close])
        session.deliver(8, .pasteboard(.unauthorized))
        session.receive(.displayed(id: id, true))
        session.receive(.activity(isActive: true))
        session.receive(.refused(.inUse, message: "another process"))
        session.receive(.ready(.initial))
        session.lose()
        session.connect(welcome: false)
        #expect(session.effects == [])
        #expect(session.run() == [])
        #expect(session.session.stop() == [])
        if case .disconnected(let problem) = session.session.connectionState {
            #expect(problem.code == .stopped)
        } else {
            Issue.record("still connected")
        }
    }

    @Test("cannot be started twice, nor after stop")
    func startsOnce() throws {
        var session = AppSession()
        try session.start(as: Session.registration())
        #expect(throws: AppConnectError.self) { try session.start(as: Session.registration()) }
        _ = session.stop()
        let error = #expect(throws: AppConnectError.self) { try session.start(as: Session.registration()) }
        #expect(error?.code == .stopped)
    }

    @Test("that is refused says why and comes back")
    func refused() throws {
        var session = Session()
        try session.session.start(as: Session.registration())
        session.connect(welcome: false)
        session.receive(.refused(.notAllowed, message: "uid 7 may not be com.example.mail"))
        let problem = try #require(session.dropped)
        #expect(problem.code == .notAllowed)
        #expect(problem.message.contains("uid 7"))
        session.effects = session.session.lost(problem)
        #expect(session.session.connectionState == .disconnected(problem))
        session.connect(welcome: false)
        #expect(session.sent().count == 1)
    }
}
