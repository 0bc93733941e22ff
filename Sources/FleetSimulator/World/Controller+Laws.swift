import FleetController
import FleetProtocol

/// What the messages of one connection say of which device is there.
struct PresenceWatch {
    /// What each device has said that has said itself that it is there, and has not left since.
    private(set) var present: [DeviceID: Presence] = [:]
    /// Devices that have spoken on this connection.
    private(set) var heard: Set<DeviceID> = []
    /// Of which start of theirs the newest reports are.
    private var starts: [DeviceID: ReportOrder] = [:]
    /// Devices that have left their presence at the broker, or have said so since.
    private(set) var announced: [DeviceID: Presence] = [:]
    /// Devices whose last word on this connection was that they leave, or their will.
    private(set) var gone: Set<DeviceID> = []
    /// When those connected that have connected anew since this connection began.
    private(set) var arrived: [DeviceID: Int64] = [:]
    private(set) var isNew = false
    /// The newest start that each device has announced.
    private var newest: [DeviceID: ReportOrder] = [:]
    /// Devices that came back from before their newest start, in the messages of this moment: two run.
    private(set) var doubled: [DeviceID: ReportOrder] = [:]

    mutating func received(_ topic: String, _ payload: [UInt8], isRetained: Bool, at now: Int64) {
        switch Address(topic: topic, in: SimulatedFleet.id) {
        case .presence(.device(let device)):
            isNew = true
            guard let said = try? Presence(json: payload, limit: Presence.maximumSize) else { return }
            switch said.state {
            case .online:
                if gone.remove(device) != nil || announced[device].map({ $0.connection != said.connection }) ?? false {
                    arrived[device] = now
                }
                announced[device] = said
                let last = newest[device] ?? said.start
                newest[device] = max(last, said.start)
                guard !isRetained else { return }
                // A status of a still later start, which has not announced itself, says nothing of a copy.
                if said.start < last, starts[device] ?? last <= last { doubled[device] = last }
                heard.insert(device)
                present[device] = said
            case .offline:
                if announced[device]?.connection == said.connection { announced[device] = nil }
                guard let known = present[device] else { return }
                let start = said.start
                if known.connection == said.connection {
                    present[device] = nil
                    // Its next start may have spoken already: statuses overtake presences.
                    guard starts[device].map({ $0 <= start }) ?? true else { return }
                    heard.remove(device)
                    gone.insert(device)
                } else if start > known.start {
                    // Of a later start, whose coming the broker may have lost: nobody knows.
                    present[device] = nil
                }
            }
        case .reply(let device, _, _):
            guard !isRetained else { return }
            heard.insert(device)
            guard let incarnation = Machine.number("incarnation", in: payload),
                let boot = Machine.number("boot", in: payload)
            else { return }
            let start = ReportOrder(incarnation: incarnation, boot: boot, sequence: 0)
            starts[device] = max(starts[device] ?? start, start)
        default: break
        }
    }

    /// A device that is no more, or begins anew.
    mutating func forget(_ device: DeviceID) {
        present[device] = nil
        announced[device] = nil
        newest[device] = nil
        doubled[device] = nil
        gone.remove(device)
    }

    mutating func checked() {
        isNew = false
        doubled = [:]
    }
}

extension Presence {
    /// Where this run of the agent stands among all reports: before its first status.
    fileprivate var start: ReportOrder { ReportOrder(incarnation: incarnation, boot: boot, sequence: 0) }
}

extension Controller {
    /// Who is shown as connected has spoken, and who has spoken last is shown.
    func checkPresences() {
        guard watch.isNew, isUp, world.violation == nil else { return }
        let doubled = watch.doubled
        watch.checked()
        for (device, newest) in doubled.sorted(by: { $0.key < $1.key }) where enrolments[device] != nil {
            guard let known = try? store.device(device), known.incarnation == newest.incarnation else { continue }
            if known.warning == nil {
                world.fail(.presence, "\(device) speaks twice, as a copy does, and nobody is warned")
            }
        }
        guard let online = try? store.onlineDevices() else { return }
        for device in online.sorted() where !watch.heard.contains(device) && enrolments[device] != nil {
            world.fail(.presence, "\(device) is shown as connected, and has not been heard on this connection")
        }
        for device in watch.present.keys.sorted() where !online.contains(device) && enrolments[device] != nil {
            world.fail(.presence, "\(device) is not shown as connected: somebody else's word was taken for its own")
        }
    }

    static let heartbeats = Address.heartbeat.topic(in: SimulatedFleet.id)
    private static let requests = Address.prefix(of: SimulatedFleet.id) + "control/request/"
    private static let responses = Address.prefix(of: SimulatedFleet.id) + "control/response/"

    func noteRequest(_ topic: String, _ payload: [UInt8]) {
        guard topic.hasPrefix(Self.requests),
            let request = try? Request(json: payload, limit: Request.maximumSize)
        else { return }
        notAfter[request.id] = request.notAfter
    }

    /// Nothing is done for a request whose time is over.
    func checkAnswers(_ effects: [ControllerCore.Effect]) {
        for case .publish(let topic, let payload, _) in effects where topic.hasPrefix(Self.responses) {
            guard let response = try? Response(json: payload, limit: Response.maximumSize),
                case .success = response.result, done.insert(response.id).inserted
            else { continue }
            if let last = notAfter[response.id], last < clock {
                world.fail(.answered, "a request was done after its time")
            }
        }
    }

    func visit(_ event: ControllerCore.Event) {
        guard let coverage = world.coverage else { return }
        switch event {
        case .connected: coverage.count("controller", "connected", phase.rawValue)
        case .disconnected: coverage.count("controller", "disconnected", phase.rawValue)
        case .tick: coverage.count("controller", "tick", phase.rawValue)
        case .enrolments: coverage.count("controller", "enrolments", phase.rawValue)
        case .messages(let messages):
            for message in messages {
                coverage.count("controller", Coverage.kind(of: message.topic), phase.rawValue)
            }
        }
    }
}
