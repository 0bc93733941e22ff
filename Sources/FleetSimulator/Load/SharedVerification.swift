import DeviceAgent
import FleetProtocol
import Synchronization

/// Verifies each distinct signed document once for all devices of a process. What thousands of machines do each for
/// itself would otherwise be the load that is measured here: a verification takes as long as handling ten documents.
final class SharedVerification: Sendable {
    private struct Key: Hashable {
        let signature: [UInt8]
        let key: KeyID
    }

    private struct Known {
        let document: SignedDocument
        let isValid: Bool
    }

    private let known = Mutex<[Key: Known]>([:])
    /// Forgotten all at once beyond this number: answers to single devices are met only once.
    private static let limit = 4_096

    var check: SignatureCheck {
        SignatureCheck { document, key in self.isValid(document, key) }
    }

    private func isValid(_ document: SignedDocument, _ key: VerifyingKey) -> Bool {
        let name = Key(signature: document.signature, key: key.id)
        // The whole document is compared: a signature says nothing about another text.
        if let found = known.withLock({ $0[name] }), found.document == document { return found.isValid }
        let isValid = document.isSigned(by: key)
        known.withLock { known in
            if known.count >= Self.limit { known.removeAll(keepingCapacity: true) }
            known[name] = Known(document: document, isValid: isValid)
        }
        return isValid
    }
}
