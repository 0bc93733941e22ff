import FleetProtocol
import GRDB

/// Keys of which nobody can say any more whether they are gone.
extension FleetStore.Transaction {
    /// As `left_keys.disk`: whether they are on another disk at all, the next presence tells.
    private static let undecided: Int64 = 0
    /// As `left_keys.disk`: nobody knows on which they are.
    private static let unknown: Int64 = -1

    /// Where keys of an app were left.
    struct LeftKeys {
        let device: DeviceID
        let place: Place

        enum Place: Hashable {
            /// The device is there, and they may be on an earlier disk of it.
            case earlierDisk
            /// The device is there, and they may be on a copy of its disk.
            case copy
            /// The device was removed, and then had these groups; `latest` was the newest change.
            case removed(groups: Set<GroupID>, latest: Revision)
        }

        /// And not of one that was removed, whose name another one may have now.
        var isOfPresentDevice: Bool { if case .removed = place { false } else { true } }
    }

    /// Notes the keys that a device had on an earlier disk, as far as `presence` is of another one: all of them where that is
    /// told, or it is the first start there, and of a later incarnation at least those of apps that are not there any more.
    /// Answers what was not known before.
    ///
    /// What was known of an earlier incarnation is over: whoever enrolled the device once more has looked at it. But for one
    /// that was removed, and now is another machine; and but for what it has destroyed: until the app has said so on this one,
    /// it may have been a copy that did.
    func noteLeftKeys(
        by presence: Presence, _ device: inout DeviceRow, in fleet: FleetID, at time: Timestamp
    ) throws -> [AppID] {
        guard presence.incarnation >= device.incarnation else { return [] }
        let known = device.disk
        let isNew = device.judged == 0
        // What says so once more speaks of the same start.
        let isFirst = presence.previousBoot == 0 && presence.incarnation > 1 && presence.boot > device.judged
        // The first start on a disk that has no name is on one that nobody knows.
        device.disk = presence.disk ?? (isFirst ? nil : known)
        device.judged = max(device.judged, presence.boot)
        let named = Set(presence.apps.map(\.id))
        try noteImage(in: presence, of: device.name)
        try withdrawLeftKeys(on: device, present: named)
        let isOther = if let known, let disk = presence.disk { disk != known } else { false }
        guard isOther || presence.incarnation > 1 else { return [] }
        try run(
            "DELETE FROM left_keys WHERE device = ? AND incarnation < ? AND removed_groups IS NULL",
            [device.name.text, presence.incarnation])
        if isNew, let disk = presence.disk {
            for app in try destroyedApps(of: device, in: fleet) where named.contains(app) {
                _ = try leave(app, device.name, presence.incarnation, disk: disk, groups: nil, at: time)
            }
        }
        let present = isOther || isFirst ? [] : named
        let undecided = try decide(device.name, presence.incarnation, staying: present)
        let before = isOther ? Int64.max : presence.incarnation
        guard try !apps(of: device, before: before).isEmpty else { return undecided }
        return try undecided
            + appsWithKeys(on: device, in: fleet, before: before)
            .filter { !present.contains($0) }
            .filter { try leave($0, device.name, presence.incarnation, disk: known, groups: nil, at: time) }
    }

    /// A disk that goes on from before a start that was heard of a removed device is an image of the one that this had: what is
    /// reported there says nothing of that one.
    private func noteImage(in presence: Presence, of device: DeviceID) throws {
        guard let disk = presence.disk, let previous = presence.previousBoot, try mayHaveLeftKeys(device) else {
            return
        }
        try run(
            """
            UPDATE OR REPLACE left_keys SET disk = ?
            WHERE device = ? AND disk = ? AND removed_groups IS NOT NULL AND boot > ? AND boot <> ?
            """, [Self.unknown, device.text, disk, previous, presence.boot])
    }

    /// Whether keys of apps whose statuses came first are elsewhere, is known with the presence. Answers of which they are.
    private func decide(_ device: DeviceID, _ incarnation: Int64, staying: Set<AppID>) throws -> [AppID] {
        let key: StatementArguments = [device.text, incarnation, Self.undecided]
        let apps = try rows("SELECT app FROM left_keys WHERE device = ? AND incarnation = ? AND disk = ?", key)
            .compactMap { AppID($0[0] as String) }
        for app in apps where staying.contains(app) {
            try run(
                "DELETE FROM left_keys WHERE device = ? AND incarnation = ? AND disk = ? AND app = ?", key + [app.text])
        }
        try run(
            "UPDATE OR REPLACE left_keys SET disk = ? WHERE device = ? AND incarnation = ? AND disk = ?",
            [Self.unknown] + key)
        return apps.filter { !staying.contains($0) }
    }

