import FleetProtocol
import Testing

@testable import AppConnect

@Suite("What an app asks for")
struct UnkeptTests {
    private func copied(_ number: Int64) -> AppFrame { .blocked(.copy, target: nil, number: number) }

    private func ready(attempts: Int = 0) throws -> Session {
        var session = try Session.ready()
        for _ in 0..<attempts { session.effects += try session.session.request(.copy).1 }
        return session
    }

    @Test("is said again to the next agent under its number, until one has stored it")
    func again() throws {
        var session = try ready(attempts: 3)
        #expect(session.sent() == [copied(1), copied(2), copied(3)])
        session.receive(.kept(1))
        session.lose()
        session.connect(kept: 1)
        #expect(session.sent().dropFirst() == [copied(2), copied(3)])
        session.lose()
        session.connect(kept: 2)
        #expect(session.sent().dropFirst() == [copied(3)])
        session.receive(.kept(3))
        session.lose()
        session.connect()
        #expect(session.sent().dropFirst() == [])
    }

    @Test("is said in order, with a retirement in its place also when that is stored")
    func order() throws {
        var session = try ready(attempts: 1)
        session.effects += try session.session.retire()
        session.effects += try session.session.request(.copy).1
        session.lose()
        _ = session.sent()
        session.connect(kept: 2)
        #expect(session.sent().dropFirst() == [.retire(number: 2), copied(3)])
        session.receive(.kept(3))
        session.deliver(1, .auth(.retired, message: ""), reason: .selfRetired)
        session.run()
        session.lose()
        _ = session.sent()
        session.connect(kept: 3)
        #expect(session.sent().count == 1)
    }

    @Test("is stored when it has been written to an agent that does not count, and is not said again")
    func olderAgent() throws {
        var session = try ready(attempts: 1)
        session.lose()
        _ = session.sent()
        session.connect(kept: nil)
        #expect(session.sent().dropFirst() == [copied(1)])
        session.effects += try session.session.request(.copy).1
        #expect(session.sent() == [copied(2)])
        session.lose()
        session.effects += try session.session.request(.copy).1
        session.connect(kept: nil)
        #expect(session.sent().dropFirst() == [copied(3)])
    }
}
