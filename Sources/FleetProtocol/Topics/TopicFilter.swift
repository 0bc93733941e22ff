/// The subscriptions of the bus: the only place where wildcards are written.
package enum TopicFilter: Hashable, Sendable {
    case one(Address)
    /// Every aspect of one app on one layer.
    case aspects(Layer, AppID)
    case allDesired
    case allReplies
    case allPresence
    /// Every request of every user, or the verbs of one.
    case requests(User?)
    case responses(User)

    package func text(in fleet: FleetID) -> String {
        let prefix = Address.prefix(of: fleet)
        switch self {
        case .one(let address): return address.topic(in: fleet)
        case .aspects(let layer, let app): return "\(prefix)desired/\(layer)/\(app)/+"
        case .allDesired: return "\(prefix)desired/#"
        case .allReplies: return "\(prefix)reply/#"
        case .allPresence: return "\(prefix)presence/#"
        case .requests(let user): return "\(prefix)control/request/\(user?.text ?? "+")/+"
        case .responses(let user): return "\(prefix)control/response/\(user.text)/+"
        }
    }
}
