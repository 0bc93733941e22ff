import FleetProtocol
import Testing

@testable import AppConnect

@Suite("The keys of an app")
struct KeyTests {
    private let keys = AppKeys(app: Array(repeating: 1, count: 32), shared: Array(repeating: 2, count: 32))
    private let others = AppKeys(app: Array(repeating: 3, count: 32), shared: Array(repeating: 2, count: 32))

    private func session() throws -> Session { try .authorized(with: keys) }

    private func code(_ session: Session, _ identifier: String = "database") -> SecureFileError.Code? {
        do {
            _ = try session.session.derivedKey(.app, identifier)
            return nil
        } catch { return error.code }
    }

    @Test("are the same at each launch, and others for another identifier, and another scope")
    func derived() throws {
        let session = try session()
        let key = try session.session.derivedKey(.app, "database")
        #expect(key.count == 32)
        #expect(try key == self.session().session.derivedKey(.app, "database"))
        #expect(try key != session.session.derivedKey(.app, "mail"))
        #expect(try key != session.session.derivedKey(.shared, "database"))
        #expect(code(session, "") == .invalidArgument)
    }

    @Test("stay while a person uses the app: its agent is told where that counts, and no other one")
    func used() throws {
        var session = try session()
        #expect(session.session.used() == [])
        session.receive(.autoLock(60))
        #expect(session.session.used() == [.send(.used)])
        session.receive(.autoLock(nil))
        #expect(session.session.used() == [])
        session.receive(.autoLock(60))
        // Nobody would lock it while there is no agent; the next one may be from before.
        #expect(session.session.keys != nil)
        _ = session.session.lost(AppConnectError(.unreachable, "gone"))
        #expect(session.session.keys == nil && code(session) == .noKeys)
        session.connect()
        #expect(session.session.used() == [])
        session.receive(.keys(keys))
        session.receive(.autoLock(60, isOwn: false))
        #expect(session.session.used() == [.send(.used)])
        session.lose()
        #expect(code(session) == nil, "no agent is needed for what does not lock by itself")
        session.connect()
        session.receive(.autoLock(60))
        _ = session.session.stop()
        #expect(session.session.used() == [])
    }

    @Test("are there from ready on, until the app stops")
    func phases() throws {
        var session = Session()
        try session.session.start(as: Session.registration())
        session.connect()
        session.receive(.keys(keys))
        #expect(code(session) == .noKeys)
        session = try self.session()
        #expect(code(session) == nil)
        _ = session.session.stop()
        #expect(code(session) == .noKeys)
        #expect(session.session.keys == nil)
    }

    @Test("go when the agent takes them away, also before the app has been called for that")
    func takenAway() throws {
        var session = try session()
        session.deliver(1, .config(["a": "1"]))
        let call = try session.mustBegin()
        session.receive(.keys(nil))
        session.deliver(2, .auth(.unauthorized, message: "later"))
        session.receive(.deliver(number: 3, .availability(.unavailable)))
        #expect(session.session.properties.availability == .available)
        #expect(code(session) == .noKeys)
        session.finish(call)
        session.run()
        #expect(code(session) == .noKeys)
    }

    @Test("that have come again are used when the properties say so, and not before")
    func again() throws {
        var session = try session()
        session.receive(.keys(nil))
        session.deliver(1, .auth(.unauthorized, message: "later"))
        session.receive(.deliver(number: 2, .availability(.unavailable)))
        session.receive(.keys(others))
        session.run()
        #expect(code(session) == .noKeys)
        session.receive(.deliver(number: 3, .availability(.available)))
        session.deliver(4, .auth(.authorized, message: ""))
        // In the callback that says so, which comes before that of authorization.
        let call = try session.mustBegin()
        #expect(call == .changed(number: 3, .availability(.available)))
        #expect(try session.session.derivedKey(.app, "x") == others.derivedKey(.app, "x"))
        session.finish(call)
        session.run()
        #expect(try session.session.derivedKey(.app, "x") == others.derivedKey(.app, "x"))
    }

    @Test("are forgotten at once when the app retires itself, and what it is sent then is not used")
    func retired() throws {
        var session = try session()
        _ = try session.session.retire()
        #expect(session.session.keys == nil)
        session.receive(.keys(keys))
        session.receive(.deliver(number: 1, .availability(.available)))
        session.deliver(2, .auth(.authorized, message: ""))
        session.run()
        #expect(code(session) == .noKeys)
    }

    @Test("are kept while the agent is away")
    func away() throws {
        var session = try session()
        session.lose()
        #expect(code(session) == nil)
        session.connect()
        #expect(code(session) == nil)
    }

    @Test("an agent that is older than keys gives none")
    func older() throws {
        var properties = AppProperties.initial
        properties.availability = .available
        properties[.auth] = .auth(.authorized, message: "")
        #expect(code(try Session.ready(properties)) == .noKeys)
    }

    @Test("do not come before the welcome")
    func early() throws {
        var session = Session()
        try session.session.start(as: Session.registration())
        session.connect(welcome: false)
        session.receive(.keys(keys))
        #expect(session.dropped?.code == .badFrame)
        #expect(session.session.keys == nil)
    }

    @Test("go when the agent refuses the process: another one is the app now")
    func refused() throws {
        var session = try session()
        session.lose()
        session.connect(welcome: false)
        session.receive(.refused(.inUse, message: "another process"))
        #expect(session.session.keys == nil)
    }

    @Test("stay when the agent does not wait for a process whose callback goes on for long")
    func refusedWaiting() throws {
        var session = try session()
        session.deliver(1, .config(["a": "1"]))
        let call = try session.mustBegin()
        session.lose()
        session.connect(welcome: false)
        session.receive(.refused(.invalid, message: "nothing was said for 10 seconds"))
        #expect(session.dropped?.code == .invalid)
        #expect(code(session) == nil)
        session.lose()
        session.finish(call)
        session.connect(welcome: false)
        #expect(session.sent().contains { if case .register = $0 { true } else { false } })
    }

    @Test("that came before ready go with their connection")
    func beforeReady() throws {
        var session = Session()
        try session.session.start(as: Session.registration())
        session.connect()
        session.receive(.keys(keys))
        session.lose()
        #expect(session.session.keys == nil)
    }

    @Test(
        "that cannot be read take those from before away all the same",
        arguments: [
            #""app":"AQ","shared":"AQ""#, #""app":1,"shared":2"#, #""app":"\#(String(repeating: "A", count: 43))""#,
        ])
    func unreadable(_ members: String) throws {
        #expect(AgentLine(Array(#"{"type":"keys",\#(members)}"#.utf8)) == .frame(.keys(nil)))
    }

    @Test("stand in no text")
    func texts() {
        let frame = AgentFrame.keys(keys)
        #expect(!"\(frame)".contains("1, 1") && !"\(frame)".contains("AQEB"))
        #expect(!String(reflecting: frame).contains("AQEB"))
    }
}