    /// Notes the keys that an app had by its last status, where one of a later start takes its place before the presence that
    /// tells of the disk: if it is the same one, they are there. That disks are swapped within an incarnation shows by their
    /// names alone.
    func noteLeftKeys(by status: Status, _ device: DeviceRow, at time: Timestamp) throws {
        let order = status.order
        guard order.incarnation == device.incarnation, order.boot > device.judged,
            let app = try appID(status.app, adding: false),
            let last = try row(
                """
                SELECT incarnation, boot, key FROM device_apps JOIN shapes ON shapes.id = shape
                WHERE device_apps.id = ?
                """, [device.row(of: app)])
        else { return }
        let (incarnation, boot): (Int64, Int64) = (last[0], last[1])
        // Of the same incarnation, what has keys still is found with the presence.
        let isLost = incarnation < order.incarnation || device.disk != nil && status.keys != .present
        guard isLost, (incarnation, boot) < (order.incarnation, order.boot),
            Shape(key: [UInt8](blob: last[2]), app: status.app)?.keys == .present
        else { return }
        let disk = device.disk ?? Self.undecided
        _ = try leave(status.app, device.name, order.incarnation, disk: disk, groups: nil, at: time)
    }

    /// What was left on the disk that is there is counted again: by the app's first status of this start, and not before.
    func withdrawLeftKeys(by status: Status, of device: DeviceRow) throws {
        guard let disk = device.disk, isOfPresentStart(status.order, device), try mayHaveLeftKeys(device.name) else {
            return
        }
        try withdraw(status.app, device, disk, keys: status.keys)
    }

    /// One that was removed and is let in again is in none of the groups that it had, whose retirements it is not told of: what it
    /// had then is in doubt until it is gone.
    private func withdraw(_ app: AppID, _ device: DeviceRow, _ disk: Int64, keys: Status.Keys?) throws {
        let isKept = try keys != .destroyed && isLetInAgain(device)
        try run(
            "DELETE FROM left_keys WHERE app = ? AND device = ? AND disk = ? AND (removed_groups IS NULL OR NOT ?)",
            [app.text, device.name.text, disk, isKept])
    }

    /// What an app's last status says of them; nil where there is none.
    private func keys(of app: AppID, on device: DeviceRow) throws -> Status.Keys? {
        guard let id = try appID(app, adding: false),
            let last = try row(
                "SELECT key FROM device_apps JOIN shapes ON shapes.id = shape WHERE device_apps.id = ?",
                [device.row(of: id)])
        else { return nil }
        return Shape(key: [UInt8](blob: last[0]), app: app).map { $0.keys == .present ? .present : .destroyed }
    }

    /// A presence has told that the disk is the one that it was: what apps have reported since this start, is of it. As far as
    /// is known which are `present`, the others are not there any more.
    func withdrawLeftKeys(on device: DeviceRow, present: Set<AppID>? = nil) throws {
        guard let disk = device.disk, try mayHaveLeftKeys(device.name) else { return }
        let apps = try rows("SELECT app FROM left_keys WHERE device = ? AND disk = ?", [device.name.text, disk])
            .compactMap { AppID($0[0] as String) }
        for app in Set(apps) {
            let hasReported = try order(of: app, on: device).map { isOfPresentStart($0, device) } ?? false
            guard hasReported || present.map({ !$0.contains(app) }) ?? false else { continue }
            try withdraw(app, device, disk, keys: keys(of: app, on: device))
        }
    }

    /// Whether it was said in the start whose presence has told of the disk.
    private func isOfPresentStart(_ order: ReportOrder, _ device: DeviceRow) -> Bool {
        device.judged > 0 && (order.incarnation, order.boot) == (device.incarnation, device.judged)
    }

    private func mayHaveLeftKeys(_ device: DeviceID) throws -> Bool {
        if let known = cache.devicesWithLeftKeys { return known.contains(device) }
        let devices = try rows("SELECT DISTINCT device FROM left_keys", []).compactMap { DeviceID($0[0] as String) }
        cache.devicesWithLeftKeys = Set(devices)
        return devices.contains(device)
    }

    /// Notes the keys of a device that is about to be removed. Answers what it was the last to have.
    func noteKeysOfRemoved(_ device: DeviceRow, in fleet: FleetID, at time: Timestamp) throws -> [AppID] {
        let groups = try groups(of: device.name).map(\.text).joined(separator: " ")
        let present = try appsWithKeys(on: device, in: fleet, before: .max)
        let copied = try keysOnCopies(of: device.name)
        let left = try keysInDoubt(of: device.name)
        let latest = try latest()
        try run(
            """
            UPDATE OR REPLACE left_keys SET at = ?, epoch = ?, revision = ?, removed_groups = ?,
                disk = iif(disk = ?, ?, disk), boot = iif(disk = ?, ?, 0)
            WHERE device = ? AND removed_groups IS NULL
            """,
            [
                time.milliseconds, latest.epoch, latest.number, groups, Self.undecided, Self.unknown, device.disk,
                device.boot, device.name.text,
            ])
        // Of two with one disk neither speaks for the other.
        let disk = device.isCopied ? nil : device.disk
        for app in Set(present + copied).sorted() {
            _ = try leave(
                app, device.name, device.lastIncarnation, disk: disk, after: device.boot, groups: groups, at: time)
        }
        return Set(present + copied + left).sorted()
    }

