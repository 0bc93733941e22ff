/// Who may publish and read what: the one table that the broker's ACL file, its guard and the simulator are made from.
package struct Access: Hashable, Sendable {
    package enum Direction: Hashable, Sendable { case publish, read }

    /// What users of one kind have in common.
    package enum Role: Int, CaseIterable, Hashable, Sendable { case device, controller, `operator`, viewer, bridge }

    /// Stands in a pattern for the user's own name, as in an ACL file of Mosquitto.
    package static let ownName: Character = "\u{1}"
    /// Stands in a pattern for each group of the device.
    package static let ownGroup: Character = "\u{2}"

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
        table(of: user.role).flatMap { $0.filled(user.text, groups: groups) }
    }

    /// The rights of every device, with `%u` where its user name stands: for the patterns of an ACL file.
    package static let devicePatterns = table(of: .device).flatMap { $0.filled("%u", groups: nil) }

    private func filled(_ name: String, groups: [GroupID]?) -> [Access] {
        let own = pattern.split(separator: Self.ownName, omittingEmptySubsequences: false).joined(separator: name)
        let parts = own.split(separator: Self.ownGroup, omittingEmptySubsequences: false)
        guard parts.count > 1 else { return [Access(direction, own, isBrokerTopic: isBrokerTopic)] }
        guard let groups else { return [Access(direction, parts[0] + "#", isBrokerTopic: isBrokerTopic)] }
        return groups.map { Access(direction, parts.joined(separator: $0.text), isBrokerTopic: isBrokerTopic) }
    }

    /// The rights of all users of a kind, with ``ownName`` and ``ownGroup`` in them.
    package static func table(of role: Role) -> [Access] {
        switch role {
        case .device:
            [
                Access(.publish, "reply/\(ownName)/#"), Access(.publish, "presence/\(ownName)"),
                Access(.publish, "control/barrier/\(ownName)"),
                Access(.read, "desired/all/#"), Access(.read, "desired/device/\(ownName)/#"),
                Access(.read, "desired/group/\(ownGroup)/#"),
                Access(.read, "presence/\(ownName)"), Access(.read, "presence/@controller"),
                Access(.read, "control/heartbeat"), Access(.read, "control/hello/\(ownName)"),
                Access(.read, "control/received/\(ownName)"), Access(.read, "control/barrier/\(ownName)"),
            ]
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
        case .operator: person + [Access(.read, "$SYS/#", isBrokerTopic: true)]
        case .viewer: person
        case .bridge: [Access(.read, "desired/#"), Access(.read, "control/heartbeat")]
        }
    }

    private static let person = [
        Access(.publish, "control/request/\(ownName)/+"), Access(.publish, "control/barrier/\(ownName)"),
        Access(.read, "control/response/\(ownName)/+"), Access(.read, "reply/#"), Access(.read, "presence/#"),
        Access(.read, "control/heartbeat"), Access(.read, "control/barrier/\(ownName)"),
    ]
}

extension User {
    package var role: Access.Role {
        switch self {
        case .device: .device
        case .controller: .controller
        case .operator: .operator
        case .viewer: .viewer
        case .bridge: .bridge
        }
    }
}
