import FleetProtocol
import Testing

@testable import AppConnect

@Suite("A request")
struct RequestTests {
    private static let notes = AppID(unchecked: "com.example.notes")
    private static let other = AppID(unchecked: "com.other")

    private func properties(_ values: PolicyValue...) -> AppProperties {
        var properties = AppProperties.initial
        for value in values { properties[value.policy] = value }
        return properties
    }

    @Test(
        "is allowed by what the policy says",
        arguments: [
            (DataRequest.copy, PolicyValue.pasteboard(.unauthorized), false),
            (.copy, .pasteboard(.authorized), true),
            // What is confined goes another way, see PasteboardTests.
            (.copy, .pasteboard(.secureCopy), false),
            (.openIn(notes), .openIn(.unauthorized, whitelist: [notes]), false),
            (.openIn(notes), .openIn(.authorized, whitelist: []), true),
            (.openIn(notes), .openIn(.whitelist, whitelist: [notes]), true),
            (.openIn(other), .openIn(.whitelist, whitelist: [notes]), false),
            (.openURL("https://example.com", nil), .openIn(.unauthorized, whitelist: []), false),
            (.openURL("https://example.com", nil), .openIn(.authorized, whitelist: []), true),
            (.openURL("https://example.com", nil), .openIn(.whitelist, whitelist: [notes]), false),
            (.openURL("https://example.com", notes), .openIn(.whitelist, whitelist: [notes]), true),
            (.openFrom(notes), .openFrom(.whitelist, whitelist: [notes]), true),
            (.openFrom(other), .openFrom(.whitelist, whitelist: [notes]), false),
            (.openFrom(other), .openFrom(.authorized, whitelist: []), true),
            (.print, .print(.unauthorized), false),
            (.print, .print(.authorized), true),
            (.dragAndDrop(notes), .dragAndDrop(.notAllowed), false),
            (.dragAndDrop(Session.app), .dragAndDrop(.notAllowed), true),
            (.dragAndDrop(notes), .dragAndDrop(.appConnectApps, apps: [other]), false),
            (.dragAndDrop(notes), .dragAndDrop(.appConnectApps, apps: [notes, other]), true),
            (.dragAndDrop(notes), .dragAndDrop(.allApps), true),
        ])
    func allowed(_ request: DataRequest, _ value: PolicyValue, _ isAllowed: Bool) {
        let authorized = properties(value, .auth(.authorized, message: ""))
        #expect((request.blocked(by: authorized, in: Session.app) == nil) == isAllowed)
        // Whatever its policies say, an app that is not authorized may do none of it, but within itself.
        if request == .dragAndDrop(Session.app) { return }
        #expect(request.blocked(by: properties(value), in: Session.app) != nil)
        #expect(request.blocked(by: properties(value, .auth(.retired, message: "")), in: Session.app) != nil)
    }

    @Test("that is blocked is reported with what it was aimed at, and the delegate told")
    func blocked() throws {
        var session = try Session.ready()
        let (isAllowed, effects) = try session.session.request(.openIn(Self.other))
        #expect(!isAllowed)
        #expect(effects.contains(.send(.blocked(.openIn, target: "com.other", number: 1))))
        #expect(session.run() == [.attempted(.openIn(.unauthorized, Self.other))])
    }

    @Test("that is blocked is reported also where the app has no callback for it")
    func withoutCallback() throws {
        var session = try Session.ready(callbacks: [])
        let effects = try session.session.request(.print).1
        #expect(effects.contains(.send(.blocked(.print, target: nil, number: 1))))
        #expect(session.run() == [])
    }

    @Test("before ready and after stop throws")
    func illegal() throws {
        var session = AppSession()
        #expect(throws: AppConnectError.self) { try session.request(.copy) }
        _ = session.stop()
        #expect(throws: AppConnectError.self) { try session.request(.copy) }
    }

    @Test("in a flood keeps a bounded number of calls and reports")
    func flood() throws {
        var session = try Session.ready()
        session.lose()
        for _ in 0..<10_000 { _ = try session.session.request(.copy) }
        #expect(session.session.inbox.count <= AppSession.maximumCalls)
        #expect(session.session.requests.count <= session.session.maximumRequests)
    }

    @Test("in a flood costs no word that the screen is back")
    func floodWithActivity() throws {
        var session = try Session.ready()
        session.receive(.activity(isActive: false))
        let resigning = try session.mustBegin()
        session.receive(.activity(isActive: true))
        for _ in 0..<1_000 { _ = try session.session.request(.copy) }
        session.finish(resigning)
        #expect(session.run().contains(.activity(isActive: true)))
    }

    @Test("in a flood costs no acknowledgement that waits with them")
    func floodBeforeWelcome() throws {
        var session = try Session.ready()
        session.deliver(1, .config(["a": "1"]))
        session.run()
        session.lose()
        session.connect(welcome: false)
        _ = session.sent()
        try session.acknowledge(.config, .applied)
        for _ in 0..<1_000 { _ = try session.session.request(.copy) }
        session.welcome()
        let sent = session.sent()
        #expect(sent.contains { if case .acknowledge = $0 { true } else { false } })
        #expect(sent.count == session.session.maximumRequests + 1)
    }
}
