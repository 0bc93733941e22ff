package import FleetProtocol
package import Logging
package import Mosquitto
import Synchronization

/// The agent's side of MQTT: one client on the loop, which names each connection and keeps the newest of what is to be said.
///
/// May be called from any thread; what is asked for is done on the loop's, if the connection that it is meant for is still
/// there then: the next one begins with all that is to be said.
package final class BusSession: Sendable {
    package typealias Handler = @Sendable (DeviceEvent) -> Void

    private let loop: EventLoop
    private let client: LoopClient
    private let state: LoopState

    /// What is touched on the loop's thread alone.
    private final class LoopState: @unchecked Sendable {  // safe: used in closures that run on the loop's thread
        let fleet: FleetID
        /// The topic of this device's.
        let presence: String
        let logger: Logger
        let handler: Handler
        /// The name of the connection that stands.
        var connection: RandomID?
        var outbox = Outbox()
        /// Barriers by the packet of their subscription.
        var subscriptions: [PacketID: (filters: [TopicFilter], barrier: Int64)] = [:]
        var refusals = RefusedSubscriptions()
        /// What the broker has not answered.
        var topics: [PacketID: String] = [:]
        /// Whether the broker has refused what was said last of this device's presence.
        private var isPresenceRefused = false
        /// How many reports may still be said in this second.
        private var reportsLeft = BusSession.reportsPerSecond
        /// Who waits until all has been said.
        var leaving: CheckedContinuation<Void, Never>?

        init(_ fleet: FleetID, presence: String, _ logger: Logger, _ handler: @escaping Handler) {
            self.fleet = fleet
            self.presence = presence
            self.logger = logger
            self.handler = handler
        }

        func leave() {
            leaving?.resume()
            leaving = nil
        }

        func flush(_ client: LoopClient) {
            // Who leaves says all that there is.
            while client.hasRoom, let next = outbox.next(withReports: reportsLeft > 0 || leaving != nil) {
                if next.isReport { countReport(client) }
                let topic = next.address.topic(in: fleet)
                do {
                    let packet = try client.publish(
                        next.content.payload, to: topic, qos: next.qos, retain: next.isRetained)
                    topics[packet] = topic
                } catch {
                    // When the connection is gone, the next one says it again.
                    guard client.isConnected else { return }
                    logger.error("cannot publish", metadata: ["topic": "\(topic)", "reason": "\(error)"])
                }
            }
            if hasSaidAll { leave() }
        }

        private func countReport(_ client: LoopClient) {
            if reportsLeft == BusSession.reportsPerSecond {
                client.loop.schedule(after: .seconds(1)) { [self, connection] in
                    guard connection == self.connection else { return }
                    reportsLeft = BusSession.reportsPerSecond
                    flush(client)
                }
            }
            reportsLeft -= 1
        }

        /// To a broker that has answered it.
        private var hasSaidAll: Bool { outbox.isEmpty && topics.isEmpty }

        /// Whether nothing is left for the broker to say in the device's place.
        var canLeave: Bool { hasSaidAll && !isPresenceRefused }

        func answered(_ packet: PacketID, _ code: ReasonCode) {
            let topic = topics.removeValue(forKey: packet)
            if topic == presence { isPresenceRefused = code.isError }
            guard code.isError else { return }
            logger.warning(
                "the broker refused a message", metadata: ["topic": "\(topic ?? "")", "reason": "\(code)"])
        }

        func subscribe(_ filters: [TopicFilter], _ barrier: Int64, _ client: LoopClient) {
            let texts = filters.map { $0.text(in: fleet) }
            refusals.subscribing(to: texts)
            do {
                let packet = try client.subscribe(to: texts, qos: filters.qos)
                subscriptions[packet] = (filters, barrier)
            } catch {
                // The next connection subscribes anew.
                guard client.isConnected else { return }
                logger.error(
                    "could not subscribe: nothing is loosened until that is done", metadata: ["reason": "\(error)"])
                subscribeLater(filters, barrier, client)
            }
        }

        /// A refused filter is asked for again later: until it stands, the core does not hear that it does.
        func subscribed(_ packet: PacketID, _ codes: [ReasonCode], _ client: LoopClient) {
            guard let (filters, barrier) = subscriptions.removeValue(forKey: packet) else { return }
            let refused = zip(filters, codes).filter { $1.isError }.map(\.0)
            guard !refused.isEmpty else { return handler(.subscribed(barrier: barrier)) }
            logger.error(
                "the broker refused subscriptions: nothing is loosened until it grants them",
                metadata: ["filters": "\(refused.map { $0.text(in: fleet) }.joined(separator: " "))"])
            subscribeLater(refused, barrier, client)
        }

        private func subscribeLater(_ filters: [TopicFilter], _ barrier: Int64, _ client: LoopClient) {
            _ = client.loop.schedule(after: .seconds(refusals.pause())) { [self, connection] in
                guard connection == self.connection else { return }
                let wanted = filters.filter { refusals.isWanted($0.text(in: fleet)) }
                // Of what has been left there is nothing to wait for.
                guard !wanted.isEmpty else { return handler(.subscribed(barrier: barrier)) }
                subscribe(wanted, barrier, client)
            }
        }

        func unsubscribe(_ filters: [TopicFilter], _ client: LoopClient) {
            let texts = filters.map { $0.text(in: fleet) }
            refusals.unsubscribing(from: texts)
            // Without a connection there is no subscription.
            _ = try? client.unsubscribe(from: texts)
        }

        func begin(_ connection: RandomID?) {
            self.connection = connection
            outbox = Outbox()
            subscriptions = [:]
            refusals = RefusedSubscriptions()
            topics = [:]
            isPresenceRefused = false
            reportsLeft = BusSession.reportsPerSecond
        }
    }

    /// How long the broker has to answer what is said last.
    private static let patience = Duration.seconds(3)
    /// Events and changes of log levels: apps cause them as often as they like, and the broker takes only so much of one
    /// device.
    private static let reportsPerSecond = 100

    /// Messages that are read before the core has dealt with them: with the size of each a bound on the memory that a
    /// broker can fill.
    private static let credit = 100
    /// In bytes. Documents are much smaller; one subscription to 64 groups for each of 64 apps has up to 700 KiB.
    private static let largestPacket = 1 << 20

    package init(
        _ configuration: AgentConfiguration, will: DeviceWill, loop: EventLoop, logger: Logger,
        handler: @escaping Handler
    ) throws {
        self.loop = loop
        let fleet = configuration.enrollment.fleet
        let presence = Address.presence(.device(configuration.enrollment.device)).topic(in: fleet)
        let state = LoopState(fleet, presence: presence, logger, handler)
        self.state = state
        let connection = Mutex(RandomID.random())
        var options = ClientOptions(
            host: configuration.host, port: configuration.port, clientID: configuration.enrollment.device.text)
        options.userName = configuration.userName
        options.password = Password(configuration.password)
        options.keepAlive = .seconds(30)
        options.maximumPacketSize = Self.largestPacket
        options.tls = configuration.tls.map {
            ClientOptions.TLS(authorityFile: $0.authority, certificateFile: $0.certificate, keyFile: $0.key)
        }
        options.makeWill = {
            let name = RandomID.random()
            connection.withLock { $0 = name }
            return ClientOptions.Will(
                topic: presence, payload: will.presence(on: name, at: .now).json, retain: true)
        }
        client = try loop.makeClient(options, credit: Self.credit) { client, event in
            switch event {
            case .connecting: break
            case .connected:
                logger.info("connected to the broker")
                let name = connection.withLock { $0 }
                state.begin(name)
                handler(.connected(connection: name))
            case .message(let message): handler(.message(topic: message.topic, payload: message.payload))
            case .published(let packet, let code):
                state.answered(packet, code)
                state.flush(client)
            case .subscribed(let packet, let codes): state.subscribed(packet, codes, client)
            case .unsubscribed: break
            case .disconnected(let error, let delay):
                state.begin(nil)
                state.leave()
                if let error, let delay {
                    let isRefused = error.code == .authenticationRefused
                    let doubt =
                        isRefused
                        ? ": has the device been removed, or enrolled again? Then fleetctl enroll makes a folder that counts"
                        : ""
                    logger.warning(
                        "no connection to the broker",
                        metadata: ["reason": "\(error)\(doubt)", "retry": "\(delay.inTenths)"])
                }
                handler(.disconnected)
            }
        }
    }

    package func start() { client.start() }

    package func subscribe(_ filters: [TopicFilter], barrier: Int64, on connection: RandomID?) {
        execute(on: connection) { client, state in state.subscribe(filters, barrier, client) }
    }

    package func unsubscribe(_ filters: [TopicFilter], on connection: RandomID?) {
        execute(on: connection) { client, state in state.unsubscribe(filters, client) }
    }

    package func publish(_ address: Address, _ payload: [UInt8], retain: Bool, on connection: RandomID?) {
        execute(on: connection) { client, state in
            state.outbox.add(address, payload, retain: retain)
            state.flush(client)
        }
    }

    package func report(_ status: Status, on connection: RandomID?) {
        execute(on: connection) { client, state in
            state.outbox.add(status)
            state.flush(client)
        }
    }

    /// The broker says the will of this connection, and another one is made.
    package func reconnect(_ connection: RandomID?) {
        execute(on: connection) { client, _ in client.reconnect() }
    }

    private func execute(on connection: RandomID?, _ body: @escaping @Sendable (LoopClient, LoopState) -> Void) {
        guard let connection else { return }
        loop.execute { [client, state] in if state.connection == connection { body(client, state) } }
    }

    /// The core has dealt with this many messages.
    package func handled(_ count: Int) {
        loop.execute { [client] in client.grant(count) }
    }

    /// Leaves when the broker has answered all that was to be published; it says the will if it does not in time, or refuses
    /// the presence, or if the agent has failed. Which of both is decided when this returns.
    package func close(hasFailed: Bool) async {
        if hasFailed { return client.close(.publishingWill) }
        await withCheckedContinuation { continuation in
            loop.execute { [client, state] in
                guard client.isConnected else { return continuation.resume() }
                state.leaving = continuation
                client.loop.schedule(after: Self.patience) { state.leave() }
                state.flush(client)
            }
        }
        await withCheckedContinuation { continuation in
            loop.execute { [client, state] in
                client.close(state.canLeave ? .graceful : .publishingWill)
                continuation.resume()
            }
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

extension Duration {
    /// In seconds, with one digit behind the point.
    fileprivate var inTenths: String {
        "\(components.seconds).\(components.attoseconds / 100_000_000_000_000_000) s"
    }
}
