/// A first-in-first-out queue on an array whose front is cleared now and then.
struct FIFO<Element> {
    private var items: [Element?] = []
    private var head = 0

    var count: Int { items.count - head }
    var isEmpty: Bool { count == 0 }

    mutating func append(_ element: Element) { items.append(element) }

    mutating func popFirst() -> Element? {
        guard head < items.count else { return nil }
        let element = items[head]
        items[head] = nil
        head += 1
        if head == items.count {
            items.removeAll(keepingCapacity: head <= 1024)
            head = 0
        } else if head > 64, head > items.count / 2 {
            items.removeSubrange(0..<head)
            head = 0
        }
        return element
    }

    mutating func removeAll() -> [Element] {
        defer {
            items = []
            head = 0
        }
        return items[head...].compactMap { $0 }
    }
}
