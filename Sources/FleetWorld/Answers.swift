import DeviceAgent
import FleetProtocol

/// For which policies apps answer in one moment.
struct Answers {
    /// To the newest delivery of each, and to no earlier one in the same moment: what is said of that is true of that one.
    private(set) var newest: [AppID: Set<Policy>] = [:]
    /// To whatever delivery, and of these that it is applied.
    private(set) var all: [AppID: Set<Policy>] = [:]
    private(set) var applied: [AppID: Set<Policy>] = [:]

    init() {}

    init(_ events: [DeviceEvent], _ links: [Int64: AppID], _ conversations: [AppID: Conversation]) {
        var late: [AppID: Set<Policy>] = [:]
        for event in events {
            let (app, said): (AppID?, [Acknowledgement]) =
                switch event {
                case .registered(_, let registration): (registration.app, registration.resume?.acknowledgements ?? [])
                case .frame(let link, .acknowledge(let answer)): (links[link.number], [answer])
                default: (nil, [])
                }
            guard let app, let conversation = conversations[app] else { continue }
            all[app, default: []].formUnion(said.map(\.policy))
            applied[app, default: []].formUnion(said.filter { $0.state == .applied }.map(\.policy))
            newest[app, default: []].formUnion(said.filter(conversation.isOfNewest).map(\.policy))
            late[app, default: []].formUnion(said.filter { !conversation.isOfNewest($0) }.map(\.policy))
        }
        for (app, policies) in late { newest[app]?.subtract(policies) }
    }
}
