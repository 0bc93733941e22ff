import AppConnect
import FleetProtocol

/// What the delegate is called for: one call at a time, each as long as this app takes.
extension AppProcess {
    func pumpLater() {
        guard !isPumpDue else { return }
        isPumpDue = true
        world.after(0) { [unowned self] in
            isPumpDue = false
            pump()
        }
    }

    private func pump() {
        var call: AppSession.Call?
        if wasReady, !world.isCalm, world.noise.below(200) == 0 { lookAway() }
        if wasReady, !world.isCalm, breaks.below(600) == 0 { breakLink() }
        let callbacks = isAttended ? callbacks : nil
        run { session in
            let (next, effects) = session.next(for: callbacks)
            call = next
            return effects
        }
        guard let call else { return }
        if isRunning { world.fail(.quiet, "\(name): \(call) came while another callback ran") }
        isRunning = true
        world.say(name, "is called: \(call)")
        machine.check(call, of: self)
        watch.begins(call)
        if let problem = retirement.problem(in: call, showing: session?.properties ?? .initial), !machine.wasPutBack {
            world.fail(.erased, "\(name): \(problem)")
        }
        if case .activity(let isActive) = call { isResigned = !isActive }
        if call == .ready {
            wasReady = true
            if isMarked, session?.properties.authReason != .selfRetired {
                world.fail(
                    .latched, "\(name): it has retired itself, no agent has stored it, and its next launch is ready")
            }
            if isMarked { goesOnRetiring() }
        }
        if case .changed(let number, let delivery) = call {
            if let newest = newestTold[delivery.kind], number != newest {
                world.fail(.quiet, "\(name) is called for \(number) of \(delivery), and \(newest) has come since")
            }
            called[delivery.kind] = delivery
        }
        // In the middle of it.
        if !world.isCalm, world.noise.below(200) == 0 { return crash() }
        if case .changed(_, .policy(.auth, .selfRetired)) = call { isRetiring = false }
        let policy: Policy? =
            if case .changed(_, .policy(let value, _)) = call, value.policy.isAcknowledgedByApp { value.policy } else {
                nil
            }
        if let policy, manner == .prompt || manner == .wrong { answer(policy) }
        if world.fault == .callbacksOverlap {
            finish(call)
            pumpLater()
        }
        let launch = launch
        // An app has most to do when it begins.
        let isLong = !world.isCalm && world.noise.below(call == .ready ? 3 : 8) == 0
        if isLong, breaks.chance(10) {
            world.after(breaks.milliseconds(1...500)) { [unowned self] in
                if self.launch == launch { breakLink() }
            }
        }
        world.after(isLong ? world.noise.milliseconds(5...2_000) : 0) { [unowned self] in
            guard self.launch == launch else { return }
            isRunning = false
            if world.fault != .callbacksOverlap { finish(call) }
            if let policy, manner == .late {
                world.after(world.noise.milliseconds(1...4_000)) { [unowned self] in
                    if self.launch == launch { answer(policy) }
                }
            }
            pumpLater()
        }
    }

    /// Its delegate is gone for a while.
    func lookAway() {
        guard isAttended else { return }
        turnAway()
        let launch = launch
        world.after(world.noise.milliseconds(10...20_000)) { [unowned self] in
            if self.launch == launch { turnBack() }
        }
    }

    func turnAway() {
        world.say(name, "has no delegate")
        isAttended = false
        isResigned = false
        // Of its retirement it may hear only what has come of it since.
        isRetiring = false
    }

    func turnBack() {
        isAttended = true
        pumpLater()
    }

    private func finish(_ call: AppSession.Call) {
        run { session in
            let effects = session.returned(call)
            if case .changed(let number, _) = call, session.connection == .open,
                !effects.contains(.send(.delivered(number)))
            {
                world.fail(.kept, "\(name): its agent is not told that \(call) has returned")
            }
            return effects
        }
    }
}
