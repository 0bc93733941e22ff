package import FleetHome
package import FleetProtocol
package import Logging
import Mosquitto
import ServiceLifecycle

/// The controller of one fleet, from its home's files to its broker.
///
/// Returns after a graceful shutdown: the fleet has been told, the store is closed. Throws when it must not go on. While
/// the broker is away it tries again, for ever.
package struct ControllerService: Service {
    private let home: FleetHome
    private let isRestoring: Bool
    private let disregarded: Set<DeviceID>
    private let eventLife: Int64?
    private let metricsAddress: MetricsAddress?
    private let logger: Logger

    /// - Parameters:
    ///   - isRestoring: Whether the database was put back from a backup: the first connection begins a new epoch.
    ///   - disregarded: Devices whose word that the database was put back counts for nothing.
    ///   - eventLife: For how many seconds events are kept, but those of destroyed keys, which stay; for ever if nil.
    ///   - metricsAddress: Where to tell Prometheus the controller's figures; nowhere if nil.
    package init(
        home: FleetHome, isRestoring: Bool = false, disregarded: Set<DeviceID> = [], eventLife: Int64? = nil,
        metricsAddress: MetricsAddress? = nil, logger: Logger
    ) {
        self.home = home
        self.isRestoring = isRestoring
        self.disregarded = disregarded
        self.eventLife = eventLife
        self.metricsAddress = metricsAddress
        self.logger = logger
    }

    package func run() async throws {
        let lock = try home.lock()
        defer { withExtendedLifetime(lock) {} }
        let outbox = Outbox()
        let engine = try ControllerEngine(
            home: home, lock: lock, isRestoring: isRestoring, disregarded: disregarded, eventLife: eventLife,
            outbox: outbox)
        lock.noteDatabase(at: lock.databasePosition)
        let metrics = try await metricsServer(engine)
        let loop = try EventLoop(name: "controller", gathering: .milliseconds(3))
        let client = try MQTTClient(options(engine.will), on: loop)
        logger.info(
            "started", metadata: ["home": "\(home.path)", "fleet": "\(home.context.fleet)", "broker": "\(broker)"])
        if let enrolled = try? Set(home.devices().map(\.device)) {
            for device in disregarded.subtracting(enrolled).sorted() {
                logger.warning("a device that is to be disregarded is not enrolled", metadata: ["device": "\(device)"])
            }
        }
        if home.context.guardLibrary == nil {
            logger.notice("the broker has no guard; `fleetctl broker configure` gives it one")
        }
        let outcome = await serve(client, engine, lock, outbox, loop, metrics)
        // The will is how it says good-bye: a message of its own could still wait behind others at the DISCONNECT.
        await client.close(.publishingWill)
        await loop.shutdown()
        let closed = await Result { try await engine.close() }
        logger.info("stopped")
        try outcome.get()
        try closed.get()
    }

    private func metricsServer(_ engine: ControllerEngine) async throws -> MetricsServer? {
        guard let metricsAddress else { return nil }
        let server = try await MetricsServer(at: metricsAddress, token: home.metricsToken()) {
            try await engine.metrics()
        }
        logger.info(
            "serving metrics",
            metadata: ["address": "\(server.address ?? metricsAddress)", "token": "\(home.metricsTokenPath)"])
        return server
    }

    /// The fleet goes on without, should it end: whoever reads them notices.
    private func tell(_ metrics: MetricsServer) async -> Result<Void, any Error> {
        do {
            try await metrics.run()
        } catch {
            logger.error("metrics are not served any more", metadata: ["reason": "\(error)"])
        }
        try? await gracefulShutdown()
        return .success(())
    }

    private var broker: String { "\(home.context.host):\(home.context.port)" }

    private func options(_ will: Will) throws -> ClientOptions {
        var options = ClientOptions(
            host: home.context.host, port: home.context.port, clientID: User.controller.text)
        options.userName = User.controller.text
        options.password = Password(Array(try home.credentials(for: .controller).password.utf8))
        options.tls = home.context.tls.map { ClientOptions.TLS(authorityFile: $0.authority) }
        options.makeWill = will.makeNext
        options.backoff.maximum = .seconds(5)
        return options
    }

    /// Runs until one part ends: by graceful shutdown, or because it must not go on.
    private func serve(
        _ client: MQTTClient, _ engine: ControllerEngine, _ lock: HomeLock, _ outbox: Outbox, _ loop: EventLoop,
        _ metrics: MetricsServer?
    ) async -> Result<Void, any Error> {
        let alarm = Alarm(loop)
        return await withTaskGroup(of: Result<Void, any Error>.self) { group in
            group.addTask {
                try? await gracefulShutdown()
                return .success(())
            }
            group.addTask {
                await ConnectionWatch(logger).run(client, engine)
                return .success(())
            }
            group.addTask {
                for await batch in client.messages.batches(of: 1_000) { await engine.receive(batch) }
                return .success(())
            }
            group.addTask {
                for await _ in alarm.rings { await engine.tick() }
                return .success(())
            }
            group.addTask {
                await Result { try await Performer(client, engine, lock, alarm, logger).run(outbox) }
            }
            if let metrics { group.addTask { await tell(metrics) } }
            client.start()
            defer { group.cancelAll() }
            return await group.next() ?? .success(())
        }
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
