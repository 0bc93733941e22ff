import FleetProtocol
import Foundation
import Testing

@testable import AppConnect

@Suite("The link's transcript in schemas/link")
struct TranscriptTests {
    private static let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "schemas/link/transcript.txt")

    private func lines() throws -> [Substring] {
        try String(contentsOf: Self.file, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("#") }
    }

    @Test("is written exactly as the code writes its frames")
    func frames() throws {
        for line in try lines() {
            let bytes = Array(line.dropFirst(2).utf8)
            if line.hasPrefix("> ") {
                #expect(try AppFrame(json: bytes, limit: Link.maximumLine).jsonText == line.dropFirst(2))
            } else {
                #expect(try AgentFrame(json: bytes, limit: Link.maximumLine).jsonText == line.dropFirst(2))
            }
        }
    }

    @Test("is what AppConnect says to an agent that speaks so")
    func replay() throws {
        var session = Session()
        session.callbacks = [.config, .print]
        var said: [AppFrame] = []
        for line in try lines() {
            let bytes = Array(line.dropFirst(2).utf8)
            guard line.hasPrefix("> ") else {
                session.receive(try AgentFrame(json: bytes, limit: Link.maximumLine))
                // The app of the transcript acknowledges these within their callbacks.
                while let call = session.begin() {
                    if call == changed(2, try session.session.reads(.config)) {
                        try session.acknowledge(.config, .applied)
                    }
                    if case .changed(14, _) = call { try session.acknowledge(.auth, .applied) }
                    session.finish(call)
                    said += session.sent()
                }
                continue
            }
            let frame = try AppFrame(json: bytes, limit: Link.maximumLine)
            if said.isEmpty { try act(frame, &session) }
            said += session.sent()
            #expect(said.first == frame, "\(line)")
            said = Array(said.dropFirst())
        }
        #expect(said == [])
    }

    /// What the app of the transcript does of its own accord, so that it says `frame`.
    private func act(_ frame: AppFrame, _ session: inout Session) throws {
        switch frame {
        case .register(var registration):
            if session.session.phase == .created {
                registration.resume = nil
                try session.session.start(as: registration)
            } else {
                session.lose()
            }
            session.connect(welcome: false)
        case .acknowledge(let answer): try session.acknowledge(answer.policy, answer.state, answer.message)
        case .blocked(.openIn, let target, _):
            session.effects += try session.session.request(.openIn(AppID(unchecked: target ?? ""))).1
        case .display(_, let text): session.effects += session.session.display(text).1
        case .copy(_, let item): session.effects += session.session.copy(item).1
        case .paste: session.effects += session.session.paste().1
        case .stop: session.effects += session.session.stop()
        default: break
        }
    }
}
