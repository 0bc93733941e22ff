import BrokerGuard
import DeviceAgent
import FleetProtocol
import Mosquitto

/// A broker as nasty as Mosquitto was measured to be: it answers before it saves, loses at a crash what is inside the autosave
/// window, fires no wills then and gives back old retained messages, comes back with an old database where somebody puts one,
/// drops silently what overflows a queue, its answers too, grants every subscription and filters at delivery, shows retained
/// topics in any order, and what goes at QoS 0 before what waits at QoS 1. A hostile one does worse.
final class Broker {
    unowned let world: World
    var manners: Schedule.Manners
    var isUp = true
    var stalledUntil: Int64 = 0
    /// Until when it lets nobody connect.
    var lockedUntil: Int64 = 0
    var connections: [Connection] = []
    /// The broker has left them, and their clients do not know it yet.
    var halfOpen: [Connection] = []
    var retained: [String: Retained] = [:]
    var saved: [String: Retained] = [:]
    /// The groups that are retained of a device, by the topic of its membership, as far as somebody has looked.
    var memberships: [String: [GroupID]] = [:]
    /// What was saved before, the newest last.
    var olds: [[String: Retained]] = []
    /// Of these devices it came back without a presence that it had saved, perhaps with the statuses behind it.
    var damagedPresences: Set<DeviceID> = []
    /// Everything that ever stood below desired/ or was said to a device, for a hostile broker to show again.
    private(set) var seen: [(topic: String, payload: [UInt8])] = []
    /// Until when what a client says is refused: somebody has written a wrong list of who may do what.
    var refusedUntil: [User: Int64] = [:]
    /// Until when a client is shown nothing, or no documents, for the same reason; and whether anybody ever was.
    var hiddenUntil: [User: (time: Int64, isAll: Bool)] = [:]
    var hasHidden = false
    private var rights: [User: (publish: [Filter], read: [Filter])] = [:]
    /// What its process knows of its clients, as of its start; nil where an ACL file says who may do what.
    var guardian: Guard?
    /// Its process has refused the keys that count, so that a guard which does not know them believes no document.
    var hasRefusedKeys = false
    /// The memberships that a guard with a deliberate mistake has learnt once.
    var learntOnce: Set<String> = []

    struct Retained {
        let payload: [UInt8]
        /// That it was published at: it is shown at no higher one.
        let qos: QoS
    }

    init(_ manners: Schedule.Manners, _ world: World) {
        self.manners = manners
        self.world = world
        guardian = freshGuard()
    }

    func takeApart() {
        for connection in connections { connection.isBrokerThere = false }
        connections = []
        halfOpen = []
    }

    /// A message on its way from a client.
    ///
    /// - Parameter acknowledged: Is called with the reason code, where an answer comes.
    func send(
        _ topic: String, _ payload: [UInt8], qos: QoS = .atLeastOnce, retain: Bool, on connection: Connection,
        acknowledged: @escaping (UInt8) -> Void = { _ in }
    ) {
        world.restingMinute?.said(topic)
        up(connection, qos) { [unowned self] in
            let isRefused = refuses(topic, payload, retain, by: connection.client.user)
            let reason: UInt8
            if isRefused {
                world.say("broker", "refuses \(topic)")
                reason = Self.notAuthorized
            } else {
                (connection.client as? Machine)?.checkArrived(topic, payload, retain, on: connection)
                (connection.client as? Controller)?.repair.isTaken(topic)
                let isWithSomebody = publish(topic, payload, qos, retain: retain, by: connection.client)
                reason = isWithSomebody ? 0 : Self.noSubscriber
            }
            if qos == .atMostOnce {
                connection.answeredAt = world.now
                connection.client.sent(on: connection)
            } else {
                answer(connection) {
                    if isRefused { connection.client.refused(on: connection) }
                    connection.client.sent(on: connection)
                    acknowledged(reason)
                }
            }
            // Behind its answer, if it gives one.
            if isRefused, world.endsRefused { end(connection) }
        }
    }

    private static let notAuthorized: UInt8 = 135
    private static let noSubscriber: UInt8 = 16

    func refuse(_ user: User, for time: Int64) { refusedUntil[user] = world.now + time }

    private func refuses(_ topic: String, _ payload: [UInt8], _ retain: Bool, by user: User) -> Bool {
        let isKeys = user == .controller && topic == Self.keys
        if let until = refusedUntil[user], world.now < until {
            if isKeys { hasRefusedKeys = true }
            return true
        }
        if isKeys { hasRefusedKeys = false }
        return hasRefusedKeys && user == .controller && refusal(of: topic, payload, retain, by: user) != nil
    }

