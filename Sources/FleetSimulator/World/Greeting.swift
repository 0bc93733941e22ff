import FleetProtocol

/// Contact on one connection, as the design has it: a hello that answers it, and later heartbeats.
struct Greeting {
    private(set) var isGreeted = false
    private var controllerTime: (epoch: Int64, at: Timestamp)?
    /// What the device cannot verify yet, or has yet to look at.
    private var unverified: [Unverified] = []

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

    /// The last word of what the core has looked at, and trusts by these keys, that is contact.
    mutating func contact(_ trust: TrustDocument) -> ControllerClock? {
        var contact: ControllerClock?
        for message in unverified where trust.key(message.signed.keyID) != nil {
            let clock = message.clock
            if message.isHello { isGreeted = true }
            guard isGreeted, controllerTime.map({ (clock.epoch, clock.at) > $0 }) ?? true else { continue }
            controllerTime = (clock.epoch, clock.at)
            contact = clock
        }
        unverified.removeAll { trust.key($0.signed.keyID) != nil }
        return contact
    }
}
