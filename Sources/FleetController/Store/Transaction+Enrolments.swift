import FleetProtocol
import GRDB

extension FleetStore.Transaction {
    /// Takes over which incarnations the home has given out: also a device that never said a word is one of the fleet. Answers
    /// the devices that claim another, and those that the home does not have (any more): at most 1,000 of each. One that has
    /// come since the home was read is none of them. And as many of those that were removed, and that the home lets in again:
    /// it was put back from before that.
    func learn(
        _ enrolments: [DeviceID: Int64], hasNewcomers: Bool
    ) throws -> (strangers: [DeviceRow], missing: [DeviceRow], letIn: [DeviceID]) {
        var missing: [DeviceRow] = []
        var known: Set<DeviceID> = []
        for row in try rows("SELECT name, enrolled, incarnation FROM devices") {
            guard let name = DeviceID(row[0] as String) else { continue }
            known.insert(name)
            let (before, now) = (row[1] as Int64?, enrolments[name])
            let isStrange = now == nil && row[2] as Int64 > 0 && !hasNewcomers
            guard now != before || isStrange, now != nil || missing.count < 1_000, var device = try device(name) else {
                continue
            }
            device.learn(now)
            try update(device)
            if now == nil, before != nil || isStrange { missing.append(device) }
        }
        var letIn: [DeviceID] = []
        for row in try rows("SELECT name, incarnation FROM removed_devices WHERE NOT is_back") {
            guard let name = DeviceID(row[0] as String), let enrolled = enrolments[name] else { continue }
            // Enrolled again without a word to this store; or it never was, and can connect all the same.
            try readmit(name)
            if enrolled <= row[1] { letIn.append(name) }
        }
        // By name: what a batch of reports writes lies close together in the end, where devices speak in that order.
        for (name, given) in enrolments.filter({ !known.contains($0.key) }).sorted(by: { $0.key < $1.key }) {
            _ = try addDevice(name, incarnation: 0, boot: 0, enrolled: given)
        }
        let strangers = try rows("SELECT name FROM devices WHERE incarnation > enrolled LIMIT 1000")
            .compactMap { try DeviceID($0[0] as String).flatMap { try device($0) } }
        return (strangers, missing, Array(letIn.prefix(1_000)))
    }

    /// Keeps what an operator should look at. Answers whether it is news.
    func warn(_ device: DeviceRow, _ text: String) throws -> Bool {
        guard device.warning != text else { return false }
        var device = device
        device.warning = text
        try update(device)
        return true
    }
}

extension DeviceRow {
    /// Takes over the incarnation that the home has given out, and what is over by that.
    fileprivate mutating func learn(_ given: Int64?) {
        enrolled = given
        guard let given else { return }
        if warning == DeviceWarning.isNotEnrolled(name) { warning = nil }
        if given >= incarnation, warning == DeviceWarning.neverGivenOut(incarnation) { warning = nil }
        // What runs as an earlier one can connect no more, and the broker says no word of it.
        if isReplaced, wasOnline { becomeUnknown() }
    }
}
