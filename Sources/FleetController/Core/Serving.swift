import FleetProtocol

/// A connection whose broker holds the controller's wish.
struct Serving {
    /// Devices that a hello is still to go to, the newest presence of each.
    var waiting: [DeviceID: Presence] = [:]
    /// Which connection of a device has had its hello.
    var greeted: [DeviceID: RandomID] = [:]
    /// Events stored, and not yet told to the device.
    var unsaid: [Collector.MarkedBoot: Int64] = [:]
    /// Own publishes below desired/ that have not come back yet: until then what comes is older.
    var echoes: [String: Int64] = [:]
    var lastHeartbeat: Timestamp?
    var lastMarks: Timestamp?

    mutating func greet(_ device: DeviceID, _ presence: Presence) {
        guard greeted[device] != presence.connection else { return }
        waiting[device] = presence
    }
}

/// What is due without anything happening.
struct Schedule {
    var lastHousekeeping: Timestamp?
    var lastEnrolments: Timestamp?
    var needsEnrolments = true
    /// What ``ControllerCore/Effect/wake(at:)`` last said.
    var wake: Timestamp?

    /// Whether `seconds` have passed since `last`, or the clock was set back behind it.
    static func isDue(_ last: Timestamp?, every seconds: Int64, at now: Timestamp) -> Bool {
        guard let last else { return true }
        return now < last || last.advanced(bySeconds: seconds) <= now
    }
}

/// The answers to the latest questions, at most 256 of them and 4 MB.
struct AnswerCache {
    struct Key: Hashable {
        let user: User
        let id: RandomID
    }

    private var answers: [Key: [UInt8]] = [:]
    private var order: [Key] = []
    private var size = 0

    subscript(key: Key) -> [UInt8]? { answers[key] }

    mutating func keep(_ answer: [UInt8], for key: Key) {
        guard answers.updateValue(answer, forKey: key) == nil else { return }
        order.append(key)
        size += answer.count
        while order.count > 256 || size > 4 << 20, let oldest = order.first {
            order.removeFirst()
            size -= answers.removeValue(forKey: oldest)?.count ?? 0
        }
    }
}
