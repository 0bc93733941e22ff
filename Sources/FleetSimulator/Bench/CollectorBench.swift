import FleetController
import FleetHome
import FleetProtocol
import Foundation
import GRDB

/// Statuses of connected devices into a store that holds a large fleet, in batches as the controller takes them: decoded,
/// judged, written and counted. The floor writes the same rows by GRDB alone into a copy of the database, with the same indexes and triggers.
struct CollectorBench {
    let settings: BenchSettings
    /// Statuses in a batch, which is a transaction.
    private static let batch = 1_000

    func run() throws -> BenchReport {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "fleet-sim-\(RandomID.random().text.prefix(8))"
        ).path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let home = try FleetHome.create(
            at: folder + "/home", fleet: WireSamples.fleet, port: 1, brokerUser: NSUserName())
        let fill = try StoreFill(rows: settings.rows, apps: settings.apps, home: home)
        let store = try fill.fill()
        let copy = folder + "/copy.db"
        try DatabaseQueue(path: home.databasePath).writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        try FileManager.default.copyItem(atPath: home.databasePath, toPath: copy)
        let raw = try RawRows(copy, source: home.databasePath)
        var (ours, floor): ([Double], [Double]) = ([], [])
        var number = 0
        for round in 1...settings.rounds {
            try store.change()
            var messages: [ControllerCore.Message] = []
            var names: [(DeviceID, AppID)] = []
            for _ in 0..<Self.batch * settings.batches {
                // One row after the other, far from each other.
                number = (number + 6_700_417) % (fill.devices * fill.apps)
                let (device, app) = (number / fill.apps, number % fill.apps)
                let revision = store.revision - Int64(fill.apps - 1 - app)
                messages.append(fill.status(of: device, app, revision: revision, sequence: Int64(round + 1)))
                names.append((LoadPlan.deviceID(device + 1), LoadPlan.appID(app + 1)))
            }
            let start = Clock.now()
            for first in stride(from: 0, to: messages.count, by: Self.batch) {
                try store.take(Array(messages[first..<first + Self.batch]))
            }
            ours.append(Double(messages.count) * 1e9 / Double(Clock.now() - start))
            floor.append(try raw.write(names, sequence: Int64(round + 1), batch: Self.batch))
        }
        try store.close()
        return BenchReport(
            scenario: "collector",
            parameters: .object([
                "rows": .integer(Int64(fill.devices * fill.apps)), "apps": .integer(Int64(fill.apps)),
                "rounds": .integer(Int64(settings.rounds)), "batch": .integer(Int64(Self.batch)),
            ]),
            result: .object([
                "figure": "statusesPerSecond", "statusesPerSecond": .double(ours.median.rounded(to: 0)),
                "roundsPerSecond": ours.roundedValue,
            ]),
            floor: .object([
                "bare": .object([
                    "rowsPerSecond": .double(floor.median.rounded(to: 0)), "roundsPerSecond": floor.roundedValue,
                ])
            ]),
            figure: BenchReport.Figure(
                name: "statusesPerSecond", unit: "/s", ours: ours.median, bare: floor.median),
            notes: ["the floor is GRDB writing the same rows, with the same indexes and triggers, in the same batches"])
    }
}

/// The floor's side: SQL of its own over the controller's tables, since it is to owe the store nothing.
private struct RawRows {
    private let database: DatabaseQueue
    private let source: DatabaseQueue
    private let columns: [String]

    init(_ path: String, source: String) throws {
        var configuration = Configuration()
        configuration.journalMode = .wal
        database = try DatabaseQueue(path: path, configuration: configuration)
        try database.inDatabase { try $0.execute(sql: "PRAGMA synchronous = FULL") }
        var reading = Configuration()
        reading.readonly = true
        self.source = try DatabaseQueue(path: source, configuration: reading)
        columns = try database.read { try $0.columns(in: "device_apps").map(\.name).filter { $0 != "id" } }
    }

    /// Writes what the store now has of these statuses, in their order.
    ///
    /// - Returns: Rows per second.
    func write(_ names: [(DeviceID, AppID)], sequence: Int64, batch: Int) throws -> Double {
        var rows: [String: [DatabaseValue]] = [:]
        var kept: [[(String, [Row])]] = []
        try source.read { source in
            let selected = columns.map { "device_apps.\($0)" }.joined(separator: ", ")
            let all = try Row.fetchCursor(
                source,
                sql: """
                    SELECT devices.name, apps.name, \(selected), device_apps.id FROM device_apps
                    JOIN devices ON devices.id = device_apps.id >> 16 JOIN apps ON apps.id = device_apps.id & 65535
                    WHERE device_apps.seq = ?
                    """, arguments: [sequence])
            while let row = try all.next() {
                rows["\(row[0] as String) \(row[1] as String)"] = Array(row.databaseValues.dropFirst(2))
            }
            // What the rows name beside themselves is the same for thousands: it is not part of what is measured.
            kept = try [["shapes", "classes"].map { ($0, try Row.fetchAll(source, sql: "SELECT * FROM \($0)")) }]
        }
        try database.write { database in
            for (table, rows) in kept.joined() {
                for row in rows {
                    let places = row.map { _ in "?" }.joined(separator: ", ")
                    try database.execute(
                        sql: "INSERT OR IGNORE INTO \(table) VALUES (\(places))",
                        arguments: StatementArguments(row.databaseValues))
                }
            }
        }
        let values = try names.map { device, app in
            guard let row = rows["\(device) \(app)"] else {
                throw LoadError("the store has no status of \(app) on \(device)")
            }
            return row
        }
        let sql = "UPDATE device_apps SET \(columns.map { "\($0) = ?" }.joined(separator: ", ")) WHERE id = ?"
        let start = Clock.now()
        for first in stride(from: 0, to: values.count, by: batch) {
            try database.write { database in
                let statement = try database.cachedStatement(sql: sql)
                for row in values[first..<min(first + batch, values.count)] {
                    try statement.execute(arguments: StatementArguments(row))
                }
            }
        }
        return Double(values.count) * 1e9 / Double(Clock.now() - start)
    }
}
