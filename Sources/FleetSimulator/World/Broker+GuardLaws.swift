import BrokerGuard
import DeviceAgent
import FleetProtocol

/// What a guard says no to.
extension Broker {
    /// Whoever has left a group is shown nothing of it any more, whatever it is still subscribed to. The guard has read what is
    /// retained of a device's groups before it was retained, or has forgotten all with the broker's process.
    func checkShown(_ topic: String, to client: any BusClient) {
        guard guardian != nil, topic.hasPrefix(Self.groups), case .device(let device) = client.user,
            let group = Address(topic: topic, in: SimulatedFleet.id)?.group
        else { return }
        let groups = groups(of: device)
        if !groups.contains(group) {
            world.fail(.rights, "the guard shows \(client.name) \(topic), and it is in \(groups)")
        }
    }

    private func groups(of device: DeviceID) -> [GroupID] {
        let topic = Address.membership(device).topic(in: SimulatedFleet.id)
        if let known = memberships[topic] { return known }
        let groups =
            retained[topic].flatMap { kept -> [GroupID]? in
                guard case .membership(let groups)? = Self.document(kept.payload)?.content else { return nil }
                return groups
            } ?? []
        memberships[topic] = groups
        return groups
    }

    private static func document(_ wire: [UInt8]) -> DesiredDocument? {
        try? DesiredDocument(payload: SignedDocument(wire: wire).payload, in: SimulatedFleet.id)
    }
}
