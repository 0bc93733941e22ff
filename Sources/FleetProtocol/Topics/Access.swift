/// Who may publish and read what: the one table that the broker's ACL file, its guard and the simulator are made from.
package struct Access: Hashable, Sendable {
    package enum Direction: Hashable, Sendable { case publish, read }

    package let direction: Direction
    /// The topic or filter, behind the fleet's prefix unless it is one of the broker's own.
    package let pattern: String
    package let isBrokerTopic: Bool

    private init(_ direction: Direction, _ pattern: String, isBrokerTopic: Bool = false) {
        self.direction = direction
        self.pattern = pattern
        self.isBrokerTopic = isBrokerTopic
    }

    package func text(in fleet: FleetID) -> String { isBrokerTopic ? pattern : Address.prefix(of: fleet) + pattern }

    /// The rights of one user. A device's groups are given by who knows them; `nil` stands for every group, where the
    /// membership is not known (an ACL file).
    package static func rules(for user: User, groups: [GroupID]? = nil) -> [Access] {
        switch user {
        case .device(let id): device(id.text, groups: groups)
        case .controller:
            [
                Access(.publish, "desired/#"), Access(.publish, "control/heartbeat"),
                Access(.publish, "control/hello/#"), Access(.publish, "control/received/#"),
                Access(.publish, "control/response/#"), Access(.publish, "presence/@controller"),
                Access(.publish, "control/barrier/@controller"),
                // Only empty messages: it clears what a removed device has left. A file cannot say "empty".
                Access(.publish, "reply/#"), Access(.publish, "presence/#"),
                Access(.read, "#"),
            ]
        case .operator: person(user) + [Access(.read, "$SYS/#", isBrokerTopic: true)]
        case .viewer: person(user)
        case .bridge: [Access(.read, "desired/#"), Access(.read, "control/heartbeat")]
        }
    }

    /// The rights of every device, with `%u` where its user name stands: for the patterns of an ACL file.
    package static let devicePatterns = device("%u", groups: nil)

    private static func device(_ id: String, groups: [GroupID]?) -> [Access] {
        let groupFilters = groups.map { $0.map { "desired/group/\($0)/#" } } ?? ["desired/group/#"]
        return [
            Access(.publish, "reply/\(id)/#"), Access(.publish, "presence/\(id)"),
            Access(.publish, "control/barrier/\(id)"),
            Access(.read, "desired/all/#"), Access(.read, "desired/device/\(id)/#"),
        ] + groupFilters.map { Access(.read, $0) } + [
            Access(.read, "presence/\(id)"), Access(.read, "presence/@controller"),
            Access(.read, "control/heartbeat"), Access(.read, "control/hello/\(id)"),
            Access(.read, "control/received/\(id)"), Access(.read, "control/barrier/\(id)"),
        ]
    }

    private static func person(_ user: User) -> [Access] {
        [
            Access(.publish, "control/request/\(user.text)/+"), Access(.publish, "control/barrier/\(user.text)"),
            Access(.read, "control/response/\(user.text)/+"), Access(.read, "reply/#"), Access(.read, "presence/#"),
            Access(.read, "control/heartbeat"), Access(.read, "control/barrier/\(user.text)"),
        ]
    }
}
