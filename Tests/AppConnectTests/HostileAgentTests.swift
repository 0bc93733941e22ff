import FleetProtocol
import Testing

@testable import AppConnect

@Suite("Whatever an agent sends")
struct HostileAgentTests {
    @Test(
        "a line that is not the link drops the connection",
        arguments: [
            "garbage", "{", "[]", "null", #"{"type":"ready"}"#, #"{"type":7}"#, "\u{0}",
            #"{"type":"displayed","id":"x"}"#,
            #"{"type":"welcome","v":2,"agent":"a","device":"d"}"#, String(repeating: "[", count: 1_000),
            #"{"type":"deliver","delivery":"1","what":"config","value":{"values":{"a":1}}}"#,
        ])
    func garbage(_ line: String) {
        guard case .garbage = AgentLine(Array(line.utf8)) else {
            Issue.record("\(line): \(AgentLine(Array(line.utf8)))")
            return
        }
    }

    @Test(
        "a line of a kind that a newer agent may know is passed over",
        arguments: [
            #"{"type":"tomorrow","x":1}"#,
            #"{"type":"progress","id":"a1","ok":"yes","value":{}}"#,
            #"{"type":"\#(String(repeating: "x", count: 40))"}"#,
            #"{"type":"deliver","delivery":1,"what":"telepathy","value":{},"reason":7}"#,
            #"{"type":"deliver","delivery":1,"what":"telepathy","value":{}}"#,
            #"{"type":"deliver","delivery":1,"what":"logLevel","value":{"level":"whisper"}}"#,
            #"{"type":"deliver","delivery":1,"what":"logLevel","value":{"level":5}}"#,
            #"{"type":"deliver","delivery":1,"what":"logLevel","value":{}}"#,
            #"{"type":"deliver","delivery":1,"what":"config","value":{"values":{"server":[5]}}}"#,
            #"{"type":"deliver","delivery":1,"what":"managed","value":7}"#,
        ])
    func unknown(_ line: String) {
        guard case .unknown = AgentLine(Array(line.utf8)) else {
            Issue.record("\(line): \(AgentLine(Array(line.utf8)))")
            return
        }
    }

    @Test("what is not known of what the app may use counts as that it may not")
    func unknownRights() {
        let refused = #"{"type":"refused","code":"expelled","message":"out"}"#
        #expect(AgentLine(Array(refused.utf8)) == .frame(.refused(.notAllowed, message: "out")))
        let availability = #"{"type":"deliver","delivery":7,"what":"availability","value":"partly"}"#
        #expect(AgentLine(Array(availability.utf8)) == .frame(.deliver(number: 7, .availability(.unavailable))))
    }

    @Test("every type that there is, is known")
    func types() {
        let frames: [AgentFrame] = [
            .welcome(agent: "a", device: Session.device), .refused(.inUse, message: ""), .ready(.initial),
            .deliver(number: 1, .managed(.managed)), .displayed(id: 1, true), .copied(id: 1, true), .pasted(id: 1, nil),
            .activity(isActive: true),
            .codeResult(true), .kept(1), .keys(nil), .autoLock(60), .passcodeResult(PasscodeResult(.wrong, wait: 5)),
        ]
        let types = frames.compactMap { try? JSONValue(json: $0.json, limit: Link.maximumLine)["type"]?.stringValue }
        #expect(Set(types) == AgentFrame.types)
    }

