package import FleetProtocol
import Glibc

/// A document that was found good, with the signed form that is stored. An object: whoever keeps it keeps the same one, also
/// the thousands of devices of a simulator.
package final class KeptDocument: Sendable {
    package let document: DesiredDocument
    package let wire: [UInt8]
    /// Of ``wire``.
    package let digest: Digest
    let source: DocumentSource

    package init(_ document: DesiredDocument, _ wire: [UInt8]) {
        self.document = document
        source = DocumentSource(document.address)
        self.wire = wire
        digest = Digest(of: wire)
    }

    /// Whether these are the very bytes of ``wire``: sooner found than their digest.
    package func isWritten(_ bytes: [UInt8]) -> Bool {
        guard bytes.count == wire.count else { return false }
        return bytes.withUnsafeBytes { bytes in
            wire.withUnsafeBytes { wire in
                guard let left = bytes.baseAddress, let right = wire.baseAddress else { return true }
                return memcmp(left, right, wire.count) == 0
            }
        }
    }

    var address: Address { document.address }
    var revision: Revision { document.revision }
    var change: Revision { document.change }
    var content: DesiredDocument.Content { document.content }
    var isTombstone: Bool { document.isTombstone }

    /// What it says about an aspect of an app; nil for a document about groups.
    var value: DesiredValue? {
        guard case .aspect(let value) = content else { return nil }
        return value
    }

    var isRetirement: Bool {
        guard case .auth(.retired, _)? = value?.content else { return false }
        return true
    }

    var authMessage: String {
        guard case .auth(_, let message)? = value?.content else { return "" }
        return message
    }
}

/// Where a document stands. An object, since the records of many policies name the same few places.
package final class DocumentSource: Hashable, Sendable {
    package let address: Address

    package init(_ address: Address) { self.address = address }

    package static func == (left: DocumentSource, right: DocumentSource) -> Bool {
        left === right || left.address == right.address
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(address) }
}
