import FleetProtocol

/// What waits to be published: of what is retained only the newest of a topic, so it is bounded by the topics; numbered
/// reports are bounded by the core that keeps them.
struct Outbox {
    struct Entry {
        let address: Address
        let payload: [UInt8]
        let isRetained: Bool
    }

    private var entries: [Int: Entry] = [:]
    private var first = 0
    private var last = 0
    /// Where the newest of a retained topic waits.
    private var places: [Address: Int] = [:]

    var isEmpty: Bool { first == last }

    mutating func add(_ address: Address, _ payload: [UInt8], retain: Bool) {
        let entry = Entry(address: address, payload: payload, isRetained: retain)
        if retain {
            if let place = places[address] {
                entries[place] = entry
                return
            }
            places[address] = last
        }
        entries[last] = entry
        last += 1
    }

    mutating func next() -> Entry? {
        guard first < last else { return nil }
        defer { first += 1 }
        guard let entry = entries.removeValue(forKey: first) else { return nil }
        if entry.isRetained { places[entry.address] = nil }
        return entry
    }
}
