import FleetProtocol
import Foundation
import Testing

@testable import AppConnect

@Suite("Copying and pasting")
struct PasteboardTests {
    private let keys = AppKeys(app: Array(repeating: 1, count: 32), shared: Array(repeating: 2, count: 32))
    private let content = PasteboardContent(text: "4711 0815")

    private func session(_ policy: PasteboardPolicy, _ auth: AuthState = .authorized) throws -> Session {
        try .authorized(with: keys) { properties in
            properties[.auth] = .auth(auth, message: "")
            properties[.pasteboard] = .pasteboard(policy)
        }
    }

    private func destination(_ session: inout Session, withPasteboard: Bool = false) throws -> AppSession.Destination {
        let (destination, effects) = try session.session.destination(
            of: content.encoded(), withPasteboard: withPasteboard)
        session.effects += effects
        return destination
    }

    @Test("what may be read by anybody goes to the app's own pasteboard, or, where it has none, to the agent")
    func unsecured() throws {
        var session = try session(.authorized)
        #expect(try destination(&session, withPasteboard: true) == .device)
        #expect(try destination(&session) == .agent(PasteboardItem(try content.encoded(), isSecured: false)))
    }

    @Test("what is confined goes to the agent, encrypted each time anew, and comes back for whoever has the keys")
    func confined() throws {
        var session = try session(.secureCopy)
        guard case .agent(let item) = try destination(&session, withPasteboard: true),
            case .agent(let other) = try destination(&session)
        else {
            Issue.record("it goes elsewhere")
            return
        }
        #expect(item.isSecured && item.content != other.content)
        #expect(!String(decoding: item.content, as: UTF8.self).contains("4711"))
        #expect(session.session.content(of: item) == content)
        var changed = item
        changed.content[20] ^= 1
        #expect(session.session.content(of: changed) == nil)
        // Another app of the device has another key of its own, and the same secret of all.
        session.receive(.keys(AppKeys(app: Array(repeating: 3, count: 32), shared: Array(repeating: 2, count: 32))))
        #expect(session.session.content(of: item) == content)
        session.receive(.keys(AppKeys(app: Array(repeating: 1, count: 32), shared: Array(repeating: 3, count: 32))))
        #expect(session.session.content(of: item) == nil)
        session.receive(.keys(nil))
        #expect(session.session.content(of: item) == nil)
        #expect(throws: SecureFileError.self) { try destination(&session) }
    }

    @Test("what no policy allows is reported, and goes nowhere; an app that is not authorized copies nothing")
    func blocked() throws {
        for (policy, auth) in [
            (PasteboardPolicy.unauthorized, AuthState.authorized), (.authorized, .unauthorized),
            (.secureCopy, .unauthorized), (.secureCopy, .retired),
        ] {
            var session = try session(policy, auth)
            #expect(try destination(&session, withPasteboard: true) == .nowhere)
            #expect(session.sent() == [.blocked(.copy, target: nil, number: 1)])
        }
    }

    @Test("copying where anybody can read it is blocked for an app that may copy to authorized ones alone")
    func confinedRequest() throws {
        var session = try session(.secureCopy)
        #expect(try session.session.request(.copy).0 == false)
        #expect(session.run() == [.attempted(.copy(.secureCopy))])
    }

    @Test("the agent is asked where it is there and knows of it, and what it never answered ends with the connection")
    func asks() throws {
        var session = try session(.authorized)
        let (copying, effects) = session.session.copy(PasteboardItem([1], isSecured: false))
        #expect(effects == [.send(.copy(id: 1, PasteboardItem([1], isSecured: false)))])
        let (pasting, more) = session.session.paste()
        #expect(more == [.send(.paste(id: 2))])
        session.receive(.copied(id: 1, true))
        #expect(copying == 1 && session.effects == [.answered(id: 1, .done(true))])
        session.effects = []
        session.lose()
        #expect(pasting == 2 && session.effects.contains(.answered(id: 2, .unanswered)))
        #expect(session.session.paste().0 == nil)
        session.connect(hasPasteboard: false)
        #expect(session.session.paste().0 == nil && session.session.copy(nil).0 == nil)
    }

    @Test("no more than four are under way, whatever else the agent is asked; what only empties always goes")
    func atMost() throws {
        var session = try session(.authorized)
        for _ in 0..<10 { #expect(session.session.display("x").0 != nil) }
        for id in 11...14 { #expect(session.session.paste().0 == Int64(id)) }
        #expect(session.session.paste().0 == nil)
        #expect(session.session.copy(PasteboardItem([1], isSecured: false)).0 == nil)
        #expect(session.session.copy(nil).0 == 15)
        session.receive(.pasted(id: 11, nil))
        session.receive(.copied(id: 15, true))
        #expect(session.session.paste().0 == 16)
        session.session.forgetQuestion(12)
        #expect(session.session.paste().0 == 17)
    }

    @Test("before ready and after stop throws")
    func illegal() throws {
        var session = Session()
        #expect(throws: AppConnectError.self) { try destination(&session) }
        session = try self.session(.authorized)
        _ = session.session.stop()
        #expect(throws: AppConnectError.self) { try destination(&session) }
    }

    @Test("what is too long, or of no type, is refused with what is wrong about it")
    func limits() throws {
        let largest = [UInt8](repeating: 7, count: PasteboardContent.maximumSize)
        let encoded = try PasteboardContent(largest, type: "image/png").encoded()
        #expect(PasteboardContent(encoded: encoded) == PasteboardContent(largest, type: "image/png"))
        // Encrypted, it has its place in a line.
        let item = try keys.sealed(encoded)
        #expect(item.content.count <= PasteboardItem.maximumSize)
        #expect(AppFrame.copy(id: .max >> 10, item).json.count <= Link.maximumLine)
        for content in [
            PasteboardContent(largest + [1], type: "text/plain"), PasteboardContent([], type: ""),
            PasteboardContent([], type: "a\0b"), PasteboardContent([], type: String(repeating: "t", count: 128)),
        ] {
            let error = #expect(throws: AppConnectError.self) { try content.encoded() }
            #expect(error?.code == .invalidContent)
        }
        let strangers: [[UInt8]] = [
            [], [0], [0, 1], Array("text".utf8), [255, 0], Array(repeating: 116, count: 128) + [0],
            [116, 0] + largest + [1],
        ]
        for bytes in strangers {
            #expect(PasteboardContent(encoded: bytes) == nil)
        }
        #expect(PasteboardContent(text: "é").text == "é")
        #expect(PasteboardContent([255], type: "text/plain").text == nil)
        #expect(PasteboardContent(Array("a".utf8), type: "image/png").text == nil)
    }

    @Test("what another program has encrypted is read")
    func vectors() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "schemas/vectors/pasteboard.json")
        let vectors = try JSONValue(json: [UInt8](try Data(contentsOf: file)), limit: 10_000)
        func bytes(_ value: JSONValue?) throws -> [UInt8] {
            try #require(value?.stringValue.flatMap { Base64URL.decode($0.utf8) })
        }
        var session = try session(.secureCopy)
        let shared = try bytes(vectors["shared"])
        session.receive(.keys(AppKeys(app: shared, shared: shared)))
        let contents = try #require(vectors["contents"]?.arrayValue)
        #expect(contents.count == 2)
        for vector in contents {
            let content = PasteboardContent(
                try bytes(vector["data"]), type: try #require(vector["type"]?.stringValue))
            let item = PasteboardItem(try bytes(vector["encrypted"]), isSecured: true)
            #expect(session.session.content(of: item) == content)
        }
    }
}
