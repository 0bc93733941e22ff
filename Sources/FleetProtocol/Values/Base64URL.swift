/// Base64url without padding (RFC 4648 section 5): how binary stands in JSON.
package enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let values: [UInt8] = {
        var table = [UInt8](repeating: 255, count: 256)
        for (value, byte) in alphabet.enumerated() { table[Int(byte)] = UInt8(value) }
        return table
    }()

    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        let alphabet = alphabet
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count * 4 / 3 + 1)
        var buffer: UInt32 = 0
        var bits = 0
        for byte in bytes {
            buffer = buffer << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                result.append(alphabet[Int(buffer >> UInt32(bits) & 63)])
            }
        }
        if bits > 0 { result.append(alphabet[Int(buffer << UInt32(6 - bits) & 63)]) }
        return String(decoding: result, as: UTF8.self)
    }

    /// The bytes, or nil when a character is foreign or bits beyond the last byte are set: one text for each value.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        let values = values
        var result: [UInt8] = []
        result.reserveCapacity(text.count * 3 / 4)
        var buffer: UInt32 = 0
        var bits = 0
        for character in text {
            let value = values[Int(character)]
            guard value < 64 else { return nil }
            buffer = buffer << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                result.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
            }
        }
        guard bits < 6, buffer & (1 << UInt32(bits) - 1) == 0 else { return nil }
        return result
    }
}

/// Bytes that stand in JSON as base64url.
package struct Binary: Hashable, Sendable, JSONCodable {
    package let bytes: [UInt8]
    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package init(from reader: inout JSONReader) throws {
        guard let bytes = Base64URL.decode(try reader.string().utf8) else {
            throw FleetProtocolError(.value, "expected base64url without padding")
        }
        self.bytes = bytes
    }

    package func write(to writer: inout JSONWriter) { writer.value(Base64URL.encode(bytes)) }
}
