import DeviceAgent
import FleetProtocol
import Foundation
import TestSupport
import Testing

@Suite("Apps at the agent's socket")
struct AgentLinkTests {
    private let port: UInt16 = 1  // nobody: apps are served without a broker, too

    private func refusal(_ client: LinkClient) async throws -> AgentFrame.Refusal? {
        guard case .refused(let code, _)? = try await client.next() else { return nil }
        #expect(try await client.next() == nil, "the connection is closed behind a refusal")
        return code
    }

    private func isWelcome(_ client: LinkClient) async throws -> Bool {
        if case .welcome? = try await client.next() { true } else { false }
    }

    /// Whether that text was shown; nil when the connection ends before.
    private func isShown(_ id: Int64, _ client: LinkClient) async throws -> Bool? {
        while let frame = try await client.next() {
            if case .displayed(id, let isShown) = frame { return isShown }
        }
        return nil
    }

    @Test("who may be which app is what apps.d says, at once, and a broken file opens nothing")
    func access() async throws {
        try await withFixture { fixture in
            let agent = try AgentFolder(fixture, fleet: TestFleet(), port: port)
            _ = try await agent.start(fixture)
            func register(_ app: AppID, token: String? = nil) throws -> LinkClient {
                let client = try LinkClient(agent.socket)
                client.register(app, token: token)
                return client
            }
            #expect(try await isWelcome(register(mail)))
            try agent.write("{", to: "apps.d/broken.json", mode: 0o600)
            #expect(try await refusal(register(notes)) == .notAllowed)
            try agent.write(#"{"v":1,"app":"\#(notes)","uid":\#(geteuid() + 1)}"#, to: "apps.d/a.json", mode: 0o644)
            #expect(try await refusal(register(notes)) == .notAllowed)
            for mode in [0o666, 0o664] {
                try agent.write(#"{"v":1,"app":"\#(notes)","uid":\#(geteuid())}"#, to: "apps.d/b.json", mode: mode)
                #expect(try await refusal(register(notes)) == .notAllowed)
            }
            try agent.write(#"{"v":1,"app":"\#(notes)","uid":\#(geteuid())}"#, to: "apps.d/b.json", mode: 0o644)
            #expect(try await isWelcome(register(notes)))
            let token = #"{"v":1,"app":"com.example.pay","token":"0123456789abcdef"}"#
            let pay = AppID(unchecked: "com.example.pay")
            try agent.write(token, to: "apps.d/pay.json", mode: 0o644)
            #expect(try await refusal(register(pay, token: "0123456789abcdef")) == .notAllowed)
            try agent.write(token, to: "apps.d/pay.json", mode: 0o600)
            #expect(try await refusal(register(pay, token: "0123456789abcdee")) == .notAllowed)
            #expect(try await refusal(register(pay)) == .notAllowed)
            #expect(try await isWelcome(register(pay, token: "0123456789abcdef")))
            // Where a file names both, both must fit.
            let both = AppID(unchecked: "com.example.both")
            for (user, isRight) in [(geteuid() + 1, false), (geteuid(), true)] {
                let grant = #"{"v":1,"app":"\#(both)","uid":\#(user),"token":"0123456789abcdef"}"#
                try agent.write(grant, to: "apps.d/both.json", mode: 0o600)
                #expect(try await refusal(register(both)) == .notAllowed)
                #expect(try await refusal(register(both, token: "0123456789abcdee")) == .notAllowed)
                #expect(try await isWelcome(register(both, token: "0123456789abcdef")) == isRight)
            }
            // com.example.mail was welcome while no file named anybody.
            #expect(try await refusal(register(mail)) == .notAllowed)
            chmod("\(agent.folder.path)/apps.d", 0o770)
            #expect(try await refusal(register(notes)) == .notAllowed)
            chmod("\(agent.folder.path)/apps.d", 0o700)
            #expect(try await isWelcome(register(notes)))
        }
    }

    @Test("what is no frame, too long, or out of turn ends its connection alone")
    func garbage() async throws {
        try await withFixture { fixture in
            let agent = try AgentFolder(fixture, fleet: TestFleet(), port: port)
            let process = try await agent.start(fixture)
            let good = try LinkClient(agent.socket)
            good.register(mail)
            #expect(try await isWelcome(good))
            let line = { (text: String) in Array((text + "\n").utf8) }
            for (bytes, code) in [
                (line("hello"), AgentFrame.Refusal.invalid), (line(""), .invalid), (line("{}"), .invalid),
                (line(#"{"type":"ready"}"#), .invalid), (line(#"{"type":"nothing"}"#), .invalid),
                ([0xFF, 0x00, 0x0A], .invalid), (line(#"{"type":"register","v":9}"#), .version),
                ([UInt8](repeating: 0x20, count: Link.maximumLine + 10), .invalid),
                (line(String(repeating: "[", count: 10_000)), .invalid),
                (line(#"{"\n2026 forged":{"a":1,"a":1}}"#), .invalid),
            ] {
                let client = try LinkClient(agent.socket)
                client.send(bytes)
                #expect(try await refusal(client) == code, "\(String(decoding: bytes.prefix(40), as: UTF8.self))")
            }
            let registration = AppFrame.register(
                Registration(app: notes, install: .random(), launch: .random(), sdk: "t", implements: []))
            // Behind a refused line nothing is heard, not even a registration.
            let late = try LinkClient(agent.socket)
            late.send(line("garbage") + registration.json + [0x0A])
            #expect(try await refusal(late) == .invalid)
            let half = try LinkClient(agent.socket)
            half.send(Array(registration.json.dropLast(5)))
            half.end()
            let twice = try LinkClient(agent.socket)
            twice.send(registration.json + [0x0A])
            #expect(try await isWelcome(twice))
            let third = try LinkClient(agent.socket)
            third.register(mail)
            #expect(try await refusal(third) == .inUse)
            twice.send(registration.json + [0x0A])
            #expect(try await refusal(twice) == .invalid)
            let again = try LinkClient(agent.socket)
            again.send(registration.json + [0x0A])
            #expect(try await isWelcome(again), "a connection that ended leaves nothing behind")
            good.send(.blocked(.copy, target: nil))
            #expect(process.status == nil)
            try await until("the refusal in the log") { process.errors.contains("2026 forged") }
            #expect(!process.errors.contains("\n2026 forged"), "nobody writes lines of the agent's log")
        }
    }

    @Test("64 apps are served at a time, one more is refused, and who says nothing is sent away")
    func many() async throws {
        try await withFixture { fixture in
            let agent = try AgentFolder(fixture, fleet: TestFleet(), port: port)
            _ = try await agent.start(fixture)
            let silent = try LinkClient(agent.socket)
            let clients = try (0..<64).map { number in
                let client = try LinkClient(agent.socket)
                client.register(AppID(unchecked: "app-\(number)"))
                return client
            }
            for client in clients { #expect(try await isWelcome(client)) }
            let further = try LinkClient(agent.socket)
            further.register(AppID(unchecked: "app-64"))
            #expect(try await refusal(further) == .tooMany)
            #expect(try await refusal(silent) == .invalid)
            clients[0].end()
            let back = try LinkClient(agent.socket)
            back.register(AppID(unchecked: "app-0"))
            #expect(try await isWelcome(back))
        }
    }

    @Test("whoever opens connections without end and says nothing keeps no app off, and none is lost for it")
    func silent() async throws {
        try await withFixture { fixture in
            let agent = try AgentFolder(fixture, fleet: TestFleet(), port: port)
            _ = try await agent.start(fixture)
            let good = try LinkClient(agent.socket)
            good.register(mail)
            #expect(try await isWelcome(good))
            let silent = try (0..<300).map { _ in try LinkClient(agent.socket) }
            let late = try LinkClient(agent.socket)
            late.register(notes)
            // Before its own time to say something is over.
            silent[299].register(AppID(unchecked: "com.example.pay"))
            #expect(try await isWelcome(late))
            #expect(try await isWelcome(silent[299]))
            #expect(try await refusal(silent[0]) == .invalid)
            #expect(try await refusal(silent[200]) == .invalid)
            good.send(Array("{}\n".utf8))
            #expect(try await refusal(good) == .invalid, "it is still there, and heard")
        }
    }

    @Test("an app that says very much at once is heard to the end, in order")
    func backPressure() async throws {
        try await withFixture { fixture in
            let agent = try AgentFolder(fixture, fleet: TestFleet(), port: port)
            _ = try await agent.start(fixture)
            let client = try LinkClient(agent.socket)
            client.register(mail)
            #expect(try await isWelcome(client))
            var lines: [UInt8] = []
            for number in 1...20_000 { lines += AppFrame.display(id: Int64(number), text: "x").json + [0x0A] }
            let sending = Task.detached { client.send(lines) }  // awaited below
            var shown = 0
            for number in 1...20_000 {
                guard case .displayed(let id, let isShown)? = try await client.next() else {
                    Issue.record("no answer to \(number)")
                    break
                }
                #expect(id == Int64(number))
                #expect(isShown || number > 20, "so many of an app are written in a minute at least")
                if isShown { shown += 1 }
            }
            #expect(shown < 20_000, "all of them would fill the log")
            await sending.value
        }
    }

    @Test("what a display command leaves in the background keeps no later text from being shown")
    func displayInBackground() async throws {
        try await withFixture { fixture in
            var agent = try AgentFolder(fixture, fleet: TestFleet(), port: port)
            let (pids, text) = ("\(agent.folder.path)/pids", "\(agent.folder.path)/text")
            let script = "sleep 600 & echo $! >> \(pids); cat >> \(text); exit $(wc -l < \(pids))"
            agent.members["displayCommand"] = #"["/bin/sh","-c","\#(script)"]"#
            try agent.write()
            _ = try await agent.start(fixture)
            let client = try LinkClient(agent.socket)
            client.register(mail)
            #expect(try await isWelcome(client))
            for number in 1...2 {
                client.send(.display(id: Int64(number), text: "text \(number);"))
                // The script ends with how often it has run.
                #expect(try await isShown(Int64(number), client) == false)
            }
            #expect(try String(contentsOfFile: text, encoding: .utf8) == "text 1;text 2;")
            for line in try String(contentsOfFile: pids, encoding: .utf8).split(separator: "\n") {
                let pid = try #require(pid_t(line))
                #expect(kill(pid, SIGKILL) == 0, "it still ran")
            }
        }
    }

    @Test("an app that shows more than four texts at a time is told no, and another one is shown its own")
    func displayPlaces() async throws {
        try await withFixture { fixture in
            var agent = try AgentFolder(fixture, fleet: TestFleet(), port: port)
            let go = "\(agent.folder.path)/go"
            agent.members["displayCommand"] = #"["/bin/sh","-c","until [ -e \#(go) ]; do sleep 0.05; done"]"#
            try agent.write()
            _ = try await agent.start(fixture)
            let (greedy, other) = (try LinkClient(agent.socket), try LinkClient(agent.socket))
            greedy.register(mail)
            other.register(notes)
            #expect(try await isWelcome(greedy))
            #expect(try await isWelcome(other))
            for number in 1...20 { greedy.send(.display(id: Int64(number), text: "x")) }
            for number in 5...20 { #expect(try await isShown(Int64(number), greedy) == false) }
            other.send(.display(id: 1, text: "y"))
            try Data().write(to: URL(fileURLWithPath: go))
            #expect(try await isShown(1, other) == true)
        }
    }

    @Test("a display command can be ended by any signal, and none is ignored for it")
    func displaySignals() async throws {
        try await withFixture { fixture in
            var agent = try AgentFolder(fixture, fleet: TestFleet(), port: port)
            let signals = "\(agent.folder.path)/signals"
            agent.members["displayCommand"] =
                #"["/bin/sh","-c","grep -E '^Sig(Blk|Ign)' /proc/self/status > \#(signals)"]"#
            try agent.write()
            _ = try await agent.start(fixture)
            let client = try LinkClient(agent.socket)
            client.register(mail)
            #expect(try await isWelcome(client))
            client.send(.display(id: 1, text: "x"))
            #expect(try await isShown(1, client) == true)
            let told = try String(contentsOfFile: signals, encoding: .utf8)
            let masks = told.split(separator: "\n").compactMap { UInt64($0.suffix(16), radix: 16) }
            // 32 and 33 are the C library's own.
            #expect(masks.count == 2 && masks.allSatisfy { $0 & ~(0b11 << 31) == 0 }, "\(told)")
        }
    }

    @Test("a display command that is not there shows nothing, and the log says why")
    func displayMissing() async throws {
        try await withFixture { fixture in
            var agent = try AgentFolder(fixture, fleet: TestFleet(), port: port)
            agent.members["displayCommand"] = #"["/nonexistent/show"]"#
            try agent.write()
            let process = try await agent.start(fixture)
            let client = try LinkClient(agent.socket)
            client.register(mail)
            #expect(try await isWelcome(client))
            client.send(.display(id: 1, text: "x"))
            #expect(try await isShown(1, client) == false)
            try await until("the log says it") { process.errors.contains("cannot start /nonexistent/show") }
        }
    }

    @Test("an app that does not read costs nothing while others show texts, and hears in the end how it is")
    func activityUnread() async throws {
        try await withFixture { fixture in
            var agent = try AgentFolder(fixture, fleet: TestFleet(), port: port)
            agent.members["displayCommand"] = #"["/bin/true"]"#
            try agent.write()
            _ = try await agent.start(fixture)
            let (deaf, client) = (try LinkClient(agent.socket), try LinkClient(agent.socket))
            deaf.register(notes)
            client.register(mail)
            let texts = 3_000
            for number in 1...texts {
                // One app has a few places, which are free again when the agent has heard of the end of the command.
                try await until("text \(number) is shown") {
                    client.send(.display(id: Int64(number), text: "x"))
                    return try await self.isShown(Int64(number), client) == true
                }
            }
            deaf.send(.display(id: 0, text: "the last"))
            var (heard, last): (Int, Bool?) = (0, nil)
            var isShown = false
            while !isShown || last != true, let frame = try await deaf.next() {
                if case .activity(let isActive) = frame { (heard, last) = (heard + 1, isActive) }
                if case .displayed(0, _) = frame { isShown = true }
            }
            #expect(last == true)
            #expect(heard < texts, "of \(2 * texts) changes only those are kept that the connection holds")
        }
    }

    @Test("a display command that does not read its text harms nobody")
    func displayCommand() async throws {
        try await withFixture { fixture in
            var agent = try AgentFolder(fixture, fleet: TestFleet(), port: port)
            agent.members["displayCommand"] = #"["/bin/true"]"#
            try agent.write()
            let process = try await agent.start(fixture)
            let client = try LinkClient(agent.socket)
            client.register(mail)
            #expect(try await isWelcome(client))
            for number in 0..<10 {
                client.send(.display(id: Int64(number), text: String(repeating: "x", count: Link.maximumText)))
                #expect(try await isShown(Int64(number), client) == true)
            }
            #expect(process.status == nil, "\(process.errors)")
        }
    }
}
