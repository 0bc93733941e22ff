import DeviceAgent
import FleetProtocol

/// How the agent's process begins and ends.
extension Machine {
    func startAgent() {
        guard core == nil, isOn, !isGone else { return }
        do {
            run += 1
            goOn()
            watch.records = disk.state.apps
            watch.refusals = []
            watch.passcode = PasscodeWatch(wrong: watch.passcode.storedWrong)
            watch.pasteboard = PasteboardWatch()
            for (address, wire) in disk.state.documents { watch.noteAuthorization(address, wire) }
            let signatures =
                world.fault == .signaturesNotChecked ? SignatureCheck { _, _ in true } : world.fleet.checked
            core = try DeviceCore(
                enrollment: enrollment, agentVersion: SimulatedFleet.agent, state: disk.state,
                secret: .random(using: &secrets),
                signatures: signatures, keepingEvents: world.eventLimit, at: clock)
            if let difference = try disk.difference() { world.fail(.sameStore, "\(name): \(difference)") }
            tidyKeys()
            checkStart()
            world.say(name, "the agent starts")
            work([.tick])
            connect()
        } catch {
            world.fail(.total, "\(name): the agent does not start: \(error)")
        }
    }

    func kill() { crash(isRestarting: true) }

    /// The agent is asked to end: it says goodbye, and goes when that has been said.
    func stop() {
        // What stands still hears no signal.
        guard core != nil, !isStalled else { return }
        if unwritten != nil { return later { $0.stop() } }
        world.say(name, "the agent is asked to end")
        closeLinks()
        // What has come from the broker with the signal may be looked at behind it, a greeting once more.
        var messages = inbox.filter { if case .message = $0 { true } else { false } }
        if let greeting, world.noise.chance(30) { messages.append(greeting) }
        let isFirst = world.noise.chance(30)
        if world.fault != .endNotAnnounced { work(isFirst ? [.stopping] + messages : inbox + [.stopping]) }
        // It goes when that is done, however long the disk takes.
        if let effects = unwritten {
            unwritten = nil
            perform(effects, isStored: true)
        }
        inbox = []
        guard let core else { return }
        checkEnd(core)
        flush(isLast: true)
        if let connection {
            self.connection = nil
            let topic = Address.presence(.device(id)).topic(in: SimulatedFleet.id)
            let (isSaid, boot) = (watch.bus.isPresent, core.state.boot)
            world.broker.leave(connection) { [unowned self] in
                guard !world.broker.refuses(user) else { return }
                if hasReported { checkSilent(boot) }
                guard isSaid, let said = world.broker.retained[topic]?.payload,
                    let presence = try? Presence(json: said, limit: Presence.maximumSize), presence.state == .online
                else { return }
                world.fail(.presence, "\(name) has left in good order, and is said to be online")
            }
        }
        crash(isRestarting: true)
    }

    func crash(isRestarting: Bool) {
        guard core != nil else { return }
        world.say(name, "the agent is gone")
        core = nil
        run += 1
        displays = 0
        inbox = []
        dues = Dues()
        watch.died()
        watch.forgetUnstored()
        wake = WakeTime()
        effectsLeft = nil
        if let effects = unwritten { watch.unsaid(effects) }
        unwritten = nil
        closeLinks()
        if let connection {
            self.connection = nil
            world.broker.cut(connection, noticedAfter: world.noise.chance(70) ? 0 : world.noise.milliseconds(1...5_000))
        }
        guard isRestarting else { return }
        world.after(world.isCalm ? 50 : world.noise.milliseconds(10...4_000)) { [unowned self] in startAgent() }
    }
}
