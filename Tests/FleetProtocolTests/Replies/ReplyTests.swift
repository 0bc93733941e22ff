import FleetProtocol
import Testing

@Suite("Replies")
struct ReplyTests {
    /// The longest id, and texts that grow most when they are written.
    private let long = String(repeating: "x", count: 48)
    private static let texts = ["\u{0}", "\"", "\\", "漢", "😀", "a", "\u{1B}\"漢"]

    @Test("a status never exceeds its size, whatever its texts, and is read again", arguments: texts)
    func statusSize(_ piece: String) throws {
        let text = String(repeating: piece, count: 4_000)
        var generator = SeededGenerator(seed: 11)
        let fleet = FleetID(unchecked: long)
        var status = try generator.status()
        status.fleet = fleet
        status.device = DeviceID(unchecked: long)
        status.app = AppID(unchecked: long)
        status.agent = text
        status.sdk = text
        status.authMessage = text
        status.refusals = (0..<20).map { _ in Status.Refusal(topic: text, reason: text, at: status.at) }
        let source = Address.desired(.device(status.device), status.app, .secureServices)
        status.policies = Policy.allCases.map { _ in
            PolicyReport(
                source: source, received: JSONValue.largestInteger, applied: JSONValue.largestInteger,
                attempt: PolicyReport.Attempt(
                    revision: JSONValue.largestInteger, outcome: .unsupported, message: text, at: status.at))
        }
        let wire = status.wire
        #expect(wire.count <= Status.maximumSize)
        let read = try Status(wire: wire, fleet: fleet, device: status.device, app: status.app)
        #expect(read.order == status.order && read.policies.map(\.source) == status.policies.map(\.source))
    }

    @Test("reports that differ in one thing alone are each read as they are")
    func alike() throws {
        var generator = SeededGenerator(seed: 19)
        var status = try generator.status()
        let source = Address.desired(.all, status.app, .dlp)
        let attempt = PolicyReport.Attempt(revision: 7, outcome: .error, message: "no", at: status.at)
        let report = PolicyReport(source: source, received: 7, applied: 3, attempt: attempt)
        let changes: [(inout PolicyReport) -> Void] = [
            { _ in }, { $0.attempt.message = "not so" }, { $0.attempt.message = nil },
            { $0.attempt.outcome = .rejected },
            { $0.attempt.at = $0.attempt.at.advanced(bySeconds: 1) }, { $0.attempt.revision = 6 }, { $0.applied = 4 },
            { $0.received = 8 }, { $0.source = .desired(.device(status.device), status.app, .dlp) },
        ]
        for change in changes {
            var other = report
            change(&other)
            status.policies = Policy.allCases.map { $0.index % 2 == 0 ? report : other }
            let read = try Status(wire: status.wire, fleet: status.fleet, device: status.device, app: status.app)
            #expect(read.policies == status.policies)
        }
    }

