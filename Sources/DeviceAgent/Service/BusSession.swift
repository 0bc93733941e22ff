import FleetProtocol
import Logging
package import Mosquitto
import Synchronization

/// The agent's side of MQTT: one client on the loop, which names each connection and keeps the newest of what is to be said.
///
/// All but ``init(_:loop:logger:handler:)`` is called on the loop's thread by way of ``perform(_:)``.
final class BusSession: Sendable {
    typealias Handler = @Sendable (DeviceEvent) -> Void

    private let loop: EventLoop
    private let client: LoopClient
    private let state: LoopState

    /// What is touched on the loop's thread alone.
    private final class LoopState: @unchecked Sendable {  // safe: used in closures that run on the loop's thread
        var outbox = Outbox()
        /// Barriers by the packet of their subscription.
        var subscriptions: [PacketID: (filters: [TopicFilter], barrier: Int64)] = [:]
        var topics: [PacketID: String] = [:]
        /// Who waits until all has been said.
        var leaving: CheckedContinuation<Void, Never>?

        func leave() {
            leaving?.resume()
            leaving = nil
        }
    }

    /// How long the broker has to take what is said last.
    private static let patience = Duration.seconds(3)

    /// Messages that are read before the core has dealt with them.
    private static let credit = 1_000

    init(
        _ configuration: AgentConfiguration, agentVersion: String, boot: Int64, loop: EventLoop, logger: Logger,
        handler: @escaping Handler
    ) throws {
        self.loop = loop
        self.logger = logger
        let state = LoopState()
        self.state = state
        let fleet = configuration.enrollment.fleet
        let connection = Mutex(RandomID.random())
        var options = ClientOptions(
            host: configuration.host, port: configuration.port, clientID: configuration.enrollment.device.text)
        options.userName = configuration.userName
        options.password = Password(configuration.password)
        options.keepAlive = .seconds(30)
        options.tls = configuration.tls.map {
            ClientOptions.TLS(authorityFile: $0.authority, certificateFile: $0.certificate, keyFile: $0.key)
        }
        let presence = Address.presence(.device(configuration.enrollment.device)).topic(in: fleet)
        let incarnation = configuration.enrollment.incarnation
        options.makeWill = {
            let name = RandomID.random()
            connection.withLock { $0 = name }
            let will = Presence(
                state: .offline, incarnation: incarnation, boot: boot, connection: name, since: .now,
                agent: agentVersion, apps: [])
            return ClientOptions.Will(topic: presence, payload: will.json, retain: true)
        }
        client = try loop.makeClient(options, credit: Self.credit) { client, event in
            switch event {
            case .connecting: break
            case .connected:
                logger.info("connected to the broker")
                handler(.connected(connection: connection.withLock { $0 }))
            case .message(let message): handler(.message(topic: message.topic, payload: message.payload))
            case .published(let packet, let code):
                let topic = state.topics.removeValue(forKey: packet)
                if code.isError {
                    logger.warning(
                        "the broker refused a message",
                        metadata: ["topic": "\(topic ?? "")", "reason": "\(code)"])
                }
                Self.flush(state, client, fleet, logger)
            case .subscribed(let packet, let codes):
                Self.subscribed(packet, codes, state, client, fleet, logger, handler)
            case .unsubscribed: break
            case .disconnected(let error, let delay):
                state.outbox = Outbox()
                state.subscriptions = [:]
                state.topics = [:]
                state.leave()
                if let error, let delay {
                    logger.warning(
                        "no connection to the broker",
                        metadata: ["reason": "\(error)", "retry": "\(delay)"])
                }
                handler(.disconnected)
            }
        }
    }

    func start() { client.start() }

    private let logger: Logger

    func subscribe(_ filters: [TopicFilter], barrier: Int64, in fleet: FleetID) {
        loop.execute { [client, state] in Self.subscribe(filters, barrier, state, client, fleet) }
    }

    func unsubscribe(_ filters: [TopicFilter], in fleet: FleetID) {
        loop.execute { [client] in
            // Without a connection there is no subscription.
            _ = try? client.unsubscribe(from: filters.map { $0.text(in: fleet) })
        }
    }

    func publish(_ address: Address, _ payload: [UInt8], retain: Bool, in fleet: FleetID) {
        loop.execute { [client, state, logger] in
            state.outbox.add(address, payload, retain: retain)
            Self.flush(state, client, fleet, logger)
        }
    }

    func report(_ status: Status, in fleet: FleetID) {
        loop.execute { [client, state, logger] in
            state.outbox.add(status)
            Self.flush(state, client, fleet, logger)
        }
    }

    /// The core has dealt with this many messages.
    func handled(_ count: Int) {
        loop.execute { [client] in client.grant(count) }
    }

    /// Leaves when all that was to be published is; the broker says the will if it does not take it in time, or if the
    /// agent has failed.
    func close(hasFailed: Bool) async {
        if hasFailed { return client.close(.publishingWill) }
        await withCheckedContinuation { continuation in
            loop.execute { [client, state] in
                guard client.isConnected, !state.outbox.isEmpty else { return continuation.resume() }
                state.leaving = continuation
                _ = client.loop.schedule(after: Self.patience) { state.leave() }
            }
        }
        loop.execute { [client, state] in client.close(state.outbox.isEmpty ? .graceful : .publishingWill) }
    }

    private static func flush(_ state: LoopState, _ client: LoopClient, _ fleet: FleetID, _ logger: Logger) {
        while client.hasRoom, let next = state.outbox.next() {
            let topic = next.address.topic(in: fleet)
            do {
                let packet = try client.publish(
                    next.content.payload, to: topic, qos: next.qos, retain: next.isRetained)
                state.topics[packet] = topic
            } catch {
                // When the connection is gone, the next one says it again.
                guard client.isConnected else { return }
                logger.error("cannot publish", metadata: ["topic": "\(topic)", "reason": "\(error)"])
            }
        }
        if state.outbox.isEmpty { state.leave() }
    }

    private static func subscribe(
        _ filters: [TopicFilter], _ barrier: Int64, _ state: LoopState, _ client: LoopClient, _ fleet: FleetID
    ) {
        guard let packet = try? client.subscribe(to: filters.map { $0.text(in: fleet) }, qos: filters.qos) else {
            return
        }
        state.subscriptions[packet] = (filters, barrier)
    }

    /// A refused filter is asked for again later: until it stands, the core does not hear that it does.
    private static func subscribed(
        _ packet: PacketID, _ codes: [ReasonCode], _ state: LoopState, _ client: LoopClient, _ fleet: FleetID,
        _ logger: Logger, _ handler: @escaping Handler
    ) {
        guard let (filters, barrier) = state.subscriptions.removeValue(forKey: packet) else { return }
        let refused = zip(filters, codes).filter { $1.isError }.map(\.0)
        guard !refused.isEmpty else { return handler(.subscribed(barrier: barrier)) }
        logger.error(
            "the broker refused subscriptions: nothing is loosened until it grants them",
            metadata: ["filters": "\(refused.map { $0.text(in: fleet) }.joined(separator: " "))"])
        _ = client.loop.schedule(after: .seconds(10)) {
            guard client.isConnected else { return }
            subscribe(refused, barrier, state, client, fleet)
        }
    }
}

extension [TopicFilter] {
    /// Documents of apps come at QoS 0: a connection shows all of them at its beginning, keeps their order, and what is
    /// dropped all the same is found by comparing. A marker at QoS 1 comes behind them too.
    package var qos: QoS {
        allSatisfy { if case .aspects = $0 { true } else { false } } ? .atMostOnce : .atLeastOnce
    }
}
