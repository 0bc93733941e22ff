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
        listener = try TestSupport.listener(on: port)
        _ = fcntl(listener, F_SETFL, O_NONBLOCK)
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

        /// Reads away what has come.
        func drain() { while hasSaid() {} }

        func send(_ bytes: [UInt8]) { _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
        func close() { Glibc.close(descriptor) }
    }
}
