import FleetProtocol
import Glibc
import Synchronization

/// What the same traffic costs without all that is ours: a broker that stores and checks nothing, bare clients in a
/// process of their own, publisher and collector in this one. The clients are those of the module `Mosquitto`.
final class Floor: Sendable {
    let kind: FloorTraffic.Kind
    private let host: BenchHost
    private let brokerPlace: BenchHost.BareBroker
    private let runningBroker: Mutex<Child>
    let peer: Peer
    let driver: FloorDriver
    private let devices: Int

    /// Starts broker, driver and clients; the clients do not connect yet.
    static func start(
        _ kind: FloorTraffic.Kind, devices: Int, apps: Int, window: Int, backOff: Int? = nil, in host: BenchHost
    ) async throws -> Floor {
        let place = try host.bareBroker(named: kind.rawValue)
        let broker = try await host.start(place)
        let port = place.port
        let driver = try FloorDriver(FloorTraffic(kind, apps: apps), devices: devices)
        host.onEnd { await driver.end() }
        try await driver.connect(port: port)
        let (peer, _) = try await host.peer(
            [
                "bench-floor", "--kind", kind.rawValue, "--port", "\(port)", "--devices", "\(devices)", "--apps",
                "\(apps)",
                "--window", "\(window)",
            ] + (backOff.map { ["--back-off", "\($0)"] } ?? []))
        return Floor(kind, host, place, broker, peer, driver, devices)
    }

    private init(
        _ kind: FloorTraffic.Kind, _ host: BenchHost, _ place: BenchHost.BareBroker, _ broker: Child, _ peer: Peer,
        _ driver: FloorDriver, _ devices: Int
    ) {
        self.kind = kind
        self.host = host
        brokerPlace = place
        runningBroker = Mutex(broker)
        self.peer = peer
        self.driver = driver
        self.devices = devices
    }

    /// Connects the clients.
    ///
    /// - Returns: Seconds until the last one has subscribed and, of equal bytes, told its state.
    @discardableResult
    func connect() async throws -> Double {
        let start = Clock.now()
        _ = try await peer.ask("connect")
        return try await settle(since: start)
    }

    /// Kills the broker and starts it again.
    ///
    /// - Returns: Seconds until all clients are as far as before.
    func storm() async throws -> Double {
        let start = Clock.now()
        await broker.crash()
        let broker = try await host.start(brokerPlace)
        runningBroker.withLock { $0 = broker }
        try await peer.wait(for: "the floor's storm", within: .seconds(30)) { $0.count("reported") < devices }
        return try await settle(since: start)
    }

    private func settle(since start: UInt64) async throws -> Double {
        let devices = devices
        try await peer.wait(for: "the \(kind.rawValue) floor's clients", within: .seconds(300)) {
            $0.count("reported") == devices
        }
        return Double(Clock.now() - start) / 1e9
    }

    var broker: Child { runningBroker.withLock { $0 } }

    var processes: [(String, pid_t)] { [("broker", broker.pid), ("simulator", peer.pid)] }

    func end() async {
        await peer.child.end()
        await driver.end()
        await broker.end()
    }
}
