import Testing

@testable import FleetProtocol

@Suite("Desired documents")
struct DesiredTests {
    private func value(_ aspect: Aspect, _ text: String) throws -> DesiredValue {
        try JSONReader.read(Array(text.utf8), limit: 10_000) { try DesiredValue(of: aspect, from: &$0) }
    }

    @Test(
        "an auth value that is not understood counts as unauthorized, and says so",
        arguments: [
            #"{"state":"trusted"}"#, #"{"state":1}"#, #"{"state":null}"#, #"{"state":["authorized"]}"#, "{}", "[]", "7",
            "null",
            #""authorized""#, #"{"state":"Authorized"}"#, #"{"state":"authorized","message":7}"#,
            #"{"State":"authorized"}"#,
            #"{"state":"authorized\u0000"}"#,
        ])
    func auth(_ text: String) throws {
        let value = try value(.auth, text)
        #expect(value.content == .auth(.unauthorized, message: PolicyValue.defaultMessage))
        #expect(Array(value.problems.keys) == [.auth])
    }

    @Test(
        "a dlp member that is not understood is unauthorized, for that policy alone",
        arguments: Policy.allCases.filter { $0.aspect == .dlp },
        [
            #""trust""#, "1", "null", "{}", "[]", #"{"policy":"whitelist"}"#, #"{"policy":"x","apps":[]}"#,
            #"{"policy":"whitelist","apps":["a b"]}"#,
        ])
    func dlp(_ policy: Policy, _ wrong: String) throws {
        let open: [Policy: String] = [
            .openIn: #"{"policy":"authorized"}"#, .openFrom: #"{"policy":"authorized"}"#, .pasteboard: #""authorized""#,
            .print: #""authorized""#, .dragAndDrop: #""allApps""#,
        ]
        let members = open.sorted { $0.key < $1.key }.map {
            #""\#($0.key.rawValue)":\#($0.key == policy ? wrong : $0.value)"#
        }
        let value = try value(.dlp, "{\(members.joined(separator: ","))}")
        guard case .dlp(let dlp) = value.content else {
            Issue.record("no dlp: \(value)")
            return
        }
        #expect(Array(value.problems.keys) == [policy])
        #expect(dlp.openIn == (policy == .openIn ? .unauthorized : .authorized))
        #expect(dlp.openFrom == (policy == .openFrom ? .unauthorized : .authorized))
        #expect(dlp.pasteboard == (policy == .pasteboard ? .unauthorized : .authorized))
        #expect(dlp.print == (policy == .print ? .unauthorized : .authorized))
        #expect(dlp.dragAndDrop == (policy == .dragAndDrop ? .notAllowed : .allApps))
    }

