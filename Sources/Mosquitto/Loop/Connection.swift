internal import CMosquitto
internal import Glibc

/// One libmosquitto client for one connection: the owner of the C object, and what its callbacks borrow.
///
/// A new one is made for each connection, since the library would send an old connection's messages again.
final class Connection: @unchecked Sendable {  // safe: one thread at a time: the one that opens it, then the loop's
    let raw: OpaquePointer
    /// The client's connections are numbered from 1, when the broker has accepted.
    var number = 0
    unowned let client: LoopClient
    /// Why it ended, as far as the callbacks have said.
    var refusal: ReasonCode?
    var farewell: Int32?
    var lastError: String?
    var keepsErrorLog = false
    var failure: (status: Int32, errno: Int32)?
    /// What the library calls back for is in what the broker has said.
    private(set) var isReading = false

    /// - Parameter omitsSocketPair: The calling thread can make none from then on.
    init(_ client: LoopClient, omitsSocketPair: Bool) throws(MosquittoError) {
        if omitsSocketPair, fleetbus_refuse_socket_pairs() != 0 {
            throw .system(errno, "doing without a socket pair (seccomp) for \(client.options.endpoint)")
        }
        guard let raw = mosquitto_new(client.options.clientID, true, nil) else {
            throw .system(errno, "making a client for \(client.options.endpoint)")
        }
        self.raw = raw
        self.client = client
        mosquitto_user_data_set(raw, Unmanaged.passUnretained(self).toOpaque())
        installCallbacks()
    }

    deinit {
        mosquitto_destroy(raw)
    }

    /// The socket, −1 when the library has closed it.
    var socket: Int32 { mosquitto_socket(raw) }
    var isOpen: Bool { socket >= 0 }
    var wantsWrite: Bool { mosquitto_want_write(raw) }

    func read() {
        isReading = true
        note(mosquitto_loop_read(raw, 1))
        isReading = false
    }

    func write() { note(mosquitto_loop_write(raw, 1)) }
    func misc() { note(mosquitto_loop_misc(raw)) }

    private func note(_ status: Int32) {
        if status != MOSQ_ERR_SUCCESS.rawValue, failure == nil { failure = (status, errno) }
    }

    /// Sends DISCONNECT, behind all that was published.
    func disconnect(reason: Int32) {
        _ = mosquitto_disconnect_v5(raw, reason, nil)
    }

    /// What the socket itself says went wrong; reading it clears it.
    private func takeSocketError() -> Int32 {
        var number: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(socket, SOL_SOCKET, SO_ERROR, &number, &size) == 0 ? number : 0
    }

    /// Whether it is connected, or was.
    private var hasPeer: Bool {
        var address = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &address) {
            getpeername(socket, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), &size) == 0
        }
    }

    /// What went wrong with a socket that epoll says is over, before the broker has answered; 0 where only the library can
    /// tell. With TLS the library writes before it is connected, and has taken then what the socket would have said.
    func takeFailureToConnect() -> Int32 {
        let number = takeSocketError()
        return number == 0 && !hasPeer ? ECONNREFUSED : number
    }

    func publish(_ payload: UnsafeRawBufferPointer, to topic: String, qos: QoS, retain: Bool) -> (Int32, UInt16) {
        var id: Int32 = 0
        let status = mosquitto_publish_v5(
            raw, &id, topic, Int32(payload.count), payload.baseAddress, Int32(qos.rawValue), retain, nil)
        return (status, UInt16(truncatingIfNeeded: id))
    }

    func subscribe(_ filters: [String], qos: QoS, options: SubscribeOptions) -> (Int32, UInt16) {
        var id: Int32 = 0
        let status = withCStrings(filters) { pointers in
            mosquitto_subscribe_multiple(
                raw, &id, Int32(filters.count), pointers, Int32(qos.rawValue), options.bits, nil)
        }
        return (status, UInt16(truncatingIfNeeded: id))
    }

    func unsubscribe(_ filters: [String]) -> (Int32, UInt16) {
        var id: Int32 = 0
        let status = withCStrings(filters) { pointers in
            mosquitto_unsubscribe_multiple(raw, &id, Int32(filters.count), pointers, nil)
        }
        return (status, UInt16(truncatingIfNeeded: id))
    }

    private func withCStrings<R>(
        _ texts: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> R
    ) -> R {
        var pointers = texts.map { strdup($0) }
        defer { for pointer in pointers { free(pointer) } }
        return pointers.withUnsafeMutableBufferPointer { buffer in
            withExtendedLifetime(buffer) { body(UnsafePointer(buffer.baseAddress.unsafelyUnwrapped)) }
        }
    }
}
