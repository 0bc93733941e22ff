package import BrokerGuard
import DeviceAgent
import FleetProtocol

/// Who may do what: in half of the worlds the real guard says it, elsewhere an ACL file.
extension Broker {
    /// Its process starts with a guard that remembers nothing.
    func freshGuard() -> Guard? {
        guard world.isGuarded, manners != .hostile else { return nil }
        let fleet = world.fleet
        return Guard(
            GuardConfiguration(fleet: SimulatedFleet.id, uuid: fleet.uuid, root: fleet.rootKey.publicKey),
            isSigned: fleet.checked.isValid)
    }

    /// No client of ours is refused, whatever has happened to it, to the broker and to the controller, but where that was not let
    /// say which keys count.
    func mayPublish(_ topic: String, _ payload: [UInt8], retain: Bool, by user: User) -> Bool {
        guard guardian != nil else {
            if rights(of: user).publish.contains(where: { $0.matches(topic) }) { return true }
            world.fail(.total, "\(user.text) published at \(topic), which it may not")
            return false
        }
        let before = world.fault == nil ? nil : guardian  // A copy would be paid for.
        let refusal = refusal(of: topic, payload, retain, by: user)
        if isForgotten(topic, isRead: false) { guardian = before }
        if let refusal {
            world.fail(.total, "the guard refuses \(user.text) publishing at \(topic): \(refusal.reason)")
        }
        return refusal == nil
    }

    /// What the guard has against it, if there is one.
    func refusal(of topic: String, _ payload: [UInt8], _ retain: Bool, by user: User) -> Refusal? {
        Guard.asking(user.text, topic, payload, isRetained: retain) { message, client in
            guardian?.refusalToPublish(message, client, now: world.now)
        }
    }

    func mayRead(_ topic: String, _ payload: [UInt8], isRetained: Bool, _ user: User) -> Bool {
        guard guardian != nil else { return rights(of: user).read.contains { $0.matches(topic) } }
        let before = world.fault == nil ? nil : guardian
        defer { if isForgotten(topic, isRead: true) { guardian = before } }
        return Guard.asking(user.text, topic, payload, isRetained: isRetained) { guardian?.mayRead($0, $1) ?? false }
    }

    /// Somebody has written a list by which a client may read nothing, or no documents. Measured: what it subscribes to is granted,
    /// what is published to it is answered as if it had been shown, and with a better list nothing is shown again. The guard asks
    /// no list; and only in a world whose broker drops is there the time to find what is missing.
    func hide(from user: User, for time: Int64, isAll: Bool) {
        guard guardian == nil, manners == .lossy else { return }
        world.say("broker", "shows \(user.text) \(isAll ? "nothing" : "no documents") any more")
        hiddenUntil[user] = (world.now + time, isAll)
        hasHidden = true
    }

    func isHidden(_ topic: String, from user: User) -> Bool {
        guard let until = hiddenUntil[user], world.now < until.time else { return false }
        return until.isAll || topic.hasPrefix(Controller.documents)
    }

    /// Whether a deliberate mistake lets the guard forget at once what a message has taught it.
    private func isForgotten(_ topic: String, isRead: Bool) -> Bool {
        switch world.fault {
        case .guardLearnsNothing: isRead
        case .guardKeepsGroups: topic.hasSuffix("/_device/membership") && !learntOnce.insert(topic).inserted
        default: false
        }
    }

    /// A file lets everybody subscribe to everything. The guard refuses a device's groups until it knows them.
    func maySubscribe(to filter: String, _ user: User) -> Bool {
        let refusal = Guard.asking(user.text, filter) {
            guardian?.refusalToSubscribe(to: $0.topic, $1, now: world.now)
        }
        guard let refusal else { return true }
        if !filter.hasPrefix(Self.groups) {
            world.fail(.total, "the guard refuses \(user.text) subscribing to \(filter): \(refusal.reason)")
        }
        return false
    }

    static let groups = Address.prefix(of: SimulatedFleet.id) + "desired/group/"
}

extension Guard {
    /// Puts a question to a guard whose words are texts here, by a client whose id is its user name.
    package static func asking<Answer>(
        _ user: String, _ topic: String, _ payload: [UInt8] = [], isRetained: Bool = false,
        _ body: (Guard.Message, Client) -> Answer
    ) -> Answer {
        var (user, topic) = (user, topic)
        return user.withUTF8 { user in
            topic.withUTF8 { topic in
                payload.withUnsafeBufferPointer { payload in
                    body(
                        Guard.Message(topic: topic, payload: payload, isRetained: isRetained),
                        Client(user: user, id: user))
                }
            }
        }
    }

    /// Whether a user may connect under this client id.
    func admits(_ user: String, as id: String) -> Bool {
        var (user, id) = (user, id)
        return user.withUTF8 { user in
            id.withUTF8 { id in refusalToConnect(Client(user: user, id: id)) == nil }
        }
    }
}
