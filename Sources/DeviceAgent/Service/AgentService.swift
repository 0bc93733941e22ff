import FleetProtocol
package import Logging
import Mosquitto
import ServiceLifecycle

/// A device's agent: the core with its store, its keys, its broker and its apps. Runs until it is shut down gracefully, or
/// until something fails that it cannot do without.
package final class AgentService: Service {
    package static let version = "fleet-agent/\(fleetbusVersion)"

    private let configuration: AgentConfiguration
    private let logger: Logger

    package init(_ configuration: AgentConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    package func run() async throws {
        try Files.makeFolder(configuration.stateFolder, mode: 0o700)
        if let info = Files.status(configuration.stateFolder) {
            try Files.checkOwner(configuration.stateFolder, info)
            try Files.checkMode(configuration.stateFolder, info, isSecret: false)
        }
        let lock = try StateLock(folder: configuration.stateFolder)
        let store = try DeviceStore(
            path: configuration.stateFolder + "/agent.db", isExpected: lock.hasState)
        let keystore = try Keystore(folder: configuration.stateFolder + "/keys", isExpected: lock.hasState)
        let state = try store.load()
        try lock.noteState()
        let core = try core(over: state)
        try keystore.tidy(keeping: Set(state.apps.values.filter(\.hasKeys).map(\.id))) { app in
            logger.error(
                "the key of an app is gone, and it gets a new one: what the old one protected cannot be read any more",
                metadata: ["app": "\(app)"])
        }
        let (failures, failure) = AsyncStream.makeStream(of: (any Error).self, bufferingPolicy: .bufferingOldest(1))
        let loop = try EventLoop(name: "fleet-agent.mqtt")
        let runner = AgentRunner(
            configuration, core: core, store: store, keystore: keystore, loop: loop, logger: logger
        ) { error in failure.yield(error) }
        do {
            try await runner.start()
        } catch {
            await loop.shutdown()
            throw error
        }
        logger.info(
            "agent started",
            metadata: [
                "device": "\(configuration.enrollment.device)", "boot": "\(core.state.boot)",
                "socket": "\(configuration.socketPath)",
            ])
        if store.isDiskFull { runner.logDisk() }
        if let problem = store.reserveProblem {
            logger.warning("no room is kept for a full disk", metadata: ["reason": "\(problem)"])
        }
        var cause: (any Error)?
        for await error in failures.cancelOnGracefulShutdown() {
            cause = error
            break
        }
        await runner.stop()
        // What it wrote last may have failed as well.
        if cause == nil { cause = runner.failure }
        await loop.shutdown()
        try? store.close()
        withExtendedLifetime(lock) {}
        if let cause { throw cause }
        logger.info("agent stopped")
    }
}

extension AgentService {
    /// Where the state stands is not the core's business, but that of whoever reads why the agent does not start.
    private func core(over state: DeviceState) throws -> DeviceCore {
        do {
            return try DeviceCore(
                enrollment: configuration.enrollment, agentVersion: Self.version, state: state,
                secret: .random(), at: .system)
        } catch let error as DeviceAgentError where error.code == .store {
            throw DeviceAgentError(.store, "\(configuration.stateFolder): \(error.message)", cause: error.cause)
        }
    }
}
