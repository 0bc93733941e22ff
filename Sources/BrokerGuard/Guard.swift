package import FleetProtocol

/// Decides who may connect with which client id, and publish, read and subscribe to what: what a broker's ACL file says,
/// and what none can say. A broker asks it for each message, so nothing here is a `String` that need not be.
///
/// It remembers what signed documents have shown it, whether published or on their way to a reader: the keys that count and
/// the groups of devices. So it knows them again after a restart, from the broker's own retained messages, before anybody
/// needs them. It says no where it does not know.
package struct Guard: Sendable {
    /// A message: bytes that the caller keeps alive for the call.
    package struct Message {
        package let topic: UnsafeBufferPointer<UInt8>
        let payload: UnsafeBufferPointer<UInt8>
        let isRetained: Bool

        package init(topic: UnsafeBufferPointer<UInt8>, payload: UnsafeBufferPointer<UInt8>, isRetained: Bool) {
            self.topic = topic
            self.payload = payload
            self.isRetained = isRetained
        }
    }

    let configuration: GuardConfiguration
    let prefix: [UInt8]
    let isSigned: @Sendable (SignedDocument, VerifyingKey) -> Bool
    private let tables: [Rights]
    var keys = KnownKeys()
    var devices: [PackedName: KnownDevice] = [:]
    /// Memberships that devices have read, signed by keys of which none is known yet to count: the next trust document may
    /// say so, and they are not read again on their connections.
    var heldMemberships = HeldMemberships()
    private var rates: [PackedName: Rates] = [:]
    /// Since the broker started, the controller has said that all it wishes stands there: a device whose membership nobody
    /// has published is in no group.
    var isRepaired = false

    /// - Parameter isSigned: How signatures are checked.
    package init(
        _ configuration: GuardConfiguration,
        isSigned: @escaping @Sendable (SignedDocument, VerifyingKey) -> Bool = { $0.isSigned(by: $1) }
    ) {
        self.configuration = configuration
        self.isSigned = isSigned
        prefix = Array(Address.prefix(of: configuration.fleet).utf8)
        tables = Access.Role.allCases.map {
            Rights(
                publish: RightsTable($0, .publish, ofBroker: false), read: RightsTable($0, .read, ofBroker: false),
                readOfBroker: RightsTable($0, .read, ofBroker: true))
        }
    }

    private struct Rights {
        let publish: RightsTable
        let read: RightsTable
        /// Nobody publishes there.
        let readOfBroker: RightsTable
    }

    /// The right to connect, beside a right password: the client id must be the user's own.
    package func refusalToConnect(_ client: Client) -> Refusal? {
        guard let role = client.role else { return .noUser }
        return client.hasOwnID(role) ? nil : .foreignID
    }

    /// Whether a message may be delivered.
    package mutating func mayRead(_ message: Message, _ client: Client) -> Bool {
        guard let role = client.role, client.hasOwnID(role),
            covers(message.topic, isFilter: false, .read, role, client)
        else { return false }
        learn(from: message, readBy: role)
        return true
    }

    /// The right to subscribe: everything that the filter stands for must be readable. To groups only where the device is a
    /// member, or once all is known that the controller wishes: it asks again when it is refused, but would not be shown
    /// again what it may not read yet. Then anyone may subscribe to groups, of which nothing is delivered to others.
    ///
    /// - Parameter now: Milliseconds of a clock that does not jump.
    package mutating func refusalToSubscribe(
        to filter: UnsafeBufferPointer<UInt8>, _ client: Client, now: Int64
    ) -> Refusal? {
        guard let role = client.role else { return .noUser }
        guard client.hasOwnID(role) else { return .foreignID }
        guard filter.count <= Self.longestFilter else { return Refusal("the filter is too long") }
        guard admits(client, role, cost: cost(of: filter, role), now: now) else { return .tooMuch }
        return covers(filter, isFilter: true, .read, role, client) ? nil : Refusal("it may not read all of that")
    }

    /// The right to publish, by topic, content and rate; also for wills.
    ///
    /// - Parameter now: Milliseconds of a clock that does not jump.
    package mutating func refusalToPublish(_ message: Message, _ client: Client, now: Int64) -> Refusal? {
        guard let role = client.role else { return .noUser }
        guard client.hasOwnID(role) else { return .foreignID }
        guard covers(message.topic, isFilter: false, .publish, role, client) else {
            return Refusal("it may not publish there")
        }
        let cost = 1 + message.payload.count / 4_096
        guard admits(client, role, cost: cost, isReport: isReport(message.topic, role), now: now) else {
            return .tooMuch
        }
        do {
            switch role {
            case .device: try checkDevice(message, client)
            case .controller: try checkController(message)
            case .operator, .viewer:
                let isRequest = path(of: message.topic)?.begins(with: "control/request/") ?? false
                try message.checkFleeting(limit: isRequest ? Request.maximumSize : Self.longestMarker)
            case .bridge: break
            }
            return nil
        } catch let error as FleetProtocolError {
            return Refusal("\(error)")
        } catch {
            return Refusal("it cannot be read: \(error)")
        }
    }

    /// The longest topic.
    private static let longestFilter = 512
    static let longestMarker = 1_024

    /// What a subscription counts for. Each time the broker queues all that is retained there, also for a filter that stands
    /// already: reports of the whole fleet, or documents of all devices, are much. What agents ask for has no more than one
    /// `+`, at its end, and stands for the aspects of an app.
    private func cost(of filter: UnsafeBufferPointer<UInt8>, _ role: Access.Role) -> Int {
        guard let path = path(of: filter),
            let first = path.firstIndex(where: { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#") })
        else { return 1 }
        let level = path[..<first].count(where: { $0 == UInt8(ascii: "/") })
        let levelOfDevices = path.begins(with: "desired/") ? 2 : 1
        if level > levelOfDevices, path[first] == UInt8(ascii: "+"), first == path.count - 1 { return 1 }
        return role == .device || level > levelOfDevices ? Rate.costOfDevice : Rate.costOfFleet
    }

    /// Whether apps cause it, as often as they like.
    private func isReport(_ topic: UnsafeBufferPointer<UInt8>, _ role: Access.Role) -> Bool {
        guard role == .device, let path = path(of: topic), path.begins(with: "reply/") else { return false }
        return path.ends(with: "/event") || path.ends(with: "/log-level")
    }

    /// Whether a client has not said too much yet. The controller and operators may say what they must.
    private mutating func admits(
        _ client: Client, _ role: Access.Role, cost: Int, isReport: Bool = false, now: Int64
    ) -> Bool {
        switch role {
        case .controller, .operator: return true
        case .device, .viewer, .bridge:
            guard let name = PackedName(client.user) else { return false }
            return isReport
                ? rates[name, default: Rates()].reports.admits(cost: cost, at: now)
                : rates[name, default: Rates()].others.admits(cost: cost, at: now)
        }
    }

    private func covers(
        _ topic: UnsafeBufferPointer<UInt8>, isFilter: Bool, _ direction: Access.Direction, _ role: Access.Role,
        _ client: Client
    ) -> Bool {
        let rights = tables[role.rawValue]
        guard let path = path(of: topic) else {
            return direction == .read
                && rights.readOfBroker.covers(topic, isFilter: isFilter, own: client.user) { _ in false }
        }
        let table = direction == .read ? rights.read : rights.publish
        return table.covers(path, isFilter: isFilter, own: client.user) { group in
            if isFilter, isRepaired { return DeviceID.isID(group) }
            guard let name = PackedName(client.user), let group = PackedName(group) else { return false }
            return devices[name]?.groups.contains(group) ?? false
        }
    }

    /// What stands behind the fleet's prefix, if that is what a topic begins with.
    func path(of topic: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8>? {
        guard topic.count > prefix.count else { return nil }
        let isOurs = prefix.withUnsafeBufferPointer { prefix in
            for index in 0..<prefix.count where topic[index] != prefix[index] { return false }
            return true
        }
        return isOurs ? UnsafeBufferPointer(rebasing: topic[prefix.count...]) : nil
    }
}

extension Refusal {
    static let noUser = Refusal("this is no user of the fleet")
    static let tooMuch = Refusal(
        "more than \(Rate.burst) messages or subscriptions at once, or \(Rate.perSecond) a second for long")
    static let foreignID = Refusal("its client id is not its user name")
}
