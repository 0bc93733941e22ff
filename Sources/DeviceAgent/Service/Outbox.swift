package import FleetProtocol

/// What waits to be published: of what is retained only the newest of a topic, so it is bounded by the topics; numbered
/// reports are bounded by the core that keeps them.
package struct Outbox {
    package struct Entry {
        package let address: Address
        package let payload: [UInt8]
        package let isRetained: Bool
    }

    private var entries: [Int: Entry] = [:]
    private var first = 0
    private var last = 0
    /// Where the newest of a retained topic waits.
    private var places: [Address: Int] = [:]

    package init() {}

    package var isEmpty: Bool { first == last }

    package mutating func add(_ address: Address, _ payload: [UInt8], retain: Bool) {
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

    package mutating func next() -> Entry? {
        guard first < last else { return nil }
        defer { first += 1 }
        guard let entry = entries.removeValue(forKey: first) else { return nil }
        if entry.isRetained { places[entry.address] = nil }
        return entry
    }
}
