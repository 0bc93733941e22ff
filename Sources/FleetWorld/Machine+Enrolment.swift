import DeviceAgent
import FleetController
import FleetHome
import FleetProtocol

/// Being a member of the fleet: taken out of it, enrolled again, copied.
extension Machine {
    /// Whether the broker knows the password that this machine has.
    var hasAccount: Bool {
        world.controller.enrolments[id] == enrollment.incarnation || isRemoved && world.now < accountUntil
    }

    /// Its password is taken away; what it has reported is to be forgotten.
    func takeOut() {
        world.say(name, "is taken out of the fleet")
        isRemoved = true
        isRemovalUnfinished = true
        takenOutAt = world.now
        takenOutAs = world.controller.enrolments[id] ?? enrollment.incarnation
        watch.events.promised = [:]
        leftBehind = nil
        world.controller.enrolments[id] = nil
        world.controller.letIn[id] = nil
        world.controller.forgetWords(of: id)
        // The broker may be told late, and what runs has said something more by then.
        let lateness = !world.isCalm && world.noise.chance(30) ? world.noise.milliseconds(1...30_000) : 0
        accountUntil = world.now + lateness
        world.broker.end(allOf: user, after: lateness)
    }

    /// It gets the next incarnation and another password; a new device has nothing of what the old one had.
    ///
    /// - Parameter asked: When the controller was asked for the floors.
    func enroll(_ floors: Floors, asked: Int64) {
        guard let enrolment else { return }
        world.say(name, enrolment == .replaced ? "is replaced by a new device" : "is enrolled again")
        let isReplacement = enrolment == .replaced
        if isReplacement { isReplaced = true }
        let left = isReplacement && !isRemovalUnfinished ? keysThatAreKnown : []
        self.enrolment = nil
        isRemoved = false
        if isRemovalUnfinished { removalMayFollowUntil = world.now + 40_000 }
        isRemovalUnfinished = false
        crash(isRestarting: false)
        if world.fault != .incarnationNotRaised {
            // The home counts on from what it knows; what that has lost with a backup, the controller has heard, unless it has
            // lost it as well.
            let controller = world.controller
            let isLost = controller.wasPutBack || asked <= controller.homePutBackAt
            let last = isLost ? enrollment.incarnation : controller.givenOut[id] ?? 0
            enrollment.incarnation = max(last + 1, floors.incarnation)
        }
        // Where two enrol it at once, the home may give out one that the controller has still to read there.
        isEnrolmentKnown = world.controller.isSteady && enrollment.incarnation == floors.incarnation
        leftBehind = (enrollment.incarnation, left)
        if isReplacement { diskSince = enrollment.incarnation }
        // The home's is as new as any controller's.
        enrollment.trust = world.fleet.trusts[world.controller.renewals]
        enrollment.epoch = floors.epoch
        enrollment.floors = Dictionary(
            floors.topics.compactMap { floor in
                Address(topic: floor.topic, in: SimulatedFleet.id).map {
                    ($0, Revision(epoch: floor.epoch, number: floor.revision))
                }
            }
        ) { $1 }
        world.controller.enrol(id, as: enrollment.incarnation)
        world.controller.forgetWords(of: id)
        world.broker.end(allOf: user)
        isOneAgain()
        if isReplacement {
            begin()
            uninstallSome()
        }
        world.after(100) { [unowned self] in startAgent() }
    }

    /// Now and then an app of the device before is not there any more.
    private func uninstallSome() {
        var any = SplitMix64(seed: world.schedule.seed ^ UInt64(enrollment.incarnation) << 8 ^ UInt64(number))
        for app in apps where any.chance(10) {
            world.say(app.name, "is not on the new device")
            app.close()
        }
    }

    /// Keys that are here, and of which the controller has heard from this disk. Those of before a retirement are others: that
    /// they are gone may be all that it hears, and so may what a copy says of its own, which is still on its way.
    private var keysThatAreKnown: Set<AppID> {
        let statuses = (try? world.controller.store.statuses(in: SimulatedFleet.id)) ?? []
        let known = statuses.filter { status in
            status.device == id && status.keys == .present && status.order.incarnation >= diskSince
                && destroyedSaid[status.app].map { $0 < status.order } ?? true
        }.map(\.app)
        let copies = world.clones.filter { $0.id == id }
        return Set(known).intersection(disk.keys.keys).filter { app in copies.allSatisfy { $0.disk.keys[app] != nil } }
    }

    /// The home, and with it the broker, knows another password of it, or none.
    func homeWasPutBack() {
        enrolledAtPutBack = enrollment.incarnation
        if isRemovalUnfinished { removalMayFollowUntil = world.now + 60_000 }
        if world.controller.enrolments[id] == enrollment.incarnation {
            // Whoever took it out does not know.
            world.say(name, "is let in again")
            (isRemoved, isRemovalUnfinished) = (false, false)
        } else if !isRemoved {
            world.say(name, "is not let in any more")
            world.broker.end(allOf: user)
            enrolment = enrolment ?? .again
        }
    }

    /// A second machine with all that this one has on its disk.
    func clone() -> Machine {
        world.say(name, "is copied, and the copy runs beside it")
        wasPutBack = true
        let copy = Machine(copying: self)
        copy.switchOn()
        return copy
    }

    /// The copy is found, and switched off for good.
    func vanish() {
        isGone = true
        crash(isRestarting: false)
        for app in apps { app.end() }
    }
}
