import FleetController
import FleetProtocol

/// The laws of who is shown as connected, and as gone.
extension Controller {
    /// Who is shown as connected has spoken, and who has spoken last is shown.
    ///
    /// - Parameter new: Whom the store did not know before: who was taken out has spoken in vain until then.
    func checkPresences(new: Set<DeviceID>) {
        guard watch.isNew, isUp, world.violation == nil else { return }
        let (doubled, changed) = (watch.doubled, watch.changed)
        watch.checked()
        for device in changed.sorted() where watch.gone.contains(device) && isInHome(device) {
            // What was taken out leaves nothing behind, also of its end.
            if let spoken = watch.incarnation(of: device),
                isRemoved(device, spoken) || spoken < homeRead[device] ?? 0
            {
                continue
            }
            guard let known = try? store.device(device), known.since != clock else { continue }
            let since = known.since.map { "\($0)" } ?? "ever"
            world.fail(.presence, "\(device) has left now, and is shown as gone since \(since)")
        }
        for (device, newest) in doubled.sorted(by: { $0.key < $1.key }) where isInHome(device) {
            guard let known = try? store.device(device), known.incarnation == newest.incarnation else { continue }
            if known.warning == nil {
                world.fail(.presence, "\(device) speaks twice, as a copy does, and nobody is warned")
            }
        }
        guard let online = try? store.onlineDevices() else { return }
        for device in online.sorted() where !watch.heard.contains(device) && isInHome(device) {
            world.fail(.presence, "\(device) is shown as connected, and has not been heard on this connection")
        }
        for device in online.sorted() where watch.gone.contains(device) && isInHome(device) {
            world.fail(.presence, "\(device) is shown as connected, and its last word was that it leaves")
        }
        for device in online.sorted() where !unread.contains(device) {
            guard let spoken = watch.incarnation(of: device), let given = homeRead[device], spoken < given else {
                continue
            }
            world.fail(.presence, "\(device) is shown as connected, and speaks as \(spoken), not as \(given)")
        }
        for (device, said) in watch.present.sorted(by: { $0.key < $1.key }) where !online.contains(device) {
            // Enrolled again meanwhile: what runs as an earlier incarnation can connect no more.
            guard let enrolled = enrolments[device], said.incarnation >= enrolled,
                !isRemoved(device, said.incarnation), mayKnow(device),
                !new.contains(device) || desired.removed[device] == nil
            else { continue }
            if world.machines.contains(where: { $0.id == device && $0.removalMayFollowUntil > world.now }) { continue }
            world.fail(.presence, "\(device) is not shown as connected: somebody else's word was taken for its own")
        }
    }

    /// Whether it can know what the home says of a device: that one is back which the store has as taken out, only the home
    /// tells, and that it may not have been able to read.
    func mayKnow(_ device: DeviceID) -> Bool {
        !unread.contains(device) && (homeRead[device] == enrolments[device] || (try? store.device(device)) != nil)
    }

    /// Whether the home has it, and had nothing else of it when the controller looked there.
    private func isInHome(_ device: DeviceID) -> Bool { enrolments[device] != nil && !unread.contains(device) }

    /// What a broker has kept of somebody's end, and shows again, is no end anew.
    private func checkSince(_ known: [DeviceID: Timestamp?], _ messages: [ControllerCore.Message]) {
        let spoken = messages.compactMap { message -> DeviceID? in
            guard !message.isRetained else { return nil }
            return switch Address(topic: message.topic, in: SimulatedFleet.id) {
            case .presence(.device(let device)), .reply(let device, _, _): device
            default: nil
            }
        }
        for (device, since) in known.sorted(by: { $0.key < $1.key }) where !spoken.contains(device) {
            guard let before = goneSince[device], before != since, offline?.contains(device) == true else { continue }
            world.fail(.presence, "\(device) was shown as gone before, and is so since another time, \(since ?? clock)")
        }
        goneSince = known
    }

    /// Who is shown as gone is so since the controller has heard of it.
    func checkGone(_ messages: [ControllerCore.Message]) {
        guard isUp else { return }
        let known = world.machines.compactMap { machine in
            (try? store.device(machine.id)).flatMap { $0.isOffline ? (machine.id, $0.since) : nil }
        }
        for (device, since) in known where offline?.contains(device) == false && since != clock {
            let since = since.map { "\($0)" } ?? "ever"
            world.fail(.presence, "\(device) is shown as gone as of now, and since \(since)")
        }
        checkSince(Dictionary(known) { $1 }, messages)
        offline = Set(known.map(\.0))
    }
}
