internal import CMosquitto
internal import Glibc

/// One epoll instance and the event descriptor that wakes it.
struct Poller: ~Copyable, Sendable {
    /// What is ready: the key given to `watch`, and epoll's bits.
    struct Ready {
        let key: UInt64
        let events: UInt32

        var isWake: Bool { key == Poller.wakeKey }
    }

    static let readable = UInt32(0x001)
    static let writable = UInt32(0x004)
    static let error = UInt32(0x008)
    static let hangUp = UInt32(0x010)
    private static let wakeKey = UInt64.max

    private let epoll: Int32
    private let wakeUp: Int32

    init(name: String) throws(MosquittoError) {
        let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epoll >= 0 else { throw .system(errno, "making the event loop \(name)") }
        let wakeUp = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        var event = epoll_event(events: Self.readable, data: epoll_data_t(u64: Self.wakeKey))
        guard wakeUp >= 0, epoll_ctl(epoll, EPOLL_CTL_ADD, wakeUp, &event) == 0 else {
            let number = errno
            close(epoll)
            if wakeUp >= 0 { close(wakeUp) }
            throw .system(number, "making the event loop \(name)")
        }
        self.epoll = epoll
        self.wakeUp = wakeUp
    }

    deinit {
        close(epoll)
        close(wakeUp)
    }

    /// Ends the present or the next `wait`; from any thread.
    borrowing func wake() {
        var one: UInt64 = 1
        _ = write(wakeUp, &one, 8)
    }

    /// Waits for `wake` alone, at most `milliseconds`; what it finds stays for `wait`.
    borrowing func waitForWake(milliseconds: Int32) {
        var item = pollfd(fd: wakeUp, events: Int16(POLLIN), revents: 0)
        _ = poll(&item, 1, milliseconds)
    }

    borrowing func clearWake() {
        var count: UInt64 = 0
        _ = read(wakeUp, &count, 8)
    }

    /// Changes what is waited for; zero before means that the descriptor is new, zero after that it is let go.
    borrowing func watch(_ descriptor: Int32, key: UInt64, from old: UInt32, to new: UInt32) -> Bool {
        var event = epoll_event(events: new, data: epoll_data_t(u64: key))
        let operation = old == 0 ? EPOLL_CTL_ADD : new == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD
        return epoll_ctl(epoll, operation, descriptor, &event) == 0
    }

    /// Fills `ready`, waiting at most `milliseconds` (−1: without limit).
    borrowing func wait(into ready: inout [Ready], milliseconds: Int32) {
        ready.removeAll(keepingCapacity: true)
        withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: 512) { events in
            let count = epoll_wait(epoll, events.baseAddress, 512, milliseconds)
            for index in 0..<Int(max(0, count)) {
                ready.append(Ready(key: events[index].data.u64, events: events[index].events))
            }
        }
    }
}
