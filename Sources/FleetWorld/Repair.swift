import FleetController

/// What a controller has published to mend what the broker was found to hold: before the broker has it nobody may be told that
/// all is there.
struct Repair {
    /// By their topics: what is to come back, and what the broker has yet to take.
    private var awaited: [String: [UInt8]] = [:]
    private var untaken: [String: [UInt8]] = [:]
    /// What a hostile broker has shown in this moment: it may say that it has what it has not taken.
    private var claimed: [String: Set<[UInt8]>] = [:]

    mutating func published(_ topic: String, _ payload: [UInt8]) {
        awaited[topic] = payload
        if claimed[topic]?.contains(payload) != true { untaken[topic] = payload }
    }

    /// Whatever is published there later is to come back in its place.
    mutating func replaced(_ topic: String, _ payload: [UInt8]) {
        if awaited[topic] != nil { awaited[topic] = payload }
    }

    mutating func isTaken(_ topic: String) { untaken[topic] = nil }

    /// What has come in this moment. Where something else is published at once, `replaced`, that is still to come.
    mutating func cameBack(
        _ messages: [ControllerCore.Message], replaced: Set<String>, fromHostile isHostile: Bool
    ) {
        claimed = [:]
        for message in messages {
            let (topic, payload) = (message.topic, message.payload)
            if isHostile {
                claimed[topic, default: []].insert(payload)
                if awaited[topic] == payload { untaken[topic] = nil }
            }
            if awaited[topic] == payload, !replaced.contains(topic) { awaited[topic] = nil }
        }
    }

    /// Something that the broker has not taken, and does not have for another reason.
    func missing(in retained: [String: Broker.Retained]) -> String? {
        untaken.filter { retained[$0.key]?.payload != $0.value }.keys.min()
    }

    /// Something has not come back.
    var isUnderWay: Bool { !awaited.isEmpty }
}
