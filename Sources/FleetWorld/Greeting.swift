import FleetProtocol

/// Contact on one connection, as the design has it: a hello that answers it, and later words; later is also what answers a
/// nonce that was not said before.
struct Greeting {
    private(set) var isGreeted = false
    /// The highest of its hellos.
    private(set) var epoch: Int64 = 0
    private var controllerTime: (epoch: Int64, at: Timestamp)?
    /// What the device cannot verify yet, or has yet to look at, and the trust documents that came between.
    private var unverified: [Unverified] = []
    private var trusts: [(position: Int, document: TrustDocument)] = []

    /// The device's connection, and when the core has heard of it, by the device's running time in milliseconds.
    var connection: RandomID?
    var since: Int64 = 0
    /// What the device has said to be answered, and when.
    private var nonces: [(nonce: RandomID, at: Int64)] = []
    /// By how much running time is ahead of the times that are signed, at least; nil while nonces are not answered.
    private var offset: Int64?
    private var countedAt: Int64 = .max

    private struct Unverified {
        let signed: SignedDocument
        let hello: Hello?
        let clock: ControllerClock
    }

    /// A word that is contact, and of which running time.
    struct Contact {
        let clock: ControllerClock
        let counts: Int64
    }

    /// So late a word may come and count as if it were said when it is heard.
    static let tolerance: Int64 = 30_000

    var hasMore: Bool { !unverified.isEmpty }
    var mayBeGreeted: Bool { unverified.contains { $0.hello != nil } }

    mutating func heard(_ signed: SignedDocument, _ hello: Hello?, _ clock: ControllerClock) {
        unverified.append(Unverified(signed: signed, hello: hello, clock: clock))
    }

    mutating func said(_ presence: Presence, at running: Int64) {
        guard presence.connection == connection, let nonce = presence.nonce, nonces.last?.nonce != nonce else { return }
        nonces = nonces.suffix(7) + [(nonce, running)]
    }

    mutating func heard(_ trust: TrustDocument) { trusts.append((unverified.count, trust)) }

    /// The words of what the core has looked at, and trusted when it did, that are contact.
    mutating func contacts(_ trust: TrustDocument, was before: TrustDocument, at running: Int64) -> [Contact] {
        var contacts: [Contact] = []
        var left: [Unverified] = []
        var known = before
        func look(at messages: [Unverified]) {
            for message in messages {
                guard known.key(message.signed.keyID) != nil else {
                    // The newest of each topic is kept.
                    left.removeAll { ($0.hello == nil) == (message.hello == nil) }
                    left.append(message)
                    continue
                }
                let clock = message.clock
                if message.hello != nil { (isGreeted, epoch) = (true, max(epoch, clock.epoch)) }
                let isNew = nonces.contains { $0.nonce == message.hello?.nonce && $0.at >= countedAt }
                guard isGreeted, isNew || controllerTime.map({ (clock.epoch, clock.at) > $0 }) ?? true,
                    let counts = count(message.hello, clock, at: running)
                else { continue }
                controllerTime = (clock.epoch, clock.at)
                countedAt = running
                contacts.append(Contact(clock: clock, counts: counts))
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
        return contacts
    }

    /// A hello is no older than what it answers, and a later word younger by as much as its time is later; nil for what would
    /// be signed yet, by a clock that was set.
    private mutating func count(_ hello: Hello?, _ clock: ControllerClock, at running: Int64) -> Int64? {
        let time = clock.at.milliseconds
        if let hello {
            let said = nonces.last { $0.nonce == hello.nonce }?.at ?? since
            offset = hello.nonce == nil ? nil : max(offset ?? .min, said - time)
            if let known = offset, time + known > running + Self.tolerance { offset = said - time }
        }
        guard let known = offset else { return running }
        guard time + known <= running + Self.tolerance else { return nil }
        offset = min(known, running - time)
        return min(running, time + min(known, running - time) + Self.tolerance)
    }
}
