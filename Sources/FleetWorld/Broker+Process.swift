import FleetProtocol
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
        if age > 0 {
            saved = age <= olds.count ? olds[olds.count - age] : [:]
            damage()
        }
        (retained, memberships) = (saved, [:])
        world.after(downFor) { [unowned self] in start() }
    }

    /// Now and then some bytes of that database are others. Measured: it starts without a word, and has all but what it cannot read.
    private func damage() {
        var any = SplitMix64(seed: world.schedule.seed ^ 0xDA76 ^ UInt64(bitPattern: world.now))
        guard any.chance(30) else { return }
        for topic in saved.keys.sorted() where any.chance(30) {
            saved[topic] = nil
            world.say("broker", "cannot read \(topic) in its database")
            if case .presence(.device(let device))? = Address(topic: topic, in: SimulatedFleet.id) {
                damagedPresences.insert(device)
            }
        }
    }

    /// The whole of it stands still: it saves a large database, or hashes many passwords. Some wait for too long.
    func stall(for time: Int64) {
        guard isUp else { return }
        world.say("broker", "stands still for \(time) ms")
        stalledUntil = world.now + time
        endOverdue(after: time)
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

    /// Measured of one that was stopped: now and then it looks at its clock before it reads what has come. Whom it has not heard
    /// for too long it throws off then, all or some of them, also those who have spoken all the time, and what they have said
    /// meanwhile is lost.
    private func endOverdue(after time: Int64) {
        var any = SplitMix64(seed: world.schedule.seed ^ 0x57B0 ^ UInt64(bitPattern: world.now))
        guard time > 15_000, any.chance(40) else { return }
        let share = any.chance(70) ? 100 : 50
        let overdue = connections.filter { patience(with: $0.client) < time && any.chance(share) }
        world.after(time) { [unowned self] in
            guard world.now >= stalledUntil else { return }
            for connection in overdue where connection.isBrokerThere && !connection.isDead {
                world.say("broker", "has not heard \(connection.client.name) for too long")
                end(connection)
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
