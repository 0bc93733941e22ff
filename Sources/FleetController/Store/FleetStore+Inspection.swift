package import FleetProtocol
import GRDB

/// What stands in the store, for whoever checks it from outside.
extension FleetStore {
    package struct Wish: Sendable {
        package let address: Address
        package let revision: Revision
        package let change: Revision
        package let value: String?
        package let wire: [UInt8]
    }

    package struct StoredEvent: Hashable, Sendable {
        package let device: DeviceID
        package let incarnation: Int64
        package let boot: Int64
        package let number: Int64

        package init(device: DeviceID, incarnation: Int64, boot: Int64, number: Int64) {
            self.device = device
            self.incarnation = incarnation
            self.boot = boot
            self.number = number
        }
    }

    package func latest() throws -> Revision { try transaction { try $0.latest() } }

    /// Every document, tombstones included.
    package func wishes() throws -> [Wish] {
        try transaction { transaction in
            try transaction.documents(after: 0, limit: 100_000).map {
                Wish(address: $0.address, revision: $0.revision, change: $0.change, value: $0.value, wire: $0.wire)
            }
        }
    }

    package func floors(for device: DeviceID) throws -> [Address: Revision] {
        try transaction { transaction in
            Dictionary(try transaction.floors(for: device).map { ($0.address, $0.revision) }) { $1 }
        }
    }

    package func statuses(in fleet: FleetID) throws -> [Status] {
        try transaction { try $0.statuses(in: fleet, app: nil, device: nil, after: 0, limit: 100_000).map(\.status) }
    }

    /// Where the newest report of each device-app stands.
    package func orders() throws -> [DeviceApp: ReportOrder] {
        try transaction { transaction in
            var orders: [DeviceApp: ReportOrder] = [:]
            for row in try transaction.rows(
                """
                SELECT devices.name, apps.name, device_apps.incarnation, device_apps.boot, seq FROM device_apps
                JOIN devices ON devices.id = device_apps.id >> 16 JOIN apps ON apps.id = device_apps.id & 65535
                """)
            {
                let place = DeviceApp(device: DeviceID(unchecked: row[0]), app: AppID(unchecked: row[1]))
                orders[place] = ReportOrder(incarnation: row[2], boot: row[3], sequence: row[4])
            }
            return orders
        }
    }

    package struct DeviceApp: Hashable, Sendable {
        package let device: DeviceID
        package let app: AppID
    }

    /// Events that a device had dropped before they were stored.
    package struct Gap: Hashable, Sendable {
        package let device: DeviceID
        package let incarnation: Int64
        package let boot: Int64
        package let numbers: ClosedRange<Int64>
    }

    package func gaps() throws -> [Gap] {
        try transaction { transaction in
            try transaction.rows(
                """
                SELECT devices.name, gaps.incarnation, gaps.boot, first, last
                FROM gaps JOIN devices ON devices.id = gaps.device
                """
            ).map {
                Gap(device: DeviceID(unchecked: $0[0]), incarnation: $0[1], boot: $0[2], numbers: $0[3]...$0[4])
            }
        }
    }

    /// How many reports, events, and marks and gaps of those, are of no device that is known.
    package func strays() throws -> Int64 {
        try transaction { transaction in
            try transaction.number(
                """
                SELECT (SELECT count(*) FROM device_apps WHERE id >> 16 NOT IN (SELECT id FROM devices))
                    + (SELECT count(*) FROM events WHERE device NOT IN (SELECT id FROM devices))
                    + (SELECT count(*) FROM marks WHERE device NOT IN (SELECT id FROM devices))
                    + (SELECT count(*) FROM gaps WHERE device NOT IN (SELECT id FROM devices))
                """) ?? 0
        }
    }

    /// What is known of a device beside its apps.
    package struct KnownDevice: Hashable, Sendable {
        /// The newest that it has spoken of.
        package let incarnation: Int64
        package let boot: Int64
        /// The incarnation that the home gave out, as far as it is known.
        package let enrolled: Int64?
        package let warning: String?
        package let agent: String?
        /// Since when it is online or offline.
        package let since: Timestamp?
        package let isOffline: Bool
        /// A copy of its disk was heard in this incarnation, or an older state of it.
        package let isCopied: Bool
        /// Names the disk that it last spoke of.
        package let disk: Int64?
    }

    package func device(_ name: DeviceID) throws -> KnownDevice? {
        try transaction {
            try $0.device(name).map {
                KnownDevice(
                    incarnation: $0.incarnation, boot: $0.boot, enrolled: $0.enrolled, warning: $0.warning,
                    agent: $0.agent, since: $0.since, isOffline: $0.isOffline, isCopied: $0.isCopied,
                    disk: $0.disk)
            }
        }
    }

