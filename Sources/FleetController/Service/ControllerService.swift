package import FleetHome
import FleetProtocol
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
    private let logger: Logger

    /// - Parameter isRestoring: Whether the database was put back from a backup: the first connection begins a new epoch.
    package init(home: FleetHome, isRestoring: Bool = false, logger: Logger) {
        self.home = home
        self.isRestoring = isRestoring
        self.logger = logger
    }

    package func run() async throws {
        let lock = try home.lock()
        defer { withExtendedLifetime(lock) {} }
        let outbox = Outbox()
        let engine = try ControllerEngine(home: home, lock: lock, isRestoring: isRestoring, outbox: outbox)
        lock.noteDatabase(at: lock.databasePosition)
        let loop = try EventLoop(name: "controller", gathering: .milliseconds(3))
        let client = try MQTTClient(options(engine.will), on: loop)
        logger.info(
            "started", metadata: ["home": "\(home.path)", "fleet": "\(home.context.fleet)", "broker": "\(broker)"])
        let outcome = await serve(client, engine, lock, outbox, loop)
        // The will is how it says good-bye: a message of its own could still wait behind others at the DISCONNECT.
        await client.close(.publishingWill)
        await loop.shutdown()
        try await engine.close()
        logger.info("stopped")
        try outcome.get()
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
        _ client: MQTTClient, _ engine: ControllerEngine, _ lock: HomeLock, _ outbox: Outbox, _ loop: EventLoop
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
