import DeviceAgent
import FleetController
import FleetProtocol

/// What must hold once the faults have stopped and everything has come to rest.
extension World {
    func checkAtRest() {
        do {
            let store = controller.store
            guard controller.isUp else { return fail(.restored, "the controller does not run") }
            let wishes = try store.wishes()
            let statuses = try store.statuses(in: SimulatedFleet.id)
            let online = try store.onlineDevices()
            let events = try store.events()
            let gaps = try store.gaps()
            checkPromises(wishes)
            checkOwnPresence()
            checkHeartbeats()
            controller.checkBases()
            controller.checkDesired()
            let position = try store.position()
            if controller.noted != position {
                let noted = controller.noted.map { "\($0)" } ?? "nothing"
                fail(.restored, "the store is at \(position), and the home has noted \(noted)")
            }
            try controller.checkLists(statuses, online)
            try controller.checkMetrics()
            if isForgotten(wishes) { return }
            checkLosses()
            checkRounds()
            checkBroker(wishes)
            broker.checkRefusals()
            broker.checkNames()
            broker.checkReading()
            for person in operators { person.checkQuiet() }
            for machine in machines where machine.isRemovalUnfinished || machine.enrolment != nil {
                fail(.ends, "an operator waits for the controller's word about \(machine.name)")
            }
            for machine in machines where machine.isRemoved { try checkGone(machine, statuses, online) }
            let strays = try store.strays()
            if strays > 0 { fail(.gone, "of devices that were taken out the store has \(strays) reports and events") }
            let asked = Set(controller.questions.waiting(at: now))
            for machine in members {
                if asked.contains(machine.id), controller.isPunctual {
                    fail(.ends, "\(machine.name) is not asked again for what was cleared")
                }
                guard let core = machine.core, machine.isConnected else {
                    return fail(.total, "\(machine.name) is not there")
                }
                if !online.contains(machine.id) { fail(.presence, "\(machine.name) is connected and not shown so") }
                var layers = SaidLayers(wishes, of: machine.id, readBy: machine.older)
                layers.hasRested = !isSettled
                let groups = try store.groups(of: machine.id)
                if groups != layers.groups.sorted() {
                    fail(.summary, "\(machine.name) is shown in \(groups), and is told to be in \(layers.groups)")
                }
                try checkLeftKeys(of: machine)
                try checkCopied(machine)
                for app in machine.apps { check(app, on: machine, core, layers, statuses) }
                for status in statuses where status.device == machine.id {
                    checkRetained(status)
                    if core.state.apps[status.app] == nil {
                        fail(.gone, "\(machine.name) does not know \(status.app), which is shown there")
                    }
                    if status.order.incarnation < machine.enrollment.incarnation {
                        fail(
                            .summary,
                            "\(machine.name)/\(status.app) is shown as incarnation \(status.order.incarnation) had it, and"
                                + " \(machine.enrollment.incarnation) is there")
                    }
                }
                checkEventCount(of: machine, core, statuses)
                checkPresence(of: machine)
                check(try store.device(machine.id), machine, core)
                check(machine, events, gaps)
                checkQuiet(machine, core)
                checkSubscriptions(of: machine, core, layers.groups)
                checkDeleted(wishes, of: machine, core, Set(layers.groups))
                checkFreshness(of: machine, core)
                if let difference = try machine.disk.difference() { fail(.sameStore, "\(machine.name): \(difference)") }
                var state = core.state
                state.documents = core.signedDocuments
                // What the enrolment says is read from there at each start, and counts where the store has less.
                for (address, mark) in state.marks where mark.digest == nil {
                    state.marks[address] = machine.disk.state.marks[address]
                }
                if let difference = machine.disk.difference(from: state) {
                    fail(.stored, "\(machine.name): its agent has other \(difference) than its store")
                }
            }
            try checkSummary(store)
        } catch {
            fail(.total, "\(error)")
        }
    }

    /// The broker shows a device that comes what is wanted, byte for byte, and nothing else.
    private func checkBroker(_ wishes: [FleetStore.Wish]) {
        // One that drops may have dropped what tells of it.
        guard schedule.broker != .lossy else { return }
        var kept = broker.retained.filter { $0.key.hasPrefix(Controller.documents) }.mapValues(\.payload)
        for wish in wishes where kept.removeValue(forKey: wish.address.topic(in: SimulatedFleet.id)) != wish.wire {
            fail(.convergence, "the broker does not hold what is wanted at \(wish.address.path)")
        }
        let trust = fleet.identities[controller.renewals].trustWire
        if kept.removeValue(forKey: Address.trust.topic(in: SimulatedFleet.id)) != trust {
            fail(.convergence, "the broker does not hold the trust document")
        }
        if let topic = kept.keys.min() { fail(.convergence, "the broker holds \(topic), which nobody wants") }
    }

