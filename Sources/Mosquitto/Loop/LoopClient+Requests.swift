internal import CMosquitto
internal import Glibc

/// Requests: on the loop's thread only. Each throws when nothing was sent, and else is answered by an event that bears
/// the returned id, unless `.disconnected` comes before.
extension LoopClient {
    /// Publishes `payload`.
    ///
    /// - Throws: `.notConnected`, `.bufferFull` while `sendMaximum` publishes are unanswered, `.invalidArgument`,
    ///   `.payloadTooLarge`, `.connectionLost`.
    @discardableResult
    public func publish(
        _ payload: [UInt8], to topic: String, qos: QoS = .atLeastOnce, retain: Bool = false
    ) throws(MosquittoError) -> PacketID {
        let outcome = payload.withUnsafeBytes { bytes in
            Result { () throws(MosquittoError) in try publish(bytes, to: topic, qos: qos, retain: retain) }
        }
        return try outcome.get()
    }

    /// Publishes `payload`, which is copied before this returns.
    @discardableResult
    public func publish(
        _ payload: UnsafeRawBufferPointer, to topic: String, qos: QoS = .atLeastOnce, retain: Bool = false
    ) throws(MosquittoError) -> PacketID {
        let connection = try connected("publishing to", topic)
        guard Packet.size(topic: topic.utf8.count, payload: payload.count) <= limits.maximumPacketSize else {
            throw MosquittoError(
                .payloadTooLarge,
                "publishing \(payload.count) bytes to \(topic): packets may have \(limits.maximumPacketSize) bytes")
        }
        // libmosquitto checks the rest of the rules, but would publish to what stands before a zero byte.
        guard topic.withCString({ strlen($0) }) == topic.utf8.count else {
            try Topic.check(topic)
            return PacketID(rawValue: 0)
        }
        guard inFlight < limits.sendMaximum else {
            throw MosquittoError(.bufferFull, "publishing to \(topic): \(inFlight) publishes are unanswered")
        }
        inFlight += 1
        if qos != .atMostOnce { asked() }
        let (status, id) = connection.publish(payload, to: topic, qos: qos, retain: retain)
        if status != MOSQ_ERR_SUCCESS.rawValue {
            let number = errno
            inFlight -= 1
            if qos != .atMostOnce { answered() }
            try Topic.check(topic)
            throw failed(status, number, connection, "publishing to \(topic) on \(options.endpoint)")
        }
        settle()
        return PacketID(rawValue: id)
    }

    /// Subscribes to all of `filters` in one packet, with `qos` at most.
    public func subscribe(
        to filters: [String], qos: QoS = .atLeastOnce, options subscription: SubscribeOptions = SubscribeOptions()
    ) throws(MosquittoError) -> PacketID {
        let connection = try connected("subscribing to", filters.first ?? "")
        try check(filters)
        asked()
        let (status, id) = connection.subscribe(filters, qos: qos, options: subscription)
        return try finish(status, id, connection, "subscribing to", filters)
    }

    /// Ends the subscriptions to `filters`.
    public func unsubscribe(from filters: [String]) throws(MosquittoError) -> PacketID {
        let connection = try connected("unsubscribing from", filters.first ?? "")
        try check(filters)
        asked()
        let (status, id) = connection.unsubscribe(filters)
        return try finish(status, id, connection, "unsubscribing from", filters)
    }

    private func check(_ filters: [String]) throws(MosquittoError) {
        guard !filters.isEmpty else { throw MosquittoError(.invalidArgument, "subscribing: no filter is given") }
        for filter in filters { try Topic.check(filter: filter) }
    }

    private func finish(
        _ status: Int32, _ id: UInt16, _ connection: Connection, _ tried: String, _ filters: [String]
    ) throws(MosquittoError) -> PacketID {
        guard status == MOSQ_ERR_SUCCESS.rawValue else {
            let number = errno
            answered()
            throw failed(
                status, number, connection, "\(tried) \(filters.joined(separator: ", ")) on \(options.endpoint)")
        }
        settle()
        return PacketID(rawValue: id)
    }

    private func connected(_ tried: String, _ what: String) throws(MosquittoError) -> Connection {
        loop.checkIsolated()
        switch phase {
        case .connected:
            if let connection { return connection }
        case .closed, .closing:
            throw MosquittoError(.closed, "\(tried) \(what): the client for \(options.endpoint) is closed")
        case .idle, .resolving, .connecting, .waiting:
            break
        }
        throw MosquittoError(.notConnected, "\(tried) \(what): not connected to \(options.endpoint)")
    }

    /// A request that failed on the wire takes the connection with it: part of the packet may have been written.
    private func failed(
        _ status: Int32, _ number: Int32, _ connection: Connection, _ tried: String
    ) -> MosquittoError {
        let error = MosquittoError.library(status, errno: number, tried)
        switch error.code {
        case .system, .connectionLost, .tls, .notConnected:
            end(cause: connection.cause(wasConnected: true, socketError: error.code == .system ? number : 0))
            return MosquittoError(.connectionLost, error.message, status: error.status)
        default:
            return error
        }
    }
}
