/// A few things that happen one after the other, each harmless alone. What goes wrong where all of them meet hardly ever does by
/// chance: the moment counts, and chance decides about no more than that.
enum Meeting: CaseIterable {
    /// A limit retires an app that is closed meanwhile, or that waits for the rest of what is said; or the device starts again
    /// and again.
    case limitInBetween
    /// What was taken from an app that is closed comes back while it is told that it is ready.
    case backInReady
    /// An app answers, is told something newer, and its agent dies.
    case answerBeforeDeath
    /// A group is left and come to again, and what it says may be another by then.
    case groupAgain
    /// A group's documents are younger than the backup, and than what the broker has.
    case groupBehindBackup
    /// Retired and authorized twice, in one callback.
    case returnsTwice
    /// An app that asks for the passcode is locked for a while.
    case lockedForAWhile
    /// Apps lose their authorization, and the list that names them goes.
    case listThatGoes
    /// The agent goes again and again while people copy and paste.
    case copiesInVain
    /// An app dies of what it is told, and that is taken back.
    case deathInCallback
    /// A connection ends while nobody looks.
    case endUnseen
    /// A device is taken out just behind a retirement, perhaps with a copy.
    case removalAtOnce
    /// Something is asked for by a clock that is set back then.
    case clockSetBack
    /// A tombstone is signed again, twice.
    case tombstoneAgain
    /// A change is based on what was only signed anew.
    case basedOnSignature
    /// A backup is put back, and nothing was asked for since.
    case reportsBehindBackup
    /// A retirement is younger than the backup.
    case retirementBehindBackup
    /// A device is new, and its groups change.
    case newInGroups
    /// Somebody enrolls a device, and is heard late: somebody else takes it out meanwhile, or the controller starts.
    case lateEnrolment
    /// What devices say in a burst nobody fetches.
    case unheard
    /// A level that needs a code comes behind one that lasts for a while.
    case levelBehindLevel
    /// Apps retire themselves when they may be locked by wrong passcodes.
    case retiredWhileLocked
    /// Nobody looks when apps are due to lock.
    case lockUnseen
    /// Documents are hidden from a device for longer than nobody is warned.
    case hiddenForLong
    /// What was hidden is shown, and hidden again long after.
    case hiddenAgain
    /// A device comes twice while the controller reads back.
    case presencesInReadBack
    /// A device that was away has something of an epoch before the controller's, and more is said at once.
    case wordsOfBefore
    /// The broker has forgotten who is in a group.
    case groupLostByBroker
    /// Wrong passcodes are to have an app wiped, and the agent dies.
    case guessedBeforeDeath
    /// What was said in several starts of an agent is heard at once, and it dies again.
    case saidInTwoStarts
    /// An app has answered, is told something newer, has still to answer that, and its agent dies.
    case answerOfBefore
    /// Apps retire themselves, and all is signed anew.
    case retiredBeforeSignature
    /// An app retires itself behind something else that it says, and dies with its agent.
    case retiredAtDeath
    /// A device comes back on another disk while the controller is away, and is heard in any order.
    case otherDiskUnheard
    /// An app is retired and authorized again while it is closed, and its agent dies before it comes.
    case retiredUnseen
    /// Of one image of a disk, on a machine whose clock begins anew, there are several starts.
    case imageStartedAgain
    /// The agent dies, or a link breaks, while a text of an app is on the screen.
    case screenTakenAtDeath
    /// A device has carried out a retirement, and is away when that is signed anew.
    case signedBehindRetirement
    /// While a code is compared, another level comes, with a code of its own.
    case codeBehindNewer
    /// An app retires itself and is authorized in one moment of its agent.
    case retiredInOneMoment

    /// Those of most of these worlds' policies; nil for what needs none of its own.
    private var themes: [Schedule.Theme] {
        switch self {
        case .limitInBetween: [.away]
        case .backInReady: [.retiring, .passcodes]
        case .answerBeforeDeath, .deathInCallback, .answerOfBefore: [.retiring, .layers]
        case .retiredBeforeSignature: [.trust, .retiring, .restore]
        case .signedBehindRetirement: [.trust, .retiring]
        case .retiredAtDeath, .retiredUnseen, .retiredInOneMoment: [.retiring]
        case .imageStartedAgain: [.clones]
        case .otherDiskUnheard: [.disks, .members, .registry, .clones]
        case .groupAgain: [.layers, .levels, .members]
        case .groupBehindBackup, .retirementBehindBackup, .reportsBehindBackup, .wordsOfBefore: [.restore, .registry]
        case .returnsTwice: [.retiring, .layers]
        case .lockedForAWhile: [.passcodes]
        case .listThatGoes: [.pasteboards, .layers]
        case .copiesInVain: [.pasteboards]
        case .endUnseen, .screenTakenAtDeath: [.losses, .disks]
        case .removalAtOnce: [.members, .clones, .registry]
        case .clockSetBack: [.away, .restore]
        case .tombstoneAgain, .basedOnSignature: [.trust]
        case .newInGroups: [.members, .clones]
        case .lateEnrolment: [.members, .registry]
        case .unheard, .hiddenForLong, .hiddenAgain: [.losses]
        case .saidInTwoStarts: [.losses, .disks, .retiring]
        case .levelBehindLevel, .codeBehindNewer: [.levels]
        case .retiredWhileLocked, .lockUnseen, .guessedBeforeDeath: [.passcodes]
        case .presencesInReadBack: [.losses, .members]
        case .groupLostByBroker: [.members, .restore, .layers]
        }
    }

    /// A broker that shows less than it has is one that drops.
    private var needsLoss: Bool { self == .hiddenForLong || self == .hiddenAgain }

    static func fitting(_ theme: Schedule.Theme?, _ broker: Schedule.Manners) -> [Self] {
        allCases.filter { meeting in
            (theme.map(meeting.themes.contains) ?? true) && (broker == .lossy || !meeting.needsLoss)
        }
    }
}
