import Foundation
import Testing

@testable import FleetProtocol

/// Signed examples and test vectors. `FLEETBUS_WRITE_EXAMPLES=1 swift test --filter VectorTests` writes them.
@Suite("Test vectors")
struct VectorTests {
    /// Compares a file below `schemas/` with what the code makes, or writes it.
    private func agree(_ path: String, _ text: String) throws {
        let url = SchemaFolder.url.appending(path: path)
        if SchemaFolder.isWriting {
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: url)
        }
        let found = try? String(contentsOf: url, encoding: .utf8)
        #expect(found == text, "\(path) is old: FLEETBUS_WRITE_EXAMPLES=1 swift test --filter VectorTests writes it")
    }

    /// What a device does with a desired document that arrives at `topic`, as far as it needs no memory.
    private func verify(_ wire: String, at topic: String, with key: VerifyingKey) throws -> DesiredDocument {
        let signed = try SignedDocument(wire: Array(wire.utf8))
        guard signed.kind == .desired else { throw FleetProtocolError(.mismatch, "a document of another kind") }
        guard signed.keyID == key.id else { throw FleetProtocolError(.unknownKey, "another key") }
        guard signed.isSigned(by: key) else { throw FleetProtocolError(.signature, "a wrong signature") }
        let document = try DesiredDocument(payload: signed.payload, in: Format.fleet)
        guard document.topic == topic, document.fleet.text == Vectors.fleetUUID else {
            throw FleetProtocolError(.mismatch, "it belongs elsewhere")
        }
        return document
    }

    @Test("a signed document has the bytes of its vector")
    func jws() throws {
        try agree("vectors/jws.json", Vectors().jws.indented() + "\n")
    }

    @Test("a document is the same however its JSON is written")
    func accepted() throws {
        let vectors = try Vectors()
        for (name, wire) in try vectors.accepted() {
            #expect(throws: Never.self, "\(name)") {
                let document = try verify(wire, at: Vectors.topic, with: vectors.keys.signing.publicKey)
                #expect(document.revision == Revision(epoch: 1, number: 42))
            }
        }
        let values = try vectors.accepted().map { name, wire in
            JSONValue.object(["name": .string(name), "topic": .string(Vectors.topic), "wire": .string(wire)])
        }
        try agree("vectors/accepted.json", JSONValue.array(values).indented() + "\n")
    }

    @Test("a forged, moved or damaged document is refused")
    func refused() throws {
        let vectors = try Vectors()
        for vector in try vectors.refused() {
            #expect("\(vector.name)") {
                try verify(vector.wire, at: vector.topic, with: vectors.keys.signing.publicKey)
            } throws: { error in
                (error as? FleetProtocolError)?.code == vector.code
            }
        }
        let values = try vectors.refused().map { vector in
            JSONValue.object([
                "name": .string(vector.name), "topic": .string(vector.topic), "wire": .string(vector.wire),
            ])
        }
        try agree("vectors/refused.json", JSONValue.array(values).indented() + "\n")
    }

    @Test("the examples of signed documents are the examples of their payloads, signed")
    func envelopes() throws {
        let keys = try TestKeys()
        for kind in SignedDocument.Kind.allCases where kind != .history {
            let schema = kind.rawValue.dropFirst("fleetbus-".count).dropLast("+jws".count)
            for file in try SchemaFolder.files(in: "examples") where file.schema == schema {
                let format = try #require(Format.all.first { $0.schema == schema })
                let signed = try SignedDocument(
                    signing: format.recode(file.bytes), as: kind, with: kind == .trust ? keys.root : keys.signing)
                try agree(
                    "examples/envelope/\(schema)-\(file.name)", String(decoding: signed.wire, as: UTF8.self) + "\n")
            }
        }
    }

    @Test("keys are derived as their vectors say, which another program has made")
    func keys() throws {
        let vectors = try JSONValue(
            json: [UInt8](try Data(contentsOf: SchemaFolder.url.appending(path: "vectors/keys.json"))), limit: 10_000)
        func secret(_ name: String) throws -> [UInt8] {
            try #require(vectors[name]?.stringValue.flatMap { Base64URL.decode($0.utf8) })
        }
        let keys = AppKeys(app: try secret("app"), shared: try secret("shared"))
        let derived = try #require(vectors["derived"]?.arrayValue)
        #expect(derived.count == 4)
        for vector in derived {
            let scope = try #require(vector["scope"]?.stringValue.flatMap(AppKeys.Scope.init))
            let key = keys.derivedKey(scope, try #require(vector["identifier"]?.stringValue))
            #expect(Vectors.hexadecimal(key) == vector["key"]?.stringValue)
        }
    }

    @Test("topics are printed and parsed as their vectors say")
    func topics() throws {
        var generator = SeededGenerator(seed: 7)
        let valid = generator.addresses().map { address in
            JSONValue.object([
                "topic": .string(address.topic(in: Format.fleet)), "is": .string(address.kind),
                "parts": .object(address.parts.map { JSONValue.Member($0.0, .string($0.1)) }),
            ])
        }
        let invalid = AddressTests.hostile.map { JSONValue.string($0) }
        let value = JSONValue.object(["fleet": "demo", "topics": .array(valid), "noTopics": .array(invalid)])
        try agree("vectors/topics.json", value.indented() + "\n")
    }
}

extension Address {
    /// The case, for the vectors; complete by the compiler.
    var kind: String {
        switch self {
        case .desired: "desired"
        case .trust: "trust"
        case .groupMeta: "groupMeta"
        case .membership: "membership"
        case .reply: "reply"
        case .presence: "presence"
        case .heartbeat: "heartbeat"
        case .hello: "hello"
        case .received: "received"
        case .barrier: "barrier"
        case .request: "request"
        case .response: "response"
        }
    }

    static let kinds: Set = [
        "desired", "trust", "groupMeta", "membership", "reply", "presence", "heartbeat", "hello", "received", "barrier",
        "request", "response",
    ]

    var parts: [(String, String)] {
        switch self {
        case .desired(let layer, let app, let aspect):
            [("target", layer.description), ("app", app.text), ("aspect", aspect.text)]
        case .trust, .heartbeat, .presence(.controller): []
        case .groupMeta(let group): [("group", group.text)]
        case .membership(let device), .hello(let device), .received(let device), .presence(.device(let device)):
            [("device", device.text)]
        case .reply(let device, let app, let reply):
            [("device", device.text), ("app", app.text), ("reply", reply.rawValue)]
        case .barrier(let user): [("user", user.text)]
        case .request(let user, let verb): [("user", user.text), ("verb", verb.rawValue)]
        case .response(let user, let name): [("user", user.text), ("replyTo", name.text)]
        }
    }
}
