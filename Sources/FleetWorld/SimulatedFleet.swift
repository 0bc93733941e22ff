import DeviceAgent
import FleetController
import FleetProtocol
import Synchronization

/// What all worlds share: a fleet with its keys, and a foreign one. Signatures are checked once for each document.
struct SimulatedFleet: Sendable {
    static let id = FleetID(unchecked: "sim")
    static let begin = Timestamp(milliseconds: 1_800_000_000_000)
    static let agent = "fleet-agent/sim"

    let uuid: RandomID
    let otherUUID: RandomID
    let rootKey: SigningKey
    let signingKey: SigningKey
    let strangerKey: SigningKey
    let nextKey: SigningKey
    /// As the root key has renewed them: a further key is trusted, then it signs, then the first one is withdrawn.
    let identities: [FleetIdentity]
    private let signingKeys: [VerifyingKey]
    /// The trust document, and its renewals.
    let trusts: [SignedDocument]
    var trust: SignedDocument { trusts[0] }
    let checked: SignatureCheck
    private let known = Known()

    init() throws {
        var random = SplitMix64(seed: 7)
        uuid = RandomID.random(using: &random)
        otherUUID = RandomID.random(using: &random)
        rootKey = try SigningKey(secret: [UInt8](repeating: 1, count: 32))
        signingKey = try SigningKey(secret: [UInt8](repeating: 2, count: 32))
        strangerKey = try SigningKey(secret: [UInt8](repeating: 3, count: 32))
        nextKey = try SigningKey(secret: [UInt8](repeating: 4, count: 32))
        let stages = [[signingKey], [signingKey, nextKey], [nextKey, signingKey], [nextKey]]
        var wires: [SignedDocument] = []
        for (index, keys) in stages.enumerated() {
            let document = TrustDocument(
                fleet: uuid, fleetID: Self.id, version: Int64(index + 1), issuedAt: Self.begin,
                keys: keys.map(\.publicKey))
            wires.append(try SignedDocument(signing: document.json, as: .trust, with: rootKey))
        }
        trusts = wires
        signingKeys = stages.map { $0[0].publicKey }
        identities = try zip(stages, wires).map { [uuid, rootKey] keys, trust in
            try FleetIdentity(
                fleetID: Self.id, fleet: uuid, signingKey: keys[0], trustWire: trust.wire, rootKey: rootKey.publicKey)
        }
        checked = SharedVerification(SignatureCheck { [known] document, key in known.isValid(document, key) }).check
    }

    private static let signedTopics = ["desired/", "control/hello/", "control/heartbeat", "control/received/"].map {
        Address.prefix(of: id) + $0
    }

    /// Takes it as checked that a message was signed by the key of that stage, which has signed it just now.
    func vouch(for wire: [UInt8], at topic: String, stage: Int) {
        guard Self.signedTopics.contains(where: topic.hasPrefix), let document = try? SignedDocument(wire: wire) else {
            return
        }
        known.note(document, signingKeys[stage])
    }

    private final class Known: Sendable {
        private struct Question: Hashable {
            let document: SignedDocument
            let key: VerifyingKey

            /// A signature tells documents apart well enough; equality compares all of it.
            func hash(into hasher: inout Hasher) {
                document.signature.withUnsafeBytes {
                    hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: $0.prefix(16)))
                }
            }
        }

        private let answers = Mutex<[Question: Bool]>([:])

        func isValid(_ document: SignedDocument, _ key: VerifyingKey) -> Bool {
            let question = Question(document: document, key: key)
            if let known = answers.withLock({ $0[question] }) { return known }
            let isValid = document.isSigned(by: key)
            keep(question, isValid)
            return isValid
        }

        func note(_ document: SignedDocument, _ key: VerifyingKey) {
            keep(Question(document: document, key: key), true)
        }

        private func keep(_ question: Question, _ isValid: Bool) {
            answers.withLock { answers in
                if answers.count > 10_000 { answers.removeAll(keepingCapacity: true) }
                answers[question] = isValid
            }
        }
    }
}
