internal import Glibc

extension LoopClient {
    /// How long the broker has to take the DISCONNECT, and what was published before it.
    private static let patience = Duration.seconds(1)

    /// Ends the client for good; its last event follows. From any thread, again without effect.
    ///
    /// A DISCONNECT goes out behind all that was published, and the client waits until the broker has taken it, for a
    /// second at most.
    public func close(_ farewell: Farewell = .graceful) {
        guard loop.isCurrent else { return loop.execute { self.close(farewell) } }
        switch phase {
        case .closing, .closed:
            return
        case .connected where farewell != .abrupt:
            takeLeave(reason: farewell == .publishingWill ? 4 : 0)
        case .idle, .resolving, .connecting, .connected, .waiting:
            finish()
        }
    }

    /// Leaves this connection without a farewell, as if it had been lost, and makes another one: a broker may have come to
    /// answer nothing on one. The broker says the will. Without a connection it has no effect; on the loop's thread only.
    public func reconnect() {
        loop.checkIsolated()
        guard case .connected = phase else { return }
        end(cause: MosquittoError(.connectionLost, "the connection to \(options.endpoint) was given up"))
    }

    /// libmosquitto closes the socket as soon as it has written the DISCONNECT. With unread bytes (the answers to the
    /// last publishes) that resets the connection, and the broker may lose what it has not read. So the socket is kept
    /// open by a second descriptor, and read until the broker closes it.
    private func takeLeave(reason: Int32) {
        guard let connection else { return finish() }
        _ = watch(connection.socket, for: 0)
        lingering = fcntl(connection.socket, F_DUPFD_CLOEXEC, 0)
        phase = .closing(loop.schedule(after: Self.patience) { [weak self] in self?.finish() })
        connection.disconnect(reason: reason)
        settle()
    }

    /// Reads what the broker still sends, and ends when it has closed the connection.
    func drain() {
        guard case .closing = phase else { return }
        connection = nil
        guard lingering >= 0 else { return finish() }
        shutdown(lingering, Int32(SHUT_WR))
        let open = withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 1) { bytes in
            var count = 0
            repeat {
                count = recv(lingering, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT))
            } while count > 0
            return count < 0 && errno == EAGAIN
        }
        if !open || !watch(lingering, for: Poller.readable) { finish() }
    }

    func finish() {
        switch phase {
        case .waiting(let timer), .closing(let timer): timer.cancel()
        case .closed: return
        case .idle, .resolving, .connecting, .connected: break
        }
        drop()
        if lingering >= 0 { Glibc.close(lingering) }
        lingering = -1
        phase = .closed
        if let slot { loop.core.clients.remove(slot: slot) }
        slot = nil
        emit(.disconnected(nil, retryIn: nil))
    }
}