    /// Whoever looks is told of keys that may be on an earlier disk. Which one that was a presence tells: the statuses alone, as a
    /// damaged database may give them back, do not.
    private func checkLeftKeys(of machine: Machine) throws {
        guard let left = machine.leftBehind, left.incarnation == machine.enrollment.incarnation, !controller.wasPutBack,
            !broker.damagedPresences.contains(machine.id)
        else { return }
        let told = try controller.store.leftKeys(of: machine.id)
        guard !left.apps.isSubset(of: told) else { return }
        fail(
            .erased,
            "\(machine.name) has left the keys of \(left.apps.sorted()) on another disk, and told is of \(told)")
    }

    /// By now all that were copied, or put back, are enrolled once more: nobody is told of copies any more.
    private func checkCopied(_ machine: Machine) throws {
        guard schedule.broker != .hostile, try controller.store.device(machine.id)?.isCopied == true else { return }
        fail(.summary, "\(machine.name) is shown as copied, and has been enrolled once more")
    }

    private var members: [Machine] { machines.filter { !$0.isRemoved } }

    /// Where the controller has seen a device last, and what it knows of it from the home.
    private func check(_ known: FleetStore.KnownDevice?, _ machine: Machine, _ core: DeviceCore) {
        guard let known, known.incarnation == core.enrollment.incarnation, known.boot == core.state.boot else {
            return fail(.summary, "\(machine.name) is shown as \(known.map { "\($0)" } ?? "unknown"), and is elsewhere")
        }
        if known.enrolled != controller.enrolments[machine.id] {
            fail(.summary, "\(machine.name) is known as enrolled for \(known.enrolled ?? 0), and is otherwise")
        }
        if known.agent != SimulatedFleet.agent || known.since == nil {
            fail(.summary, "\(machine.name) is shown with \(known)")
        }
        // A copy, or a disk that was put back, is worth one.
        if let warning = known.warning, !machine.wasPutBack, !clones.contains(where: { $0.id == machine.id }),
            !mayBeUnderWay(warning), !areReportsReplayed
        {
            fail(.summary, "\(machine.name) is shown with the warning that it \(warning)")
        }
    }

    /// Whether a device is shown to have other documents than it should, and the newest have not had the time to arrive: it
    /// is asked with the heartbeat after that.
    private func mayBeUnderWay(_ warning: String) -> Bool {
        guard warning.hasPrefix("has other documents"), let wishes = try? controller.store.wishes() else {
            return false
        }
        return wishes.contains { wish in
            guard let document = try? DesiredDocument(wire: wish.wire)
            else { return false }
            return document.issuedAt.advanced(bySeconds: 30 + 60) > controller.clock
        }
    }

    /// Nothing of a device that was taken out is left.
    private func checkGone(_ machine: Machine, _ statuses: [Status], _ online: Set<DeviceID>) throws {
        if online.contains(machine.id) || statuses.contains(where: { $0.device == machine.id }) {
            fail(.gone, "\(machine.name) was taken out of the fleet, and is shown")
        }
        if let known = try controller.store.device(machine.id) {
            fail(.gone, "\(machine.name) was taken out of the fleet, and is known as \(known)")
        }
        // What was dropped on its way to the controller is found when that reads all again, at its next connection.
        guard schedule.broker != .lossy else { return }
        let own = ["presence/\(machine.id)", "reply/\(machine.id)/"].map { Address.prefix(of: SimulatedFleet.id) + $0 }
        for topic in broker.retained.keys.sorted() where own.contains(where: topic.hasPrefix) {
            fail(.gone, "\(machine.name) was taken out of the fleet, and the broker has \(topic)")
        }
    }

    /// A known gap: the broker has forgotten all, the whole folder was put back, and the operators have made as many changes
    /// since, before a device spoke, as were lost. So the controller did not notice that it was put back.
    private func isForgotten(_ wishes: [FleetStore.Wish]) -> Bool {
        guard controller.isFromBackUp, controller.isFolderOld else { return false }
        let known = Dictionary(wishes.map { ($0.address, $0) }) { $1 }
        return members.contains { machine in
            (machine.core?.state.marks ?? [:]).contains { address, mark in
                guard let wish = known[address], wish.revision >= mark.revision else { return true }
                return wish.revision == mark.revision && mark.digest.map { $0 != Digest(of: wish.wire) } ?? false
            }
        }
    }

