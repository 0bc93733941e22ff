extension LoopClient {
    /// Queues an event; callable from libmosquitto's callbacks.
    func emit(_ event: Event) {
        loop.core.events.append((self, event))
    }

    func accepted(_ connack: Connack) {
        established += 1
        limits = connack
        limits.number = established
        connection?.number = established
        phase = .connected(since: EventLoop.now())
        emit(.connected(limits))
    }

    func published(_ id: PacketID, _ reason: ReasonCode) {
        inFlight -= 1
        // What has been written, and is answered by nobody, is no word of the broker.
        if connection?.isReading == true { answered() }
        emit(.published(id, reason))
    }

    func subscribed(_ id: PacketID, _ codes: [ReasonCode]) {
        answered()
        emit(.subscribed(id, codes))
    }

    func unsubscribed(_ id: PacketID) {
        answered()
        emit(.unsubscribed(id))
    }

    /// Returns whether reading should stop.
    func received(_ message: Message) -> Bool {
        if credit != .max { credit -= 1 }
        emit(.message(message))
        return credit <= 0
    }

    /// Calls the handler; after `close` nothing but the last event gets through.
    func handle(_ event: Event) {
        guard let handler else { return }
        if case .closed = phase {
            guard case .disconnected(_, retryIn: nil) = event else { return }
            self.handler = nil
        }
        handler(self, event)
    }

    /// Lets the client read `count` more messages, if it was made with a limit; on the loop's thread only.
    ///
    /// At the limit the client's socket is not read, so that TCP makes the broker wait. Answers of the broker wait too,
    /// that to a ping included: a client that is not read for longer than its keep-alive loses its connection.
    public func grant(_ count: Int) {
        loop.checkIsolated()
        guard credit != .max, count > 0 else { return }
        let wasExhausted = credit <= 0
        credit += count
        if wasExhausted, credit > 0 { pump(Poller.readable) }
    }
}