    static let keys = Address.trust.topic(in: SimulatedFleet.id)

    /// Whether it may have refused what was said just now.
    func refuses(_ user: User) -> Bool { refusedUntil[user].map { world.now < $0 + 5_000 } ?? false }

    /// A refused subscription is asked for again, as every client of this project does.
    func subscribe(_ filters: [String], qos: QoS = .atLeastOnce, token: Int64, on connection: Connection) {
        connection.refusals.subscribing(to: filters)
        up(connection) { [unowned self] in
            if !world.isCalm, world.noise.below(200) == 0 {
                world.say("broker", "refuses a subscription of \(connection.client.name)")
                // The controller ends by that.
                if let controller = connection.client as? Controller { return controller.kill() }
                let refused = filters.filter { _ in world.noise.chance(50) }
                let unknown = grant(filters.filter { !refused.contains($0) }, qos, on: connection)
                return subscribeLater(refused + unknown, qos, token, on: connection)
            }
            // Mosquitto answers first; no client may rely on either.
            let isAnsweredFirst = world.noise.chance(70)
            let answered = { [unowned self] in
                answer(connection) { connection.client.subscribed(token, on: connection) }
            }
            let mayBeRefused = guardian != nil && connection.client is Machine
            if isAnsweredFirst, !mayBeRefused { answered() }
            let unknown = grant(filters, qos, on: connection)
            guard unknown.isEmpty else {
                world.say("broker", "does not know yet which groups \(connection.client.name) is in")
                return subscribeLater(unknown, qos, token, on: connection)
            }
            if !isAnsweredFirst || mayBeRefused { answered() }
        }
    }

    private func subscribeLater(_ refused: [String], _ qos: QoS, _ token: Int64, on connection: Connection) {
        world.after(connection.refusals.pause() * 1_000) { [unowned self] in
            let wanted = refused.filter(connection.refusals.isWanted)
            guard !wanted.isEmpty else { return connection.client.subscribed(token, on: connection) }
            subscribe(wanted, qos: qos, token: token, on: connection)
        }
    }

    /// - Returns: What is refused.
    private func grant(_ filters: [String], _ qos: QoS, on connection: Connection) -> [String] {
        var refused: [String] = []
        for text in filters {
            guard maySubscribe(to: text, connection.client.user) else {
                refused.append(text)
                continue
            }
            let filter = Filter(text)
            connection.filters.removeAll { $0.filter == filter }
            connection.filters.append((filter, qos))
            var topics = retained.keys.filter(filter.matches).sorted()
            topics.shuffle(using: &world.noise)
            for topic in topics {
                guard let kept = retained[topic] else { continue }
                deliver(topic, kept.payload, min(qos, kept.qos), isRetained: true, to: connection)
            }
        }
        return refused
    }

    func unsubscribe(_ filters: [String], on connection: Connection) {
        connection.refusals.unsubscribing(from: filters)
        up(connection) {
            let gone = Set(filters.map(Filter.init))
            connection.filters.removeAll { gone.contains($0.filter) }
        }
    }

    private func up(_ connection: Connection, _ qos: QoS = .atMostOnce, _ body: @escaping () -> Void) {
        guard connection.isClientThere, connection.isBrokerThere else { return }
        let arrival = connection.up.arrival(of: qos, at: world.now + world.delay())
        connection.up.underWay += 1
        // What the kernel has taken may arrive although the client is gone, and nothing behind what it has not taken.
        let isTaken = world.noise.chance(50)
        world.after(arrival - world.now) {
            connection.up.underWay -= 1
            if !connection.isClientThere, !connection.isLeaving, !isTaken { connection.isBrokenOff = true }
            guard connection.isBrokerThere, !connection.isBrokenOff, !connection.isDead else { return }
            body()
        }
    }

    func down(_ connection: Connection, _ qos: QoS = .atMostOnce, _ body: @escaping () -> Void) {
        let time = world.now + world.delay()
        // What a device relies on is signed and numbered; nobody can tell a controller a presence in another order.
        let isReordered = manners == .hostile && connection.client is Machine && world.noise.chance(5)
        let arrival = isReordered ? time : connection.down.arrival(of: qos, at: time)
        connection.down.underWay += 1
        world.after(arrival - world.now) {
            connection.down.underWay -= 1
            guard connection.isClientThere, !connection.isDead else { return }
            body()
        }
    }

