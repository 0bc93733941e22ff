import FleetController
import FleetProtocol

/// Since when each device-app is told by the layers that speak to it now, by the controller's clock: what decides for it may
/// be much older.
struct LayersWatch {
    private struct Place: Hashable {
        let device: DeviceID
        let app: AppID
    }

    /// `told` is nil where a backup that was put back knows when.
    private var known: [Place: (layers: [Aspect: [Layer]], told: Timestamp?, seen: Timestamp)] = [:]
    private var isPutBack = false
    /// The incarnation as which each device-app was first seen to report, and when.
    private var reported: [Place: (incarnation: Int64, at: Timestamp)] = [:]
    /// When the first status of each came to the controller, by the world's time: no store can have had one before.
    private var came: [Place: Int64] = [:]

    /// An operator was answered that something is changed.
    mutating func look(at desired: DesiredModel, of world: World, at now: Timestamp) {
        for machine in world.machines {
            for app in (0..<world.schedule.apps).map({ AppID(unchecked: "a\($0)") }) {
                let place = Place(device: machine.id, app: app)
                let layers = desired.layers(of: app, on: machine.id)
                if isPutBack || layers != known[place]?.layers ?? [:] {
                    known[place] = (layers, isPutBack ? nil : now, now)
                }
            }
        }
        isPutBack = false
    }

    /// The controller's store is one of earlier.
    mutating func putBack() {
        isPutBack = true
        known = [:]
        reported = [:]
    }

    /// A message comes to the controller.
    mutating func received(_ topic: String, at now: Int64) {
        guard topic.hasSuffix("/status"),
            case .reply(let device, let app, .status)? = Address(topic: topic, in: SimulatedFleet.id)
        else { return }
        let place = Place(device: device, app: app)
        if came[place] == nil { came[place] = now }
    }

    /// Since when it is so, as far as operators know, and when it was seen: not in their order, if somebody has set the clock. And
    /// since when there can be anything of it.
    mutating func since(
        _ status: Status, at now: Timestamp
    ) -> (told: Timestamp?, seen: [Timestamp], came: Int64?) {
        let place = Place(device: status.device, app: status.app)
        if reported[place]?.incarnation != status.order.incarnation {
            reported[place] = (status.order.incarnation, now)
        }
        return (known[place]?.told, [known[place]?.seen, reported[place]?.at].compactMap(\.self), came[place])
    }
}