    @Test("a dlp value that is no object leaves all of it unauthorized, and says so for each policy")
    func noDLP() throws {
        let value = try value(.dlp, "[]")
        #expect(
            value.content == .dlp(DLP()) && value.problems.keys.sorted() == Policy.allCases.filter { $0.aspect == .dlp }
        )
    }

    @Test("an absent dlp member is unauthorized without a problem")
    func absent() throws {
        let value = try value(.dlp, #"{"print":"authorized"}"#)
        var expected = DLP()
        expected.print = .authorized
        #expect(value == DesiredValue(.dlp(expected)))
    }

    @Test(
        "another aspect that is not understood leaves what was in force",
        arguments: [
            (Aspect.config, #"{"values":{"a":1}}"#), (.config, "{}"), (.logLevel, #"{"level":"trace"}"#),
            (.logLevel, #"{"level":"debug","for":-1}"#), (.secureServices, #"{"locked":"no"}"#),
            (.config, #"{"values":{"é":"1","e\u0301":"2"}}"#),
        ])
    func unreadable(_ aspect: Aspect, _ text: String) throws {
        let value = try value(aspect, text)
        #expect(try self.value(aspect, value.jsonText).content == .unreadable)
        #expect(
            value.content == .unreadable && value.problems.keys.allSatisfy { $0.aspect == aspect }
                && !value.problems.isEmpty)
    }

    @Test("whatever a value is mutated to, it never gives more than it says, and the rest of the text is still read")
    func mutations() throws {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        let texts = [#"{"state":"unauthorized","message":"m"}"#, #"{"state":"retired"}"#].map { Array($0.utf8) }
        for _ in 0..<40_000 {
            var bytes = try generator.pick(texts)
            for _ in 0...generator.number(0...3) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8(generator.number(0x20...0x7E))
            }
            let text = [UInt8(ascii: "[")] + bytes + Array(",7]".utf8)
            let read = try? JSONReader.read(text, limit: 1_000) { reader -> (value: DesiredValue?, last: Int64?) in
                var value: DesiredValue?
                var last: Int64?
                try reader.array { element in
                    if value == nil {
                        value = try DesiredValue(of: .auth, from: &element)
                    } else {
                        last = try element.integer()
                    }
                }
                return (value, last)
            }
            // A mutated text may hold a comma and a number, or end before its time: then it is refused as a whole.
            if let read { #expect(read.last == 7, "\(String(decoding: bytes, as: UTF8.self)), seed \(seed)") }
            if case .auth(.authorized, _) = read?.value?.content {
                Issue.record("\(String(decoding: bytes, as: UTF8.self)), seed \(seed)")
            }
        }
    }

    // MARK: Documents

    private let topic = "fleet/v1/demo/desired/all/mail/auth"

    private func document(_ more: String, topic: String? = nil, version: String = "1") throws -> DesiredDocument {
        let text =
            #"{"v":\#(version),"fleet":"\#(Vectors.fleetUUID)","topic":"\#(topic ?? self.topic)","epoch":1,"revision":42,"#
            + #""change":42,"issuedAt":"2026-11-21T07:24:00.000Z"\#(more)}"#
        return try DesiredDocument(payload: Array(text.utf8), in: Format.fleet)
    }

    @Test("a document that is written is read as it was")
    func roundTrip() throws {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let desired = try generator.desired()
            // Messages lose their control characters on the way.
            let again = try DesiredDocument(payload: desired.json, in: Format.fleet)
            #expect(try DesiredDocument(payload: again.json, in: Format.fleet) == again, "seed \(seed)")
            #expect(
                again.address == desired.address && again.revision == desired.revision && again.change == desired.change
            )
        }
    }

    @Test("a tombstone has no value, and every other document has one")
    func tombstones() throws {
        #expect(try document(#","deleted":true"#).isTombstone)
        #expect(try !document(#","deleted":false,"value":{"state":"authorized"}"#).isTombstone)
        for more in [
            "", #","deleted":false"#, #","deleted":true,"value":{}"#, #","deleted":"true""#, #","deleted":null"#,
        ] {
            #expect(throws: FleetProtocolError.self, "\(more)") { try document(more) }
        }
    }

    @Test("a document of another version is refused by its version, wherever that stands")
    func versions() {
        for version in ["2", "0", "9007199254740991"] {
            #expect { try document(#","value":{}"#, version: version) } throws: {
                ($0 as? FleetProtocolError)?.code == .version
            }
        }
    }

    @Test(
        "a document stands at no topic but those below desired",
        arguments: [
            "fleet/v1/other/desired/all/mail/auth", "fleet/v1/demo/desired/all/_fleet/trust",
            "fleet/v1/demo/control/heartbeat",
            "fleet/v1/demo/presence/till-1", "fleet/v1/demo/reply/till-1/mail/status", "fleet/v1/demo/desired/all/mail",
            "",
        ])
    func topics(_ topic: String) {
        for more in [#","deleted":true"#, #","value":{"state":"authorized"}"#] {
            #expect { try document(more, topic: topic) } throws: { ($0 as? FleetProtocolError)?.code == .mismatch }
        }
    }

    @Test("revisions are ordered by epoch first")
    func revisions() {
        #expect(Revision(epoch: 1, number: 900) < Revision(epoch: 2, number: 1))
        #expect(Revision(epoch: 2, number: 1) < Revision(epoch: 2, number: 2))
        #expect(
            Revision(epoch: 1, number: 42).description == "42" && Revision(epoch: 2, number: 42).description == "2:42")
    }
}
