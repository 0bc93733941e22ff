internal import Glibc
internal import Synchronization

private let handedOut = Mutex<Set<UInt16>>([])

/// A TCP port of the loopback interface that nobody listens on, and that this process has not handed out before. It is
/// below the range that outgoing connections are given. It is not bound to find out: a program that another test starts at
/// that moment would keep it for as long as it takes to start.
package func freePort() throws -> UInt16 {
    for _ in 0..<1000 {
        let port = UInt16.random(in: 12_000..<32_000)
        guard !accepts(port: port), handedOut.withLock({ $0.insert(port).inserted }) else { continue }
        return port
    }
    throw TestFailure("no free port on 127.0.0.1 was found in 1000 tries")
}

/// Whether somebody accepts connections on the port. A server with so many that more have to wait does not, or this would
/// wait with them: on one of the few threads on which that server may run.
package func accepts(port: UInt16) -> Bool {
    withLoopbackSocket(port) { descriptor, address in
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        if connect(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 { return true }
        guard errno == EINPROGRESS else { return false }
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        var (reason, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        return poll(&waiting, 1, 200) == 1
            && getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &reason, &size) == 0 && reason == 0
    }
}

/// A socket that listens on the port of the loopback interface; whoever asked for it closes it.
package func listener(on port: UInt16) throws -> Int32 {
    var listener: Int32 = -1
    let listens = withLoopbackSocket(port) { descriptor, address in
        guard bind(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0, listen(descriptor, 8) == 0
        else {
            return false
        }
        listener = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        return listener >= 0
    }
    guard listens else { throw TestFailure("nobody can listen on port \(port)") }
    return listener
}

private func withLoopbackSocket(_ port: UInt16, _ body: (Int32, UnsafePointer<sockaddr>) -> Bool) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body(descriptor, $0) }
    }
}
