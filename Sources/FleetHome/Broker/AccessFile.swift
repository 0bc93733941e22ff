import FleetProtocol

/// Mosquitto's `acl_file`, made from the one table of who may do what.
struct AccessFile: Hashable, Sendable {
    let text: String

    /// - Parameter users: Everyone with a password who is no device.
    init(fleet: FleetID, users: [User]) {
        var lines = [
            "# Who may publish and read what. Made by fleetctl: changes by hand are lost at the next enrolment.",
            "#",
            "# It counts where no guard is configured. What it cannot say, and the guard does:",
            "#  - devices can read the documents of every group, not only of theirs;",
            "#  - client ids are not bound to user names;",
            "#  - the controller's empty messages to reply/ and presence/ cannot be told from others;",
            "#  - Mosquitto grants every SUBSCRIBE and filters at delivery.",
            "",
            "# Devices: a device's user name (%u) is its level of the topic. Mosquitto applies patterns to every user; to",
            "# those that begin with @ they give nothing to publish that anyone reads, since no device's id begins so. Mosquitto",
            "# warns of patterns without %u: these are what every device may read.",
        ]
        lines += Access.devicePatterns.map { "pattern \(Self.line($0, fleet))" }
        for user in users.sorted(by: { $0.text < $1.text }) {
            lines += ["", "user \(user.text)"]
            lines += Access.rules(for: user).map { "topic \(Self.line($0, fleet))" }
        }
        text = lines.joined(separator: "\n") + "\n"
    }

    private static func line(_ access: Access, _ fleet: FleetID) -> String {
        switch access.direction {
        case .publish: "write \(access.text(in: fleet))"
        case .read: "read \(access.text(in: fleet))"
        }
    }
}
