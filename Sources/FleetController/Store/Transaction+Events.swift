import FleetProtocol
import GRDB

/// An event or log-level change, as it is stored.
struct EventRecord: Hashable, Sendable {
    let header: EventHeader
    let kind: EventKind
    let body: [UInt8]
}

extension FleetStore.Transaction {
    /// Stores an event unless it is there, and answers through which number its boot is complete now.
    ///
    /// What the device no longer has is recorded as a gap, so that its absence has a name.
    func store(_ event: EventRecord, of device: DeviceRow, at time: Timestamp) throws -> (
        through: Int64, lost: [ClosedRange<Int64>]
    ) {
        let header = event.header
        let key: StatementArguments = [device.id, header.incarnation, header.boot]
        let before = try through(device, incarnation: header.incarnation, boot: header.boot)
        var through = before ?? 0
        var lost: [ClosedRange<Int64>] = []
        if header.number > through {
            try run(
                """
                INSERT OR IGNORE INTO events (device, incarnation, boot, number, app, kind, at, stored_at, body)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
                key + [
                    header.number, header.app.text, event.kind.rawValue, header.at.milliseconds, time.milliseconds,
                    event.body.blob,
                ])
        }
        if header.number == through + 1 || header.oldest > through + 1 {
            lost = try walk(key, from: &through, oldest: header.oldest)
            // What the device no longer has may have been here.
            if try !lost.isEmpty && mayHaveBeenRemoved(device.name, incarnation: header.incarnation) { lost = [] }
            for range in lost {
                try run(
                    "INSERT OR IGNORE INTO gaps (device, incarnation, boot, first, last, at) VALUES (?, ?, ?, ?, ?, ?)",
                    key + [range.lowerBound, range.upperBound, time.milliseconds])
            }
        }
        if through != before {
            try run(
                """
                INSERT INTO marks (device, incarnation, boot, through) VALUES (?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET through = excluded.through
                """, key + [through])
        }
        return (through, lost)
    }

    /// Walks over what is stored of a boot behind `through`: numbers in order carry on, a hole before the oldest number
    /// that the device still has is lost. Answers the holes.
    private func walk(
        _ key: StatementArguments, from through: inout Int64, oldest: Int64
    ) throws -> [ClosedRange<Int64>] {
        var lost: [ClosedRange<Int64>] = []
        for row in try rows(
            """
            SELECT number FROM events WHERE device = ? AND incarnation = ? AND boot = ? AND number > ?
            ORDER BY number
            """, key + [through])
        {
            let number: Int64 = row[0]
            let missing = through + 1..<max(number, through + 1)
            if !missing.isEmpty {
                guard missing.lowerBound < oldest else { break }
                let last = min(number, oldest) - 1
                lost.append(missing.lowerBound...last)
                through = last
                guard number == last + 1 else { break }
            }
            through = number
        }
        return lost
    }

    /// When the newest event was stored by which each app's keys are known to be destroyed.
    func wipes(of name: DeviceID) throws -> [AppID: Timestamp] {
        guard let device = try device(name) else { return [:] }
        let found = try rows(
            "SELECT app, max(stored_at) FROM events WHERE device = ? AND kind = ? GROUP BY app",
            [device.id, EventKind.wiped.rawValue])
        return found.reduce(into: [:]) { wipes, row in
            if let app = AppID(row[0] as String) { wipes[app] = Timestamp(milliseconds: row[1]) }
        }
    }

    /// Drops the oldest events that were stored before `time`; answers how many. They are not stored again when they come once
    /// more. What tells of destroyed keys is never dropped, nor what waits behind a hole.
    func dropEvents(before time: Timestamp, atMost limit: Int) throws -> Int {
        try run(
            """
            DELETE FROM events WHERE (device, incarnation, boot, number) IN (
                SELECT device, incarnation, boot, number FROM events INDEXED BY events_by_time
                JOIN marks USING (device, incarnation, boot)
                WHERE stored_at < ? AND kind != ? AND number <= through ORDER BY stored_at LIMIT ?
            )
            """, [time.milliseconds, EventKind.wiped.rawValue, limit])
        return database.changesCount
    }

    /// Through which number the events of a boot are stored; nil when none of it is known.
    func through(_ device: DeviceRow, incarnation: Int64, boot: Int64) throws -> Int64? {
        try number(
            "SELECT through FROM marks WHERE device = ? AND incarnation = ? AND boot = ?",
            [device.id, incarnation, boot])
    }
}

extension FleetStore.Transaction {
    /// The last start before `boot` of which events are stored, in the device's present incarnation; 0 where there is none.
    func lastBoot(of device: DeviceRow, before boot: Int64) throws -> Int64 {
        try number(
            "SELECT coalesce(max(boot), 0) FROM marks WHERE device = ? AND incarnation = ? AND boot < ?",
            [device.id, device.incarnation, boot]) ?? 0
    }
}

/// Where an event stands in the list: behind all that were stored later, and among those of one moment behind what its
/// device, by the store's number for it, has numbered later. Prints as a page's `next`.
struct EventPlace: Hashable, LosslessStringConvertible {
    let storedAt: Timestamp
    let device: Int64
    let incarnation: Int64
    let boot: Int64
    let number: Int64

    /// Before all that there can be.
    static let end = EventPlace([.max, .max, .max, .max, .max])

    private init(_ columns: [Int64]) {
        storedAt = Timestamp(milliseconds: columns[0])
        (device, incarnation, boot, number) = (columns[1], columns[2], columns[3], columns[4])
    }

    init?(_ description: String) {
        let columns = description.split(separator: "/", omittingEmptySubsequences: false).map { Int64($0) }
        let known = columns.compactMap(\.self)
        guard columns.count == 5, known.count == 5 else { return nil }
        self.init(known)
    }

    fileprivate init(_ row: Row) { self.init([row[0], row[1], row[2], row[3], row[4]]) }

    fileprivate var columns: [Int64] { [storedAt.milliseconds, device, incarnation, boot, number] }
    var description: String { columns.map(\.description).joined(separator: "/") }
}

/// An event or log-level change, as it is read.
struct ListedEvent {
    let place: EventPlace
    let device: DeviceID
    let app: AppID
    let kind: EventKind
    /// By the device's clock.
    let at: Timestamp
    let body: [UInt8]
}

extension FleetStore.Transaction {
    /// How many events are looked through at once for those that are asked for: some milliseconds, in which nobody else is
    /// served.
    private static let lookedThrough: Int64 = 100_000

    /// Some of the events that are asked for, the newest first, from behind a place on; and where to go on, if there is more to
    /// look through.
    func events(
        _ request: ListRequest, before start: EventPlace, limit: Int
    ) throws -> (events: [ListedEvent], end: EventPlace?) {
        let place = "stored_at, device, incarnation, boot, number"
        let order = "stored_at DESC, device DESC, incarnation DESC, boot DESC, number DESC"
        var index = "INDEXED BY events_by_time"
        var since = request.since?.milliseconds ?? 0
        var conditions = "(\(place)) < (?, ?, ?, ?, ?)"
        var arguments = StatementArguments(start.columns)
        var end: EventPlace?
        if let device = request.device {
            guard let known = try self.device(device) else { return ([], nil) }
            // All that there is of one device is less than what others have said in the meantime.
            index = "NOT INDEXED"
            conditions += " AND device = ?"
            arguments += [known.id]
        } else {
            end = try row(
                """
                SELECT \(place) FROM events \(index) WHERE \(conditions) AND stored_at >= ?
                ORDER BY \(order) LIMIT 1 OFFSET ?
                """, arguments + [since, Self.lookedThrough]
            ).map(EventPlace.init)
            if let end {
                // The time alone bounds what SQLite looks through.
                since = max(since, end.storedAt.milliseconds)
                conditions += " AND (\(place)) >= (?, ?, ?, ?, ?)"
                arguments += StatementArguments(end.columns)
            }
        }
        if let app = request.app {
            conditions += " AND app = ?"
            arguments += [app.text]
        }
        if let kind = request.kind {
            conditions += " AND kind = ?"
            arguments += [kind.rawValue]
        }
        // The index has all that decides; the rest is fetched of those that are found.
        let found = try rows(
            """
            WITH found AS MATERIALIZED (
                SELECT \(place) FROM events \(index) WHERE \(conditions) AND stored_at >= ? ORDER BY \(order) LIMIT ?
            )
            SELECT found.*, devices.name, events.app, events.kind, events.at, events.body
            FROM found JOIN events USING (device, incarnation, boot, number) JOIN devices ON devices.id = found.device
            ORDER BY 1 DESC, 2 DESC, 3 DESC, 4 DESC, 5 DESC
            """, arguments + [since, limit])
        let events = found.map { row in
            ListedEvent(
                place: EventPlace(row), device: DeviceID(unchecked: row[5]), app: AppID(unchecked: row[6]),
                kind: EventKind(rawValue: row[7]) ?? .unknown, at: Timestamp(milliseconds: row[8]),
                body: [UInt8](blob: row[9]))
        }
        return (events, events.count == limit ? events.last?.place : end)
    }
}