    /// Whether a device is removed now, and was as this incarnation or a later one.
    package func isRemoved(_ device: DeviceID, _ incarnation: Int64) throws -> Bool {
        try transaction { try $0.isRemoved(device) && $0.wasRemoved(device, incarnation: incarnation) }
    }

    /// Whether a device is enrolled as what was removed.
    package func isLetInAgain(_ device: DeviceID) throws -> Bool {
        try transaction { transaction in try transaction.device(device).map(transaction.isLetInAgain) ?? false }
    }

    /// The apps whose keys may be on an earlier disk of a device, or on a copy of its disk, or of which nobody has heard since it
    /// came back.
    package func leftKeys(of device: DeviceID) throws -> [AppID] {
        try transaction { Set(try $0.keysInDoubt(of: device) + $0.keysOnCopies(of: device)).sorted() }
    }

    /// An app's keys that a device had when it was removed as that incarnation.
    package struct RemovedKeys: Hashable, Sendable {
        package let app: AppID
        package let device: DeviceID
        package let incarnation: Int64
    }

    /// Those of which nobody knows whether they are gone, with the disks on which they may be; one that nobody can name is -1.
    package func keysOfRemoved() throws -> [RemovedKeys: Set<Int64>] {
        try transaction { transaction in
            try transaction.rows(
                "SELECT app, device, incarnation, disk FROM left_keys WHERE removed_groups IS NOT NULL"
            ).reduce(into: [:]) { keys, row in
                let place = RemovedKeys(
                    app: AppID(unchecked: row[0]), device: DeviceID(unchecked: row[1]), incarnation: row[2])
                keys[place, default: []].insert(row[3])
            }
        }
    }

    package func groups(of device: DeviceID) throws -> [GroupID] { try transaction { try $0.groups(of: device) } }

    /// The devices that are counted as connected now.
    package func onlineDevices() throws -> Set<DeviceID> {
        try transaction { transaction in
            let session = try transaction.session()
            return Set(
                try transaction.rows("SELECT name FROM devices WHERE state = ?", [session]).map {
                    DeviceID(unchecked: $0[0])
                })
        }
    }

    /// The bodies of all events, without the oldest number, which changes from one sending to the next.
    package func events() throws -> [StoredEvent: [UInt8]] {
        try transaction { transaction in
            var events: [StoredEvent: [UInt8]] = [:]
            for row in try transaction.rows(
                """
                SELECT devices.name, events.incarnation, events.boot, number, body FROM events
                JOIN devices ON devices.id = events.device
                """)
            {
                let event = StoredEvent(
                    device: DeviceID(unchecked: row[0]), incarnation: row[1], boot: row[2], number: row[3])
                events[event] = [UInt8](blob: row[4])
            }
            return events
        }
    }

    /// What operators are told of an app, by policy.
    package func summary(of app: AppID, at now: Timestamp) throws -> [StatusRow] {
        try transaction { transaction in
            let tally = try Tally.of(app, transaction, now: now)
            return Policy.allCases.map(tally.row)
        }
    }

    /// What operators are told of how far some documents have come.
    package func progress(of selectors: [DocumentSelector], at now: Timestamp) throws -> ProgressAnswer {
        try transaction { try Progress($0, SelectionRequest(documents: selectors), now: now).answer }
    }

    /// Runs `body` on a disk that is full after so many of its transactions, for the next `count` of them.
    package func onFullDisk<Result>(after transactions: Int, for count: Int = .max, _ body: () -> Result) -> Result {
        let disk = FillingDisk(room: transactions, failures: count)
        database.add(transactionObserver: disk)
        defer { database.remove(transactionObserver: disk) }
        return body()
    }

    /// Whether a request that comes again is answered the same behind a restart.
    package func keepsAnswer(to id: RandomID, of user: User) throws -> Bool {
        try transaction { try $0.response(to: id, of: user) != nil }
    }

    /// Loses every second event: a damage that a world's laws must find.
    package func forgetEverySecondEvent() throws {
        try transaction { try $0.run("DELETE FROM events WHERE number % 2 = 0") }
    }

    /// Loses what was answered to requests: another damage that a world's laws must find.
    package func forgetAnswers() throws { try transaction { try $0.run("DELETE FROM requests") } }
}

private final class FillingDisk: TransactionObserver {
    private var room: Int
    private var failures: Int

    init(room: Int, failures: Int) {
        self.room = room
        self.failures = failures
    }

    func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
    func databaseDidChange(with event: DatabaseEvent) {}
    func databaseDidCommit(_ db: Database) {}
    func databaseDidRollback(_ db: Database) {}

    func databaseWillCommit() throws {
        room -= 1
        guard room < 0, failures > 0 else { return }
        failures -= 1
        throw DatabaseError(resultCode: .SQLITE_FULL, message: "database or disk is full")
    }
}
