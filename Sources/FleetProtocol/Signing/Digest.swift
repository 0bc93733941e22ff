import Crypto

/// The SHA-256 of some bytes: to tell two documents of one revision apart without keeping both.
package struct Digest: Hashable, Sendable, JSONCodable {
    package let bytes: [UInt8]

    package init(of content: [UInt8]) { bytes = SHA256.hash(data: content).withUnsafeBytes { Array($0) } }
    package init(bytes: [UInt8]) { self.bytes = bytes }

    /// Of which documents there are: a line `path epoch revision` for each, ended by a line feed, in the order of their bytes.
    package init(of documents: [Address: Revision]) {
        let lines = documents.map { address, revision in "\(address.path) \(revision.epoch) \(revision.number)\n" }
        self.init(of: Array(lines.sorted().joined().utf8))
    }

    package init(from reader: inout JSONReader) throws {
        bytes = try Binary(from: &reader).bytes
        guard bytes.count == SHA256.byteCount else {
            throw FleetProtocolError(.value, "expected \(SHA256.byteCount) bytes, not \(bytes.count)")
        }
    }

    package func write(to writer: inout JSONWriter) { Binary(bytes).write(to: &writer) }
}
