import Crypto

/// The SHA-256 of some bytes: to tell two documents of one revision apart without keeping both.
package struct Digest: Hashable, Sendable, JSONCodable {
    package let bytes: [UInt8]

    package init(of content: [UInt8]) { bytes = SHA256.hash(data: content).withUnsafeBytes { Array($0) } }
    package init(bytes: [UInt8]) { self.bytes = bytes }

    package init(from reader: inout JSONReader) throws { bytes = try Binary(from: &reader).bytes }
    package func write(to writer: inout JSONWriter) { Binary(bytes).write(to: &writer) }
}
