import DeviceAgent
import FleetController
import FleetProtocol

/// The agent's client of the broker.
extension Machine {
    /// How many messages are under way before others wait in the outbox.
    private static let room = 3

    func publish(_ payload: [UInt8], to address: Address, retain: Bool) {
        guard isConnectionCurrent else { return }
        outbox.add(address, payload, retain: retain)
        flush()
    }

    func report(_ status: Status) {
        guard isConnectionCurrent else { return }
        hasReported = true
        outbox.add(status)
        flush()
    }

    func sent(on connection: Connection) { if connection === self.connection { flush() } }

    /// Says what waits, as far as there is room; all of it, when the agent goes behind it.
    func flush(isLast: Bool = false) {
        guard let connection, isLast || !isStalled else { return }
        while isLast || connection.up.underWay < Self.room, let next = outbox.next() {
            world.say(name, "publishes \(next.address.path)")
            let topic = next.address.topic(in: SimulatedFleet.id)
            let payload = next.content.payload
            if world.fault == .oldMessagesSentAgain { sayAgain(topic, payload, next.isRetained, on: connection) }
            world.broker.send(
                topic, world.fault == .eventsCountedTwice ? countedTwice(payload, next.address) : payload,
                qos: next.qos, retain: next.isRetained, on: connection)
        }
    }

    /// As a client that keeps its old messages in flight does, behind the subscriptions of a new connection.
    private func sayAgain(_ topic: String, _ payload: [UInt8], _ retain: Bool, on connection: Connection) {
        if isAboutToSayAgain, topic.hasSuffix("/status") {
            isAboutToSayAgain = false
            world.broker.send(topic, payload, retain: retain, on: connection)
            for old in lastSaid { world.broker.send(old.topic, old.payload, retain: true, on: connection) }
            lastSaid = []
        } else if topic.hasSuffix("/status") {
            lastSaid = lastSaid.suffix(2) + [(topic, payload)]
        }
    }

    func connect() {
        guard let core, connection == nil else { return }
        guard hasAccount, world.isCalm || world.now >= unpluggedUntil && !isStalled else { return retry() }
        let random = RandomID.random(using: &world.noise)
        let will = core.will.presence(on: random, at: clock.wall)
        let topic = Address.presence(.device(id)).topic(in: SimulatedFleet.id)
        guard let made = world.broker.connect(self, will: (topic, will.json)) else { return retry() }
        connection = made
        clocks.sleptOnline = 0
        hasReported = false
        isAboutToSayAgain = true
        watch.connected(random)
        connectedAt = world.now
        // By a password that the broker has not been told yet to forget.
        if world.controller.enrolments[id] != enrollment.incarnation {
            world.after(accountUntil - world.now) { [unowned self] in world.broker.end(made) }
        }
        world.broker.welcome(made) { [unowned self] in
            guard connection === made else { return }
            world.say(name, "is connected")
            isEstablished = true
            post(.connected(connection: random))
        }
    }

    private func retry() {
        let run = run
        let rest = max(0, min(unpluggedUntil - world.now, 5_000))
        world.after(world.isCalm ? (hasAccount ? 100 : 5_000) : world.noise.milliseconds(50...2_000) + rest) {
            [unowned self] in
            if self.run == run { connect() }
        }
    }

    func cut(noticedAfter delay: Int64) {
        guard let connection else { return }
        world.broker.cut(connection, noticedAfter: delay)
        lost(connection)
    }

    func connected(_ connection: Connection) {}

    func lost(_ connection: Connection) {
        guard connection === self.connection else { return }
        self.connection = nil
        watch.disconnected()
        post(.disconnected)
        retry()
    }

    var isConnected: Bool { connection != nil }

    /// What a hostile broker shows on this connection.
    func shown(_ topic: String, _ payload: [UInt8]) {
        guard let connection else { return }
        world.say("broker", "shows \(name) its own \(topic)")
        world.broker.show(topic, payload, isRetained: false, to: connection)
    }

    func noteNonce(_ said: [UInt8]) {
        guard let presence = try? Presence(json: said, limit: Presence.maximumSize) else { return }
        watch.bus.said(presence, at: runningTime)
    }

    func withhold(_ part: String, for lateness: Int64? = nil) {
        connection?.withheld = part
        connection?.lateness = lateness
    }

    func subscribe(_ filters: [TopicFilter], _ barrier: Int64) {
        guard let connection, isConnectionCurrent else { return }
        watch.bus.asked(filters, barrier, of: id)
        if world.fault == .barrierNotAwaited, let name = watch.bus.connection {
            let marker = BarrierMarker(connection: name, counter: barrier)
            post(.subscribed(barrier: barrier))
            post(.message(topic: Address.barrier(user).topic(in: SimulatedFleet.id), payload: marker.json))
        }
        var texts = filters.map { $0.text(in: SimulatedFleet.id) }
        if world.fault == .subscriptionsIncomplete, world.noise.chance(10) {
            texts.remove(at: world.noise.below(texts.count))
        }
        world.broker.subscribe(texts, qos: filters.qos, token: barrier, on: connection)
    }

    func subscribed(_ token: Int64, on connection: Connection) {
        guard connection === self.connection else { return }
        watch.bus.subscribed()
        post(.subscribed(barrier: token))
        world.showMarkers(to: self)
        if world.fault == .helloNotAwaited, let hello = ownHello(clock.wall) {
            post(.message(topic: Address.hello(id).topic(in: SimulatedFleet.id), payload: hello))
        }
    }

    func ownHello(_ time: Timestamp, lost: Set<Hello.Lost> = []) -> [UInt8]? {
        guard let name = watch.bus.connection, let latest = try? world.controller.store.latest() else { return nil }
        let topic = Address.hello(id).topic(in: SimulatedFleet.id)
        let hello = Hello(
            clock: ControllerClock(
                fleet: world.fleet.uuid, topic: topic, epoch: latest.epoch, revision: latest.number, at: time),
            device: id, connection: name, nonce: name, received: nil, lost: lost)
        return try? SignedDocument(signing: hello.json, as: .hello, with: world.fleet.signingKey).wire
    }

    func received(_ topic: String, _ payload: [UInt8], isRetained: Bool, on connection: Connection) {
        guard connection === self.connection else { return }
        let address = Address(topic: topic, in: SimulatedFleet.id)
        let payload = older.flatMap { older in address.map { older.read(payload, at: $0) } } ?? payload
        visit(messageAt: topic)
        watch.received(address, payload)
        guard let payload = world.fault == nil ? payload : altered(payload, at: address) else { return }
        world.say(name, "receives \(topic)")
        if world.fault == .heartbeatsTakenForHello, address == .heartbeat, let hello = ownHello(clock.wall) {
            post(.message(topic: Address.hello(id).topic(in: SimulatedFleet.id), payload: hello))
        }
        post(.message(topic: topic, payload: payload))
        if case .hello? = address { greeting = .message(topic: topic, payload: payload) }
    }
}
