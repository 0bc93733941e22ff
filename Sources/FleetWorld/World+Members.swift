import DeviceAgent
import FleetController
import FleetHome
import FleetProtocol

/// Who is taken out of the fleet, and who comes, as operators do it.
extension World {
    func remove(_ machine: Machine) {
        var any = SplitMix64(seed: schedule.seed ^ UInt64(bitPattern: now))
        // While somebody else enrols it, now and then.
        guard !machine.isRemovalUnfinished, machine.enrolment == nil || any.chance(50) else { return }
        let last = machine.enrollment.incarnation - 1
        // A controller that starts while it cannot read the home knows of no enrolment that it has not heard of otherwise.
        let isKnown = machine.isEnrolmentKnown && !schedule.hidesHome
        if last > 0, machine.enrolment == nil, !machine.isRemoved, isKnown, any.chance(40) {
            // Somebody takes out what it was before, and comes too late.
            say("operator 1", "takes out incarnation \(last) of \(machine.name)")
            machine.removalMayFollowUntil = now + 60_000
            machine.leftBehind = nil
            let through = machine.enrollment.incarnation
            operators[1].ask(
                .deviceRemove, json(DeviceRequest(device: machine.id, incarnation: last)),
                then: { if case .success = $0 { machine.forgive(through: through) } })
            return
        }
        machine.takeOut()
        finishRemoval(of: machine)
    }

    func enroll(_ machine: Machine, isNew: Bool) {
        var any = SplitMix64(seed: schedule.seed ^ UInt64(bitPattern: now))
        // While somebody else takes it out, now and then.
        guard !machine.isRemovalUnfinished || any.chance(50) else { return }
        machine.enrolment = isNew ? .replaced : .again
        finishEnrolment(of: machine, by: operators[machine.isRemovalUnfinished ? 1 : 0])
        if any.chance(15) { enrollBeside(machine) }
    }

    /// Somebody else does the same, and asks but once: each gives out an incarnation.
    private func enrollBeside(_ machine: Machine) {
        let request = DeviceRequest(device: machine.id, incarnation: machine.enrollment.incarnation + 1)
        let asked = now
        operators[1].ask(
            .enroll, json(request),
            then: { [unowned self] result in
                guard case .success(let body, _) = result,
                    let floors = try? Floors(json: body.json, limit: Response.maximumSize)
                else { return }
                if machine.takenOutAt > asked { machine.removalMayFollowUntil = now + 60_000 }
                let other = machine.enrolment
                machine.enrolment = .again
                machine.enroll(floors, asked: asked)
                machine.enrolment = other
            })
    }

    /// Who is not let in any more is enrolled again sooner or later; of who is let in again, some are taken out once more.
    func putBackHome() {
        if noise.chance(15) { return putBackPasswords() }
        say("home", "is put back")
        let changed = controller.putBackHome()
        for machine in machines where changed.contains(machine.id) {
            machine.homeWasPutBack()
            let isTakenOut = noise.chance(30)
            after(noise.milliseconds(100...(machine.isRemoved ? 20_000 : 90_000))) { [unowned self] in
                if machine.enrolment != nil { return finishEnrolment(of: machine, by: operators[0]) }
                if machine.isRemoved, controller.enrolments[machine.id] != nil {
                    // Something else is in its place.
                    machine.takeOut()
                    return finishRemoval(of: machine)
                }
                if isTakenOut, !isCalm, !machine.isRemoved, controller.isLetIn(machine.id) { remove(machine) }
            }
        }
    }

    /// The broker's alone, until somebody notices: of whom the home has nothing, it lets some in.
    private func putBackPasswords() {
        say("broker", "has the passwords of before")
        for machine in machines where machine.isRemoved {
            let time = noise.milliseconds(3_000...30_000)
            machine.accountUntil = now + time
            broker.end(allOf: machine.user, after: time)
        }
    }

    func clone(_ machine: Machine) {
        guard !clones.contains(where: { $0.id == machine.id }) else { return }
        clones.append(machine.clone())
    }

    /// What `fleetctl device remove` does last, and again when nobody has answered.
    func finishRemoval(of machine: Machine) {
        let putBacks = controller.putBacks
        let incarnation = machine.takenOutAs
        let through = max(incarnation, machine.enrollment.incarnation)
        let request = DeviceRequest(device: machine.id, incarnation: incarnation)
        func again() { if machine.isRemovalUnfinished { finishRemoval(of: machine) } }
        operators[0].ask(.deviceRemove, json(request), again: again) { [unowned self] result in
            if case .failure(let failure) = result {
                // Somebody else was about to enrol it.
                guard failure.code == .unavailable else { return }
                return after(10_000, again)
            }
            machine.forgive(through: through)
            // An answer from before a backup was put back speaks of what is lost with the rest.
            guard controller.putBacks == putBacks else { return }
            // The home may have been put back meanwhile.
            guard machine.isRemoved || machine.enrollment.incarnation > incarnation else { return }
            machine.isRemovalUnfinished = false
            if machine.enrolment != nil { machine.removalMayFollowUntil = now + 60_000 }
            controller.removed[machine.id] = max(controller.removed[machine.id] ?? 0, incarnation)
        }
    }

    /// What `fleetctl enroll` does: it asks for the newest documents, then gives out the next incarnation.
    func finishEnrolment(of machine: Machine, by person: Operator) {
        let request = DeviceRequest(device: machine.id, incarnation: machine.enrollment.incarnation + 1)
        let asked = now
        func again() { if machine.enrolment != nil { finishEnrolment(of: machine, by: person) } }
        person.ask(.enroll, json(request), again: again) { [unowned self] result in
            // Removed between the first time that it was answered and the last.
            if machine.takenOutAt > asked { machine.removalMayFollowUntil = now + 60_000 }
            guard case .success(let body, _) = result,
                let floors = try? Floors(json: body.json, limit: Response.maximumSize)
            else { return }
            if machine.enrolment == nil, machine.isRemoved, !machine.isRemovalUnfinished {
                // Somebody else has enrolled it meanwhile, and taken it out: so it is announced, and nobody comes.
                machine.isRemovalUnfinished = true
                return finishRemoval(of: machine)
            }
            machine.enroll(floors, asked: asked)
            // It has seen nothing yet that would tell it what is old.
            guard schedule.broker == .hostile else { return }
            for delay: Int64 in [150, 300, 600] {
                after(delay) { [unowned self] in if !isCalm { forge(.replayed, for: machine) } }
            }
        }
    }
}
