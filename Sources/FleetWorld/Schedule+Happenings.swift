import FleetProtocol

/// What happens in some worlds beside their mixture, each with a sequence of random numbers of its own, so that one that is
/// added changes nothing else of a seed's schedule.
extension Schedule {
    /// Now and then a day passes in the middle: the controller forgets what is old. A copy and its device would spend it
    /// throwing each other off.
    mutating func addDay(_ theme: Theme?) {
        var days = SplitMix64(seed: seed ^ 0xDA75)
        let isSmall = devices <= 2 && !steps.contains { if case .clone = $0.action { true } else { false } }
        guard isSmall, days.below(theme == .away ? 20 : 200) == 0 else { return }
        let index = days.below(steps.count)
        let day: Int64 = 26 * 3_600_000
        let evening = steps[index].at
        for index in index..<steps.count { steps[index].at += day + 60_000 }
        // Somebody is away meanwhile, and does not hear what is deleted.
        if days.chance(50) {
            let places: [Place] = [.all, .device(days.below(devices))] + (0..<Self.groups).map { .group($0) }
            steps.insert(Step(evening, .unplug(days.below(devices), day + 60_000)), at: index)
            for place in places {
                let change = Change.delete(app: days.below(apps), place)
                steps.insert(Step(evening + 50_000, .request(0, change)), at: index + 1)
            }
        }
    }

    /// In some worlds people close apps, and open them again.
    mutating func addClosings(_ theme: Theme?) {
        var closings = SplitMix64(seed: seed ^ 0xC105E)
        guard closings.chance(theme == .retiring ? 50 : 12) else { return }
        for _ in 0...closings.below(3) {
            let index = closings.below(steps.count)
            let close = Action.closeApp(
                closings.below(devices), closings.below(apps), closings.milliseconds(1...30_000))
            steps.insert(Step(steps[index].at, close), at: index)
        }
    }

    /// In some an app is retired and then authorized again, in one moment or soon, while it runs or not.
    mutating func addReturns(_ theme: Theme?) {
        var returns = SplitMix64(seed: seed ^ 0x2E71)
        guard returns.chance(theme == .retiring ? 60 : 6) else { return }
        for _ in 0...returns.below(3) {
            let (device, app) = (returns.below(devices), returns.below(apps))
            let place = [.all, .device(device), Place.group(returns.below(Self.groups))][returns.below(3)]
            var at = steps[returns.below(steps.count)].at
            if returns.chance(40) {
                let close = Action.closeApp(device, app, returns.milliseconds(1...30_000))
                steps.insert(Step(at, close), inOrderOf: \.at)
                if returns.chance(30) {
                    let reinstall = Step(at + returns.milliseconds(0...5_000), .reinstallApp(device, app))
                    steps.insert(reinstall, inOrderOf: \.at)
                }
            }
            for variant in [Change.retired, Change.authorized] {
                let change = Change.apply(app: app, place, aspect: 0, variant: variant, isBased: false)
                steps.insert(Step(at, .request(0, change)), inOrderOf: \.at)
                at += returns.milliseconds(returns.chance(60) ? 0...30 : 100...10_000)
            }
        }
    }

    /// In some keys are left in doubt: an app is retired when a device has come back on another disk, or the device is taken out
    /// behind that; and then the retirement ends.
    mutating func addDoubt(_ theme: Theme?) {
        var doubts = SplitMix64(seed: seed ^ 0xD0B7)
        guard doubts.chance(theme == .members ? 40 : 4) else { return }
        let (device, app, group) = (doubts.below(devices), doubts.below(apps), doubts.below(Self.groups))
        let place = [.all, .device(device), Place.group(group)][doubts.below(3)]
        let authorization = Change.apply(app: app, place, aspect: 0, variant: Change.authorized, isBased: false)
        let retirement = Change.apply(app: app, place, aspect: 0, variant: Change.retired, isBased: false)
        let end = [authorization, .delete(app: app, place), .deleteGroup(group)][doubts.below(3)]
        var actions: [Action] = [.request(0, authorization)]
        if doubts.chance(60) { actions.append(.enroll(device, isNew: true)) }
        actions.append(.request(0, retirement))
        if doubts.chance(50) { actions.append(.remove(device)) }
        actions.append(.request(1, end))
        var at = steps[doubts.below(steps.count)].at
        for action in actions {
            steps.insert(Step(at, action), inOrderOf: \.at)
            at += doubts.milliseconds(1_000...15_000)
        }
    }

    /// In some what several layers say is changed at once.
    mutating func addChangesOfLayers(_ theme: Theme?) {
        var layered = SplitMix64(seed: seed ^ 0x1A7E)
        guard layered.chance(theme == .layers ? 60 : 12) else { return }
        for _ in 0...layered.below(3) {
            let change = Change.layers(
                app: layered.below(apps), aspect: layered.chance(50) ? 0 : layered.below(Aspect.allCases.count),
                isDeleted: layered.chance(40))
            let at = steps[layered.below(steps.count)].at
            steps.insert(Step(at, .request(layered.below(Self.operators), change)), inOrderOf: \.at)
        }
    }

