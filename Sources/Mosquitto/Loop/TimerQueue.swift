/// Closures by the time they are due: a binary heap. Cancelled ones leave holes, which are swept out when they prevail.
struct TimerQueue {
    private struct Entry {
        let due: UInt64
        let id: UInt64

        func precedes(_ other: Entry) -> Bool { due != other.due ? due < other.due : id < other.id }
    }

    private var heap: [Entry] = []
    private var work: [UInt64: @Sendable () -> Void] = [:]

    /// When the first one is due, cancelled or not.
    var nextDue: UInt64? { heap.first?.due }

    var count: Int { work.count }

    mutating func add(id: UInt64, due: UInt64, _ body: @escaping @Sendable () -> Void) {
        work[id] = body
        heap.append(Entry(due: due, id: id))
        siftUp(heap.count - 1)
    }

    mutating func cancel(id: UInt64) {
        guard work.removeValue(forKey: id) != nil else { return }
        if heap.count > 64, heap.count > 2 * work.count {
            heap = heap.filter { work[$0.id] != nil }
            for index in stride(from: heap.count / 2, through: 0, by: -1) { siftDown(index) }
        }
    }

    /// Removes and returns the first closure that is due.
    mutating func popDue(now: UInt64) -> (@Sendable () -> Void)? {
        while let first = heap.first, first.due <= now {
            heap.swapAt(0, heap.count - 1)
            heap.removeLast()
            siftDown(0)
            if let body = work.removeValue(forKey: first.id) { return body }
        }
        return nil
    }

    mutating func removeAll() {
        heap = []
        work = [:]
    }

    private mutating func siftUp(_ start: Int) {
        var index = start
        while index > 0, heap[index].precedes(heap[(index - 1) / 2]) {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        while true {
            var first = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < heap.count && heap[child].precedes(heap[first]) {
                first = child
            }
            if first == index { return }
            heap.swapAt(first, index)
            index = first
        }
    }
}
