/// The clients of a loop by slot. A key names a slot and a connection, so that an event of a connection that has just
/// gone is told from one of its successor.
struct ClientTable {
    private var slots: [LoopClient?] = []
    private var free: [Int] = []
    private var swept = 0

    var count: Int { slots.count - free.count }
    var isEmpty: Bool { count == 0 }
    var all: [LoopClient] { slots.compactMap { $0 } }

    mutating func add(_ client: LoopClient) -> Int {
        if let slot = free.popLast() {
            slots[slot] = client
            return slot
        }
        slots.append(client)
        return slots.count - 1
    }

    mutating func remove(slot: Int) {
        slots[slot] = nil
        free.append(slot)
    }

    static func key(slot: Int, number: Int) -> UInt64 {
        UInt64(UInt32(truncatingIfNeeded: slot)) << 32 | UInt64(UInt32(truncatingIfNeeded: number))
    }

    func client(for key: UInt64) -> LoopClient? {
        let slot = Int(key >> 32)
        guard slot < slots.count, let client = slots[slot], client.key == key else { return nil }
        return client
    }

    /// Every `parts`-th client, another part at each call.
    mutating func nextPart(of parts: Int) -> [LoopClient] {
        swept = (swept + 1) % parts
        return stride(from: swept, to: slots.count, by: parts).compactMap { slots[$0] }
    }
}
