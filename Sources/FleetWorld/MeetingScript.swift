import FleetProtocol

/// Writes down what happens at a meeting: to one device, one app, on one layer.
struct MeetingScript {
    private(set) var steps: [Schedule.Step] = []
    var random: SplitMix64
    var at: Int64
    let device: Int
    let app: Int
    let group: Int
    let place: Place
    let devices: Int
    let apps: Int

    init(_ schedule: Schedule, _ random: SplitMix64, from at: Int64) {
        self.random = random
        self.at = at
        (devices, apps) = (schedule.devices, schedule.apps)
        device = self.random.below(devices)
        app = self.random.below(apps)
        group = self.random.below(Schedule.groups)
        place = [.all, .device(device), Place.group(group)][self.random.below(3)]
    }

    /// Milliseconds pass.
    mutating func pass(_ range: ClosedRange<Int>) { at += random.milliseconds(range) }

    mutating func happen(_ action: Action) { steps.append(Schedule.Step(at, action)) }

    mutating func ask(_ change: Change) { happen(.request(0, change)) }

    mutating func say(_ aspect: Aspect, _ variant: Int, at place: Place? = nil, of other: Int? = nil) {
        guard let aspect = Aspect.allCases.firstIndex(of: aspect) else { return }
        ask(.apply(app: other ?? app, place ?? self.place, aspect: aspect, variant: variant, isBased: false))
    }

    /// Who is in the group: all, or nobody.
    mutating func gather(_ isThere: Bool) {
        ask(.group(group, priority: Int64(random.below(2)), members: isThere ? 1 << devices - 1 : 0))
    }

    mutating func any(_ variants: Int...) -> Int { variants[random.below(variants.count)] }

    mutating func play(_ meeting: Meeting) {
        switch meeting {
        case .limitInBetween: limitInBetween()
        case .backInReady: backInReady()
        case .answerBeforeDeath: answerBeforeDeath()
        case .groupAgain: groupAgain()
        case .groupBehindBackup: groupBehindBackup()
        case .returnsTwice: returnsTwice()
        case .lockedForAWhile: lockedForAWhile()
        case .listThatGoes: listThatGoes()
        case .copiesInVain: copiesInVain()
        case .deathInCallback: deathInCallback()
        case .endUnseen: endUnseen()
        case .removalAtOnce: removalAtOnce()
        case .clockSetBack: clockSetBack()
        case .tombstoneAgain: tombstoneAgain()
        case .basedOnSignature: basedOnSignature()
        case .reportsBehindBackup: reportsBehindBackup()
        case .retirementBehindBackup: retirementBehindBackup()
        case .newInGroups: newInGroups()
        case .lateEnrolment: lateEnrolment()
        case .unheard: unheard()
        case .levelBehindLevel: levelBehindLevel()
        case .retiredWhileLocked: retiredWhileLocked()
        case .answerOfBefore: answerOfBefore()
        case .retiredBeforeSignature: retiredBeforeSignature()
        case .retiredAtDeath: retiredAtDeath()
        case .otherDiskUnheard: otherDiskUnheard()
        case .guessedBeforeDeath: guessedBeforeDeath()
        case .saidInTwoStarts: saidInTwoStarts()
        case .lockUnseen: lockUnseen()
        case .hiddenForLong: hiddenForLong()
        case .hiddenAgain: hiddenAgain()
        case .presencesInReadBack: presencesInReadBack()
        case .wordsOfBefore: wordsOfBefore()
        case .retiredUnseen: retiredUnseen()
        case .imageStartedAgain: imageStartedAgain()
        case .screenTakenAtDeath: screenTakenAtDeath()
        case .signedBehindRetirement: signedBehindRetirement()
        case .codeBehindNewer: codeBehindNewer()
        case .retiredInOneMoment: retiredInOneMoment()
        case .groupLostByBroker: groupLostByBroker()
        }
    }
}