    @Test(
        "a value of its ready that is not known counts as its default, for that policy alone",
        arguments: [
            (Policy.print, #""policy":"authorized"#), (.logLevel, #""level":"debug"#), (.auth, #""state":"authorized"#),
        ])
    func unknownInReady(_ policy: Policy, _ known: String) {
        var properties = AppProperties.initial
        properties.authReason = .policy
        properties[.auth] = .auth(.authorized, message: "")
        properties[.print] = .print(.authorized)
        properties[.logLevel] = .logLevel(.debug)
        let line = AgentFrame.ready(properties).jsonText.replacing(known, with: known + "OfTomorrow")
        properties[policy] = .default(of: policy)
        if policy == .auth { properties.authReason = .unknownValue }
        #expect(AgentLine(Array(line.utf8)) == .frame(.ready(properties)))
    }

    @Test("a ready with a reason, a management or an availability that is not known counts as one without")
    func unknownStateInReady() {
        let line = AgentFrame.ready(.initial).jsonText.replacing(#""authReason":"none""#, with: #""authReason":"whim""#)
            .replacing(#""managed":"unknown""#, with: #""managed":"somehow""#)
            .replacing(#""availability":"unavailable""#, with: #""availability":"partly""#)
        #expect(AgentLine(Array(line.utf8)) == .frame(.ready(.initial)))
    }

    @Test("a value of another JSON type in its ready counts as the default as well")
    func otherTypesInReady() {
        var properties = AppProperties.initial
        properties[.print] = .print(.authorized)
        properties[.logLevel] = .logLevel(.debug)
        let line = AgentFrame.ready(properties).jsonText
            .replacing(#"{"policy":"authorized"}"#, with: #"{"policy":5}"#)
            .replacing(#"{"level":"debug"}"#, with: "{}")
        #expect(AgentLine(Array(line.utf8)) == .frame(.ready(.initial)))
    }

    @Test("a reason that is not known takes nothing from what it is the reason of")
    func unknownReason() {
        let line =
            #"{"type":"deliver","delivery":9,"what":"auth","value":{"state":"retired","message":"x"},"reason":"legalHold"}"#
        let retired = Delivery.policy(.auth(.retired, message: "x"), reason: .none)
        #expect(AgentLine(Array(line.utf8)) == .frame(.deliver(number: 9, retired)))
    }

    @Test("a delivery is found by its number in every way that the number may be written")
    func numbers() {
        for number in ["12", "12.0", "1.2e1"] {
            let line = #"{"type":"deliver","delivery":\#(number),"what":"auth","value":{"state":"suspended"}}"#
            guard case .unreadable(let delivery) = AgentLine(Array(line.utf8)) else {
                Issue.record("\(number): \(AgentLine(Array(line.utf8)))")
                continue
            }
            #expect(delivery.number == 12 && delivery.policy == .auth)
        }
    }

    @Test("a wait whose time is over already returns")
    func waitIsOver() throws {
        try WakePipe().wait(for: nil, writing: false, atMost: .seconds(-5))
    }

    @Test("no cut or changed byte of a good line traps")
    func mutations() {
        let line = AgentFrame.ready(.initial).json
        for index in line.indices {
            _ = AgentLine(Array(line[..<index]))
            for byte: UInt8 in [0, 0x22, 0x5C, 0x7B, 0x7D, 0xFF] {
                var changed = line
                changed[index] = byte
                _ = AgentLine(changed)
            }
        }
    }

    @Test("frames before the welcome, and deliveries before ready, drop the connection")
    func wrongOrder() throws {
        for frame in [
            AgentFrame.ready(.initial), .deliver(number: 1, .managed(.managed)),
        ] {
            var session = Session()
            try session.session.start(as: Session.registration())
            session.connect(welcome: false)
            session.receive(frame)
            #expect(session.dropped?.code == .badFrame)
            #expect(session.run() == [])
        }
        var session = Session()
        try session.session.start(as: Session.registration())
        session.connect()
        session.deliver(1, .auth(.authorized, message: ""))
        #expect(session.dropped?.code == .badFrame)
        #expect(session.session.inbox.allSatisfy { if case .call = $0 { true } else { false } })
    }

    @Test("answers to nothing are passed over")
    func unasked() throws {
        var session = try Session.ready()
        session.receive(.displayed(id: 99, true))
        session.receive(.codeResult(true))
        session.receive(.passcodeResult(PasscodeResult(.done)))
        session.receive(.welcome(agent: "again", device: Session.device))
        #expect(session.effects == [])
    }

    @Test("a flood of deliveries keeps one of each kind, the newest")
    func flood() throws {
        var session = try Session.ready()
        for number in 1...5_000 { session.deliver(Int64(number), .config(["n": "\(number)"])) }
        #expect(session.session.inbox.count == 1)
        #expect(session.run() == [changed(5_000, .config(["n": "5000"]))])
    }

    @Test("lines are cut wherever the chunks end, and one that is too long ends it")
    func splitter() {
        var splitter = LineSplitter(limit: 5)
        #expect(splitter.lines(in: Array("ab\ncd".utf8)) == [Array("ab".utf8)])
        #expect(splitter.lines(in: Array("e\n\n12345\n".utf8)) == [Array("cde".utf8), [], Array("12345".utf8)])
        #expect(splitter.lines(in: Array("x\n123456".utf8)) == [Array("x".utf8)])
        #expect(splitter.isOverflown)
        #expect(splitter.lines(in: Array("\na\n".utf8)) == [])
    }

    @Test(
        "the next try waits longer each time, up to two seconds or thirty, and not at all after a connection that lasted"
    )
    func backOff() {
        var backOff = BackOff()
        #expect(backOff.next(after: .seconds(60), spread: 1) == .zero)
        #expect(backOff.next(after: .zero, spread: 1) == .milliseconds(50))
        #expect(backOff.next(after: .zero, spread: 0) == .milliseconds(50))
        for _ in 0..<100 { _ = backOff.next(after: .zero, spread: 1) }
        #expect(backOff.next(after: .zero, spread: 1) == .seconds(2))
        #expect(backOff.next(after: .zero, isRefused: true, spread: 1) == .seconds(30))
        #expect(backOff.next(after: .seconds(1), spread: 1) == .zero)
    }
}
