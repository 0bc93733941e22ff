/// A random UUID (RFC 9562, version 4): of a fleet, a connection, a request, an installation. On the wire in lower case.
package struct RandomID: Hashable, Sendable, CustomStringConvertible, JSONCodable {
    // Not its text: every app, connection and request has some.
    private let high: UInt64
    private let low: UInt64

    package static func random() -> RandomID {
        var generator = SystemRandomNumberGenerator()
        return random(using: &generator)
    }

    package static func random(using generator: inout some RandomNumberGenerator) -> RandomID {
        let words = (0..<2).map { _ in
            (0..<8).reduce(UInt64(0)) { word, _ in
                word << 8 | UInt64(UInt8.random(in: .min ... .max, using: &generator))
            }
        }
        return RandomID(random: words[0], words[1])
    }

    /// The `number`th that follows from `secret`: random to all who do not know that.
    package init(_ secret: RandomID, number: Int64) {
        let bytes = Digest(of: Array("\(secret) \(number)".utf8)).bytes
        func word(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        self.init(random: word(bytes[..<8]), word(bytes[8..<16]))
    }

    private init(random high: UInt64, _ low: UInt64) {
        self.init(high: high & ~0xF000 | 0x4000, low: low & ~(0b11 << 62) | 0b10 << 62)
    }

    private init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Of 36 characters, with lower-case digits.
    package init?(_ text: some StringProtocol) {
        var text = String(text)
        guard let id = text.withUTF8({ RandomID($0) }) else { return nil }
        self = id
    }

    private init?(_ text: UnsafeBufferPointer<UInt8>) {
        guard text.count == Self.length else { return nil }
        var digits = (high: UInt64(0), low: UInt64(0))
        for (index, byte) in text.enumerated() {
            let digit: UInt8
            switch (index, byte) {
            case (8, UInt8(ascii: "-")), (13, UInt8(ascii: "-")), (18, UInt8(ascii: "-")), (23, UInt8(ascii: "-")):
                continue
            case (8, _), (13, _), (18, _), (23, _): return nil
            case (_, UInt8(ascii: "0")...UInt8(ascii: "9")): digit = byte - UInt8(ascii: "0")
            case (_, UInt8(ascii: "a")...UInt8(ascii: "f")): digit = byte - UInt8(ascii: "a") + 10
            default: return nil
            }
            digits.high = digits.high << 4 | digits.low >> 60
            digits.low = digits.low << 4 | UInt64(digit)
        }
        (high, low) = digits
    }

    package init(from reader: inout JSONReader) throws {
        self = try reader.word { word in
            guard let id = RandomID(word.bytes) else {
                throw FleetProtocolError(.value, "expected a UUID in lower case")
            }
            return id
        }
    }

    private static let length = 36

    package var text: String {
        String(unsafeUninitializedCapacity: Self.length) { buffer in
            var rest = (high: high, low: low)
            for index in stride(from: Self.length - 1, through: 0, by: -1) {
                if [8, 13, 18, 23].contains(index) {
                    buffer[index] = UInt8(ascii: "-")
                    continue
                }
                let digit = UInt8(truncatingIfNeeded: rest.low & 15)
                buffer[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
                rest.low = rest.low >> 4 | rest.high << 60
                rest.high >>= 4
            }
            return Self.length
        }
    }

    package func write(to writer: inout JSONWriter) { writer.value(text) }
    package var description: String { text }
}
