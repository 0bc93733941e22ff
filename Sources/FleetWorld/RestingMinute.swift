import FleetProtocol

/// What is said and stored in a minute in which nobody has anything new to say.
struct RestingMinute {
    /// What a device says and does, and what it is told.
    enum Part: String, CaseIterable {
        case hellos, marks, presences, reports, markers, transactions

        /// What goes with each minute: a heartbeat, a greeting, a level or a lock whose time is over; and what comes of one
        /// connection that is made anew, since something was refused before.
        var most: Int {
            switch self {
            case .hellos: 6
            case .marks: 10
            case .presences: 8
            case .reports: 40
            case .markers: 12
            case .transactions: 40
            }
        }
    }

    /// Events of the world for each device: there is nothing to wait for that comes every other moment.
    static let mostSteps = 600

    private var counts: [DeviceID: [Part: Int]] = [:]

    mutating func said(_ topic: String) {
        switch Address(topic: topic, in: SimulatedFleet.id) {
        case .hello(let device): note(.hellos, of: device)
        case .received(let device): note(.marks, of: device)
        case .presence(.device(let device)): note(.presences, of: device)
        case .reply(let device, _, _): note(.reports, of: device)
        case .barrier(.device(let device)): note(.markers, of: device)
        default: break
        }
    }

    mutating func stored(by device: DeviceID) { note(.transactions, of: device) }

    private mutating func note(_ part: Part, of device: DeviceID) {
        counts[device, default: [:]][part, default: 0] += 1
    }

    /// Until now it has spoken in vain.
    mutating func letIn(_ device: DeviceID) { counts[device] = nil }

    func count(_ part: Part, of device: DeviceID) -> Int { counts[device]?[part] ?? 0 }
}

extension World {
    /// A fleet at rest is quiet.
    func check(_ minute: RestingMinute, steps: Int) {
        for device in machines.map(\.id) {
            for part in RestingMinute.Part.allCases {
                let count = minute.count(part, of: device)
                visit("a minute at rest", part.rawValue, "\(count)")
                if count > part.most {
                    fail(.bounded, "nothing happens, and in a minute there are \(count) \(part.rawValue) of \(device)")
                }
            }
        }
        let share = steps / machines.count
        visit("a minute at rest", "tens of steps for each device", "\(share / 10)")
        if share > RestingMinute.mostSteps { fail(.bounded, "nothing happens, and a minute has \(steps) steps") }
    }
}
