import FleetProtocol
import GRDB

extension FleetStore.Transaction {
    /// Takes over which incarnations the home has given out. Answers the devices that claim another, and those that the
    /// home does not have any more, once: at most 1,000 of each.
    func learn(_ enrolments: [DeviceID: Int64]) throws -> (strangers: [DeviceRow], missing: [DeviceRow]) {
        var missing: [DeviceRow] = []
        for row in try rows("SELECT name, enrolled FROM devices") {
            let before = row[1] as Int64?
            guard let name = DeviceID(row[0] as String), enrolments[name] != before, var device = try device(name)
            else {
                continue
            }
            guard enrolments[name] != nil || missing.count < 1_000 else { continue }
            device.enrolled = enrolments[name]
            // What was said of one that the home did not have is over.
            if before == nil { device.warning = nil }
            try update(device)
            if device.enrolled == nil { missing.append(device) }
        }
        // Enrolled again without a word to this store.
        for row in try rows("SELECT name, incarnation FROM removed_devices WHERE NOT is_back") {
            guard let name = DeviceID(row[0] as String), let enrolled = enrolments[name], enrolled > row[1] else {
                continue
            }
            try readmit(name)
        }
        let strangers = try rows("SELECT name FROM devices WHERE incarnation > enrolled LIMIT 1000")
            .compactMap { try DeviceID($0[0] as String).flatMap { try device($0) } }
        return (strangers, missing)
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
