import FleetController
import FleetProtocol

/// What the core has decided is done, and held against the laws on its way.
extension Controller {
    private static func isOfFullDisk(_ text: String) -> Bool { text.contains("disk is full") }

    func perform(_ effects: [ControllerCore.Effect], _ running: Running, _ wasFull: Bool) {
        let before = noted
        let isChanging = effects.contains { effect in
            if case .publish(let topic, _, _) = effect { topic.hasPrefix(Self.documents) } else { false }
        }
        if let end = repair(in: effects) {
            for case .publish(let topic, let payload, true) in effects[..<end]
            where topic.hasPrefix(Self.documents) && !payload.isEmpty {
                repair.published(topic, payload)
            }
        }
        // A full disk of the world takes no transaction at all, also none that only reads.
        if isChanging, !wasFull { checkNoted(before: effects) }
        for effect in effects {
            if let left = effectsLeft {
                guard left > 0 else { return crash() }
                effectsLeft = left - 1
            }
            switch effect {
            case .note(let position): noted = position
            case .subscribe(let filters):
                guard let connection else { continue }
                world.broker.subscribe(filters.map { $0.text(in: SimulatedFleet.id) }, token: 0, on: connection)
            case .publish(let topic, let payload, let retain): publish(topic, payload, retain: retain, from: before)
            case .reconnect:
                world.say(name, "leaves the connection for another one")
                cut(noticedAfter: 0)
            case .readEnrolments:
                if world.fault == .enrolmentsNotRead { continue }
                readHome(running)
            case .wake(let time):
                // One alarm, as the process has: the newest, and once a minute however the clock is set meanwhile.
                if world.fault == .wakesNotRepeated, time == alarm.time { continue }
                alarm = (alarm.number + 1, time)
                isAlarmSet = true
                let number = alarm.number
                world.after(min(time.milliseconds - clock.milliseconds, 60_000)) { [unowned self] in
                    guard self.running === running, alarm.number == number else { return }
                    isAlarmSet = false
                    handle(.tick)
                }
            case .log(let line): note(line, wasFull)
            case .stop(let reason):
                world.say(name, "stops: \(reason)")
                if wasFull, Self.isOfFullDisk(reason) {
                    downFor = 500
                    return crash()
                }
                if isThrownOff, reason.hasPrefix("another controller of this fleet") {
                    downFor = 500
                    return crash()
                }
                // Put back twice from one backup, it may find only later what it said the first time.
                guard isFromBackUp || putBacks > 1 else { return world.fail(.restored, reason) }
                downFor = 500
                return crash(thenStart: true)
            }
        }
    }

    /// - Parameter position: What it had noted before the moment in which this was decided.
    private func publish(_ topic: String, _ payload: [UInt8], retain: Bool, from position: StorePosition?) {
        var payload = payload
        checkSigned(topic, payload, from: position)
        guard let connection else { return }
        if isOlder { payload = resaid(payload, topic) { _ in nil } }
        if payload.isEmpty {
            clearedBy[topic] = runs
            if case .reply(let device, _, _)? = Address(topic: topic, in: SimulatedFleet.id) {
                clearedAt[device] = world.now
            }
        }
        if topic.hasPrefix(Self.documents) { documentsSaid[topic, default: []].insert(payload) }
        if topic == Self.heartbeats { (beatAt, beatDelay) = (world.now, 0) }
        checkMarks(topic)
        repair.replaced(topic, payload)
        if let missing = repair.missing(in: world.broker.retained),
            case .hello(let device)? = Address(topic: topic, in: SimulatedFleet.id)
        {
            world.fail(.barrier, "\(device) is told that all is there, and the broker does not have \(missing)")
        }
        let isLossTold = Self.tellsOfLoss(topic, payload) && !(world.isSettled && mayTellOfLoss(topic))
        if world.isSettled, isLossTold {
            world.fail(.ends, "nothing was lost, and \(topic) tells that something was")
        }
        if world.schedule.broker == .lossy {
            if isLossTold { lossSaidAt = world.now }
            if case .hello(let device)? = Address(topic: topic, in: SimulatedFleet.id) {
                greetedAt[device] = world.now
            }
        }
        world.say(name, "publishes \(topic)\(payload.isEmpty ? ", empty" : "")")
        // To verify each takes a tenth of a world's time: in most worlds what the controller's own key has just
        // signed is taken as signed.
        if world.schedule.seed % 8 != 0 { world.fleet.vouch(for: payload, at: topic, stage: renewals) }
        world.broker.send(topic, payload, retain: retain, on: connection)
    }

    /// A device that speaks while a newer trust document is on its way to it may be told that it lacks that; and one of which
    /// something is cleared that an earlier disk has said, and the controller has never heard of, is asked for it.
    private func mayTellOfLoss(_ topic: String) -> Bool {
        if trustRenewedAt > world.now - 5_000 { return true }
        guard case .hello(let device)? = Address(topic: topic, in: SimulatedFleet.id) else { return false }
        return clearedAt[device].map { $0 > world.now - 5_000 } ?? false
    }

    private func note(_ line: ControllerCore.LogLine, _ wasFull: Bool) {
        if line.message.hasPrefix("began a new epoch") {
            if !isRestoring { world.fail(.restored, "it began a new epoch, and nobody had restored it") }
            let epoch = (try? store.latest().epoch) ?? 0
            if epoch <= epochBefore { world.fail(.restored, "its new epoch is \(epoch), after \(epochBefore)") }
            if !epochs.insert(epoch).inserted, isPunctual {
                world.fail(.restored, "it has begun epoch \(epoch) twice")
            }
            isRestoring = false
            (isFromBackUp, isFolderOld) = (false, false)
        }
        if line.message.hasPrefix("put back a document"), world.schedule.broker != .hostile {
            let topic = line.details["topic"] ?? ""
            world.fail(.summary, "it says that \(topic) was replaced, and nobody has done so")
        }
        if line.details["what"]?.hasPrefix("has other documents") == true {
            world.visit("controller", "warns of other documents", phase.rawValue)
        }
        if line.message == "repaired" { (phase, servingSince) = (.serving, world.now) }
        if line.level == .error, !(wasFull && Self.isOfFullDisk("\(line.details)")) {
            world.fail(.total, "the controller logs: \(line.message) \(line.details)")
        }
        world.say(
            name,
            "logs: \(line.message) \(line.details.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " "))"
        )
    }
}
