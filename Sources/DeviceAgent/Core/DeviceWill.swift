package import FleetProtocol

/// What the wills of one start of an agent say: of whichever connection is being made.
package struct DeviceWill: Hashable, Sendable {
    fileprivate let incarnation: Int64
    fileprivate let boot: Int64
    fileprivate let disk: Int64
    fileprivate let agent: String

    package func presence(on connection: RandomID, at time: Timestamp) -> Presence {
        Presence(
            state: .offline, incarnation: incarnation, boot: boot, disk: disk, connection: connection, since: time,
            agent: agent, apps: [])
    }
}

extension DeviceCore {
    package var will: DeviceWill {
        DeviceWill(incarnation: enrollment.incarnation, boot: state.boot, disk: state.disk, agent: agentVersion)
    }
}
