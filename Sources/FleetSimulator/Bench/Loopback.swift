import Glibc

/// Ports of this machine's own addresses.
enum Loopback {
    /// Below the range that outgoing connections are given, of which a load needs many.
    static func freePort() throws -> UInt16 {
        for _ in 0..<1_000 {
            let port = UInt16.random(in: 12_000..<32_000)
            if withSocket("0.0.0.0", port, { bind($0, $1, $2) == 0 }) { return port }
        }
        throw LoadError("no free port was found")
    }

    static func answers(_ host: String = "127.0.0.1", port: UInt16) -> Bool {
        withSocket(host, port) { connect($0, $1, $2) == 0 }
    }

    /// A socket that listens, or is connected; nil, with errno, when that fails. The caller closes it.
    static func listen(_ host: String, _ port: UInt16) -> Int32? {
        open(host, port) { descriptor, address, size in
            var yes: Int32 = 1
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
            return bind(descriptor, address, size) == 0 && Glibc.listen(descriptor, 64) == 0
        }
    }

    static func connected(_ host: String, _ port: UInt16) -> Int32? {
        open(host, port) { connect($0, $1, $2) == 0 }
    }

    private static func withSocket(
        _ host: String, _ port: UInt16, _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Bool
    ) -> Bool {
        guard let descriptor = open(host, port, body) else { return false }
        close(descriptor)
        return true
    }

    private static func open(
        _ host: String, _ port: UInt16, _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Bool
    ) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, host, &address.sin_addr)
        let isDone = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if isDone { return descriptor }
        close(descriptor)
        return nil
    }
}
