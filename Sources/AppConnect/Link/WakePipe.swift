import Glibc

/// Wakes the link's thread out of its `poll`.
final class WakePipe: Sendable {
    let reading: Int32
    private let writing: Int32

    init() throws(AppConnectError) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
            throw AppConnectError(.unreachable, "no pair of sockets could be made: \(String(cString: strerror(errno)))")
        }
        (reading, writing) = (ends[0], ends[1])
    }

    deinit {
        close(reading)
        close(writing)
    }

    /// A full pipe wakes as well as one more byte.
    func wake() {
        var byte: UInt8 = 1
        _ = send(writing, &byte, 1, Int32(MSG_NOSIGNAL))
    }

    func drain() {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(reading, &bytes, bytes.count) > 0 {}
    }

    /// Waits until there is something to read from, or, if asked, to write to `socket`, or somebody wakes, or time is up.
    func wait(for socket: Int32?, writing wantsToWrite: Bool, atMost timeout: Duration?) {
        var polled = [pollfd(fd: reading, events: Int16(POLLIN), revents: 0)]
        if let socket {
            let events = wantsToWrite ? POLLIN | POLLOUT : POLLIN
            polled.append(pollfd(fd: socket, events: Int16(events), revents: 0))
        }
        // Rounded up, so that nobody turns round and round in the last millisecond.
        // Time may have passed since it was counted, and -1 is for ever.
        let milliseconds = timeout.map { Int32(clamping: Int64(max(Duration.zero, $0) / .milliseconds(1)) + 1) }
        poll(&polled, nfds_t(polled.count), milliseconds ?? -1)
        drain()
    }
}
