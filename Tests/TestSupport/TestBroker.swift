package import Foundation
internal import Synchronization

/// A real Mosquitto on a free port of the loopback interface, with its configuration in a folder of its own.
package final class TestBroker: Sendable {
    /// What every test broker is told: nothing is dropped, nothing is delayed, nothing is kept.
    ///
    /// The queue's limit is a number and not 0 (for none): with 0, Mosquitto 2.0.11 throws off every client whose
    /// publish it denies.
    package static let defaults = [
        "max_queued_messages 10000000", "max_inflight_messages 1000", "set_tcp_nodelay true", "sys_interval 0",
        "persistence false", "log_dest stderr", "log_type all",
    ]

    package let host = "127.0.0.1"
    package let port: UInt16
    package let folder: URL
    package let configuration: URL
    private let process = Mutex<ManagedProcess?>(nil)

    /// A broker with a configuration of the test's own, which listens on `port` of the loopback interface.
    package init(configuration: URL, port: UInt16) {
        self.configuration = configuration
        self.port = port
        self.folder = configuration.deletingLastPathComponent()
    }

    /// Starts Mosquitto and waits until it accepts connections.
    package func start() async throws {
        let mosquitto = try program(named: "mosquitto")
        let child = try await ManagedProcess.start(mosquitto, ["-c", configuration.path], in: folder)
        process.withLock { $0 = child }
        try await until("mosquitto on port \(port)") {
            if let status = child.status {
                throw TestFailure("mosquitto ended with \(status): \(child.errors.suffix(2000))")
            }
            return accepts(port: port)
        }
    }

    /// Ends it properly, as an administrator would.
    package func stop() async {
        await process.withLock { $0 }?.terminate()
    }

    /// Kills it: no will is sent, nothing is saved.
    package func kill() async {
        await process.withLock { $0 }?.killNow()
    }

    /// Ends it properly, and starts it with the same configuration on the same port.
    package func restart() async throws {
        await stop()
        try await start()
    }

    /// Freezes it: connections stand, nothing is answered.
    package func pause() { process.withLock { $0 }?.pause() }
    package func resume() { process.withLock { $0 }?.resume() }

    /// Makes it read its password, ACL and TLS files again.
    package func reload() { process.withLock { $0 }?.signal(SIGHUP) }

    /// The process id while it runs.
    package var pid: Int32? { process.withLock { $0?.pid } }

    /// Its log so far.
    package var log: String { process.withLock { $0?.errors } ?? "" }
}

extension Fixture {
    /// Starts a broker that ends with the test.
    ///
    /// - Parameters:
    ///   - lines: Lines of configuration behind the listener's, so also for the listener: `password_file`, `cafile`…
    ///   - anonymous: Whether clients without a user name may connect.
    package func broker(_ lines: [String] = [], anonymous: Bool = true) async throws -> TestBroker {
        let folder = try temporaryFolder()
        for attempt in 1... {
            let port = try freePort()
            let configuration = folder.appendingPathComponent("mosquitto.conf")
            // As root it would change its user, read none of the test's files, and outlive the tests.
            let user = geteuid() == 0 ? ["user root"] : []
            let text =
                TestBroker.defaults + user + [
                    "pid_file \(folder.path)/mosquitto.pid", "listener \(port) 127.0.0.1",
                    "allow_anonymous \(anonymous)",
                ] + lines
            try Data((text.joined(separator: "\n") + "\n").utf8).write(to: configuration)
            let broker = TestBroker(configuration: configuration, port: port)
            do {
                try await broker.start()
                onEnd { await broker.stop() }
                return broker
            } catch let error as TestFailure where attempt < 3 && error.description.contains("Address already in use") {
                continue  // somebody else was faster
            }
        }
        throw TestFailure("no broker could be started")
    }
}
