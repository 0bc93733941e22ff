import FleetController
import FleetProtocol

/// A controller that somebody has started on a copy of the home. Of the broker it takes the connection of the other one, is
/// thrown off by that, and comes again; it does nothing else.
final class Rival: BusClient {
    unowned let world: World
    let user = User.controller
    let name = "another controller"
    /// What its connections were called.
    private(set) var connections: Set<RandomID> = []
    private var startedAt = SimulatedFleet.begin

    init(_ world: World) { self.world = world }

    func start(comingEvery pause: Int64) {
        startedAt = world.controller.clock
        come(times: 3, every: pause)
    }

    private func come(times: Int, every pause: Int64) {
        guard times > 0, !world.isCalm else { return }
        let connection = RandomID.random(using: &world.noise)
        let will = ControllerCore.will(
            connection, of: world.fleet.identities[world.controller.renewals], startedAt: startedAt)
        guard let made = world.broker.connect(self, will: (will.topic, will.payload)) else {
            return world.after(1_000) { [unowned self] in come(times: times, every: pause) }
        }
        world.say(name, "takes the connection over")
        connections.insert(connection)
        if var said = try? Presence(json: will.payload, limit: Presence.maximumSize) {
            said.state = .online
            world.broker.send(will.topic, said.json, retain: true, on: made)
        }
        world.after(1_500) { [unowned self] in world.broker.cut(made, noticedAfter: 0) }
        world.after(pause) { [unowned self] in come(times: times - 1, every: pause) }
    }

    func connected(_ connection: Connection) {}
    func received(_ topic: String, _ payload: [UInt8], isRetained: Bool, on connection: Connection) {}
    func subscribed(_ token: Int64, on connection: Connection) {}
    func lost(_ connection: Connection) {}
}
