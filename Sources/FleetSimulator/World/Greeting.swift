import FleetProtocol

/// Contact on one connection, as the design has it: a hello that answers it, and later heartbeats.
struct Greeting {
    private(set) var isGreeted = false
    private var controllerTime: (epoch: Int64, at: Timestamp)?
    /// What the device cannot verify yet, or has yet to look at, and the trust documents that came between.
    private var unverified: [Unverified] = []
    private var trusts: [(position: Int, document: TrustDocument)] = []

    private struct Unverified {
        let signed: SignedDocument
        let isHello: Bool
        let clock: ControllerClock
    }

    var hasMore: Bool { !unverified.isEmpty }
    var mayBeGreeted: Bool { unverified.contains(where: \.isHello) }

    mutating func heard(_ signed: SignedDocument, isHello: Bool, _ clock: ControllerClock) {
        unverified.append(Unverified(signed: signed, isHello: isHello, clock: clock))
    }

    mutating func heard(_ trust: TrustDocument) { trusts.append((unverified.count, trust)) }

    /// The last word of what the core has looked at, and trusted when it did, that is contact.
    mutating func contact(_ trust: TrustDocument, was before: TrustDocument) -> ControllerClock? {
        var contact: ControllerClock?
        var left: [Unverified] = []
        var known = before
        func look(at messages: [Unverified]) {
            for message in messages {
                guard known.key(message.signed.keyID) != nil else {
                    left.append(message)
                    continue
                }
                let clock = message.clock
                if message.isHello { isGreeted = true }
                guard isGreeted, controllerTime.map({ (clock.epoch, clock.at) > $0 }) ?? true else { continue }
                controllerTime = (clock.epoch, clock.at)
                contact = clock
            }
        }
        var position = 0
        // One that the core has not taken is not its newest.
        for next in trusts + [(unverified.count, trust)]
        where next.document.version > known.version && next.document.version <= trust.version {
            look(at: Array(unverified[position..<next.position]))
            (known, position) = (next.document, next.position)
            let held = left
            left = []
            look(at: held)
        }
        look(at: Array(unverified[position...]))
        (unverified, trusts) = (left, [])
        return contact
    }
}
