import FleetProtocol
import Testing

/// The table of who may do what, by its effect on topics.
@Suite("Access")
struct AccessTests {
    private let fleet = FleetID(unchecked: "demo")

    private func may(_ user: User, _ direction: Access.Direction, _ address: Address, groups: [GroupID]? = nil) -> Bool
    {
        let topic = address.topic(in: fleet)
        return Access.rules(for: user, groups: groups)
            .contains { $0.direction == direction && Self.matches($0.text(in: fleet), topic) }
    }

    private static func matches(_ filter: String, _ topic: String) -> Bool {
        let levels = filter.split(separator: "/", omittingEmptySubsequences: false)
        let parts = topic.split(separator: "/", omittingEmptySubsequences: false)
        for (index, level) in levels.enumerated() {
            if level == "#" { return true }
            guard index < parts.count, level == "+" || level == parts[index] else { return false }
        }
        return levels.count == parts.count
    }

    @Test("a device speaks for itself alone, and reads what is meant for it")
    func device() {
        let me = DeviceID(unchecked: "till-1")
        let other = DeviceID(unchecked: "till-2")
        let app = AppID(unchecked: "mail")
        let kiosk = GroupID(unchecked: "kiosk")
        let user = User.device(me)
        for reply in Address.Reply.allCases {
            #expect(may(user, .publish, .reply(me, app, reply)))
            #expect(!may(user, .publish, .reply(other, app, reply)))
            #expect(!may(user, .read, .reply(other, app, reply)))
        }
        #expect(may(user, .publish, .presence(.device(me))) && may(user, .read, .presence(.device(me))))
        #expect(!may(user, .publish, .presence(.device(other))) && !may(user, .read, .presence(.device(other))))
        #expect(!may(user, .publish, .presence(.controller)) && may(user, .read, .presence(.controller)))
        #expect(may(user, .publish, .barrier(user)) && may(user, .read, .barrier(user)))
        #expect(!may(user, .read, .barrier(.device(other))))
        for aspect in Aspect.allCases {
            #expect(may(user, .read, .desired(.all, app, aspect)))
            #expect(may(user, .read, .desired(.device(me), app, aspect)))
            #expect(!may(user, .read, .desired(.device(other), app, aspect)))
            #expect(may(user, .read, .desired(.group(kiosk), app, aspect), groups: [kiosk]))
            #expect(!may(user, .read, .desired(.group(kiosk), app, aspect), groups: []))
            #expect(!may(user, .publish, .desired(.device(me), app, aspect)))
        }
        #expect(may(user, .read, .trust) && may(user, .read, .membership(me)) && !may(user, .read, .membership(other)))
        #expect(may(user, .read, .groupMeta(kiosk), groups: [kiosk]))
        #expect(may(user, .read, .heartbeat) && may(user, .read, .hello(me)) && may(user, .read, .received(me)))
        #expect(!may(user, .read, .hello(other)) && !may(user, .read, .received(other)))
        for verb in Verb.allCases { #expect(!may(user, .publish, .request(user, verb))) }
    }

    @Test("the controller reads everything, and publishes what is desired and what it controls")
    func controller() {
        var generator = SeededGenerator(seed: 2)
        for address in generator.addresses() { #expect(may(.controller, .read, address)) }
        let device = generator.device()
        for address in [
            .trust, .heartbeat, .hello(device), .received(device), .presence(.controller), .barrier(.controller),
        ]
            as [Address]
        {
            #expect(may(.controller, .publish, address))
        }
        #expect(!may(.controller, .publish, .barrier(.device(device))))
        #expect(!may(.controller, .publish, .request(.controller, .apply)))
    }

    @Test("a person asks and is answered under the own name alone; operators also see the broker")
    func people() {
        let alice = Name(unchecked: "alice")
        let users: [User] = [.operator(alice), .viewer(alice)]
        for user in users {
            let other = User.operator(Name(unchecked: "bob"))
            let device = DeviceID(unchecked: "till-1")
            let app = AppID(unchecked: "mail")
            for verb in Verb.allCases {
                #expect(may(user, .publish, .request(user, verb)))
                #expect(!may(user, .publish, .request(other, verb)))
            }
            #expect(may(user, .read, .response(user, alice)) && !may(user, .read, .response(other, alice)))
            #expect(!may(user, .read, .request(user, .apply)))
            #expect(
                may(user, .read, .reply(device, app, .status)) && !may(user, .publish, .reply(device, app, .status)))
            #expect(may(user, .read, .presence(.device(device))) && may(user, .read, .heartbeat))
            #expect(
                !may(user, .read, .desired(.all, app, .config)) && !may(user, .publish, .desired(.all, app, .config)))
        }
        let system = { (user: User) in Access.rules(for: user).contains { $0.text(in: fleet) == "$SYS/#" } }
        #expect(system(users[0]) && !system(users[1]))
    }
}
