import FleetProtocol

/// One change of the desired state within a transaction: gives revisions, signs, stores, and keeps what is to be published.
struct DesiredChange {
    let transaction: FleetStore.Transaction
    let identity: FleetIdentity
    /// Who changes it, for the history.
    let by: String
    let why: String?
    let now: Timestamp
    /// To be published once the transaction is committed, in this order.
    private(set) var issued: [StoredDocument] = []
    /// How many documents were signed again: they are not kept, since that may be all that there are.
    private(set) var reissued = 0
    /// For the operator: what may be not as expected.
    private(set) var warnings: [String] = []
    private var moved: [Place] = []
    private var known: Set<Place> = []
    /// The layers that retire an app, as far as they were looked for since the last document.
    private var retiring: [AppID: [Layer]] = [:]

    /// Whose classes may have changed.
    private struct Place: Hashable {
        let layer: Layer
        /// nil for all apps.
        let app: AppID?
        /// What is withdrawn was not known of: whoever follows it has been in this class all along.
        var isOfUnknown = false
    }

    init(_ transaction: FleetStore.Transaction, _ identity: FleetIdentity, by: String, why: String?, now: Timestamp) {
        self.transaction = transaction
        self.identity = identity
        self.by = by
        self.why = why
        self.now = now
    }

    static let maximumWarnings = 100

    mutating func warn(_ text: String) {
        if warnings.count < Self.maximumWarnings, !warnings.contains(text) { warnings.append(text) }
    }

    /// The first of the layers that retire an app: with one of its own more than can be told of.
    mutating func layersRetiring(_ app: AppID) throws -> [Layer] {
        if let known = retiring[app] { return known }
        let layers = try transaction.retiredLayers(of: app, limit: Self.maximumWarnings + 1)
        retiring[app] = layers
        return layers
    }

    /// Notes that other layers speak to a device, or to the members of a group, than before.
    mutating func layersMoved(of layer: Layer) { note(moved: Place(layer: layer, app: nil)) }

    /// Each once, in the order in which they come.
    private mutating func note(moved place: Place) {
        if known.insert(place).inserted { moved.append(place) }
    }

    /// Gives `content` the next revision and stores it in the place of what stands at `address`.
    ///
    /// `location` names the member of the request for the message that the document is too large.
    @discardableResult
    mutating func issue(
        _ content: DesiredDocument.Content, at address: Address, location: String? = nil
    ) throws -> StoredDocument {
        retiring.removeAll()
        let old = try transaction.document(at: address)
        let revision = try transaction.nextRevision()
        let document = try stored(
            content, at: address, revision: revision, change: revision, by: by, why: why, location: location)
        try transaction.put(document)
        try transaction.remember(document, replacing: old?.value)
        if case .desired(let layer, let app, _) = address, old?.isTombstone != document.isTombstone {
            note(moved: Place(layer: layer, app: app, isOfUnknown: old == nil && document.isTombstone))
        }
        issued.append(document)
        return document
    }

    /// Tells the history that a device is removed, and what it was the last to say.
    func rememberRemoval(of device: DeviceID, saying last: LastWords) throws {
        let revision = try transaction.nextRevision()
        try transaction.remember(
            HistoryEntry(
                revision: revision.number, at: now, by: by, why: why, target: Layer.device(device).description,
                app: "_device", aspect: "removal", old: last.jsonText, new: nil), epoch: revision.epoch)
    }

    /// Signs a document again under the next revision: to devices it is the change that it was.
    mutating func reissue(_ old: StoredDocument) throws {
        let signed = try SignedDocument(wire: old.wire)
        let content = try DesiredDocument(payload: signed.payload, in: identity.fleetID).content
        let document = try stored(
            content, at: old.address, revision: try transaction.nextRevision(), change: old.change, by: old.by,
            why: old.why, location: nil)
        try transaction.put(document)
        reissued += 1
    }

    /// To be called once, at the end: puts device-apps into the classes that their layers make now.
    mutating func finish() throws {
        for place in moved {
            try transaction.reclassify(place.layer, app: place.app, at: now, evenIfSame: place.isOfUnknown)
        }
        (moved, known) = ([], [])
    }

    /// In bytes, kept free in a new change: signed again after a restore it has a longer epoch and revision, and the epoch
    /// of the change beside.
    private static let room = 128

    private func stored(
        _ content: DesiredDocument.Content, at address: Address, revision: Revision, change: Revision, by: String,
        why: String?, location: String?
    ) throws -> StoredDocument {
        let document = DesiredDocument(
            fleet: identity.fleet, fleetID: identity.fleetID, address: address, revision: revision, change: change,
            issuedAt: now, content: content)
        let wire = try identity.sign(document, as: .desired)
        let limit = SignedDocument.maximumSize - (change == revision ? Self.room : 0)
        guard wire.count <= limit else {
            throw Response.Failure(
                .tooLarge,
                "the signed document for \(address.path) has \(wire.count) bytes, where at most \(limit) are allowed",
                at: location)
        }
        return StoredDocument(
            address: address, revision: revision, change: change, issuedAt: now, by: by, why: why,
            value: content.valueText, isRetired: content.isRetired, wire: wire)
    }
}

extension DesiredDocument.Content {
    /// The value as JSON; nil for a tombstone.
    var valueText: String? {
        switch self {
        case .aspect(let value): value.jsonText
        case .groupMeta(let meta): meta.jsonText
        case .membership(let groups): JSONValue.object(["groups": .array(groups.map { .string($0.text) })]).jsonText
        case .tombstone: nil
        }
    }

    var isRetired: Bool {
        guard case .aspect(let value) = self, case .auth(.retired, _) = value.content else { return false }
        return true
    }
}
