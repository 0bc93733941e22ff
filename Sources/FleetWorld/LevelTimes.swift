import FleetProtocol

/// Which changes decide about the log levels of a device's apps, and since when each of them does. Times are in milliseconds
/// of running time, and of what was lost of that at reboots.
struct LevelTimes {
    private struct Place: Hashable {
        let address: Address
        let change: Revision
    }

    private var deciding: [AppID: Watch.LevelWishes.Key] = [:]
    /// When each change came; nil for one that was there already.
    private var received: [Place: Int64?] = [:]
    private var since: [Watch.LevelWishes.Key: (running: Int64, lost: Int64)] = [:]

    /// - Parameter mayBeginAnew: A change that another one had replaced may have come back by a backup: then its time begins
    ///   anew.
    mutating func begin(_ key: Watch.LevelWishes.Key, at running: Int64, lost: Int64, mayBeginAnew: Bool) {
        let isOther = deciding.updateValue(key, forKey: key.app) != key
        if since[key] == nil || isOther && mayBeginAnew { since[key] = (running, lost) }
    }

    mutating func end(of app: AppID) { deciding[app] = nil }

    /// What stood there is gone, though it may decide for as long as that is not certain.
    mutating func end(at address: Address) { deciding = deciding.filter { $0.value.address != address } }

    /// As far as the device knows.
    func elapsed(_ key: Watch.LevelWishes.Key, at running: Int64, lost: Int64, mayBeginAnew: Bool) -> Int64? {
        if mayBeginAnew, deciding[key.app] != key { return nil }
        return since[key].map { running - $0.running - (lost - $0.lost) }
    }

    /// A change has come, which may decide later.
    mutating func receive(_ change: Revision, at address: Address, running: Int64?) {
        let place = Place(address: address, change: change)
        if received[place] == nil { received[place] = .some(running) }
    }

    /// How long ago a change came, whatever the device has lost since.
    func most(_ key: Watch.LevelWishes.Key, at running: Int64) -> Int64? {
        guard let since = received[Place(address: key.address, change: key.change)] ?? nil else { return nil }
        return running - since
    }
}
