import FleetController
import FleetProtocol

/// What the home says of who is enrolled, and when the controller looks there.
extension Controller {
    func hideHome(for time: Int64) {
        world.say(name, "cannot read its home for \(time) ms")
        homeHiddenUntil = world.now + time
    }

    /// What it does meanwhile comes before what it reads.
    func readHome(_ running: Running) {
        // One reading comes behind the other.
        homeBusyUntil = max(homeBusyUntil, world.now + world.delay())
        homeReadings += 1
        let reading = homeReadings
        world.after(homeBusyUntil - world.now) { [unowned self] in
            guard self.running === running else { return }
            // Of that the process tells its core nothing.
            guard world.now >= homeHiddenUntil else { return checkReadAgain(reading, by: running) }
            let known = enrolments.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            world.say(name, "reads in the home \(known.joined(separator: ", "))")
            handle(.enrolments(world.fault == .letInIgnored ? withoutRemoved : enrolments))
        }
    }

    private var withoutRemoved: [DeviceID: Int64] {
        enrolments.filter { (try? store.isRemoved($0.key, $0.value)) != true }
    }

    /// What it has of devices is that of the last backup. Answers of whom it has something else.
    func putBackHome() -> Set<DeviceID> {
        guard let backedUpHome else { return [] }
        let before = enrolments
        (enrolments, givenOut) = backedUpHome
        homePutBackAt = world.now
        let changed = Set(before.keys).union(enrolments.keys).filter { before[$0] != enrolments[$0] }
        unread.formUnion(changed)
        return changed
    }

    /// Whether an incarnation was taken out, as this controller has heard, and is not let in since.
    func isRemoved(_ device: DeviceID, _ incarnation: Int64) -> Bool {
        incarnation <= removedThrough(device) && !(isLetIn(device) && homeRead[device] == incarnation)
    }

    private func removedThrough(_ device: DeviceID) -> Int64 {
        max(removed[device] ?? 0, desired.removed[device] ?? 0)
    }

    /// Not by who was taken out once more since.
    func isLetIn(_ device: DeviceID) -> Bool { letIn[device].map { $0 == desired.removals[device] } ?? false }

    /// The home has told who is enrolled.
    func noteLetIn(_ enrolments: [DeviceID: Int64]) {
        for (device, given) in enrolments {
            if given > removedThrough(device) {
                letIn[device] = nil
            } else if !isLetIn(device) {
                noteLetIn(device)
            }
        }
    }

    /// What it has said until now was a removed device's.
    private func noteLetIn(_ device: DeviceID) {
        letIn[device] = desired.removals[device]
        removed[device] = nil
        orders = orders.filter { $0.key.device != device }
        world.restingMinute?.letIn(device)
        forgetWords(of: device)
    }

    func forgetWords(of device: DeviceID) {
        watch.forget(device)
        questions.forget(device)
    }

    /// The home notes that a device is enrolled.
    func enrol(_ device: DeviceID, as incarnation: Int64) {
        enrolments[device] = incarnation
        givenOut[device] = incarnation
    }

    /// What could not be read is read again soon.
    private func checkReadAgain(_ reading: Int, by running: Running) {
        let time = world.now
        world.after(12_000) { [unowned self] in
            guard self.running === running, homeReadings == reading, isPunctual, !isStalled, wentOnAt < time else {
                return
            }
            world.fail(.ends, "the home could not be read, and is not read again")
        }
    }
}
