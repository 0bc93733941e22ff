/// An MQTT 5 client for Swift concurrency.
///
/// ```swift
/// let loop = try EventLoop()
/// var options = ClientOptions(host: "127.0.0.1", clientID: "till-0042")
/// options.will = .init(topic: "presence/till-0042", payload: Array("offline".utf8), retain: true)
/// let client = try MQTTClient(options, on: loop)
/// try await client.connect()
/// try await client.subscribe(to: ["desired/#"])
/// for await message in client.messages { … }
/// ```
///
/// **Connections.** Once started, the client connects again by itself until it is closed, after waits that grow, with
/// jitter. Each connection starts clean: subscriptions are gone and must be made anew at each
/// `ConnectionState.connected`, which `states` shows. A refusal of the credentials is shown there too, and tried again.
///
/// **Publishing.** Nothing is queued while there is no connection: `publish` throws `.notConnected`. A publish that was
/// under way when the connection went down throws `.connectionLost`: whether the broker has it is not known.
///
/// **Receiving.** `messages` is bounded, and holds the broker back; see `MessageSequence`. A QoS 1 message counts as
/// delivered when the process has read it, not when it has been consumed.
///
/// All members may be used from any thread. The loop is not shut down with the client; close clients, then the loop.
public final class MQTTClient: Sendable {
    /// What the client was made with.
    public let options: ClientOptions
    let client: LoopClient
    let ledger: Ledger

    /// Makes a client, which does nothing until `start()` or `connect()`.
    ///
    /// - Parameter messageBuffer: How many messages may be read and not consumed.
    /// - Throws: `.invalidArgument`, naming the option.
    public init(_ options: ClientOptions, on loop: EventLoop, messageBuffer: Int = 1000) throws {
        let ledger = Ledger(buffer: MessageBuffer(capacity: max(1, messageBuffer)))
        self.options = options
        self.ledger = ledger
        self.client = try loop.makeClient(options, credit: max(1, messageBuffer), handler: ledger.handle)
    }

    deinit {
        client.close()
    }

    /// The messages of all subscriptions; for one consumer.
    public var messages: MessageSequence {
        MessageSequence(source: MessageSource(buffer: ledger.buffer, client: client))
    }

    /// Where the client stands, from now on: the present state first, then each new one. Only the newest is kept for a
    /// slow watcher. Each use is a sequence of its own, which ends with `closed`.
    public var states: some AsyncSequence<ConnectionState, Never> & Sendable { ledger.board.watch() }

    /// Where the client stands.
    public var state: ConnectionState { ledger.board.current }

    /// Begins to connect, and goes on until `close`; does not wait.
    public func start() {
        client.start()
    }

    /// Begins to connect, if that is still to do, and waits until the client is connected.
    ///
    /// - Throws: why the attempt under way, or else the next, failed. The client goes on trying all the same: call it
    ///   again to wait for the next attempt, or `close` to give up.
    public func connect() async throws {
        let answer = Pending<Void>()
        client.loop.execute { [client, ledger] in ledger.awaitConnection(answer, of: client) }
        try await answer.wait()
    }

    /// How many publishes have no answer yet: those sent, and those that wait for room.
    public var unanswered: Int { ledger.unanswered }

    /// Publishes `payload` and waits for the broker's answer.
    ///
    /// A cancelled task stops waiting; the message may still be sent. When more publishes than `sendMaximum` are
    /// unanswered, later ones wait here, in order.
    ///
    /// - Returns: The reason code of the broker's answer (success at once for QoS 0). A refusal is returned too, not
    ///   thrown: see `ReasonCode.isError`, and `noMatchingSubscribers`, which is none.
    /// - Throws: `.notConnected`, `.invalidArgument`, `.payloadTooLarge` or `.closed` when nothing was sent,
    ///   `.connectionLost` when the answer did not come.
    @discardableResult
    public func publish(
        _ payload: [UInt8], to topic: String, qos: QoS = .atLeastOnce, retain: Bool = false
    ) async throws -> ReasonCode {
        try Task.checkCancellation()
        let answer = Pending<ReasonCode>()
        let request = Publish(payload: payload, topic: topic, qos: qos, retain: retain, answer: answer)
        client.loop.execute { [client, ledger] in ledger.publish(request, by: client) }
        return try await answer.wait()
    }

    /// Publishes text as UTF-8.
    @discardableResult
    public func publish(
        _ text: String, to topic: String, qos: QoS = .atLeastOnce, retain: Bool = false
    ) async throws -> ReasonCode {
        try await publish(Array(text.utf8), to: topic, qos: qos, retain: retain)
    }

    /// Subscribes to `filters`, with `qos` at most, and waits for the broker's answer. The retained messages follow it.
    ///
    /// - Throws: `.subscriptionRefused`, naming the filters that were refused with their reasons; the others stand. The
    ///   same errors as `publish`.
    public func subscribe(
        to filters: [String], qos: QoS = .atLeastOnce, options: SubscribeOptions = SubscribeOptions()
    ) async throws {
        try Task.checkCancellation()
        let request = Subscription(filters: filters, qos: qos, options: options, answer: Pending())
        client.loop.execute { [client, ledger] in ledger.subscribe(request, by: client) }
        try await request.answer.wait()
    }

    /// Ends the subscriptions to `filters`. Messages that were under way may still come.
    public func unsubscribe(from filters: [String]) async throws {
        try Task.checkCancellation()
        let answer = Pending<Void>()
        client.loop.execute { [client, ledger] in ledger.unsubscribe(from: filters, answer, by: client) }
        try await answer.wait()
    }

    /// Leaves this connection without a farewell, as if it had been lost, and makes another one: a broker may have come to
    /// answer nothing on one. The broker says the will. Without a connection it has no effect; does not wait.
    public func reconnect() {
        client.loop.execute { [client] in client.reconnect() }
    }

    /// Ends the client for good; again without effect. Returns when the connection is closed: what was sent before went
    /// out before the DISCONNECT, if the broker took it within a second. A publish that waits for room (see `sendMaximum`)
    /// has not been sent, and is not. Whoever still waits for room or an answer gets `.closed`; `messages` ends behind what
    /// is held.
    public func close(_ farewell: LoopClient.Farewell = .graceful) async {
        let answer = Pending<Void>()
        client.loop.execute { [client, ledger] in ledger.close(farewell, answer, of: client) }
        try? await answer.wait()  // only the caller's cancellation can end it early
    }
}
