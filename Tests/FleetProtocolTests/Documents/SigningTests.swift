import Testing

@testable import FleetProtocol

@Suite("Signatures")
struct SigningTests {
    @Test("a key has the public half of RFC 8032's first test, and the id made of it")
    func rfc8032() throws {
        func bytes(_ text: String) -> [UInt8] {
            stride(from: 0, to: text.utf8.count, by: 2).compactMap { UInt8(text.dropFirst($0).prefix(2), radix: 16) }
        }
        let key = try SigningKey(secret: bytes("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
        #expect(key.publicKey.bytes == bytes("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"))
        #expect(key.publicKey.id.text == "21fe31dfa154a261")
        #expect(!"\(key)".contains("9d61"))
    }

    @Test("every bit counts: of header, payload and signature")
    func tampering() throws {
        let keys = try TestKeys()
        let document = try SignedDocument(signing: Array(#"{"v":1}"#.utf8), as: .heartbeat, with: keys.signing)
        let wire = document.wire
        #expect(try SignedDocument(wire: wire) == document && document.isSigned(by: keys.signing.publicKey))
        #expect(!document.isSigned(by: keys.other.publicKey))
        for index in wire.indices {
            for bit in 0..<8 {
                var changed = wire
                changed[index] ^= 1 << UInt8(bit)
                guard let read = try? SignedDocument(wire: changed) else { continue }
                #expect(!read.isSigned(by: keys.signing.publicKey), "byte \(index), bit \(bit)")
            }
        }
    }

    @Test("a signature has 64 bytes, a key 32")
    func lengths() throws {
        let keys = try TestKeys()
        let document = try SignedDocument(signing: [], as: .desired, with: keys.signing)
        for count in [0, 63, 65] {
            let wire = Vectors.wire(document.protected, "", [UInt8](repeating: 0, count: count))
            #expect { try SignedDocument(wire: Array(wire.utf8)) } throws: {
                ($0 as? FleetProtocolError)?.path == "signature"
            }
        }
        for count in [0, 31, 33] {
            #expect(throws: FleetProtocolError.self) { try VerifyingKey(bytes: [UInt8](repeating: 1, count: count)) }
            #expect(throws: FleetProtocolError.self) { try SigningKey(secret: [UInt8](repeating: 1, count: count)) }
        }
    }

    @Test("the digest of documents is the one of the example, in whatever order they are named")
    func documents() throws {
        let example = try #require(
            SchemaFolder.files(in: "examples").first { $0.schema == "hello" && $0.name == "after-a-loss.json" })
        let hello = try Hello(json: example.bytes, limit: 4_096)
        let documents = try [
            ("desired/device/till-0042/_device/membership", 7), ("desired/all/com.example.mail/config", 42),
        ].map { (try #require(Address(path: $0)), Revision(epoch: 1, number: $1)) }
        for documents in [documents, documents.reversed()] {
            #expect(Digest(of: Dictionary(uniqueKeysWithValues: documents)) == hello.documents)
        }
    }

    @Test("a wire of more than 64 KiB is refused")
    func size() throws {
        let keys = try TestKeys()
        let wire = try SignedDocument(
            signing: [UInt8](repeating: 0x61, count: 65_536), as: .desired, with: keys.signing
        ).wire
        #expect { try SignedDocument(wire: wire) } throws: { ($0 as? FleetProtocolError)?.code == .tooLarge }
    }

    @Test("a header that names no key as keys are named is refused")
    func keyName() throws {
        let keys = try TestKeys()
        let heartbeat = try SignedDocument(signing: Array("{}".utf8), as: .heartbeat, with: keys.signing)
        let header = String(decoding: try #require(Base64URL.decode(heartbeat.protected.utf8)), as: UTF8.self)
        for name in ["foo", keys.signing.publicKey.id.text.uppercased(), ""] {
            let other = header.replacing(keys.signing.publicKey.id.text, with: name)
            let text = String(decoding: heartbeat.wire, as: UTF8.self)
                .replacing(heartbeat.protected, with: Base64URL.encode(Array(other.utf8)))
            #expect(throws: FleetProtocolError.self, "\(name)") { try SignedDocument(wire: Array(text.utf8)) }
        }
    }

    @Test("a trust document whose key bears another's id is refused")
    func trust() throws {
        let keys = try TestKeys()
        let trust = TrustDocument(
            fleet: .random(), fleetID: Format.fleet, version: 1, issuedAt: Timestamp(milliseconds: 0),
            keys: [keys.signing.publicKey])
        let text = trust.jsonText
        #expect(try TrustDocument(json: Array(text.utf8), limit: 4_096) == trust)
        let swapped = text.replacing(keys.signing.publicKey.id.text, with: keys.other.publicKey.id.text)
        #expect { try TrustDocument(json: Array(swapped.utf8), limit: 4_096) } throws: {
            ($0 as? FleetProtocolError)?.path == "keys[0].kid"
        }
    }
}
