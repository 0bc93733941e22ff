import FleetProtocol
import Testing

@testable import AppConnect

@Suite("An acknowledgement")
struct AcknowledgementTests {
    private func acknowledgement(
        _ delivery: Int64, _ policy: Policy, _ state: PolicyState, _ message: String? = nil
    ) -> AppFrame {
        .acknowledge(Acknowledgement(delivery: delivery, policy: policy, state: state, message: message))
    }

    @Test("may come during the callback, and goes out before it has returned")
    func during() throws {
        var session = try Session.ready()
        session.deliver(7, .config(["a": "b"]))
        let call = try session.mustBegin()
        try session.acknowledge(.config, .applied)
        session.finish(call)
        #expect(session.sent() == [acknowledgement(7, .config, .applied), .delivered(7)])
    }

    @Test("answers the newest callback that has begun, not one that still waits")
    func newestBegun() throws {
        var session = try Session.ready()
        session.deliver(1, .config(["a": "1"]))
        session.run()
        session.deliver(2, .config(["a": "2"]))
        _ = session.sent()
        try session.acknowledge(.config, .applied)
        #expect(session.sent() == [acknowledgement(1, .config, .applied)])
        session.run()
        _ = session.sent()
        try session.acknowledge(.config, .applied)
        #expect(session.sent() == [acknowledgement(2, .config, .applied)])
    }

    @Test("replaces an earlier one, and sends nothing when it is equal")
    func replaced() throws {
        var session = try Session.ready()
        session.deliver(1, .config(["a": "1"]))
        session.run()
        _ = session.sent()
        try session.acknowledge(.config, .error, "disk full")
        try session.acknowledge(.config, .error, "disk full")
        try session.acknowledge(.config, .applied, "on a retry")
        #expect(
            session.sent() == [
                acknowledgement(1, .config, .error, "disk full"), acknowledgement(1, .config, .applied, "on a retry"),
            ])
    }

    @Test("before ready throws and sends nothing")
    func beforeReady() throws {
        var session = Session()
        try session.session.start(as: Session.registration())
        session.connect()
        _ = session.sent()
        let error = #expect(throws: AppConnectError.self) { try session.acknowledge(.config, .applied) }
        #expect(error?.code == .notReady)
        #expect(session.sent() == [])
    }

    @Test("of a policy that was never delivered throws and sends nothing")
    func neverDelivered() throws {
        var session = try Session.ready()
        let error = #expect(throws: AppConnectError.self) { try session.acknowledge(.config, .applied) }
        #expect(error?.code == .neverDelivered)
        #expect(session.sent() == [])
    }

    @Test("of authorization as unsupported throws and sends nothing")
    func unsupportedAuth() throws {
        var session = try Session.ready()
        session.deliver(1, .auth(.authorized, message: ""))
        session.run()
        _ = session.sent()
        let error = #expect(throws: AppConnectError.self) { try session.acknowledge(.auth, .unsupported) }
        #expect(error?.code == .unsupportedAuth)
        #expect(session.sent() == [])
    }

    @Test("has its message made printable and cut")
    func message() throws {
        var session = try Session.ready()
        session.deliver(1, .config(["a": "1"]))
        session.run()
        _ = session.sent()
        try session.acknowledge(.config, .error, "\u{1B}[31mred" + String(repeating: "x", count: 2_000))
        guard case .acknowledge(let answer) = session.sent().first else {
            Issue.record("nothing was sent")
            return
        }
        #expect(answer.message?.hasPrefix("[31mred") == true)
        #expect(answer.message?.count == 1_001)
    }
}
