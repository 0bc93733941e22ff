/// Whether a device is connected, as far as the controller knows on its present connection.
enum Connectivity: String, CaseIterable, Hashable, Comparable, Sendable {
    case online, offline, unknown

    /// Who is most likely to answer comes first.
    static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

    private var rank: Int {
        switch self {
        case .online: 0
        case .unknown: 1
        case .offline: 2
        }
    }

    // MARK: How it is stored: `devices.state`, one of these or the session in which it was last heard online

    static let unknownState: Int64 = 0
    static let offlineState: Int64 = 1

    init(state: Int64, session: Int64) {
        self =
            switch state {
            case Self.offlineState: .offline
            case session: .online
            default: .unknown
            }
    }
}
