import Mosquitto

/// What happens to the broker as a process, and to its database.
extension Broker {
    func start() {
        guard !isUp else { return }
        isUp = true
        (guardian, learntOnce, hasRefusedKeys) = (freshGuard(), [], false)
    }

    /// - Parameter age: How many savings before the last the database is that it comes back with; it may have none.
    func stop(isCrash: Bool, downFor: Int64, age: Int = 0) {
        guard isUp else { return }
        (isUp, stalledUntil) = (false, 0)
        // Of its host: nobody hears of it.
        let isPowerCut = isCrash && world.noise.chance(10)
        world.say("broker", isPowerCut ? "loses its power" : isCrash ? "is killed" : "stops")
        for connection in isCrash ? [] : connections {
            // All are still there, and hear it.
            guard let will = connection.will else { continue }
            keep(will.topic, Retained(payload: will.payload, qos: .atLeastOnce))
            spread(will.topic, will.payload, .atLeastOnce)
        }
        while !connections.isEmpty {
            let connection = connections.removeFirst()
            connection.isBrokerThere = false
            tellLoss(of: connection, isPowerCut: isPowerCut)
            // With all that it had yet to send.
            if isPowerCut { connection.isDead = true }
        }
        if !isCrash { save() }
        if age > 0 { saved = age <= olds.count ? olds[olds.count - age] : [:] }
        (retained, memberships) = (saved, [:])
        world.after(downFor) { [unowned self] in start() }
    }

    /// The whole of it stands still: it saves a large database, or hashes many passwords. Some wait for too long.
    func stall(for time: Int64) {
        guard isUp else { return }
        world.say("broker", "stands still for \(time) ms")
        stalledUntil = world.now + time
        for connection in connections where !connection.isDead {
            connection.up.hold(until: stalledUntil)
            connection.down.hold(until: stalledUntil)
            guard world.noise.chance(50) else { continue }
            let patience = world.noise.milliseconds(30_000...60_000)
            guard patience < time else { continue }
            world.after(patience) { [unowned self] in
                guard connection.isClientThere, connection.isBrokerThere, !connection.isDead else { return }
                cut(connection, noticedAfter: time - patience)
                connection.client.lost(connection)
            }
        }
    }

    func save() {
        if !world.isCalm, world.noise.chance(3) { return world.say("broker", "finds no room to save") }
        olds.append(saved)
        if olds.count > 4 { olds.removeFirst() }
        saved = retained
    }

    func saveLater() {
        world.after(world.noise.milliseconds(5_000...60_000)) { [unowned self] in
            if isUp { save() }
            saveLater()
        }
    }
}
