import DeviceAgent
import FleetController
import FleetProtocol

/// The laws of what a device says to the bus.
extension Machine {
    /// What is told says of when it is: of the moment in which it was decided, also where the disk takes its time.
    func checkTimes(_ effects: [DeviceEffect]) {
        func compare(_ time: Timestamp, of what: @autoclosure () -> String) {
            guard time != clock.wall else { return }
            world.fail(.kept, "\(name): \(what()) is told to be of \(time), and is of \(clock.wall)")
        }
        for effect in effects {
            switch effect {
            case .report(let status): compare(status.at, of: "the status \(status.order) of \(status.app)")
            case .store(let changes):
                for case .event(let event) in changes { compare(event.header.at, of: "event \(event.header.number)") }
            default: break
            }
        }
    }

    /// The laws of a status that is said to the bus.
    func checkTold(_ status: Status) {
        let app = status.app
        guard let record = core?.state.apps[app] else { return }
        if disk.state.apps[app] != record {
            world.fail(.stored, "\(name)/\(app): a status was said before its store")
        }
        checkKeys(of: record)
        checkSaid(status, record)
        if status.isReady, watch.conversations[app]?.isReady != true, !wasPutBack, !watch.disputed.contains(app) {
            world.fail(.summary, "\(name)/\(app): it is said to be ready, and has not said so")
        }
        if let last = watch.orders[app], status.order <= last {
            world.fail(.order, "\(name)/\(app): status \(status.order) after \(last)")
        }
        watch.orders[app] = status.order
    }

    /// A status says what is stored of its app.
    private func checkSaid(_ status: Status, _ record: AppRecord) {
        func compare<Value: Equatable>(_ said: Value, with real: Value, _ what: String) {
            guard said != real else { return }
            world.fail(.summary, "\(name)/\(record.id): its \(what) is said to be \(said), and is \(real)")
        }
        compare(status.authState, with: record.authState, "authorization")
        compare(status.authReason, with: record.authReason, "reason")
        compare(status.authMessage, with: record.authMessage, "message")
        compare(status.managed, with: record.managed, "management")
        compare(status.keys == .present, with: record.hasKeys, "having keys")
        compare(status.secureServices, with: record.availability, "availability")
        compare(status.logLevel, with: record.logLevel, "log level")
        compare(status.sdk, with: record.sdk, "library")
        for policy in Policy.allCases { compare(status[policy], with: record[policy].report, policy.rawValue) }
    }

    /// The laws of an event, or a presence, that is said to the bus.
    func checkTold(_ address: Address, _ payload: [UInt8]) {
        guard core != nil else { return }
        switch address {
        case .reply(_, _, .event), .reply(_, _, .logLevel):
            guard let number = Self.number("number", in: payload), let boot = Self.number("boot", in: payload) else {
                return
            }
            let event = FleetStore.StoredEvent(
                device: id, incarnation: Self.number("incarnation", in: payload) ?? 0, boot: boot, number: number)
            if !wasPutBack, !watch.events.kept.contains(event) {
                world.fail(.stored, "\(name): event \(number) was said before its store")
            }
        case .presence(.device):
            // A controller that was put back finds by this that it was.
            guard let core, let said = try? Presence(json: payload, limit: Presence.maximumSize),
                said.state == .online
            else { return }
            // By this the controller knows a copy, or a disk that was put back.
            if let boot = said.previousBoot, boot != bootBefore {
                world.fail(.summary, "\(name) says that boot \(boot) was before this one, and it was \(bootBefore)")
            }
            let top = core.state.marks.values.map(\.revision).max() ?? .zero
            if top > Revision(epoch: 1, number: 0), said.highest ?? .zero < top {
                let told = said.highest.map { "\($0)" } ?? "nothing"
                world.fail(.restored, "\(name) has \(top), and says that it knows of \(told)")
            }
        default: break
        }
    }

    /// The laws of what reaches the broker.
    func checkArrived(_ topic: String, _ payload: [UInt8], _ isRetained: Bool, on connection: Connection) {
        checkNamed(topic, payload, on: connection)
        guard isRetained, topic.hasSuffix("/status"), !wasPutBack,
            let incarnation = Self.number("incarnation", in: payload),
            let boot = Self.number("boot", in: payload), let sequence = Self.number("seq", in: payload)
        else { return }
        let order = ReportOrder(incarnation: incarnation, boot: boot, sequence: sequence)
        if let last = watch.arrived[topic], order < last {
            world.fail(.order, "\(name): the status \(order) reached the broker after \(last)")
        }
        watch.arrived[topic] = order
    }

    /// No app runs for an agent that has ended in good order.
    func checkSilent(_ boot: Int64) {
        guard !wasPutBack, !isRemoved, enrolment == nil else { return }
        for app in apps {
            let topic = Address.reply(id, app.id, .status).topic(in: SimulatedFleet.id)
            let kept = world.broker.retained[topic].flatMap {
                try? Status(wire: $0.payload, fleet: SimulatedFleet.id, device: id, app: app.id)
            }
            guard let kept, kept.isRunning, kept.order.boot == boot, kept.order.incarnation == enrollment.incarnation
            else { continue }
            world.fail(.presence, "\(name) has left in good order, and \(app.id) is said to run")
        }
    }

    /// Who says on one connection that it is there on another is never said to be gone: no will is of that name.
    private func checkNamed(_ topic: String, _ payload: [UInt8], on connection: Connection) {
        let named: RandomID?
        switch Address(topic: topic, in: SimulatedFleet.id) {
        case .presence:
            let said = try? Presence(json: payload, limit: Presence.maximumSize)
            if let said { checkReported(said) }
            named = said?.connection
        case .barrier: named = (try? BarrierMarker(json: payload, limit: 1_024))?.connection
        default: named = nil
        }
        // Most messages are neither: nothing else is parsed for them.
        guard let named, let will = connection.will,
            let will = try? Presence(json: will.payload, limit: Presence.maximumSize)
        else { return }
        if named != will.connection {
            world.fail(.presence, "\(name) says \(topic) of connection \(named) on \(will.connection)")
        }
    }

    /// What a presence says to have been reported is there before it: otherwise all is asked for again.
    private func checkReported(_ said: Presence) {
        guard said.state == .online, world.schedule.broker == .honest, !wasPutBack, !world.broker.refuses(user) else {
            return
        }
        for app in said.apps {
            guard let sequence = app.reported else { continue }
            let told = ReportOrder(incarnation: said.incarnation, boot: said.boot, sequence: sequence)
            let topic = Address.reply(id, app.id, .status).topic(in: SimulatedFleet.id)
            if watch.arrived[topic].map({ $0 < told }) ?? true {
                world.fail(
                    .order, "\(name) says that it has reported \(told) of \(app.id), and the broker has not had it")
            }
        }
    }

    /// The number behind a member's name; the first of that name.
    static func number(_ member: String, in json: [UInt8]) -> Int64? {
        let needle = Array("\"\(member)\":".utf8)
        var index = 0
        while index + needle.count < json.count {
            if json[index] == needle[0], json[index..<(index + needle.count)].elementsEqual(needle) {
                var value: Int64 = 0
                index += needle.count
                while index < json.count, (48...57).contains(json[index]) {
                    value = value * 10 + Int64(json[index] - 48)
                    index += 1
                }
                return value
            }
            index += 1
        }
        return nil
    }
}
