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

    /// What all topics of `fleet` begin with, with the closing slash.
    package static func prefix(of fleet: FleetID) -> String {
        var writer = JSONWriter()
        appendPrefix(of: fleet, to: &writer)
        return writer.text
    }

    private static func appendPrefix(of fleet: FleetID, to writer: inout JSONWriter) {
        writer.append("fleet/v1/", fleet.text, "/")
    }

    package func topic(in fleet: FleetID) -> String {
        var writer = JSONWriter()
        append(to: &writer, in: fleet)
        return writer.text
    }

    /// The topic behind the fleet's prefix.
    package var path: String {
        var writer = JSONWriter()
        append(to: &writer)
        return writer.text
    }

    func append(to writer: inout JSONWriter, in fleet: FleetID) {
        Self.appendPrefix(of: fleet, to: &writer)
        append(to: &writer)
    }

    /// Piece by piece, into bytes: to put a text together costs several times as much, for every source in every status.
    private func append(to text: inout JSONWriter) {
        switch self {
        case .desired(let layer, let app, let aspect):
            text.append("desired/")
            switch layer {
            case .all: text.append("all")
            case .group(let group): text.append("group/", group.text)
            case .device(let device): text.append("device/", device.text)
            }
            text.append("/", app.text, "/", aspect.text)
        case .trust: text.append("desired/all/_fleet/trust")
        case .groupMeta(let group):
            text.append("desired/group/", group.text, "/_group/meta")
        case .membership(let device):
            text.append("desired/device/", device.text, "/_device/membership")
        case .reply(let device, let app, let reply):
            text.append("reply/", device.text)
            text.append("/", app.text, "/", reply.rawValue)
        case .presence(.device(let device)): text.append("presence/", device.text)
        case .presence(.controller): text.append("presence/@controller")
        case .heartbeat: text.append("control/heartbeat")
        case .hello(let device): text.append("control/hello/", device.text)
        case .received(let device): text.append("control/received/", device.text)
        case .barrier(let user): text.append("control/barrier/", user.text)
        case .request(let user, let verb):
            text.append("control/request/", user.text, "/", verb.rawValue)
        case .response(let user, let replyTo):
            text.append("control/response/", user.text, "/", replyTo.text)
        }
    }

    /// The address of a topic of `fleet`, or nil for any other topic.
    package init?(topic: String, in fleet: FleetID) {
        var topic = topic
        guard let address = topic.withUTF8({ Address(topic: Word(bytes: $0), in: fleet) }) else { return nil }
        self = address
    }

    init?(topic: Word, in fleet: FleetID) {
        var levels = TopicLevels(topic.bytes)
        guard topic.bytes.count <= 512, levels.take("fleet"), levels.take("v1"), levels.take(fleet.text) else {
            return nil
        }
        self.init(&levels)
    }

    /// Parses what ``path`` prints, and nothing else.
    package init?(path: String) {
        var path = path
        guard let address = path.withUTF8({ Address(path: $0) }) else { return nil }
        self = address
    }

    /// As above, from memory that the caller keeps alive for the call.
    package init?(path: UnsafeBufferPointer<UInt8>) {
        var levels = TopicLevels(path)
        self.init(&levels)
    }

    private init?(_ levels: inout TopicLevels) {
        guard let first = levels.next() else { return nil }
        let address: Address?
        switch first {
        case "desired": address = Self.desired(&levels)
        case "reply":
            guard let device: DeviceID = levels.id(), let app: AppID = levels.id(),
                let reply = levels.next()?.named(Reply.self)
            else { return nil }
            address = .reply(device, app, reply)
        case "presence": address = Self.presence(&levels)
        case "control": address = Self.control(&levels)
        default: return nil
        }
        guard let address, levels.isAtEnd else { return nil }
        self = address
    }

    private static func desired(_ levels: inout TopicLevels) -> Address? {
        let layer: Layer
        switch levels.next() {
        case "all"?: layer = .all
        case "group"?:
            guard let group: GroupID = levels.id() else { return nil }
            layer = .group(group)
        case "device"?:
            guard let device: DeviceID = levels.id() else { return nil }
            layer = .device(device)
        default: return nil
        }
        guard let app = levels.next(), let aspect = levels.next() else { return nil }
        switch (layer, app, aspect) {
        case (.all, "_fleet", "trust"): return .trust
        case (.group(let group), "_group", "meta"): return .groupMeta(group)
        case (.device(let device), "_device", "membership"): return .membership(device)
        default:
            guard let app: AppID = app.id(), let aspect = aspect.named(Aspect.self) else { return nil }
            return .desired(layer, app, aspect)
        }
    }

    private static func presence(_ levels: inout TopicLevels) -> Address? {
        guard let who = levels.next() else { return nil }
        if case "@controller" = who { return .presence(.controller) }
        let device: DeviceID? = who.id()
        return device.map { .presence(.device($0)) }
    }

    private static func control(_ levels: inout TopicLevels) -> Address? {
        switch levels.next() {
        case "heartbeat"?: return .heartbeat
        case "hello"?: return levels.id().map(Address.hello)
        case "received"?: return levels.id().map(Address.received)
        case "barrier"?: return levels.next().flatMap { User($0.text) }.map(Address.barrier)
        case "request"?:
            guard let user = levels.next().flatMap({ User($0.text) }),
                let verb = levels.next()?.named(Verb.self)
            else { return nil }
            return .request(user, verb)
        case "response"?:
            guard let user = levels.next().flatMap({ User($0.text) }), let name: Name = levels.id() else { return nil }
            return .response(user, name)
        default: return nil
        }
    }
}

extension JSONWriter {
    fileprivate mutating func append(_ first: String, _ second: String, _ third: String = "", _ fourth: String = "") {
        append(first)
        append(second)
        append(third)
        append(fourth)
    }
}
