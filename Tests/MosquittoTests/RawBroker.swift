internal import Glibc
import TestSupport

/// A broker that says what the test wants it to.
struct RawBroker {
    /// A CONNACK that accepts, without properties.
    static let accepted: [UInt8] = [0x20, 3, 0, 0, 0]

    let port: UInt16
    private let listener: Int32

    init() throws {
        port = try freePort()
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let isBound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isBound, listen(listener, 8) == 0 else { throw TestFailure("no listener on port \(port)") }
    }

    func close() { Glibc.close(listener) }

    /// The next connection, whose CONNECT has come.
    func accept() async throws -> Peer {
        var descriptor: Int32 = -1
        try await until("a client is here") {
            descriptor = Glibc.accept(listener, nil, nil)
            return descriptor >= 0
        }
        let peer = Peer(descriptor: descriptor)
        try await until("it says CONNECT") { peer.hasSaid() }
        return peer
    }

    struct Peer {
        fileprivate let descriptor: Int32

        fileprivate func hasSaid() -> Bool {
            var bytes = [UInt8](repeating: 0, count: 1_024)
            return recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT)) > 0
        }

        func send(_ bytes: [UInt8]) { _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
        func close() { Glibc.close(descriptor) }
    }
}
