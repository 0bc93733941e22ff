import FleetProtocol
import Glibc

/// The app's end of the link: a non-blocking Unix domain socket, closed with its last use.
struct UnixSocket: ~Copyable {
    let descriptor: Int32

    init(connectingTo path: String) throws(AppConnectError) {
        let descriptor = socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard descriptor >= 0 else { throw Self.problem("no socket could be made") }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { room in
            room.copyBytes(from: path.utf8.prefix(room.count - 1))
        }
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else {
            let problem = Self.problem("the agent's socket '\(path)' cannot be reached")
            close(descriptor)
            throw problem
        }
        self.descriptor = descriptor
        ForkedChild.closes(descriptor)
    }

    deinit {
        ForkedChild.forgets(descriptor)
        close(descriptor)
    }

    enum Reading { case bytes([UInt8]), nothingNow, ended(AppConnectError) }

    func read() -> Reading {
        let bytes = [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, count in
            count = max(0, retrying { recv(descriptor, buffer.baseAddress, buffer.count, 0) })
        }
        if !bytes.isEmpty { return .bytes(bytes) }
        // Nothing was read: ask again without taking anything, to tell an end from an empty socket.
        var byte: UInt8 = 0
        switch retrying({ recv(descriptor, &byte, 1, Int32(MSG_PEEK)) }) {
        case 0: return .ended(AppConnectError(.unreachable, "the agent closed the connection"))
        case 1...: return .nothingNow
        default:
            return errno == EAGAIN ? .nothingNow : .ended(Self.problem("the connection to the agent broke"))
        }
    }

    /// Writes as much of `bytes` as goes and takes it away. Throws when the connection is gone.
    func write(_ bytes: inout [UInt8]) throws(AppConnectError) {
        guard !bytes.isEmpty else { return }
        let count = bytes.withUnsafeBytes { buffer in
            retrying { send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL)) }
        }
        if count > 0 {
            bytes.removeFirst(count)
        } else if errno != EAGAIN {
            throw Self.problem("the connection to the agent broke")
        }
    }

    private func retrying(_ body: () -> Int) -> Int {
        var result = body()
        while result < 0, errno == EINTR { result = body() }
        return result
    }

    private static func problem(_ what: String) -> AppConnectError {
        AppConnectError(.unreachable, "\(what): \(String(cString: strerror(errno)))")
    }
}