    /// The fleet is told of this run of the controller, whatever wills of earlier ones came late.
    private func checkOwnPresence() {
        // A will that was dropped on its way back to the controller is found when that connects again.
        guard schedule.broker != .lossy else { return }
        let said = broker.retained[Address.presence(.controller).topic(in: SimulatedFleet.id)]
            .flatMap { try? Presence(json: $0.payload, limit: Presence.maximumSize) }
        if said?.state != .online || said?.connection != controller.connectionName {
            fail(.presence, "the controller runs, and is said to be \(said.map { "\($0)" } ?? "nowhere")")
        }
    }

    /// It is heard every minute.
    private func checkHeartbeats() {
        let silence = now - controller.beatAt
        if silence > 61_000 + controller.beatDelay {
            fail(.limits, "the controller has not been heard for \(silence) ms")
        }
    }

    /// Only a world that was lossy has the time: half a round, after the quarter of an hour and more after which a device
    /// speaks up that nobody has greeted.
    private func checkLosses() {
        if schedule.broker == .lossy, now - controller.lossSaidAt < 300_000 {
            fail(.ends, "after all this time a device is told that something was lost")
        }
    }

    /// Each device that is there is greeted again with every tenth heartbeat, or one more: otherwise nobody compares what it has.
    private func checkRounds() {
        guard schedule.broker == .lossy else { return }
        for machine in members {
            let age = controller.greetedAt[machine.id].map { now - $0 } ?? .max
            if age > 730_000 { fail(.ends, "\(machine.name) was greeted last \(age / 1_000) s ago") }
        }
    }

    private func checkPromises(_ wishes: [FleetStore.Wish]) {
        for (address, revision) in controller.promises.sorted(by: { $0.key.path < $1.key.path }) {
            let stored = wishes.first { $0.address == address }?.revision.number
            // What was deleted: that the value is gone is the model's business.
            if stored == nil, schedule.forgetsTombstones { continue }
            if stored ?? 0 < revision {
                fail(.answered, "\(address.path) is at \(stored ?? 0), and an operator was answered \(revision)")
            }
        }
    }

    /// What a broker keeps of a device is what the store has: the controller's next connection reads it. But for what was
    /// cleared there by a controller that died before it could ask whether that was newer: the store has it.
    private func checkRetained(_ status: Status) {
        guard schedule.broker == .honest else { return }
        let topic = Address.reply(status.device, status.app, .status).topic(in: SimulatedFleet.id)
        if broker.retained[topic] == nil, let run = controller.clearedBy[topic], run < controller.runs { return }
        let kept = broker.retained[topic].flatMap {
            try? Status(wire: $0.payload, fleet: SimulatedFleet.id, device: status.device, app: status.app)
        }
        if kept?.order != status.order {
            let order = kept.map { "\($0.order)" } ?? "nothing"
            fail(.summary, "\(topic) keeps \(order), and the store has \(status.order)")
        }
    }

    /// How many events a device has numbered in this boot the status of the app tells that the last of them is about.
    private func checkEventCount(of machine: Machine, _ core: DeviceCore, _ statuses: [Status]) {
        guard let app = machine.apps.first?.id, let count = core.status(of: app, at: machine.clock)?.events else {
            return
        }
        let told = statuses.filter { $0.device == machine.id && $0.order.boot == core.state.boot }.map(\.events).max()
        if told != count { fail(.summary, "\(machine.name) has numbered \(count) events, and tells of \(told ?? -1)") }
    }

    /// Whoever is there hears a heartbeat each minute, and what was late once is not for ever: another nonce is answered.
    private func checkFreshness(of machine: Machine, _ core: DeviceCore) {
        // One of before nonces that was put back unnoticed, and has signed times of a clock that was ahead, is heard on the next
        // connection.
        guard controller.isPunctual || !controller.wasPutBack || !controller.isOlder else { return }
        let age = core.state.contact.map { core.state.running.total - $0.running }
        guard age.map({ $0 > 62_000 + Greeting.tolerance + controller.beatDelay }) ?? true else { return }
        fail(.limits, "\(machine.name) is there, and its last contact is \(age ?? -1) ms old")
    }