    /// - Parameter boot: Of one that is removed the last start that was heard.
    private func leave(
        _ app: AppID, _ device: DeviceID, _ incarnation: Int64, disk: Int64?, after boot: Int64 = 0, groups: String?,
        at time: Timestamp
    ) throws -> Bool {
        let latest = try latest()
        try run(
            """
            INSERT INTO left_keys (app, device, incarnation, disk, at, epoch, revision, removed_groups, boot)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET
                at = excluded.at, epoch = excluded.epoch, revision = excluded.revision,
                removed_groups = trim(coalesce(removed_groups, '') || ' ' || excluded.removed_groups),
                boot = excluded.boot
            WHERE excluded.removed_groups IS NOT NULL
            """,
            [
                app.text, device.text, incarnation, disk ?? Self.unknown, time.milliseconds, latest.epoch,
                latest.number, groups, boot,
            ])
        cache.devicesWithLeftKeys?.insert(device)
        return database.changesCount > 0
    }

    private func destroyedApps(of device: DeviceRow, in fleet: FleetID) throws -> [AppID] {
        try statuses(in: fleet, app: nil, device: device.name, after: 0, limit: Presence.maximumApps)
            .map(\.status).filter { $0.keys == .destroyed && $0.order.incarnation < device.incarnation }.map(\.app)
    }

    private func appsWithKeys(
        on device: DeviceRow, in fleet: FleetID, before incarnation: Int64
    ) throws -> [AppID] {
        try statuses(in: fleet, app: nil, device: device.name, after: 0, limit: Presence.maximumApps)
            .map(\.status).filter { $0.keys == .present && $0.order.incarnation < incarnation }.map(\.app).sorted()
    }

    /// The apps whose keys may be on an earlier disk of a device that is there.
    func keysOnEarlierDisks(of device: DeviceID) throws -> [AppID] {
        try rows(
            """
            SELECT DISTINCT app FROM left_keys WHERE device = ?1 AND removed_groups IS NULL
            AND disk IS NOT (SELECT disk FROM devices WHERE name = ?1) ORDER BY app
            """, [device.text]
        ).compactMap { AppID($0[0] as String) }
    }

    /// Also those of which nobody has heard since whether they are on the disk that is there.
    func keysInDoubt(of device: DeviceID) throws -> [AppID] {
        try rows(
            "SELECT DISTINCT app FROM left_keys WHERE device = ? AND removed_groups IS NULL ORDER BY app", [device.text]
        ).compactMap { AppID($0[0] as String) }
    }

    /// The apps whose keys may be on a copy of the disk of a device that is there.
    func keysOnCopies(of name: DeviceID) throws -> [AppID] {
        guard let device = try device(name), device.isCopied else { return [] }
        return try apps(of: device)
    }

    /// The layers that retire an app, and by which change.
    func retirements(of app: AppID) throws -> [Layer: Revision] {
        let found = try rows(
            "SELECT layer, target, change_epoch, change FROM documents WHERE app = ? AND aspect = 'auth' AND retired = 1",
            [app.text])
        return found.reduce(into: [:]) { retirements, row in
            guard let layer = Layer(number: row[0], target: row[1]) else { return }
            retirements[layer] = Revision(epoch: row[2], number: row[3])
        }
    }

    /// Where keys of an app were left of devices that these layers have retired it on: of a device that is there, until it is
    /// enrolled once more; of one that was removed behind the retirement. In the order of the devices' names.
    func leftKeys(of app: AppID, retiredBy retirements: [Layer: Revision]) throws -> [LeftKeys] {
        guard !retirements.isEmpty else { return [] }
        return try leftKeys(of: app).filter { left in
            try retirements.contains { layer, change in
                if case .removed(_, let latest) = left.place, latest < change { return false }
                switch layer {
                case .all: return true
                case .device(let device): return device == left.device
                case .group(let group):
                    if case .removed(let groups, _) = left.place { return groups.contains(group) }
                    return try groups(of: left.device).contains(group)
                }
            }
        }
    }

    /// In the order of the devices' names.
    func leftKeys(of app: AppID) throws -> [LeftKeys] {
        try rows(
            """
            SELECT DISTINCT device, removed_groups, iif(removed_groups IS NULL, 0, epoch),
                iif(removed_groups IS NULL, 0, revision), 0
            FROM left_keys WHERE app = ?1
            UNION ALL
            SELECT devices.name, NULL, 0, 0, 1 FROM devices JOIN apps ON apps.name = ?1
            WHERE devices.copied = 1 AND EXISTS (SELECT 1 FROM device_apps WHERE id = devices.id << 16 | apps.id)
            ORDER BY 1, 5
            """, [app.text]
        ).compactMap { row in
            DeviceID(row[0] as String).map { device in
                let groups = (row[1] as String?).map { Set($0.split(separator: " ").compactMap(GroupID.init)) }
                let latest = Revision(epoch: row[2], number: row[3])
                let place: LeftKeys.Place = row[4] ? .copy : .earlierDisk
                return LeftKeys(device: device, place: groups.map { .removed(groups: $0, latest: latest) } ?? place)
            }
        }
    }
}

extension [FleetStore.Transaction.LeftKeys] {
    /// How many devices they are of.
    var devices: Int64 { Int64(Set(map(\.device)).count) }
}
