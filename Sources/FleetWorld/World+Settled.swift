/// What must hold in a fleet in which nothing is lost. Most of what a core forgets is found some minutes later, by comparing; here
/// nothing is compared before a law looks.
extension World {
    /// Once everything has come to rest, some of that changes, with no fault: what comes of it is everywhere within seconds, and
    /// nobody is told meanwhile that anything was lost.
    func changeAtRest() {
        var any = SplitMix64(seed: schedule.seed ^ 0x5E77)
        guard violation == nil, any.chance(40) else { return }
        say("STEP", "what changes now is there at once")
        isSettled = true
        var end: Int64 = 0
        var actions: [Action] = []
        for _ in 0...any.below(4) {
            actions.append(.atRest(&any, devices: schedule.devices, apps: schedule.apps))
            if any.chance(15) { actions += Action.inTwoGroups(&any, devices: schedule.devices, apps: schedule.apps) }
            // Who leaves a group and comes to it again has what it said meanwhile.
            if any.chance(20) {
                actions += Action.leavingAndComing(&any, devices: schedule.devices, apps: schedule.apps)
            }
        }
        let pauses = [0...4, 0...20, 0...2_000]
        for action in actions {
            end += any.milliseconds(pauses[any.below(3)])
            after(end) { [unowned self] in
                say("STEP", "\(action)")
                perform(action)
            }
        }
        // A device starts within some seconds, and answers a greeting again after five. Levels last for whole seconds.
        pass(until: now + end + 12_500)
        if violation == nil { checkAtRest() }
    }
}
