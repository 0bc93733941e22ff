import FleetController
import FleetProtocol

/// What a controller that was restored says of retirements that were made after its backup.
extension Controller {
    /// Notes those that the broker shows while it looks around: said by itself, signed with a key that still counts, and beyond
    /// all that its store has given out.
    func noteRetirements(in event: ControllerCore.Event) {
        guard isRestoring, phase == .looking, case .messages(let messages) = event, let latest = try? store.latest()
        else { return }
        let trust = world.fleet.identities[renewals].trust
        for message in messages.prefix(while: { $0.topic != Self.marker })
        where message.topic.hasSuffix(Self.authorizations) {
            guard documentsSaid[message.topic]?.contains(message.payload) == true,
                let signed = try? SignedDocument(wire: message.payload), trust.key(signed.keyID) != nil,
                let document = try? DesiredDocument(payload: signed.payload, in: SimulatedFleet.id),
                document.revision > latest, case .aspect(let value) = document.content,
                case .auth(.retired, _) = value.content,
                let address = Address(topic: message.topic, in: SimulatedFleet.id)
            else { continue }
            retirementsShown.insert(address)
        }
    }

    /// Whoever has restored it is told which of these nobody wants any more, before anything else is changed: all that were
    /// shown, and none that stands.
    func checkEnded(_ effects: [ControllerCore.Effect]) {
        guard isRestoring else { return }
        var hasBegun = false
        var told: Set<Address> = []
        for case .log(let line) in effects {
            if line.message.hasPrefix("began a new epoch") { hasBegun = true }
            guard line.message.hasPrefix("a retirement is not in this database") else { continue }
            if let address = Address(topic: line.details["topic"] ?? "", in: SimulatedFleet.id) { told.insert(address) }
        }
        guard hasBegun else { return }
        for address in told.union(retirementsShown).sorted(by: { $0.path < $1.path }) {
            let stands = desired.isRetired(address)
            if stands, told.contains(address) {
                world.fail(.restored, "it says that the retirement at \(address.path) is lost, and it stands")
            }
            if !stands, !told.contains(address) {
                world.fail(.restored, "it does not say that the retirement at \(address.path) is lost")
            }
        }
    }

    private static let authorizations = "/\(Aspect.auth.text)"
}