    /// The device's own word at the broker names its apps as they have introduced themselves.
    private func checkPresence(of machine: Machine) {
        let topic = Address.presence(.device(machine.id)).topic(in: SimulatedFleet.id)
        guard let said = broker.retained[topic]?.payload,
            let presence = try? Presence(json: said, limit: Presence.maximumSize), presence.state == .online
        else { return fail(.presence, "\(machine.name) does not say that it is online") }
        // One that is closed may be another version than the agent has seen.
        let closed = Set(machine.apps.filter(\.isClosed).map(\.id))
        let told = Dictionary(presence.apps.map { ($0.id, Set($0.implements + [$0.sdk])) }) { $1 }.filter {
            !closed.contains($0.key)
        }
        let real = Dictionary(machine.apps.map { ($0.id, Set($0.callbacks.map(\.rawValue) + [$0.sdk])) }) { $1 }.filter
        {
            !closed.contains($0.key)
        }
        if told != real { fail(.presence, "\(machine.name) says that it has \(told), and has \(real)") }
    }

    /// A device listens to what is said to its apps by the layers that it is in, and to no other group or app.
    private func checkSubscriptions(of machine: Machine, _ core: DeviceCore, _ groups: [GroupID]) {
        guard let connection = machine.connection else { return }
        let apps = core.state.apps.keys.map(\.text).sorted()
        let layers = ["all", "device/\(machine.id)"] + groups.map { "group/\($0)" }
        var wanted = ["all/_fleet/trust", "device/\(machine.id)/_device/membership"]
        wanted += groups.map { "group/\($0)/_group/meta" }
        wanted += layers.flatMap { layer in apps.map { "\(layer)/\($0)/+" } }
        let expected = Set(wanted.map { Filter(Controller.documents + $0) })
        let has = Set(connection.filters.map(\.filter).filter { $0.isBelow(Controller.documents) })
        if let more = has.subtracting(expected).min(by: { "\($0)" < "\($1)" }) {
            fail(.bounded, "\(machine.name) still listens to \(more)")
        }
        if let less = expected.subtracting(has).min(by: { "\($0)" < "\($1)" }) {
            fail(.convergence, "\(machine.name) does not listen to \(less)")
        }
    }

    /// What was deleted is followed by nothing older, also if a broker should show it later.
    private func checkDeleted(
        _ wishes: [FleetStore.Wish], of machine: Machine, _ core: DeviceCore, _ groups: Set<GroupID>
    ) {
        // A tombstone that is dropped leaves nothing to compare; an older agent may read another one than the controller wrote.
        guard machine.older == nil, schedule.broker != .lossy else { return }
        for wish in wishes where wish.value == nil {
            guard case .desired(let layer, let app, _) = wish.address, core.state.apps.contains(app) else { continue }
            let isRead =
                switch layer {
                case .all: true
                case .group(let group): groups.contains(group)
                case .device(let device): device == machine.id
                }
            if isRead, core.state.marks[wish.address]?.revision ?? .zero < wish.revision {
                fail(.forward, "\(machine.name) would take back what was deleted at \(wish.address.path)")
            }
        }
    }

    /// Nothing is left to be done, and nobody waits.
    private func checkQuiet(_ machine: Machine, _ core: DeviceCore) {
        if let event = (core.state.events + machine.disk.state.events).first {
            fail(
                .bounded,
                "\(machine.name) still keeps event \(event.header.number) of boot \(event.header.boot)")
        }
        let trust = fleet.identities[controller.renewals].trust.version
        if core.trust.version != trust {
            fail(.convergence, "\(machine.name) has the trust document \(core.trust.version), not \(trust)")
        }
        for address in core.signedDocuments.keys.sorted(by: { $0.path < $1.path }) {
            switch address {
            case .desired(.group(let group), _, _) where !core.state.groups.contains(group),
                .groupMeta(let group) where !core.state.groups.contains(group):
                fail(.bounded, "\(machine.name) still keeps \(address.path)")
            default: break
            }
        }
        if !machine.intruders.isEmpty { fail(.ends, "\(machine.name): a second process of an app is still connected") }
        if !machine.codeLinks.isEmpty { fail(.ends, "\(machine.name): somebody waits whether a code is right") }
        if !machine.person.asked.isEmpty { fail(.ends, "\(machine.name): somebody waits whether a passcode is right") }
        for app in machine.apps where !app.displays.isEmpty {
            fail(.ends, "\(app.name) waits whether its text was shown")
        }
        for app in machine.apps where !app.copying.isEmpty {
            fail(.ends, "\(app.name) waits for what comes of copying or pasting")
        }
    }
}
