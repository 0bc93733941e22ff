import Foundation
import Glibc
import Synchronization

/// A way between a client and the broker that can be made bad: slow, cut, or a black hole.
///
/// One thread a connection, which carries both directions. Nothing is kept here: what cannot be passed on is not read.
package final class Proxy: Sendable {
    package enum Mode: Hashable, Sendable {
        case open
        /// Each piece waits so long, in either direction.
        case slow(milliseconds: UInt32)
        /// What comes vanishes, and nobody is told. A connection of which anything has vanished never carries again: it
        /// is reset when this mode ends.
        case blackHole
        /// Every connection is reset, also new ones.
        case refusing
    }

    private struct State {
        var mode = Mode.open
        /// Connections of an earlier one are reset.
        var generation = 0
        var isEnded = false
        var threads = 0
    }

    private let listener: Int32
    private let target: (host: String, port: UInt16)
    private let state = Mutex(State())
    /// How long a thread may take to see that something has changed.
    private static let pause: Int32 = 20

    /// Listens at `host` and `port` until ``end()``.
    package init(host: String, port: UInt16, to targetHost: String, _ targetPort: UInt16) throws {
        guard let listener = Loopback.listen(host, port) else {
            throw LoadError("listening on \(host):\(port) failed: \(String(cString: strerror(errno)))")
        }
        self.listener = listener
        target = (targetHost, targetPort)
        detach { proxy in
            proxy.accept()
            Glibc.close(proxy.listener)
        }
    }

    package func set(_ mode: Mode) {
        state.withLock { state in
            state.mode = mode
            if mode == .refusing { state.generation += 1 }
        }
    }

    /// Resets the connections that there are.
    package func reset() { state.withLock { $0.generation += 1 } }

    /// Closes everything, and waits for it. Again without effect.
    package func end() {
        state.withLock { $0.isEnded = true }
        for _ in 0..<200 where state.withLock({ $0.threads }) > 0 { usleep(10_000) }
    }

    private func detach(_ body: @escaping @Sendable (Proxy) -> Void) {
        state.withLock { $0.threads += 1 }
        Thread.detachNewThread { [self] in
            body(self)
            state.withLock { $0.threads -= 1 }
        }
    }

    private func accept() {
        while !state.withLock({ $0.isEnded }) {
            guard Self.wait([listener], Int16(POLLIN)) else { continue }
            guard let client = Child.private({ [Glibc.accept(listener, nil, nil)] }).first else { continue }
            detach { $0.carry(client) }
        }
    }

    private func carry(_ client: Int32) {
        // What one side has closed is closed on the other, so that its last words arrive; all else is a reset.
        var isReset = true
        defer { Self.close(client, isReset: isReset) }
        let (mode, generation) = state.withLock { ($0.mode, $0.generation) }
        guard mode != .refusing, let server = Loopback.connected(target.host, target.port) else { return }
        defer { Self.close(server, isReset: isReset) }
        for descriptor in [client, server] {
            var yes: Int32 = 1
            setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
        }
        var hasVanished = false
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let now = state.withLock { $0 }
            guard now.generation == generation, !now.isEnded, !hasVanished || now.mode == .blackHole else { return }
            guard Self.wait([client, server], Int16(POLLIN)) else { continue }
            for (from, to) in [(client, server), (server, client)] {
                let count = recv(from, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                if count == 0 {
                    isReset = hasVanished
                    return
                }
                if count < 0 {
                    if errno == EAGAIN || errno == EINTR { continue }
                    return
                }
                let mode = state.withLock { $0.mode }
                switch mode {
                case .blackHole: hasVanished = true
                case .slow(let milliseconds): usleep(milliseconds * 1_000)
                case .open, .refusing: break
                }
                if !hasVanished, !pass(buffer[..<count], to: to, generation) { return }
            }
        }
    }

    /// False when the connection is to end.
    private func pass(_ bytes: ArraySlice<UInt8>, to descriptor: Int32, _ generation: Int) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            guard state.withLock({ $0.generation == generation && !$0.isEnded }) else { return false }
            guard Self.wait([descriptor], Int16(POLLOUT)) else { continue }
            let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, flags) }
            if count < 0, errno != EAGAIN, errno != EINTR { return false }
            rest = rest.dropFirst(max(0, count))
        }
        return true
    }

    private static func wait(_ descriptors: [Int32], _ events: Int16) -> Bool {
        var polls = descriptors.map { pollfd(fd: $0, events: events, revents: 0) }
        return poll(&polls, nfds_t(polls.count), pause) > 0
    }

    private static func close(_ descriptor: Int32, isReset: Bool) {
        if isReset {
            var now = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
        }
        Glibc.close(descriptor)
    }
}
