internal import Synchronization

/// Who waits for which answer of the broker. Works on the loop's thread; every waiter gets one outcome.
final class Ledger: Sendable {
    private struct State {
        var publishes: [PacketID: Pending<ReasonCode>] = [:]
        var waiting = FIFO<Publish>()
        var subscriptions: [PacketID: Subscription] = [:]
        var unsubscriptions: [PacketID: Pending<Void>] = [:]
        var connecting: [Pending<Void>] = []
        var closing: [Pending<Void>] = []

        /// Takes out everybody who waits for an answer on a connection.
        mutating func takeRequests() -> (answers: [Pending<ReasonCode>], others: [Pending<Void>]) {
            let answers = Array(publishes.values) + waiting.removeAll().map(\.answer)
            let others = subscriptions.values.map(\.answer) + Array(unsubscriptions.values)
            publishes = [:]
            subscriptions = [:]
            unsubscriptions = [:]
            return (answers, others)
        }
    }

    let board = StateBoard()
    let buffer: MessageBuffer
    private let state = Mutex(State())

    init(buffer: MessageBuffer) {
        self.buffer = buffer
    }

    @Sendable func handle(_ client: LoopClient, _ event: LoopClient.Event) {
        switch event {
        case .connecting:
            board.show(.connecting)
        case .connected(let connack):
            board.show(.connected(number: connack.number))
            for waiter in takeConnecting() { waiter.settle(.success(())) }
        case .message(let message):
            buffer.append(message)
        case .published(let id, let reason):
            state.withLock { $0.publishes.removeValue(forKey: id) }?.settle(.success(reason))
            publishWaiting(by: client)
        case .subscribed(let id, let reasons):
            guard let request = state.withLock({ $0.subscriptions.removeValue(forKey: id) }) else { return }
            request.answer.settle(request.outcome(of: reasons, on: client.options.endpoint))
        case .unsubscribed(let id):
            state.withLock { $0.unsubscriptions.removeValue(forKey: id) }?.settle(.success(()))
        case .disconnected(let cause, let delay):
            disconnected(client, cause, retryIn: delay)
        }
    }

    private func disconnected(_ client: LoopClient, _ cause: MosquittoError?, retryIn delay: Duration?) {
        let endpoint = client.options.endpoint
        let (answers, others) = state.withLock { $0.takeRequests() }
        let error: MosquittoError
        if let cause, let delay {
            board.show(.waiting(retryIn: delay, cause: cause))
            error = MosquittoError(
                .connectionLost, "no answer: \(cause.message)", reason: cause.reason, status: cause.status)
            for waiter in takeConnecting() { waiter.settle(.failure(cause)) }
        } else {
            board.show(.closed(cause: cause))
            buffer.finish()
            error = MosquittoError(.closed, "the client for \(endpoint) was closed before the broker answered")
            for waiter in takeConnecting() { waiter.settle(.failure(error)) }
            let closing = state.withLock { state in
                defer { state.closing = [] }
                return state.closing
            }
            for waiter in closing { waiter.settle(.success(())) }
        }
        for answer in answers { answer.settle(.failure(error)) }
        for answer in others { answer.settle(.failure(error)) }
    }

    private func takeConnecting() -> [Pending<Void>] {
        state.withLock { state in
            defer { state.connecting = [] }
            return state.connecting
        }
    }

    func awaitConnection(_ answer: Pending<Void>, of client: LoopClient) {
        client.start()
        if client.isConnected { return answer.settle(.success(())) }
        if client.isClosed {
            return answer.settle(
                .failure(MosquittoError(.closed, "connecting to \(client.options.endpoint): the client is closed")))
        }
        state.withLock { $0.connecting.append(answer) }
    }

    func publish(_ request: Publish, by client: LoopClient) {
        if request.answer.isSettled { return }
        guard state.withLock({ $0.waiting.isEmpty }), send(request, by: client) else {
            return state.withLock { $0.waiting.append(request) }
        }
    }

    private func publishWaiting(by client: LoopClient) {
        while client.hasRoom, let request = state.withLock({ $0.waiting.popFirst() }) {
            if !request.answer.isSettled, !send(request, by: client) {
                return request.answer.settle(
                    .failure(MosquittoError(.bufferFull, "publishing to \(request.topic): no room")))
            }
        }
    }

    /// Packet ids come round again: an answer to the old request would be taken for the new one's.
    private static let forgotten = MosquittoError(
        .connectionLost, "no answer by the time that another request bears its number")

    /// False when it has to wait for room.
    private func send(_ request: Publish, by client: LoopClient) -> Bool {
        do throws(MosquittoError) {
            let id = try client.publish(request.payload, to: request.topic, qos: request.qos, retain: request.retain)
            let old = state.withLock { $0.publishes.updateValue(request.answer, forKey: id) }
            old?.settle(.failure(Self.forgotten))
        } catch  where error.code == .bufferFull {
            return false
        } catch {
            request.answer.settle(.failure(error))
        }
        return true
    }

    /// Publishes that have been accepted for sending, and not been answered.
    var unanswered: Int { state.withLock { $0.publishes.count + $0.waiting.count } }

    func subscribe(_ request: Subscription, by client: LoopClient) {
        if request.answer.isSettled { return }
        do throws(MosquittoError) {
            let id = try client.subscribe(to: request.filters, qos: request.qos, options: request.options)
            let old = state.withLock { $0.subscriptions.updateValue(request, forKey: id) }
            old?.answer.settle(.failure(Self.forgotten))
        } catch {
            request.answer.settle(.failure(error))
        }
    }

    func unsubscribe(from filters: [String], _ answer: Pending<Void>, by client: LoopClient) {
        if answer.isSettled { return }
        do throws(MosquittoError) {
            let id = try client.unsubscribe(from: filters)
            let old = state.withLock { $0.unsubscriptions.updateValue(answer, forKey: id) }
            old?.settle(.failure(Self.forgotten))
        } catch {
            answer.settle(.failure(error))
        }
    }

    func close(_ farewell: LoopClient.Farewell, _ answer: Pending<Void>, of client: LoopClient) {
        if case .closed = board.current { return answer.settle(.success(())) }
        state.withLock { $0.closing.append(answer) }
        client.close(farewell)
    }
}

extension Subscription {
    func outcome(of reasons: [ReasonCode], on endpoint: String) -> Result<Void, any Error> {
        let refused = zip(filters, reasons).filter { $0.1.isError }
        guard let first = refused.first else { return .success(()) }
        let what = refused.map { "\($0.0) with \($0.1)" }.joined(separator: ", ")
        return .failure(
            MosquittoError(
                .subscriptionRefused, "subscribing on \(endpoint): the broker refused \(what)", reason: first.1))
    }
}
