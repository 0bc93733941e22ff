import FleetProtocol
import GRDB

extension FleetStore.Transaction {
    /// Takes over which incarnations the home has given out; answers the devices that claim another.
    func learn(_ enrolments: [DeviceID: Int64]) throws -> [DeviceRow] {
        for row in try rows("SELECT name, enrolled FROM devices") {
            guard let name = DeviceID(row[0] as String), let enrolled = enrolments[name],
                row[1] as Int64? != enrolled, var device = try device(name)
            else { continue }
            device.enrolled = enrolled
            try update(device)
        }
        // Enrolled again without a word to this store.
        for row in try rows("SELECT name, incarnation FROM removed_devices WHERE NOT is_back") {
            guard let name = DeviceID(row[0] as String), let enrolled = enrolments[name], enrolled > row[1] else {
                continue
            }
            try readmit(name)
        }
        return try rows("SELECT name FROM devices WHERE incarnation > enrolled LIMIT 1000")
            .compactMap { try DeviceID($0[0] as String).flatMap { try device($0) } }
    }
}