    /// - Returns: Whether somebody has subscribed to it.
    @discardableResult
    func publish(
        _ topic: String, _ payload: [UInt8], _ qos: QoS, retain: Bool, by client: any BusClient
    ) -> Bool {
        guard isUp else { return false }
        guard mayPublish(topic, payload, retain: retain, by: client.user) else { return false }
        if client is Controller, !payload.isEmpty, let device = Address(topic: topic, in: SimulatedFleet.id)?.speaker {
            world.fail(.total, "the controller speaks for \(device) at \(topic)")
        }
        if retain { keep(topic, Retained(payload: payload, qos: qos)) }
        if manners == .hostile, !payload.isEmpty, seen.count < 2_000 { seen.append((topic, payload)) }
        return spread(topic, payload, qos)
    }

    /// Retains something that nobody has published.
    func overwrite(_ topic: String, _ payload: [UInt8]) {
        guard isUp else { return }
        world.say("broker", "overwrites \(topic)")
        keep(topic, Retained(payload: payload, qos: .atLeastOnce))
        spread(topic, payload, .atLeastOnce)
    }

    /// - Returns: Whether somebody has subscribed to it.
    @discardableResult
    func spread(_ topic: String, _ payload: [UInt8], _ qos: QoS) -> Bool {
        var isWithSomebody = false
        for connection in connections {
            // One for each subscription.
            for granted in connection.filters where granted.filter.matches(topic) {
                isWithSomebody = true
                let qos = min(qos, granted.qos)
                deliver(topic, payload, qos, isRetained: false, to: connection)
                // At least once is what QoS 1 promises.
                if qos != .atMostOnce, !world.isCalm, world.noise.chance(2) {
                    deliver(topic, payload, qos, isRetained: false, to: connection)
                }
            }
        }
        return isWithSomebody
    }

    func keep(_ topic: String, _ new: Retained) {
        retained[topic] = new.payload.isEmpty ? nil : new
        memberships[topic] = nil
    }

    private func deliver(
        _ topic: String, _ payload: [UInt8], _ qos: QoS, isRetained: Bool, to connection: Connection
    ) {
        guard mayRead(topic, payload, isRetained: isRetained, connection.client.user) else { return }
        checkShown(topic, to: connection.client)
        if isHidden(topic, from: connection.client.user) { return drop(topic) }
        if qos != .atMostOnce, connection.isClogged { return drop(topic) }
        switch manners {
        case .honest: break
        case .lossy:
            guard connection.down.underWay >= 12 || world.noise.chance(5) else { break }
            // What it has dropped is waited for to be acknowledged, and there is only so much of that.
            if qos != .atMostOnce, world.noise.chance(3) {
                world.say("broker", "sends \(connection.client.name) nothing at QoS 1 any more")
                connection.isClogged = true
            }
            return drop(topic)
        case .hostile:
            guard let withheld = connection.withheld, topic.contains(withheld) else { break }
            guard let lateness = connection.lateness else { return }
            return world.after(lateness) { [unowned self] in
                if connection.isBrokerThere { show(topic, payload, qos, isRetained: isRetained, to: connection) }
            }
        }
        show(topic, payload, qos, isRetained: isRetained, to: connection)
    }

    private func drop(_ topic: String) { world.say("broker", "drops \(topic)") }

    /// Puts a message before a client, whatever anybody published.
    func show(
        _ topic: String, _ payload: [UInt8], _ qos: QoS = .atLeastOnce, isRetained: Bool, to connection: Connection
    ) {
        down(connection, qos) {
            connection.client.received(topic, payload, isRetained: isRetained, on: connection)
        }
    }

    func rights(of user: User) -> (publish: [Filter], read: [Filter]) {
        if let known = rights[user] { return known }
        let rules = Access.rules(for: user)
        let made = (
            publish: rules.filter { $0.direction == .publish }.map { Filter($0.text(in: SimulatedFleet.id)) },
            read: rules.filter { $0.direction == .read }.map { Filter($0.text(in: SimulatedFleet.id)) }
        )
        rights[user] = made
        return made
    }
}

extension Address {
    /// The device that alone says something there.
    fileprivate var speaker: DeviceID? {
        switch self {
        case .presence(.device(let device)), .reply(let device, _, _): device
        default: nil
        }
    }
}
