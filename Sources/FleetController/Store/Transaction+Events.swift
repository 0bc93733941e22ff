import FleetProtocol
import GRDB

/// An event or log-level change, as it is stored.
struct EventRecord: Hashable, Sendable {
    let header: EventHeader
    /// `blocked`, `ready`…, `logLevel`, or `unknown` where a newer agent tells of something else.
    let kind: String
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
                    header.number, header.app.text, event.kind, header.at.milliseconds, time.milliseconds,
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

    /// Through which number the events of a boot are stored; nil when none of it is known.
    func through(_ device: DeviceRow, incarnation: Int64, boot: Int64) throws -> Int64? {
        try number(
            "SELECT through FROM marks WHERE device = ? AND incarnation = ? AND boot = ?",
            [device.id, incarnation, boot])
    }
}
