import FleetController
import FleetProtocol

/// What tells a controller that it was put back, or that it is not the only one.
extension Controller {
    static let marker = Address.barrier(.controller).topic(in: SimulatedFleet.id)

    /// The first word of a device about a revision that this controller has never given out, if the next event holds one.
    func newerWord(in event: ControllerCore.Event) -> String? {
        guard phase != .offline, !isRestoring, case .messages(let messages) = event, let latest = try? store.latest()
        else { return nil }
        // What comes behind a request may speak of what that has brought; or those have that were deferred until the own marker.
        return messages.prefix { !$0.topic.hasPrefix(Self.requests) && $0.topic != Self.marker }.lazy
            .compactMap { [self] message in word(in: message, beyond: latest) }.first
    }

    /// It stops, and has mended nothing by what it has of before.
    func checkStops(for word: String, _ effects: [ControllerCore.Effect], wasLooking: Bool) {
        if !effects.contains(where: { if case .stop = $0 { true } else { false } }) {
            world.fail(.restored, "it was told of \(word), which it has no memory of, and goes on")
        }
        let isMending = effects.contains { effect in
            if case .publish(let topic, _, true) = effect { topic.hasPrefix(Self.documents) } else { false }
        }
        if wasLooking, isMending {
            world.fail(.restored, "it was told of \(word), which it has no memory of, and mends the broker as it stops")
        }
    }

    private func word(in message: ControllerCore.Message, beyond latest: Revision) -> String? {
        switch Address(topic: message.topic, in: SimulatedFleet.id) {
        case .presence(.device(let device))?:
            guard let said = try? Presence(json: message.payload, limit: Presence.maximumSize), said.state == .online,
                isThere(device, said.incarnation), let highest = said.highest, highest > latest
            else { return nil }
            return "revision \(highest) by \(device)"
        case .reply(let device, let app, .status)?:
            guard
                let status = try? Status(
                    wire: message.payload, fleet: SimulatedFleet.id, device: device, app: app),
                isThere(device, status.order.incarnation),
                let highest = status.policies.map(\.received).max(), highest > latest.number, highest < 1 << 50
            else { return nil }
            return "revision \(highest) by \(device)/\(app)"
        default: return nil
        }
    }

    /// What was taken out may claim anything, also before an operator hears that it was.
    private func isThere(_ device: DeviceID, _ incarnation: Int64) -> Bool {
        homeRead[device] == incarnation && !isRemoved(device, incarnation)
    }
}
