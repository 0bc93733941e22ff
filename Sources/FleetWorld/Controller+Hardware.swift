import FleetController
import FleetProtocol

/// What happens to the controller: its disk and its backups, its clock, its processor.
extension Controller {
    func fillDisk(after transactions: Int) {
        var any = SplitMix64(seed: world.schedule.seed ^ UInt64(bitPattern: world.now))
        roomLeft = (transactions, refused: any.chance(50) ? 1 : .max)
    }

    func takeBackUp() {
        guard let copy = try? FleetStore(copying: store) else { return }
        (backUp, backedUpDesired, backedUpNote) = (copy, desired, noted)
        backedUpHome = (enrolments, givenOut)
    }

    func putBack(withFolder: Bool) {
        guard let backUp, let copy = try? FleetStore(copying: backUp) else { return }
        world.say(name, "is put back from its backup\(withFolder ? ", with its folder" : "")")
        if withFolder { noted = backedUpNote }
        running = nil
        phase = .offline
        inbox = []
        if let connection {
            self.connection = nil
            world.broker.cut(connection, noticedAfter: 0)
        }
        let lost = (try? store.events()) ?? [:]
        for machine in world.machines {
            machine.forgive(lost.keys)
            if machine.isRemoved { machine.isRemovalUnfinished = true }
        }
        epochBefore = (try? copy.latest().epoch) ?? 0
        let latest = (try? copy.latest().number) ?? 0
        promises = promises.filter { $0.value <= latest }
        undoneEpoch = answeredEpoch
        based = []
        answered = [:]
        (store, desired, letIn) = (copy, backedUpDesired, [:])
        layers.putBack()
        orders = [:]
        removed = [:]
        offline = nil
        (signed, signedFor) = (nil, [:])
        isFromBackUp = true
        isFolderOld = isFolderOld || withFolder
        putBacks += 1
        world.after(1_000) { [unowned self] in start(isRestoring: false) }
    }

    func setClock(by seconds: Int64) {
        clockOffset += seconds * 1_000
        if (-60..<0).contains(seconds) {
            beatDelay -= seconds * 1_000
            clockSetBack -= seconds * 1_000
        }
        isPunctual = false
        clockSetAt = world.now
    }

    func freeze(for time: Int64, isDead: Bool) {
        if let connection { world.broker.freeze(connection, for: time, isDead: isDead) }
    }

    /// Its process stands still.
    func stall(for time: Int64) {
        guard let running, !isStalled else { return }
        world.say(name, "stands still")
        isStalled = true
        if let connection {
            world.after(world.broker.patience(with: self)) { [unowned self] in
                if self.running === running, isStalled { world.broker.end(connection) }
            }
        }
        world.after(time) { [unowned self] in if self.running === running { goOn() } }
    }

    private func goOn() {
        guard isStalled else { return }
        world.say(name, "goes on")
        isStalled = false
        wentOnAt = world.now
        read()
        let events = late
        late = []
        for event in events {
            // That is read by whoever goes on.
            if case .enrolments = event { handle(.enrolments(enrolments)) } else { handle(event) }
        }
    }

    func calm() {
        goOn()
        // As the guide says, where the home was put back.
        if !unread.isEmpty {
            downFor = 100
            crash()
        }
        effectsLeft = nil
        roomLeft = nil
        homeHiddenUntil = 0
        if clockOffset < 0 { (clockOffset, clockSetAt) = (0, world.now) }
        start(isRestoring: false)
    }
}
