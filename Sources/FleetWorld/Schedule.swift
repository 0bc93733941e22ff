/// One run of a world: how large it is, how rough, and what happens when. The same schedule gives the same run.
package struct Schedule: Hashable, Sendable {
    package struct Step: Hashable, Sendable {
        /// Milliseconds since the beginning.
        package var at: Int64
        package var action: Action

        package init(_ at: Int64, _ action: Action) {
            self.at = at
            self.action = action
        }

        /// The controller's clock is set by more than what tombstones live.
        fileprivate var outlivesTombstones: Bool {
            if case .setControllerClock(let seconds) = action { abs(seconds) > 91 * 86_400 } else { false }
        }
    }

    /// Decides everything that the steps leave open: delays, answers of apps, random names.
    package var seed: UInt64
    package var devices: Int
    package var apps: Int
    package var broker: Manners
    package var steps: [Step]

    package enum Manners: String, Hashable, Sendable {
        /// As Mosquitto with this project's settings.
        case honest
        /// Drops what a slow reader does not fetch, silently: Mosquitto with its default queue.
        case lossy
        /// Forges, replays, moves and withholds.
        case hostile
    }

    var lastsDays: Bool { steps.contains { $0.at > 86_400_000 } }
    /// Tombstones live for half a day, or a clock that was set goes beyond their 91 days.
    var forgetsTombstones: Bool { lastsDays && (seed % 2 == 0 || steps.contains(where: \.outlivesTombstones)) }
    var hidesHome: Bool { steps.contains { if case .hideHome = $0.action { true } else { false } } }

    package init(seed: UInt64, devices: Int, apps: Int, broker: Manners = .honest, steps: [Step]) {
        self.seed = seed
        self.devices = devices
        self.apps = apps
        self.broker = broker
        self.steps = steps
    }
}

/// What happens to the world at one step. Devices, apps, groups and operators are numbered.
package enum Action: Hashable, Sendable {
    case request(Int, Change)
    /// The agent's process dies before its effect of that number, counted from now.
    case crashAgent(Int, effects: Int)
    case reboot(Int)
    /// The disk is full: the agent's next transaction fails, and all for so many milliseconds.
    case fillDisk(Int, Int64 = 0)
    /// Somebody sets the device's wall clock, by seconds.
    case setClock(Int, Int64)
    /// It stands still, for milliseconds.
    case stopClock(Int, Int64)
    /// The agent's process stands still for milliseconds, or the whole device sleeps.
    case stall(Int, Int64, isAsleep: Bool)
    case stallController(Int64)
    /// An image of the device's disk is taken, and later put back.
    case image(Int)
    case putBack(Int)
    case crashApp(Int, Int)
    case reinstallApp(Int, Int)
    /// Somebody closes it, and opens it again after so many milliseconds.
    case closeApp(Int, Int, Int64)
    case answer(Int, Int)
    case attempt(Int, Int)
    case retire(Int, Int)
    /// Connections break; the broker may notice late.
    case cutDevice(Int, noticedAfter: Int64)
    case cutController(noticedAfter: Int64)
    case cutOperator(Int)
    case crashBroker(downFor: Int64)
    case stopBroker(downFor: Int64)
    /// The broker comes back with the database of so many savings ago, or with none.
    case ageBroker(by: Int, downFor: Int64)
    case saveBroker
    /// It stands still, for milliseconds.
    case stallBroker(Int64)
    /// The broker refuses what a device says, or the controller, for milliseconds.
    case refuseSaid(Int?, Int64)
    /// It shows a device, or the controller, nothing any more, or no documents, for milliseconds.
    case hide(Int?, Int64, isAll: Bool)
    /// The broker cannot read its passwords, for milliseconds: nobody has an account with it.
    case lockOut(Int64)
    case crashController(effects: Int, downFor: Int64)
    /// The controller's disk is full for a moment, after so many transactions.
    case fillControllerDisk(after: Int)
    case backUpController
    /// Its database is put back, or its whole folder, with what is noted there about the database.
    case putBackController(withFolder: Bool)
    case setControllerClock(Int64)
    /// Its home cannot be read, for milliseconds.
    case hideHome(Int64)
    /// What the home has of devices, and the broker of their passwords, is put back as it was at the last backup.
    case putBackHome
    /// Somebody starts a controller on a copy of the home, which comes three times, every so many milliseconds.
    case copyHome(every: Int64)
    case forge(Int, Forgery)
    /// The agent is asked to end, and starts again.
    case stopAgent(Int)
    /// The device has no network, for milliseconds.
    case unplug(Int, Int64)
    /// Nothing comes through on a connection, for milliseconds or ever, and nobody knows.
    case freeze(Int, Int64, isDead: Bool)
    case freezeController(Int64, isDead: Bool)
    /// Some process wants to be an app that it may not be.
    case refuse(Int, Int)
    /// Another process calls itself an app that is there already, and acts in its name.
    case intrude(Int, Int)
    /// An app shows something to the person at the device.
    case display(Int, Int)
    /// People copy and paste at a device, for milliseconds.
    case copy(Int, Int64)
    /// A person types a debug code for an app.
    case enterCode(Int, Int, isRight: Bool)
    /// Somebody who does not know the passcode tries again and again, for milliseconds.
    case guess(Int, Int64)
    /// An operator asks one of the reading verbs.
    case question(Int, Int)
    /// A device is taken out of the fleet: it can connect no more.
    case remove(Int)
    /// A device is enrolled again: what runs with its old password can connect no more.
    case enroll(Int, isNew: Bool)
    /// A second machine runs a copy of a device's disk, beside it.
    case clone(Int)
    /// The fleet's root key signs a newer set of keys, and the controller starts with it.
    case renewTrust
    case pause
}

