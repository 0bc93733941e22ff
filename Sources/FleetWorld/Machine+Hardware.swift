import DeviceAgent
import FleetController
import FleetProtocol

/// What happens to the machine: its power, its clocks, its disk.
extension Machine {
    func switchOn() {
        clocks.boot(at: world.now)
        isOn = true
        startAgent()
        for app in apps { world.after(world.noise.milliseconds(0...500)) { app.start() } }
    }

    /// A device of the same name that has nothing yet.
    func begin() {
        image = nil
        disk = DeviceDisk(isReal: world.schedule.seed % 8 == 0)
        clocks.boot(at: world.now)
        watch = watch.ofNewDevice
        for app in apps {
            app.reinstall()
            app.open()
        }
        // Not all that the old one had need be on the new one.
        var any = SplitMix64(seed: world.schedule.seed ^ UInt64(bitPattern: world.now))
        if any.chance(30) { apps[any.below(apps.count)].close() }
    }

    func reboot() {
        crash(isRestarting: false)
        for app in apps { app.crash() }
        if isOn { watch.boots(after: clocks.uptime(at: world.now)) }
        isOn = false
        world.after(world.noise.milliseconds(500...10_000)) { [unowned self] in
            guard !isOn else { return }
            isOn = true
            clocks.boot(at: world.now)
            startAgent()
        }
    }

    /// The network is gone, for the device alone.
    func unplug(for time: Int64) {
        unpluggedUntil = world.now + time
        cut(noticedAfter: world.noise.milliseconds(1...45_000))
    }

    func freeze(for time: Int64, isDead: Bool) {
        if let connection { world.broker.freeze(connection, for: time, isDead: isDead) }
    }

    func setClock(by seconds: Int64) { clocks.set(by: seconds, at: world.now) }

    /// The wall clock stands still, and goes on from there.
    func stopClock(for time: Int64) {
        guard !clocks.isWallStopped else { return }
        clocks.stopWall(at: world.now)
        world.after(time) { [unowned self] in clocks.goOnWall(at: world.now) }
    }

    /// The agent's process stands still, or the whole machine sleeps, and its time since the boot with it.
    func stall(for time: Int64, isAsleep: Bool) {
        guard core != nil, !isStalled else { return }
        world.say(name, isAsleep ? "sleeps" : "stands still")
        isStalled = true
        self.isAsleep = isAsleep
        if isAsleep { clocks.sleep(at: world.now) }
        let run = run
        if let connection {
            world.after(world.broker.patience(with: self)) { [unowned self] in
                if self.run == run, isStalled { world.broker.end(connection) }
            }
        }
        world.after(time) { [unowned self] in if self.run == run { goOn() } }
    }

    func goOn() {
        clocks.wake(at: world.now)
        guard isStalled else { return }
        world.say(name, "goes on")
        isStalled = false
        wake = WakeTime()
        post(.tick)
        flush()
    }

    /// At least one transaction finds no room.
    func fillDisk(for time: Int64) {
        isDiskFull = true
        fullUntil = world.now + time
    }

    /// Once, or for a time.
    func meetsFullDisk() -> Bool {
        guard isDiskFull || world.now < fullUntil else { return false }
        isDiskFull = false
        world.say(name, "the disk is full")
        return true
    }

    func takeImage() { image = disk }

    func putBack() {
        guard var image else { return }
        crash(isRestarting: false)
        world.say(name, "its disk is put back from an image")
        image.replace(by: image)
        lastBootOfOthers = max(lastBootOfOthers, disk.state.boot)
        disk.replace(by: image)
        wasPutBack = true
        watch = Watch(EventWatch(maximum: world.eventLimit), earlierBoots: watch.earlierBoots)
        watch.goOn(with: disk.state)
        world.after(500) { [unowned self] in startAgent() }
    }

    /// As another incarnation it speaks for itself alone. What it did before was another's as well, but for its events where it
    /// was put back: no two starts have one boot, unless the clock stood still meanwhile. A copy has those of the running one to
    /// tell, too.
    func isOneAgain() {
        guard wasPutBack else { return }
        wasPutBack = false
        oneSince = enrollment.incarnation
        let isCopied = world.clones.contains { $0.id == id }
        let promised = watch.events.promised.filter { event, _ in
            !isCopied && !watch.events.dropped.contains(event) && event.boot > lastBootOfOthers
        }
        watch = Watch(EventWatch(maximum: world.eventLimit), earlierBoots: watch.earlierBoots)
        watch.events.promised = promised
        watch.begin(on: disk.state)
        for app in apps { app.forgetAll() }
    }

    /// The clock is right, the disk has room, the agent and the apps run. One that was put back is enrolled again.
    func calm() {
        effectsLeft = nil
        (isDiskFull, fullUntil) = (false, 0)
        clocks.correct(at: world.now)
        goOn()
        if wasPutBack, !isRemoved {
            crash(isRestarting: false)
            enrollment.incarnation += 1
            enrollment.floors = (try? world.controller.store.floors(for: id)) ?? [:]
            enrollment.epoch = (try? world.controller.store.latest().epoch) ?? 1
            world.controller.enrol(id, as: enrollment.incarnation)
            isOneAgain()
        }
        startAgent()
        connect()
    }
}
