import FleetProtocol
import FleetWorld

/// Devices that are enrolled again, or taken out of the fleet and enrolled again later.
extension Chaos {
    /// What fleetctl is doing about a device.
    enum Admission {
        /// To be enrolled again after so many milliseconds; with its place among the removals.
        case removing(ChaosQuestion, Int, for: Int64)
        /// Until it is enrolled.
        case waiting(until: Int64)
        case enrolling(ChaosQuestion)
    }

    func enroll(_ device: Int) throws {
        guard admissions[device] == nil else { return }
        admissions[device] = .enrolling(try askToEnroll(device))
    }

    func remove(_ device: Int, for time: Int64) throws {
        guard admissions[device] == nil else { return }
        removals.append(ChaosRemoval(number: removals.count + 1, device: fleet.devices[device - 1]))
        let last = removals.count - 1
        admissions[device] = .removing(try ask(removals[last]), last, for: time)
    }

    private func askToEnroll(_ device: Int) throws -> ChaosQuestion {
        let id = fleet.devices[device - 1]
        return try ChaosQuestion(
            ["enroll", "device", id.text, "--out", fleet.path(of: id)], named: "enroll-\(id)", fleet: fleet, at: now)
    }

    private func ask(_ removal: ChaosRemoval) throws -> ChaosQuestion {
        try ChaosQuestion(
            ["device", "remove", removal.device.text, "--leaving-keys", "--why", removal.why],
            named: "remove-\(removal.device)", fleet: fleet, at: now)
    }

    /// Repeats what had no answer, as a person does.
    func admit() throws {
        for (device, admission) in admissions.sorted(by: { $0.key < $1.key }) {
            let name = "d\(device)"
            switch admission {
            case .removing(let question, let removal, let time):
                switch finish(question) {
                case nil: break
                case .accepted:
                    removals[removal].isDone = true
                    story.tell("\(name) is taken out of the fleet for \(time) ms", of: name, at: now)
                    admissions[device] = .waiting(until: now + time)
                case .refused(let reason):
                    fail(ChaosFinding(.answered, "\(name) could not be removed: \(reason)", device: name))
                    admissions[device] = nil
                case .unknown: admissions[device] = .removing(try ask(removals[removal]), removal, for: time)
                }
            case .waiting(let time):
                if now >= time { admissions[device] = .enrolling(try askToEnroll(device)) }
            case .enrolling(let question):
                switch finish(question) {
                case nil: break
                case .accepted:
                    story.tell("\(name) is enrolled again, and its agent starts anew", of: name, at: now)
                    try fleet.readdress(device)
                    fleet.part(.agent(device))?.end(down: 0, at: now)
                    admissions[device] = nil
                case .refused(let reason):
                    fail(ChaosFinding(.answered, "\(name) could not be enrolled: \(reason)", device: name))
                    admissions[device] = nil
                case .unknown: admissions[device] = .waiting(until: now + 1_000)
                }
            }
        }
    }
}

/// A device that is taken out of the fleet.
struct ChaosRemoval {
    let number: Int
    let device: DeviceID
    var isDone = false

    /// What the history is told as the reason, also by who repeats it.
    var why: String { "removal-\(number)" }

    func isTold(in entry: JSONValue) -> Bool {
        entry["why"]?.stringValue == why && entry["aspect"] == "removal"
            && entry["target"]?.stringValue == "\(Layer.device(device))"
    }
}