    /// In some a change goes back and forth, in one moment or soon: what a document says, or who is in a group; or a device is
    /// taken out of the fleet and enrolled.
    mutating func addBounces(_ theme: Theme?) {
        var bounces = SplitMix64(seed: seed ^ 0xB0C5)
        let isLikely = theme.map { ![.restore, .trust, .disks, .losses].contains($0) } ?? false
        guard bounces.chance(isLikely ? 30 : 5) else { return }
        let isOfMembers = theme == .members || theme == .registry || bounces.chance(10)
        for _ in 0...bounces.below(2) {
            let actions = isOfMembers && bounces.chance(60) ? moves(&bounces) : changes(&bounces, theme)
            var at = steps[bounces.below(steps.count)].at
            let longest = [30, 2_000, 60_000][bounces.below(3)]
            for index in 0..<3 + bounces.below(3) {
                steps.insert(Step(at, actions[index % actions.count]), inOrderOf: \.at)
                at += bounces.milliseconds(0...longest)
            }
        }
    }

    private func moves(_ random: inout SplitMix64) -> [Action] {
        let device = random.below(devices)
        return [.remove(device), .enroll(device, isNew: random.chance(40))]
    }

    private func changes(_ random: inout SplitMix64, _ theme: Theme?) -> [Action] {
        let group = random.below(Self.groups)
        if random.chance(35) {
            let all = 1 << devices
            return [all - 1, random.below(all)].map { members in
                .request(0, .group(group, priority: Int64(random.below(2)), members: members))
            }
        }
        let app = random.below(apps)
        let place = [.all, .device(random.below(devices)), Place.group(group)][random.below(3)]
        let mixture = Mixture(seed: seed, theme: theme)
        let aspect = mixture.aspect(&random)
        let variants = [mixture.variant(of: aspect, &random), mixture.variant(of: aspect, &random)]
        return variants.map {
            .request(0, .apply(app: app, place, aspect: aspect, variant: $0, isBased: false))
        }
    }

    /// People copy and paste at all devices, all the time, in some worlds.
    mutating func addPeople(_ theme: Theme?) {
        var people = SplitMix64(seed: seed ^ 0xC0B1)
        guard people.chance(8) || theme == .pasteboards, let last = steps.last?.at else { return }
        steps.insert(contentsOf: (0..<devices).map { Step(0, .copy($0, last)) }, at: 0)
    }

    /// In some the controller's home cannot be read for a while, often when the controller starts.
    mutating func addHiddenHome(_ theme: Theme?) {
        var homes = SplitMix64(seed: seed ^ 0x40E5)
        guard homes.chance(theme == .registry ? 40 : 6) else { return }
        let at = steps[homes.below(steps.count)].at
        let time = homes.milliseconds(homes.chance(30) ? 60_000...200_000 : 500...30_000)
        steps.insert(Step(at, .hideHome(time)), inOrderOf: \.at)
        if homes.chance(60) {
            let crash = Action.crashController(effects: 0, downFor: homes.milliseconds(1...3_000))
            steps.insert(Step(at + homes.milliseconds(0...1_000), crash), inOrderOf: \.at)
        }
    }

    /// In some it is put back as it was before some came or were taken out.
    mutating func addHomePutBack(_ theme: Theme?) {
        var homes = SplitMix64(seed: seed ^ 0x4037)
        guard homes.chance(theme == .registry || theme == .members ? 30 : 4) else { return }
        var at = steps[homes.below(steps.count)].at
        func happen(_ action: Action) {
            steps.insert(Step(at, action), inOrderOf: \.at)
            at += homes.milliseconds(homes.chance(50) ? 1...3_000 : 3_000...40_000)
        }
        happen(.backUpController)
        for _ in 0...homes.below(2) {
            let device = homes.below(devices)
            happen(homes.chance(60) ? .remove(device) : .enroll(device, isNew: homes.chance(40)))
        }
        happen(.putBackHome)
    }

    /// In some it was copied, and somebody uses the copy as well.
    mutating func addCopyOfHome() {
        var copies = SplitMix64(seed: seed ^ 0x21FA1)
        guard copies.chance(4) else { return }
        let at = steps[copies.below((steps.count + 1) / 2)].at
        let pause = copies.milliseconds(copies.chance(70) ? 2_000...8_000 : 8_000...40_000)
        steps.insert(Step(at, .copyHome(every: pause)), inOrderOf: \.at)
    }

    /// In some somebody writes a wrong list of who may read what, now and then for longer than nobody is warned. A controller to
    /// which documents alone are hidden would greet nobody, and afterwards bring back few of them with each heartbeat.
    mutating func addWrongLists() {
        var lists = SplitMix64(seed: seed ^ 0xA101)
        guard broker == .lossy, lists.chance(30) else { return }
        for _ in 0...lists.below(2) {
            let at = steps[lists.below(steps.count)].at
            let isLong = lists.chance(40)
            let time = lists.milliseconds(isLong ? 1_500_000...2_400_000 : 1...100_000)
            let device = lists.chance(70) ? lists.below(devices) : nil
            let isAll = device == nil || lists.chance(isLong ? 30 : 60)
            steps.insert(Step(at, .hide(device, time, isAll: isAll)), inOrderOf: \.at)
            if isLong { steps.insert(Step(at + time, .pause), inOrderOf: \.at) }
        }
    }

    /// In some the broker cannot read its passwords for a while.
    mutating func addLockOut() {
        var lockouts = SplitMix64(seed: seed ^ 0x10C5)
        guard lockouts.chance(4) else { return }
        let at = steps[lockouts.below(steps.count)].at
        steps.insert(Step(at, .lockOut(lockouts.milliseconds(1...120_000))), inOrderOf: \.at)
    }
}

extension Array {
    /// Behind all that are not later.
    mutating func insert(_ element: Element, inOrderOf key: (Element) -> Int64) {
        insert(element, at: firstIndex { key($0) > key(element) } ?? endIndex)
    }
}
