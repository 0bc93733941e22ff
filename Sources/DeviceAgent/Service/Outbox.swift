package import FleetProtocol
package import Mosquitto

/// What waits to be published: of what is retained only the newest of a topic, so it is bounded by the topics. Of the core's
/// numbered reports there is a largest number: it says them again until the controller has them.
package struct Outbox {
    package struct Entry {
        /// A status is written only when its turn has come: until then a newer one may take its place.
        package enum Content {
            case bytes([UInt8])
            /// In a place of its own: the room for entries stays when they have gone.
            indirect case status(Status)

            package var payload: [UInt8] {
                switch self {
                case .bytes(let bytes): bytes
                case .status(let status): status.wire
                }
            }
        }

        package let address: Address
        package let content: Content
        package let isRetained: Bool

        /// An event, or a change of a log level.
        package var isReport: Bool {
            guard case .reply = address else { return false }
            return !isRetained
        }

        /// Statuses are state: a later one says it all again, every connection begins with them, and the controller asks
        /// for what it has missed. Their PUBACKs, on both sides of the broker, would be a fifth of the work of a change.
        package var qos: QoS {
            switch content {
            case .bytes: .atLeastOnce
            case .status: .atMostOnce
            }
        }
    }

    private var entries = Line()
    /// Apps cause them, as often as they like: they go when nothing else waits.
    private var reports = Line()
    /// As many as a core keeps. On a slow way to the broker they may not have gone when it says them again.
    private static let maximumReports = 1_000

    package init() {}

    package var isEmpty: Bool { entries.isEmpty && reports.isEmpty }

    package mutating func add(_ address: Address, _ payload: [UInt8], retain: Bool) {
        add(Entry(address: address, content: .bytes(payload), isRetained: retain))
    }

    package mutating func add(_ status: Status) {
        add(Entry(address: status.address, content: .status(status), isRetained: true))
    }

    private mutating func add(_ entry: Entry) {
        guard entry.isReport else { return entries.add(entry) }
        if reports.count < Self.maximumReports { reports.add(entry) }
    }

    /// - Parameter withReports: Whether it may be a report, of which there is a largest number in each second.
    package mutating func next(withReports: Bool = true) -> Entry? {
        entries.next() ?? (withReports ? reports.next() : nil)
    }
}

extension Outbox {
    /// Few, and mostly one or none: looked through rather than indexed.
    private struct Line {
        /// Empty places are those of entries that moved.
        private var entries: [Entry?] = []
        private var first = 0

        var isEmpty: Bool { entries.isEmpty }
        /// With the empty places.
        var count: Int { entries.count - first }

        mutating func add(_ entry: Entry) {
            if entry.isRetained, let place = place(of: entry.address) {
                // What a presence says of statuses, it says of those that come before it.
                guard case .presence = entry.address else {
                    entries[place] = entry
                    return
                }
                entries[place] = nil
            }
            entries.append(entry)
        }

        /// Where the newest of a retained topic waits.
        private func place(of address: Address) -> Int? {
            entries[first...].firstIndex { $0.map { $0.isRetained && $0.address == address } ?? false }
        }

        mutating func next() -> Entry? {
            while first < entries.count {
                let entry = entries[first]
                entries[first] = nil
                first += 1
                if first == entries.count {
                    entries.removeAll(keepingCapacity: true)
                    first = 0
                } else if first > 64, first > entries.count / 2 {
                    entries.removeFirst(first)
                    first = 0
                }
                if let entry { return entry }
            }
            return nil
        }
    }
}
