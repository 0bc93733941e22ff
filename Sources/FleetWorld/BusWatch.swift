import DeviceAgent
import FleetProtocol

/// What a device has been shown on its connection, and what it may be certain of by that.
struct BusWatch {
    private(set) var connection: RandomID?
    private(set) var isPresent = false
    private var isPastFirst = false
    private var asked: [Int64: Set<AppID>] = [:]
    private var fetched: Set<AppID> = []
    private var askedGroups: [Int64: Set<GroupID>] = [:]
    /// Groups whose documents have come on this connection, and those that the device was last told to be in.
    private var shownGroups: Set<GroupID> = []
    private var wantedGroups: Set<GroupID> = []
    /// How often it was told, since the core looked last.
    private var memberships = 0
    /// More than once in this moment: a group may have been left, and come to again.
    private(set) var isRegrouped = false
    /// A membership came that the device could not verify yet: when it can, it looks at its groups anew.
    private var isMembershipUnread = false
    private var greeting = Greeting()
    /// The controller's by the hellos that came before this moment.
    private(set) var epochBefore: Int64 = 0
    /// What the core trusted when it looked last.
    private var trustBefore: TrustDocument?
    /// Of a connection that ended while the core had yet to look at something of it.
    private var ended: Greeting?
    /// What was certain on the connection that has just ended: its last messages may still wait for the core.
    var before: Set<AppID> = []

    mutating func connected(_ name: RandomID) {
        connection = name
        greeting.connection = name
    }

    mutating func disconnected() {
        if greeting.isGreeted || greeting.mayBeGreeted { before = fetched }
        if greeting.hasMore { ended = greeting }
        connection = nil
        isPresent = false
        isPastFirst = false
        asked = [:]
        fetched = []
        askedGroups = [:]
        shownGroups = []
        isMembershipUnread = false
        greeting = Greeting()
    }

    /// The core has heard of a connection.
    mutating func began(_ name: RandomID, at running: Int64) {
        if greeting.connection == name { greeting.since = running }
        if ended?.connection == name { ended?.since = running }
    }

    mutating func said(_ presence: Presence, at running: Int64) { greeting.said(presence, at: running) }

    /// What the agent had yet to look at is gone with it.
    mutating func died() {
        ended = nil
        before = []
    }

    /// How far the connection has come.
    var phase: Coverage.Phase {
        if connection == nil { return .away }
        if !isPastFirst { return .beforeFirst }
        return greeting.isGreeted && asked.isEmpty ? .certain : .fetching
    }

    mutating func subscribed() { isPresent = true }

    mutating func asked(_ filters: [TopicFilter], _ barrier: Int64, of device: DeviceID) {
        asked[barrier] = Set(
            filters.compactMap { filter in
                if case .aspects(.device(device), let app) = filter { app } else { nil }
            })
        askedGroups[barrier] = Set(
            filters.compactMap { if case .one(.groupMeta(let group)) = $0 { group } else { nil } })
    }

    mutating func left(_ filters: [TopicFilter]) {
        for case .one(.groupMeta(let group)) in filters { shownGroups.remove(group) }
    }

    mutating func received(_ address: Address?, _ payload: [UInt8]) {
        switch address {
        case .barrier?:
            guard let marker = try? BarrierMarker(json: payload, limit: 1_024), marker.connection == connection else {
                return
            }
            isPastFirst = true
            fetched.formUnion(asked.removeValue(forKey: marker.counter) ?? [])
            shownGroups.formUnion(askedGroups.removeValue(forKey: marker.counter) ?? [])
        case .membership?:
            memberships += 1
            if let trustBefore, let signed = try? SignedDocument(wire: payload), trustBefore.key(signed.keyID) == nil {
                isMembershipUnread = true
            }
        case .trust?:
            guard let signed = try? SignedDocument(wire: payload),
                let trust = try? TrustDocument(json: signed.payload, limit: SignedDocument.maximumSize)
            else { return }
            greeting.heard(trust)
        case .heartbeat?:
            guard let signed = try? SignedDocument(wire: payload),
                let heartbeat = try? Heartbeat(json: signed.payload, limit: SignedDocument.maximumSize)
            else { return }
            greeting.heard(signed, nil, heartbeat.clock)
        case .hello?:
            guard let signed = try? SignedDocument(wire: payload),
                let hello = try? Hello(json: signed.payload, limit: SignedDocument.maximumSize),
                hello.connection == connection
            else { return }
            greeting.heard(signed, hello, hello.clock)
        default: break
        }
    }

    /// The core has looked at all that came, and trusts these keys: what others have signed is no contact yet. Returns what
    /// was contact.
    mutating func looked(_ core: DeviceCore, at running: Int64) -> [Greeting.Contact] {
        let known = trustBefore ?? core.trust
        trustBefore = core.trust
        epochBefore = greeting.epoch
        let contacts =
            (ended?.contacts(core.trust, was: known, at: running) ?? [])
            + greeting.contacts(core.trust, was: known, at: running)
        ended = nil
        let wanted = Set(core.membership)
        // What came before the new groups did was decided without them, or with those that they have replaced at once.
        if wanted != wantedGroups || memberships > 1, greeting.isGreeted,
            memberships > 1 || wantedGroups.isSubset(of: shownGroups)
        {
            before.formUnion(fetched)
        }
        isRegrouped = memberships > 1
        leave(wantedGroups.subtracting(wanted))
        (wantedGroups, memberships) = (wanted, 0)
        return contacts
    }

    /// What was shown of these, or asked for, says nothing of what comes to stand there until they are come to again.
    private mutating func leave(_ groups: Set<GroupID>) {
        guard !groups.isEmpty else { return }
        shownGroups.subtract(groups)
        askedGroups = askedGroups.mapValues { $0.subtracting(groups) }
    }

    private func isShown(_ app: AppID) -> Bool {
        greeting.isGreeted && fetched.contains(app) && wantedGroups.isSubset(of: shownGroups)
    }

    /// At the end of this moment.
    func isStillCertain(_ app: AppID) -> Bool { isShown(app) && !isMembershipUnread }

    /// At some time in this moment, as far as can be seen.
    func isCertain(_ app: AppID) -> Bool { isShown(app) || before.contains(app) }
}
