import BrokerGuard
import FleetProtocol
import FleetWorld

/// A guard that knows a fleet's keys and a device's group, and what it is asked most.
final class GuardSample {
    private var core: Guard
    private let device: String
    private var now: Int64 = 0
    private let controller = User.controller.text
    private let everyone: (topic: String, wire: [UInt8])
    private let group: (topic: String, wire: [UInt8])
    private let status: (topic: String, wire: [UInt8])

    init(_ samples: WireSamples) throws {
        let fleet = WireSamples.fleet
        core = Guard(GuardConfiguration(fleet: fleet, uuid: samples.document.fleet, root: samples.root.publicKey))
        device = samples.device.text
        let shop = GroupID(unchecked: "shop")
        func document(_ address: Address, _ content: DesiredDocument.Content) throws -> (String, [UInt8]) {
            let revision = Revision(epoch: 1, number: 42)
            let document = DesiredDocument(
                fleet: samples.document.fleet, fleetID: fleet, address: address, revision: revision, change: revision,
                issuedAt: samples.document.issuedAt, content: content)
            return (
                address.topic(in: fleet),
                try SignedDocument(signing: document.json, as: .desired, with: samples.key).wire
            )
        }
        everyone = (samples.document.topic, samples.signed.wire)
        group = try document(.desired(.group(shop), samples.app, .config), samples.document.content)
        status = (Address.reply(samples.device, samples.app, .status).topic(in: fleet), samples.status.wire)
        let membership = try document(.membership(samples.device), .membership([shop]))
        try publish((Address.trust.topic(in: fleet), samples.trust.wire), by: controller)
        try publish(membership, by: controller)
    }

    func readForEveryone() throws { try read(everyone) }
    func readForGroup() throws { try read(group) }
    func publishDocument() throws { try publish(everyone, by: controller) }
    func publishStatus() throws { try publish(status, by: device) }

    private func read(_ message: (topic: String, wire: [UInt8])) throws {
        guard ask(message, device, { core.mayRead($0, $1) }) else { throw LoadError("the guard refuses a reader") }
    }

    private func publish(_ message: (topic: String, wire: [UInt8]), by user: String) throws {
        now += 1_000
        if let refusal = ask(message, user, { core.refusalToPublish($0, $1, now: now) }) {
            throw LoadError("the guard refuses \(user): \(refusal.reason)")
        }
    }

    private func ask<Answer>(
        _ message: (topic: String, wire: [UInt8]), _ user: String, _ body: (Guard.Message, Client) -> Answer
    ) -> Answer {
        Guard.asking(user, message.topic, message.wire, isRetained: true, body)
    }
}
