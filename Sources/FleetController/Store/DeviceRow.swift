import FleetProtocol

/// What is known of a device.
struct DeviceRow: Hashable, Sendable {
    let id: Int64
    let name: DeviceID
    /// The incarnation that the home last gave out; nil when it has not told.
    var enrolled: Int64?
    var incarnation: Int64
    var boot: Int64
    /// The last boot of this incarnation that has told of itself in a presence; 0 before the first.
    var announced: Int64 = 0
    /// The last boot of this incarnation whose presence was held against the disk that was known; 0 before the first.
    var judged: Int64 = 0
    /// `devices.state`, which ``Connectivity`` reads.
    var state: Int64
    /// The last connection that was online.
    var connection: RandomID?
    /// Since when it is online or offline, by the controller's receipt.
    var since: Timestamp?
    /// As the presence of its newest start has said; nil until that has come.
    var agent: String?
    /// What an operator should look at.
    var warning: String?
    /// Names the disk of which its last presence was, as far as that has told.
    var disk: Int64?
    /// Whether a copy of its disk was heard, or an older state of it, in this incarnation: what one of them has destroyed, the
    /// other may have.
    var isCopied = false

    /// Whether it was online when it was last heard of, in whatever session.
    var wasOnline: Bool { state > Connectivity.offlineState }
    /// Whether the last that was heard of it is that it has left.
    var isOffline: Bool { state == Connectivity.offlineState }

    /// Whether the home has enrolled another incarnation since: what this one has said was under way, and says nothing of who
    /// is there.
    var isReplaced: Bool { enrolled.map { incarnation < $0 } ?? false }

    /// The highest incarnation that it has spoken as or was enrolled as. No home gets as far as some that can be claimed.
    var lastIncarnation: Int64 { max(enrolled ?? 0, incarnation <= 1 << 50 ? incarnation : 0) }

    func connectivity(in session: Int64) -> Connectivity { Connectivity(state: state, session: session) }

    /// Nothing is known of where it is until it is heard.
    mutating func becomeUnknown() {
        state = Connectivity.unknownState
        since = nil
    }

    /// The row of one of its apps.
    func row(of app: Int64) -> Int64 { id << 16 | app }
}
