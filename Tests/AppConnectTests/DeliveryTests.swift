import FleetProtocol
import TestSupport
import Testing

@testable import AppConnect

@Suite("A delivery")
struct DeliveryTests {
    @Test("of a changed message alone calls the authorization callback")
    func messageOnly() throws {
        var session = try Session.ready()
        session.deliver(1, .auth(.unauthorized, message: "one"), reason: .policy)
        session.deliver(1, .auth(.unauthorized, message: "one"), reason: .policy)
        #expect(session.run() == [changed(1, .auth(.unauthorized, message: "one"), reason: .policy)])
        session.deliver(2, .auth(.unauthorized, message: "two"), reason: .policy)
        #expect(session.run() == [changed(2, .auth(.unauthorized, message: "two"), reason: .policy)])
    }

    @Test("that the app does not implement is answered unsupported by the library, the property being set")
    func unsupported() throws {
        var session = try Session.ready(callbacks: [.config])
        session.deliver(1, .print(.authorized))
        session.deliver(2, .logLevel(.debug))
        session.deliver(3, .config(["a": "b"]))
        #expect(session.run() == [changed(3, .config(["a": "b"]))])
        #expect(
            session.sent() == [
                .acknowledge(
                    Acknowledgement(
                        delivery: 1, policy: .print, state: .unsupported,
                        message: "This app does not implement this policy.")), .delivered(2), .delivered(3),
            ])
        #expect(try session.session.reads(.print) == .print(.authorized))
        #expect(session.session.logLevel == .debug)
        #expect(throws: AppConnectError.self) { try session.acknowledge(.print, .applied) }
    }

    @Test("of drag and drop sets what the library enforces, calls nothing, and is answered")
    func dragAndDrop() throws {
        var session = try Session.ready()
        session.deliver(1, .dragAndDrop(.allApps))
        #expect(session.run() == [])
        #expect(session.sent() == [.delivered(1)])
        session.deliver(2, .auth(.authorized, message: ""))
        _ = session.run()
        let isAllowed = try session.session.request(.dragAndDrop(AppID(unchecked: "x"))).0
        #expect(isAllowed)
    }

    @Test("calls nothing and stays due while the delegate is gone, but the library's checks follow it")
    func delegateGone() throws {
        var properties = AppProperties.initial
        properties[.pasteboard] = .pasteboard(.authorized)
        var session = try Session.ready(properties)
        session.callbacks = nil
        session.deliver(1, .pasteboard(.unauthorized))
        #expect(session.run() == [])
        // The agent may send the next one.
        #expect(session.sent() == [.taken(1)])
        let isAllowed = try session.session.request(.copy).0
        #expect(!isAllowed)
        session.deliver(2, .pasteboard(.secureCopy))
        #expect(session.run() == [])
        #expect(session.sent() == [.taken(2)])
        #expect(try session.session.reads(.pasteboard) == .pasteboard(.secureCopy))
        try expectUnderWay(2, in: &session)
        session.callbacks = Set(Callback.allCases)
        let calls = session.run().filter { if case .changed = $0 { true } else { false } }
        #expect(calls == [changed(2, .pasteboard(.secureCopy))])
        session.effects = []
        try session.acknowledge(.pasteboard, .applied)
        #expect(
            session.sent() == [.acknowledge(Acknowledgement(delivery: 2, policy: .pasteboard, state: .applied))])
    }

    /// After a lost connection the agent is told of it again, of which it may have lost its memory.
    private func expectUnderWay(_ number: Int64, in session: inout Session) throws {
        session.lose()
        session.connect(kept: session.session.lastRequest)
        let sent = session.sent()
        guard case .register(let registration)? = sent.first else { throw TestFailure("no registration: \(sent)") }
        #expect(registration.resume?.begun == [number])
        #expect(sent.dropFirst() == [.taken(number)])
    }

    @Test("what nobody answers for stays under way without a delegate, also over a lost connection")
    func delegateGoneUnanswered() throws {
        var session = try Session.ready()
        session.callbacks = nil
        session.deliver(1, .logLevel(.debug))
        #expect(session.run() == [])
        #expect(session.sent() == [.taken(1)])
        #expect(try session.session.reads(.logLevel) == .logLevel(.debug))
        try expectUnderWay(1, in: &session)
        session.callbacks = Set(Callback.allCases)
        #expect(session.run() == [changed(1, .logLevel(.debug))])
        #expect(session.sent() == [.delivered(1)])
    }

    @Test("waits for a delegate also when it is the ready callback")
    func delegateGoneBeforeReady() throws {
        var session = Session()
        session.callbacks = nil
        try session.session.start(as: Session.registration())
        session.connect()
        session.receive(.ready(.initial))
        #expect(session.run() == [])
        #expect(!session.session.hasBeenReady)
        session.callbacks = []
        #expect(session.run() == [.ready])
    }

    @Test("does not begin while another callback runs")
    func serial() throws {
        var session = try Session.ready()
        session.deliver(1, .print(.authorized))
        session.deliver(2, .config(["a": "b"]))
        let first = try session.mustBegin()
        #expect(session.begin() == nil)
        #expect(try session.session.reads(.config) == .config([:]))
        session.finish(first)
        #expect(session.begin() == changed(2, .config(["a": "b"])))
    }

    @Test("does not begin after stop, also when stop came within a callback")
    func stopWithinCallback() throws {
        var session = try Session.ready()
        session.deliver(1, .print(.authorized))
        session.deliver(2, .config(["a": "b"]))
        let call = try session.mustBegin()
        session.effects = session.session.stop()
        #expect(session.effects == [.send(.stop), .close])
        session.effects = []
        session.finish(call)
        session.deliver(3, .config([:]))
        #expect(session.run() == [])
        #expect(session.sent() == [])
        #expect(throws: AppConnectError.self) { try session.acknowledge(.print, .applied) }
        #expect(session.session.stop() == [])
    }

    @Test(
        "of which nothing is known is passed over, and said to have come",
        arguments: [
            #"{"type":"deliver","delivery":4,"what":"logLevel","value":{"level":"whisper"}}"#,
            #"{"type":"deliver","delivery":4,"what":"watermark","value":{"on":true}}"#,
        ])
    func unknownDelivery(_ line: String) throws {
        var session = try Session.ready()
        guard case .unknown(_, delivery: 4) = AgentLine(Array(line.utf8)) else {
            Issue.record("\(AgentLine(Array(line.utf8)))")
            return
        }
        session.effects = session.session.passedOver(4)
        #expect(session.sent() == [.delivered(4)])
        #expect(session.run() == [])
        session.lose()
        #expect(session.session.passedOver(5) == [])
    }

    @Test("with a value of a newer agent counts as unauthorized, and is answered as not understood")
    func unknownValue() throws {
        var properties = AppProperties.initial
        properties[.print] = .print(.authorized)
        var session = try Session.ready(properties)
        let line = Array(#"{"type":"deliver","delivery":4,"what":"print","value":{"policy":"someday"}}"#.utf8)
        guard case .unreadable(let delivery) = AgentLine(line) else {
            Issue.record("\(AgentLine(line))")
            return
        }
        session.effects = session.session.received(delivery)
        #expect(session.run() == [changed(4, .print(.unauthorized), reason: .unknownValue)])
        try session.acknowledge(.print, .applied)
        let sent = session.sent()
        #expect(sent.count == 2)
        guard case .acknowledge(let answer) = sent.first else {
            Issue.record("\(sent)")
            return
        }
        #expect(answer.state == .error)
        #expect(answer.message == "value.policy: unknown value 'someday': expected unauthorized, authorized")
    }

    @Test("tells of the screen being taken and given back, in pairs")
    func activity() throws {
        var session = try Session.ready()
        session.receive(.activity(isActive: false))
        #expect(session.run() == [.activity(isActive: false)])
        session.receive(.activity(isActive: true))
        session.receive(.activity(isActive: false))
        #expect(session.run() == [])
        // An app that did not read for a while hears of the newest alone.
        session.receive(.activity(isActive: false))
        #expect(session.run() == [])
        for _ in 0..<2 { session.receive(.activity(isActive: true)) }
        #expect(session.run() == [.activity(isActive: true)])
        session.receive(.activity(isActive: true))
        #expect(session.run() == [])
    }

    @Test("of the screen having been given back is made up for an agent that has gone, once, and to nobody else")
    func activityWithoutAgent() throws {
        var session = try Session.ready()
        session.receive(.activity(isActive: true))
        #expect(session.run() == [])
        session.receive(.activity(isActive: false))
        session.lose()
        #expect(session.run() == [])
        session.connect()
        session.receive(.activity(isActive: false))
        #expect(session.run() == [.activity(isActive: false)])
        session.lose()
        session.lose()
        session.connect()
        session.receive(.activity(isActive: true))
        #expect(session.run() == [.activity(isActive: true)])
        session.receive(.activity(isActive: true))
        session.lose()
        #expect(session.run() == [])
        session.connect()
        session.receive(.activity(isActive: false))
        let call = try session.mustBegin()
        session.lose()
        session.effects = session.session.stop()
        session.finish(call)
        session.lose()
        #expect(session.run() == [])
    }
}
