/// A random UUID (RFC 9562, version 4) in lower case: of a fleet, a connection, a request, an installation.
package struct RandomID: Hashable, Sendable, CustomStringConvertible, JSONCodable {
    package let text: String

    package static func random() -> RandomID {
        var generator = SystemRandomNumberGenerator()
        return random(using: &generator)
    }

    package static func random(using generator: inout some RandomNumberGenerator) -> RandomID {
        var bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        var text = ""
        for (index, byte) in bytes.enumerated() {
            if [4, 6, 8, 10].contains(index) { text.append("-") }
            if byte < 16 { text.append("0") }
            text += String(byte, radix: 16)
        }
        return RandomID(unchecked: text)
    }

    private init(unchecked text: String) { self.text = text }

    package init?(_ text: some StringProtocol) {
        guard text.utf8.count == 36 else { return nil }
        for (index, byte) in text.utf8.enumerated() {
            switch (index, byte) {
            case (8, UInt8(ascii: "-")), (13, UInt8(ascii: "-")), (18, UInt8(ascii: "-")), (23, UInt8(ascii: "-")):
                break
            case (8, _), (13, _), (18, _), (23, _): return nil
            case (_, UInt8(ascii: "0")...UInt8(ascii: "9")), (_, UInt8(ascii: "a")...UInt8(ascii: "f")): break
            default: return nil
            }
        }
        self.text = String(text)
    }

    package init(from reader: inout JSONReader) throws {
        let text = try reader.string()
        guard let id = RandomID(text) else {
            throw FleetProtocolError(.value, "expected a UUID in lower case")
        }
        self = id
    }

    package func write(to writer: inout JSONWriter) { writer.value(text) }
    package var description: String { text }
}
