import FleetProtocol

extension DLP {
    /// Whether it speaks of the authorized apps of a device.
    func namesAuthorized(_ policy: Policy) -> Bool {
        switch policy {
        case .openIn: openIn == .appConnectApps
        case .openFrom: openFrom == .appConnectApps
        case .dragAndDrop: dragAndDrop == .appConnectApps
        default: false
        }
    }
}

extension PolicyValue {
    /// The apps that may be given to, taken from, or dragged to.
    var named: [AppID] {
        get {
            switch self {
            case .openIn(_, let apps), .openFrom(_, let apps), .dragAndDrop(_, let apps): apps
            default: []
            }
        }
        set {
            switch self {
            case .openIn(let policy, _): self = .openIn(policy, whitelist: newValue)
            case .openFrom(let policy, _): self = .openFrom(policy, whitelist: newValue)
            case .dragAndDrop(let policy, _): self = .dragAndDrop(policy, apps: newValue)
            default: break
            }
        }
    }
}
