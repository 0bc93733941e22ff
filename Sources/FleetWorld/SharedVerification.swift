package import DeviceAgent
import FleetProtocol
import Synchronization

/// Verifies and reads each distinct desired document once for all devices of a process. What thousands of machines do
/// each for itself would otherwise be the load that is measured here: a verification takes as long as a whole change.
package final class SharedVerification: Sendable {
    private struct Known {
        let document: KeptDocument
        /// Who signed it: a device that does not trust that key checks for itself.
        let key: VerifyingKey
    }

    private struct Documents {
        /// By the digest of the wire form.
        var known: [Digest: Known] = [:]
        /// The one that was asked for last: a change for all comes to one device after the other.
        var last: Known?

        mutating func find(_ wire: [UInt8]) -> Known? {
            if let last, last.document.isWritten(wire) { return last }
            guard let found = known[Digest(of: wire)] else { return nil }
            last = found
            return found
        }
    }

    private let documents = Mutex(Documents())
    /// Forgotten all at once beyond this number: what is for single devices is met only once.
    private static let limit = 4_096

    private let each: SignatureCheck

    package init(_ each: SignatureCheck = .ed25519) { self.each = each }

    /// What is for all devices, and whose signature was found good: trust documents and heartbeats, each with the key that
    /// it was found good by.
    private let trusted = Mutex<[SignedDocument: VerifyingKey]>([:])
    private static let trustedLimit = 64

    private func isTrusted(_ document: SignedDocument, _ key: VerifyingKey) -> Bool {
        guard document.kind == .trust || document.kind == .heartbeat else { return each.isValid(document, key) }
        if trusted.withLock({ $0[document] == key }) { return true }
        guard each.isValid(document, key) else { return false }
        trusted.withLock { trusted in
            if trusted.count >= Self.trustedLimit { trusted.removeAll(keepingCapacity: true) }
            trusted[document] = key
        }
        return true
    }

    package var check: SignatureCheck {
        let each = each
        return SignatureCheck(isValid: { self.isTrusted($0, $1) }) { wire, trust, fleet in
            if let known = self.documents.withLock({ $0.find(wire) }), trust.key(known.key.id) == known.key {
                return known.document
            }
            let document = try each.desired(wire, trust, fleet)
            if let id = try? SignedDocument(wire: wire).keyID, let key = trust.key(id) {
                self.documents.withLock { documents in
                    if documents.known.count >= Self.limit { documents.known.removeAll(keepingCapacity: true) }
                    documents.known[document.digest] = Known(document: document, key: key)
                }
            }
            return document
        }
    }
}
