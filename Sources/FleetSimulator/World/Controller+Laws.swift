import FleetController
import FleetProtocol

/// What the messages of one connection say of which device is there.
struct PresenceWatch {
    /// The connection of each device that has said so itself, and not left since.
    private(set) var present: [DeviceID: RandomID] = [:]
    /// Devices that have spoken on this connection.
    private(set) var heard: Set<DeviceID> = []
    private(set) var isNew = false

    mutating func received(_ topic: String, _ payload: [UInt8], isRetained: Bool) {
        switch Address(topic: topic, in: SimulatedFleet.id) {
        case .presence(.device(let device)):
            isNew = true
            guard let said = try? Presence(json: payload, limit: Presence.maximumSize) else { return }
            switch said.state {
            case .online:
                guard !isRetained else { return }
                heard.insert(device)
                present[device] = said.connection
            case .offline:
                if present[device] == said.connection {
                    present[device] = nil
                    heard.remove(device)
                }
            }
        case .reply(let device, _, _): if !isRetained { heard.insert(device) }
        default: break
        }
    }

    /// A device that is no more, or begins anew.
    mutating func forget(_ device: DeviceID) { present[device] = nil }

    mutating func checked() { isNew = false }
}

extension Controller {
    /// Who is shown as connected has spoken, and who has spoken last is shown.
    func checkPresences() {
        guard watch.isNew, isUp, world.violation == nil else { return }
        watch.checked()
        guard let online = try? store.onlineDevices() else { return }
        for device in online.sorted() where !watch.heard.contains(device) && enrolments[device] != nil {
            world.fail(.presence, "\(device) is shown as connected, and has not been heard on this connection")
        }
        for device in watch.present.keys.sorted() where !online.contains(device) && enrolments[device] != nil {
            world.fail(.presence, "\(device) is not shown as connected: somebody else's word was taken for its own")
        }
    }

    func noteRequest(_ topic: String, _ payload: [UInt8]) {
        guard topic.contains("/request/"), let request = try? Request(json: payload, limit: Request.maximumSize) else {
            return
        }
        notAfter[request.id] = request.notAfter
    }

    /// Nothing is done for a request whose time is over.
    func checkAnswers(_ effects: [ControllerCore.Effect]) {
        for case .publish(let topic, let payload, _) in effects where topic.contains("/response/") {
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
