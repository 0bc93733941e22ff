import BrokerGuard
import FleetProtocol

/// What is not for everybody to read, and under which names nobody may come.
extension Broker {
    /// Who could come under another's client id could throw that one off; people have several, each behind their own name.
    func checkNames() {
        guard let guardian else { return }
        let people = [world.operators[0].user, world.viewer.user]
        for user in (world.machines.map(\.user) + [.controller] + people).map(\.text) {
            let others = ["\(user)0", String(user.dropLast()), "x\(user)", "\(user) ", ""]
            for id in others where guardian.admits(user, as: id) {
                world.fail(.rights, "the guard lets \(user) connect as '\(id)'")
            }
        }
        for user in people where !guardian.admits(user.text, as: "\(user.text)~0") {
            world.fail(.total, "the guard does not let \(user.text) run two commands")
        }
    }

    /// Each of these belongs to others. A copy of the guard is asked, which learns nothing from what is empty, or the list that
    /// stands in its place.
    func checkReading() {
        var asked = guardian
        for (user, addresses) in foreign {
            for topic in addresses.map({ $0.topic(in: SimulatedFleet.id) }) {
                let isAllowed: Bool
                if asked != nil {
                    isAllowed = Guard.asking(user.text, topic) { asked?.mayRead($0, $1) ?? false }
                } else {
                    isAllowed = rights(of: user).read.contains { $0.matches(topic) }
                }
                if isAllowed { world.fail(.rights, "\(user.text) may read \(topic)") }
            }
        }
        for (user, filters) in tooMuch where asked != nil {
            for filter in filters.map({ Address.prefix(of: SimulatedFleet.id) + $0 }) {
                let refusal = Guard.asking(user.text, filter) {
                    asked?.refusalToSubscribe(to: $0.topic, $1, now: world.now)
                }
                if refusal == nil { world.fail(.rights, "the guard lets \(user.text) subscribe to \(filter)") }
            }
        }
    }

    /// What nobody may read who is not named there, and what nobody but the controller may.
    private var foreign: [(User, [Address])] {
        let app = world.appID(0)
        let (own, viewer) = (world.operators[0].user, world.viewer.user)
        let here = Name(unchecked: "here")
        let devices = world.machines.map { machine -> (User, [Address]) in
            // One begins as its own name, the others are there.
            let others = [DeviceID(unchecked: "\(machine.id)0")] + world.machines.map(\.id).filter { $0 != machine.id }
            let theirs = others.flatMap { other -> [Address] in
                [
                    .desired(.device(other), app, .auth), .membership(other), .hello(other), .received(other),
                    .presence(.device(other)), .barrier(.device(other)), .reply(other, app, .status),
                ]
            }
            return (machine.user, theirs + [.barrier(.controller), .request(own, .apply), .response(own, here)])
        }
        let device = world.machines[0].id
        let told = [Address.desired(.all, app, .config), .membership(device), .hello(device)]
        let people = [(own, viewer), (viewer, own)].map { person, other -> (User, [Address]) in
            (person, told + [.request(other, .apply), .response(other, here), .barrier(other), .barrier(.controller)])
        }
        return devices + people
    }

    /// Filters that stand for more than their users may read, behind the fleet's prefix.
    private var tooMuch: [(User, [String])] {
        let app = world.appID(0)
        let device = world.machines[0]
        let ofDevice = [
            "#", "desired/#", "desired/device/#", "desired/device/+/\(app)/+", "desired/device/\(device.id)0/\(app)/+",
            "reply/#", "presence/#", "presence/+", "control/#", "control/hello/+", "control/received/+",
            "control/request/#",
        ]
        let ofPerson = [
            "#", "desired/#", "control/#", "control/request/#", "control/response/#", "control/response/+/+",
        ]
        return [
            (device.user, ofDevice), (world.operators[0].user, ofPerson), (world.viewer.user, ofPerson),
        ]
    }
}