/// What an operator asks for.
package enum Change: Hashable, Sendable {
    case apply(app: Int, Place, aspect: Int, variant: Int, isBased: Bool)
    case delete(app: Int, Place)
    /// What several layers say of an aspect, or that they say nothing any more.
    case layers(app: Int, aspect: Int, isDeleted: Bool)
    case group(Int, priority: Int64, members: Int)
    case deleteGroup(Int)
}

package enum Place: Hashable, Sendable {
    case all
    case group(Int)
    case device(Int)
}

/// What a hostile broker does to a device.
package enum Forgery: String, CaseIterable, Hashable, Sendable {
    /// Signed by a key that nobody trusts.
    case foreignKey
    /// Of another fleet.
    case otherFleet
    /// A true document at another's topic.
    case moved
    /// A true document of earlier.
    case replayed
    /// A true document with another content.
    case altered
    /// Another document of the revision that the device has, by somebody who has the controller's key.
    case sameRevision
    /// A hello or heartbeat of earlier, or another device's.
    case oldHello
    /// One of an epoch that never was, with everything right but one thing.
    case forgedHello, forgedHeartbeat
    /// A later trust document, which names a stranger's key, and is signed with one that is trusted for all else.
    case forgedTrust
    /// Documents, or what tells that nothing is missing, stop coming for a while.
    case withheld
    /// The controller or an operator is shown again what a device, an operator or the controller said earlier; presences are
    /// not, which have no number: who is there, a broker decides.
    case replayedReport, replayedRequest, replayedResponse
    /// In the place of a document the broker holds one of earlier, nonsense, or nothing, and shows it to everybody.
    case overwritten
    /// There, or where nothing is wanted, it holds one that a stranger has signed.
    case supplanted
    /// What a device has left at the broker is gone.
    case emptied
    /// What the controller says of itself comes, and late.
    case late

    private static let drawn = allCases + [.replayed, .replayed]

    static func any(_ random: inout SplitMix64) -> Self { drawn[random.below(drawn.count)] }
}