    @Test("an outcome and a reason that only a newer agent knows cost nothing of the rest of a status")
    func newerStatus() throws {
        var generator = SeededGenerator(seed: 17)
        var status = try generator.status()
        status.keys = .destroyed
        status.authReason = .outOfContact
        status.policies[0].attempt.outcome = .expired
        var text = String(decoding: status.wire, as: UTF8.self)
        text = text.replacing(#""reason":"outOfContact""#, with: #""reason":"legalHold""#)
            .replacing(#""outcome":"expired""#, with: #""outcome":"deferred""#)
        func read(_ wire: [UInt8]) throws -> Status {
            try Status(wire: wire, fleet: status.fleet, device: status.device, app: status.app)
        }
        var expected = try read(status.wire)
        expected.authReason = .none
        for index in expected.policies.indices where expected.policies[index].attempt.outcome == .expired {
            expected.policies[index].attempt.outcome = .pending
        }
        #expect(try read(Array(text.utf8)) == expected)
    }

    @Test("a status that fits is not cut")
    func statusWhole() throws {
        var generator = SeededGenerator(seed: 12)
        var status = try generator.status()
        status.policies[0].attempt.message = String(repeating: "m", count: 900)
        let read = try Status(wire: status.wire, fleet: status.fleet, device: status.device, app: status.app)
        #expect(read.policies[0].attempt.message == status.policies[0].attempt.message)
    }

    @Test("an event never exceeds its size, whatever its texts, and is read again", arguments: texts)
    func eventSize(_ piece: String) throws {
        let text = String(repeating: piece, count: 4_000)
        var generator = SeededGenerator(seed: 13)
        var event = try generator.event()
        let most = JSONValue.largestInteger
        event.header = EventHeader(
            device: DeviceID(unchecked: long), app: AppID(unchecked: long), incarnation: most, boot: most, number: most,
            oldest: most, at: event.header.at)
        event.target = text
        event.message = text
        #expect(event.json.count <= AppEvent.maximumSize)
        let read = try AppEvent(wire: event.json, device: event.header.device, app: event.header.app)
        #expect(read.header == event.header && read.json == event.json)
    }

    @Test("a reply that names another device or app than its topic is refused")
    func places() throws {
        var generator = SeededGenerator(seed: 14)
        let other = DeviceID(unchecked: "another")
        let otherApp = AppID(unchecked: "another")
        let status = try generator.status()
        let event = try generator.event()
        let change = try generator.logLevelChange()
        func mismatch(_ error: any Error) -> Bool { (error as? FleetProtocolError)?.code == .mismatch }
        #expect { try Status(wire: status.wire, fleet: status.fleet, device: other, app: status.app) } throws: {
            mismatch($0)
        }
        #expect { try Status(wire: status.wire, fleet: status.fleet, device: status.device, app: otherApp) } throws: {
            mismatch($0)
        }
        #expect { try AppEvent(wire: event.json, device: other, app: event.header.app) } throws: { mismatch($0) }
        #expect { try LogLevelChange(wire: change.json, device: change.header.device, app: otherApp) } throws: {
            mismatch($0)
        }
    }

    @Test("a source of another fleet is refused")
    func source() throws {
        var generator = SeededGenerator(seed: 15)
        var status = try generator.status()
        status.policies[1].source = .desired(.all, status.app, .config)
        #expect {
            try Status(wire: status.wire, fleet: FleetID(unchecked: "other"), device: status.device, app: status.app)
        } throws: {
            ($0 as? FleetProtocolError)?.path.hasSuffix("source") ?? false
        }
    }

    @Test("an event that is older than the oldest that is kept is refused")
    func oldest() throws {
        var generator = SeededGenerator(seed: 16)
        var event = try generator.event()
        event.header.number = 5
        event.header.oldest = 6
        #expect { try AppEvent(wire: event.json, device: event.header.device, app: event.header.app) } throws: {
            ($0 as? FleetProtocolError)?.path == "oldest"
        }
    }

    @Test("reports are ordered by incarnation, boot and sequence")
    func order() {
        func order(_ incarnation: Int64, _ boot: Int64, _ sequence: Int64) -> ReportOrder {
            ReportOrder(incarnation: incarnation, boot: boot, sequence: sequence)
        }
        #expect(order(1, 9, 9) < order(2, 1, 1) && order(2, 1, 9) < order(2, 2, 1) && order(2, 2, 1) < order(2, 2, 2))
    }

    @Test("a presence of 64 apps with every callback fits, and its will has none")
    func presence() throws {
        var generator = SeededGenerator(seed: 17)
        var presence = try generator.presence()
        presence.state = .online
        presence.agent = "fleet-agent/1.0"
        presence.apps = (0..<Presence.maximumApps).map {
            Presence.App(
                id: AppID(unchecked: String(repeating: "x", count: 45) + "\($0)"),
                sdk: String(repeating: "😀", count: 64),
                implements: Callback.allCases.map(\.rawValue))
        }
        #expect(presence.json.count <= Presence.maximumSize)
        #expect(presence.will.apps.isEmpty && presence.will.state == .offline)
        #expect(try Presence(json: presence.will.json, limit: Presence.maximumSize) == presence.will)
    }
}
