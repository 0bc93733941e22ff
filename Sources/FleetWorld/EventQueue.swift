/// What is to happen, by time, and in the order it was asked for at one time.
struct EventQueue {
    private struct Entry {
        let at: Int64
        let order: Int
        let body: () -> Void

        func isBefore(_ other: Entry) -> Bool { (at, order) < (other.at, other.order) }
    }

    private var heap: [Entry] = []
    private var count = 0

    var next: Int64? { heap.first?.at }

    mutating func add(_ at: Int64, _ body: @escaping () -> Void) {
        count += 1
        heap.append(Entry(at: at, order: count, body: body))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].isBefore(heap[parent]) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    mutating func removeFirst() -> (() -> Void)? {
        guard let first = heap.first, let last = heap.popLast() else { return nil }
        guard !heap.isEmpty else { return first.body }
        heap[0] = last
        var parent = 0
        while true {
            let left = 2 * parent + 1
            guard left < heap.count else { break }
            let child = left + 1 < heap.count && heap[left + 1].isBefore(heap[left]) ? left + 1 : left
            guard heap[child].isBefore(heap[parent]) else { break }
            heap.swapAt(child, parent)
            parent = child
        }
        return first.body
    }
}
