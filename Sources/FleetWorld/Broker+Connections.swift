import FleetProtocol
import Mosquitto

/// How connections begin and end: the broker, the network and the client's process each notice in their own time.
extension Broker {
    /// A client connects; when the broker is down, nothing comes of it.
    func connect(_ client: any BusClient, will: (topic: String, payload: [UInt8])?) -> Connection? {
        guard isUp, world.now >= max(stalledUntil, lockedUntil) else { return nil }
        let connection = Connection(client, will: will)
        // The same client id: the old connection is thrown off, and its will said, now or when others have been served.
        for old in connections where old.client.user == client.user && !isPerson(client.user) {
            end(old, willAfter: world.isCalm || world.noise.chance(60) ? 0 : world.noise.milliseconds(1...3_000))
        }
        connections.append(connection)
        return connection
    }

    /// Its word that a connection stands, which may take as long as any client waits for it.
    func welcome(_ connection: Connection, _ body: @escaping () -> Void) {
        let isLate = !world.isCalm && world.noise.chance(2)
        world.after(isLate ? world.noise.milliseconds(1_000...9_500) : world.delay()) {
            if connection.isClientThere, !connection.isDead { body() }
        }
    }

    private func isPerson(_ user: User) -> Bool {
        switch user {
        case .operator, .viewer: true
        case .device, .controller, .bridge: false
        }
    }

    /// The network or the client's process fails; the broker notices after a while, and then says the will.
    func cut(_ connection: Connection, noticedAfter delay: Int64) {
        guard connection.isClientThere else { return }
        connection.isClientThere = false
        world.after(delay) { [unowned self] in if !connection.isDead { end(connection) } }
    }

    /// For a time nothing comes through, and both sides believe in the connection. Then all of it comes; or it never does, and
    /// each side finds out by itself.
    func freeze(_ connection: Connection, for time: Int64, isDead: Bool) {
        guard connection.isClientThere, connection.isBrokerThere, !connection.isDead else { return }
        world.say(connection.client.name, isDead ? "is cut off, and nobody knows" : "is cut off for \(time) ms")
        guard isDead else {
            connection.up.hold(until: world.now + time)
            connection.down.hold(until: world.now + time)
            return
        }
        connection.isDead = true
        halfOpen.append(connection)
        world.after(time) { [unowned self] in finish(connection) }
        world.after(patience(with: connection.client)) { [unowned self] in end(connection) }
    }

    /// An answer. Whose queue is full gets none, and leaves when nothing has been answered for long enough.
    func answer(_ connection: Connection, _ body: @escaping () -> Void) {
        guard manners == .lossy, connection.down.underWay >= 12 || world.noise.chance(2) else {
            return down(connection, .atMostOnce) { [unowned self] in
                connection.answeredAt = world.now
                body()
            }
        }
        world.say("broker", "drops an answer to \(connection.client.name)")
        if !connection.isOwing { connection.answeredAt = world.now }
        connection.isOwing = true
        noticeSilence(on: connection)
    }

    private func noticeSilence(on connection: Connection) {
        world.after(connection.answeredAt + Self.patience - world.now) { [unowned self] in
            guard connection.isClientThere else { return }
            guard world.now - connection.answeredAt >= Self.patience else { return noticeSilence(on: connection) }
            cut(connection, noticedAfter: 0)
            connection.client.lost(connection)
        }
    }

    /// How long a client waits for any answer.
    private static let patience: Int64 = 60_000

    /// How long the broker still waits for a word of a client: one and a half of what it has promised to speak within, since the
    /// last one.
    func patience(with client: any BusClient) -> Int64 {
        world.noise.milliseconds(client is Machine ? 15_000...50_000 : 30_000...95_000)
    }

    /// A client leaves in good order, behind all that it has said: no will.
    func leave(_ connection: Connection, then body: @escaping () -> Void) {
        connection.isClientThere = false
        connection.isLeaving = true
        world.after(connection.up.last - world.now) { [unowned self] in
            guard connection.isBrokerThere, !connection.isDead else { return }
            connection.isBrokerThere = false
            connections.removeAll { $0 === connection }
            body()
        }
    }

    /// The broker drops a connection: its will is said.
    func end(_ connection: Connection, willAfter delay: Int64 = 0, isWillSaid: Bool = true) {
        guard connection.isBrokerThere else { return }
        connection.isBrokerThere = false
        connections.removeAll { $0 === connection }
        // It is held to the rights like what is published.
        let isRefused = refusedUntil[connection.client.user].map { world.now < $0 } ?? false
        if isWillSaid, !isRefused, let will = connection.will {
            let say = { [unowned self] in
                world.say("broker", "says the will of \(connection.client.name)")
                publish(will.topic, will.payload, .atLeastOnce, retain: true, by: connection.client)
            }
            if delay == 0 { say() } else { world.after(delay, say) }
        }
        tellLoss(of: connection)
    }

    /// Who has no account any more is thrown off; Mosquitto then says no will.
    func end(allOf user: User, after delay: Int64 = 0) {
        for connection in connections where connection.client.user == user {
            let isWillSaid = world.noise.chance(30)
            if delay == 0 {
                end(connection, isWillSaid: isWillSaid)
            } else {
                world.after(delay) { [unowned self] in end(connection, isWillSaid: isWillSaid) }
            }
        }
    }

    /// It is told to read its passwords again, and cannot. Measured: all are thrown off, with no will, and nobody is let in; nor would
    /// it start.
    func lockOut(for time: Int64) {
        guard isUp, world.now >= stalledUntil else { return }
        world.say("broker", "cannot read its passwords")
        lockedUntil = world.now + time
        for connection in connections { end(connection, isWillSaid: false) }
    }

    /// Nothing of it may come through: then the client finds that nobody answers any more.
    func tellLoss(of connection: Connection, isPowerCut: Bool = false) {
        guard connection.isClientThere, !connection.isDead else { return }
        halfOpen.append(connection)
        let isSilent = isPowerCut || !world.isCalm && world.noise.chance(5)
        world.after(isSilent ? world.noise.milliseconds(1_000...60_000) : world.delay()) { [unowned self] in
            finish(connection)
        }
    }

    private func finish(_ connection: Connection) {
        halfOpen.removeAll { $0 === connection }
        guard connection.isClientThere else { return }
        connection.isClientThere = false
        world.say(connection.client.name, "has lost the broker")
        connection.client.lost(connection)
    }

    /// Whoever still thinks that a connection stands is told.
    func calm() {
        start()
        (stalledUntil, lockedUntil, refusedUntil, hiddenUntil) = (0, 0, [:], [:])
        for connection in connections
        where max(connection.up.last, connection.down.last) > world.now + 2_000 {
            freeze(connection, for: 0, isDead: true)
        }
        for connection in connections where connection.isDead { end(connection) }
        for connection in halfOpen { finish(connection) }
    }
}
