import FleetProtocol

/// What the broker was found to hold below desired/ on a new connection.
struct ReadBack {
    let barrier: [UInt8]
    /// When the barrier was published last: a broker may drop it without a word.
    var askedAt: Timestamp
    /// How often it was published since the broker has shown anything.
    var silence = 0
    /// Revisions that the broker holds as the store does.
    var intact: Set<Int64> = []
    /// Whether the trust document is the home's.
    var isTrustIntact = false
    /// Verified documents at addresses of which the store knows nothing.
    var unknown: Set<Address> = []
    /// Of the verified documents that the store has no memory of, those that retire an app.
    private(set) var retirements: Set<Address> = []
    /// Topics of no document, or of one that nobody trusted has signed.
    var foreign: Set<String> = []
    /// The newest verified document that the store has no memory of.
    var newest: (topic: String, revision: Revision)?
    /// The highest epoch and the highest revision that a device has spoken of.
    private(set) var highest = Revision.zero
    /// Devices that are online.
    var present: [DeviceID: Presence] = [:]
    /// Devices of which something was cleared meanwhile, which may have been newer than what was meant.
    var cleared: [DeviceID: Set<Hello.Lost>] = [:]
    /// Requests that came before the broker was repaired.
    var deferred: [ControllerCore.Message] = []

    /// So many of each are noted; the next connection deals with the rest.
    static let limit = 10_000
    static let deferredLimit = 1_000

    init(barrier: [UInt8], askedAt: Timestamp) {
        self.barrier = barrier
        self.askedAt = askedAt
    }

    mutating func note(newer document: DesiredDocument, isUnknown: Bool) {
        if isUnknown { unknown.insert(document.address) }
        note(retirement: document)
        guard document.revision > newest?.revision ?? .zero else { return }
        newest = (document.topic, document.revision)
    }

    mutating func note(unknown document: DesiredDocument) {
        if unknown.count < Self.limit { unknown.insert(document.address) }
        note(retirement: document)
    }

    private mutating func note(retirement document: DesiredDocument) {
        if document.content.isRetired, retirements.count < Self.limit { retirements.insert(document.address) }
    }

    mutating func note(foreign topic: String) {
        if foreign.count < Self.limit { foreign.insert(topic) }
    }

    mutating func note(cleared device: DeviceID, lost: Set<Hello.Lost>) {
        if cleared.count < Self.limit { cleared[device, default: []].formUnion(lost) }
    }

    mutating func note(deferred request: ControllerCore.Message) {
        if deferred.count < Self.deferredLimit { deferred.append(request) }
    }

    /// What devices have said.
    mutating func note(_ collector: Collector) {
        highest.rise(to: collector.highest)
        // What the store does know of these is kept.
        if unknown.count < Self.limit { unknown.formUnion(collector.followed) }
        for device in collector.gone { present[device] = nil }
        present.merge(collector.arrived) { $1 }
    }
}

extension Revision {
    /// Takes over the epoch and the number of `other`, each if it is higher.
    mutating func rise(to other: Revision) {
        epoch = max(epoch, other.epoch)
        number = max(number, other.number)
    }
}

/// What a message below desired/ is, next to the store.
enum BrokerCopy {
    /// Byte for byte what the store has.
    case same(StoredDocument)
    /// Nothing where the store has nothing, and the other way round.
    case cleared(StoredDocument?)
    /// Verified, and of a time that the store has no memory of.
    case newer(DesiredDocument)
    /// Anything else where the store has a document.
    case other(StoredDocument)
    /// Verified, at an address of which the store knows nothing.
    case unknown(DesiredDocument)
    /// Not verified, where the store has nothing.
    case foreign
}
