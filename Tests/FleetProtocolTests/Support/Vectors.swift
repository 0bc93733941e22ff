import Testing

@testable import FleetProtocol

/// The test vectors of `schemas/vectors`, and the signed examples: made here, compared with the files by ``VectorTests``.
struct Vectors {
    struct Refused {
        let name: String
        /// The topic that the wire arrived at.
        let topic: String
        let wire: String
        let code: FleetProtocolError.Code
    }

    static let topic = "fleet/v1/demo/desired/device/till-0042/com.example.mail/auth"
    static let fleetUUID = "5c1f0bd4-8d1a-4f0e-9a41-3f7d5c0e2b11"
    static let payload =
        #"{"v":1,"fleet":"\#(fleetUUID)","topic":"\#(topic)","epoch":1,"revision":42,"change":42,"#
        + #""issuedAt":"2026-11-21T07:24:00.000Z","value":{"state":"authorized","message":"Grüße \"an alle\""}}"#

    let keys: TestKeys
    let document: SignedDocument

    init() throws {
        keys = try TestKeys()
        document = try SignedDocument(signing: Array(Self.payload.utf8), as: .desired, with: keys.signing)
    }

    // MARK: Files

    var jws: JSONValue {
        get throws {
            let header = try #require(Base64URL.decode(document.protected.utf8))
            return .object([
                "about": "One signed document, step by step. The key is for tests alone.",
                "topic": .string(Self.topic), "secretKey": .string(Self.hexadecimal(keys.signing.secret)),
                "publicKey": .string(Self.hexadecimal(keys.signing.publicKey.bytes)),
                "x": .string(Base64URL.encode(keys.signing.publicKey.bytes)), "kid": .string(document.keyID.text),
                "header": .string(String(decoding: header, as: UTF8.self)), "protected": .string(document.protected),
                "payload": .string(Self.payload),
                "signingInput": .string(Self.hexadecimal(Array((document.protected + "." + Self.payload).utf8))),
                "signature": .string(Base64URL.encode(document.signature)),
                "wire": .string(String(decoding: document.wire, as: UTF8.self)),
            ])
        }
    }

    static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    // MARK: Wires

    static func wire(_ header: String, _ payload: String, _ signature: [UInt8], more: String = "") -> String {
        let payload = JSONValue.string(payload).jsonText
        return
            #"{"protected":"\#(header)","payload":\#(payload),"signature":"\#(Base64URL.encode(signature))"\#(more)}"#
    }

    /// Signed over another header than ours; the signature itself is right.
    private func wire(header: String) throws -> String {
        let protected = Base64URL.encode(header.utf8)
        let signature = try keys.signing.signature(of: Array("\(protected).\(Self.payload)".utf8))
        return Self.wire(protected, Self.payload, signature)
    }

    private func signed(_ payload: String, as kind: SignedDocument.Kind = .desired, with key: SigningKey) throws
        -> String
    {
        String(decoding: try SignedDocument(signing: Array(payload.utf8), as: kind, with: key).wire, as: UTF8.self)
    }

    /// The same document as ``document``, written as others may write it.
    func accepted() throws -> [(name: String, wire: String)] {
        let signature = Base64URL.encode(document.signature)
        let escaped = Self.payload.unicodeScalars.map { scalar in
            scalar.value < 0x10000
                ? "\\u" + String(repeating: "0", count: 4 - String(scalar.value, radix: 16).count)
                    + String(scalar.value, radix: 16) : String(scalar)
        }
        return [
            ("as it is", String(decoding: document.wire, as: UTF8.self)),
            (
                "every character of the payload escaped",
                #"{"protected":"\#(document.protected)","payload":"\#(escaped.joined())","signature":"\#(signature)"}"#
            ),
            (
                "another order and white space",
                " { \"signature\" : \"\(signature)\",\n\t\"payload\" : \(JSONValue.string(Self.payload).jsonText),\r\n"
                    + "\"protected\" : \"\(document.protected)\" }\n"
            ),
        ]
    }

    func refused() throws -> [Refused] {
        let id = keys.signing.publicKey.id
        let header = #""alg":"EdDSA","b64":false,"crit":["b64"],"kid":"\#(id)","typ":"fleetbus-desired+jws""#
        let whole = String(decoding: document.wire, as: UTF8.self)
        func here(_ name: String, _ code: FleetProtocolError.Code, _ wire: String) -> Refused {
            Refused(name: name, topic: Self.topic, wire: wire, code: code)
        }
        return [
            here("signed by another key", .unknownKey, try signed(Self.payload, with: keys.other)),
            here(
                "another key under the trusted key's id", .signature,
                Self.wire(
                    document.protected, Self.payload,
                    try keys.other.signature(of: Array("\(document.protected).\(Self.payload)".utf8)))),
            here(
                "one byte of the payload changed", .signature,
                whole.replacing(#"\"revision\":42"#, with: #"\"revision\":43"#)),
            here(
                "one bit of the signature changed", .signature,
                Self.wire(
                    document.protected, Self.payload, [document.signature[0] ^ 1] + document.signature.dropFirst())),
            here(
                "a double member", .duplicate,
                Self.wire(
                    document.protected, Self.payload, document.signature,
                    more: #","payload":"{}""#)),
            here(
                "an unprotected header", .signature,
                Self.wire(
                    document.protected, Self.payload, document.signature,
                    more: #","header":{"kid":"\#(id)"}"#)),
            here(
                "an encoded payload, as other JWS have it", .signature,
                Self.wire(document.protected, Base64URL.encode(Self.payload.utf8), document.signature)),
            here(
                "no crit", .missing,
                try wire(header: #"{"alg":"EdDSA","b64":false,"kid":"\#(id)","typ":"fleetbus-desired+jws"}"#)),
            here("an extra header member", .signature, try wire(header: #"{\#(header),"jku":"https://example.com"}"#)),
            here("a double header member", .duplicate, try wire(header: #"{\#(header),"alg":"EdDSA"}"#)),
            here(
                "no algorithm", .signature,
                try wire(header: "{" + header.replacing(#""alg":"EdDSA""#, with: #""alg":"none""#) + "}")),
            here("of another kind", .mismatch, try signed(Self.payload, as: .heartbeat, with: keys.signing)),
            Refused(
                name: "moved to another topic", topic: Self.topic.replacing("till-0042", with: "till-0043"),
                wire: whole,
                code: .mismatch),
            here(
                "of another fleet", .mismatch,
                try signed(
                    Self.payload.replacing(Self.fleetUUID, with: "00000000-0000-4000-8000-000000000000"),
                    with: keys.signing)),
            here("no JSON", .syntax, String(whole.dropLast())),
        ]
    }
}
