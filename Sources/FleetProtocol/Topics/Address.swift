/// A place on the bus. Prints and parses every topic of a fleet: `Address(topic: address.topic(in: f), in: f) == address`.
package enum Address: Hashable, Sendable {
    /// What an app is to do, by layer and aspect. Retained, signed by the controller.
    case desired(Layer, AppID, Aspect)
    /// The signing keys that count now. Retained, signed by the fleet's root key.
    case trust
    /// A group's priority and label rule. Retained, signed by the controller.
    case groupMeta(GroupID)
    /// The groups of a device. Retained, signed by the controller.
    case membership(DeviceID)
    /// What a device says about an app.
    case reply(DeviceID, AppID, Reply)
    /// Whether a device, or the controller, is there. Retained, and a will.
    case presence(Present)
    case heartbeat
    /// The controller's answer to a device's presence.
    case hello(DeviceID)
    /// Which of a device's events the controller has stored.
    case received(DeviceID)
    /// A client's own marker, which it reads back behind everything retained.
    case barrier(User)
    case request(User, Verb)
    case response(User, Name)

    package enum Reply: String, CaseIterable, Hashable, Sendable {
        case status
        case logLevel = "log-level"
        case event
    }

    package enum Present: Hashable, Sendable {
        case device(DeviceID)
        case controller
    }

    package static let root = "fleet/v1"

    /// What all topics of `fleet` begin with, with the closing slash.
    package static func prefix(of fleet: FleetID) -> String { "\(root)/\(fleet)/" }

    package func topic(in fleet: FleetID) -> String { Self.prefix(of: fleet) + path }

    /// The topic behind the fleet's prefix.
    package var path: String {
        switch self {
        case .desired(let layer, let app, let aspect): "desired/\(layer)/\(app)/\(aspect.text)"
        case .trust: "desired/all/_fleet/trust"
        case .groupMeta(let group): "desired/group/\(group)/_group/meta"
        case .membership(let device): "desired/device/\(device)/_device/membership"
        case .reply(let device, let app, let reply): "reply/\(device)/\(app)/\(reply.rawValue)"
        case .presence(.device(let device)): "presence/\(device)"
        case .presence(.controller): "presence/@controller"
        case .heartbeat: "control/heartbeat"
        case .hello(let device): "control/hello/\(device)"
        case .received(let device): "control/received/\(device)"
        case .barrier(let user): "control/barrier/\(user.text)"
        case .request(let user, let verb): "control/request/\(user.text)/\(verb.rawValue)"
        case .response(let user, let replyTo): "control/response/\(user.text)/\(replyTo)"
        }
    }

    /// The address of a topic of `fleet`, or nil for any other topic.
    package init?(topic: String, in fleet: FleetID) {
        let prefix = Self.prefix(of: fleet)
        // By bytes: to Swift, a Kelvin sign is equal to a K.
        guard topic.utf8.count <= 512, topic.utf8.starts(with: prefix.utf8) else { return nil }
        self.init(path: String(decoding: topic.utf8.dropFirst(prefix.utf8.count), as: UTF8.self))
    }

    /// Parses what ``path`` prints, and nothing else.
    package init?(path: some StringProtocol) {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        switch parts.first {
        case "desired": self.init(desired: parts.dropFirst())
        case "reply":
            guard parts.count == 4, let device = DeviceID(parts[1]), let app = AppID(parts[2]),
                let reply = Reply(rawValue: String(parts[3]))
            else { return nil }
            self = .reply(device, app, reply)
        case "presence":
            guard parts.count == 2 else { return nil }
            if parts[1] == "@controller" {
                self = .presence(.controller)
            } else if let device = DeviceID(parts[1]) {
                self = .presence(.device(device))
            } else {
                return nil
            }
        case "control": self.init(control: parts.dropFirst())
        default: return nil
        }
    }

    private init?(desired parts: ArraySlice<some StringProtocol>) {
        let parts = Array(parts)
        guard let kind = parts.first else { return nil }
        let layer: Layer
        let rest: ArraySlice<String>
        let texts = parts.map { String($0) }
        switch kind {
        case "all":
            layer = .all
            rest = texts.dropFirst()
        case "group":
            guard texts.count > 1, let group = GroupID(texts[1]) else { return nil }
            layer = .group(group)
            rest = texts.dropFirst(2)
        case "device":
            guard texts.count > 1, let device = DeviceID(texts[1]) else { return nil }
            layer = .device(device)
            rest = texts.dropFirst(2)
        default: return nil
        }
        guard rest.count == 2, let app = rest.first, let aspect = rest.last else { return nil }
        switch (layer, app, aspect) {
        case (.all, "_fleet", "trust"): self = .trust
        case (.group(let group), "_group", "meta"): self = .groupMeta(group)
        case (.device(let device), "_device", "membership"): self = .membership(device)
        default:
            guard let app = AppID(app), let aspect = Aspect(rawValue: aspect) else { return nil }
            self = .desired(layer, app, aspect)
        }
    }

    private init?(control parts: ArraySlice<some StringProtocol>) {
        let texts = parts.map { String($0) }
        switch (texts.first, texts.count) {
        case ("heartbeat", 1): self = .heartbeat
        case ("hello", 2):
            guard let device = DeviceID(texts[1]) else { return nil }
            self = .hello(device)
        case ("received", 2):
            guard let device = DeviceID(texts[1]) else { return nil }
            self = .received(device)
        case ("barrier", 2):
            guard let user = User(texts[1]) else { return nil }
            self = .barrier(user)
        case ("request", 3):
            guard let user = User(texts[1]), let verb = Verb(rawValue: texts[2]) else { return nil }
            self = .request(user, verb)
        case ("response", 3):
            guard let user = User(texts[1]), let name = Name(texts[2]) else { return nil }
            self = .response(user, name)
        default: return nil
        }
    }
}
