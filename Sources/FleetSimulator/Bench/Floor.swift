import FleetProtocol
import Mosquitto
import Synchronization

/// The floor of a fan-out: the same number of bare clients, each of which answers a message of 300 bytes with one of 200,
/// which is not retained; nothing is parsed, verified or stored. The clients have one thread, publisher and collector
/// another one, the broker its process.
final class Floor: Sendable {
    private struct State {
        var subscribed = 0
        var replies = 0
        var wanted = 0
        var lastReply: UInt64 = 0
    }

    private let devices: Int
    private let port: UInt16
    private let clients: EventLoop
    private let driver: EventLoop
    private let collector: LoopClient
    private let answering: [LoopClient]
    private let state: SharedState

    private final class SharedState: Sendable {
        let value = Mutex(State())
    }

    init(devices: Int, port: UInt16) throws {
        self.devices = devices
        self.port = port
        let state = SharedState()
        self.state = state
        clients = try EventLoop(name: "floor", omitsSocketPairs: true)
        driver = try EventLoop(name: "floor-driver", omitsSocketPairs: false)
        collector = try driver.makeClient(ClientOptions(host: "127.0.0.1", port: port, clientID: "collector")) {
            client, event in
            switch event {
            case .connected: _ = try? client.subscribe(to: ["floor/reply/#"])
            case .subscribed: state.value.withLock { $0.subscribed += 1 }
            case .message:
                state.value.withLock { state in
                    state.replies += 1
                    if state.replies == state.wanted { state.lastReply = Clock.now() }
                }
            case .connecting, .published, .unsubscribed, .disconnected: break
            }
        }
        let body = [UInt8](repeating: UInt8(ascii: "x"), count: 200)
        answering = try (0..<devices).map { [clients] index in
            var options = ClientOptions(host: "127.0.0.1", port: port, clientID: "floor-\(index)")
            options.bindAddress = FileLimit.sourceAddress(of: index, to: options.host)
            options.connectTimeout = .seconds(60)
            let topic = "floor/reply/\(index)/app/ack"
            return try clients.makeClient(options) { client, event in
                switch event {
                case .connected: _ = try? client.subscribe(to: ["floor/all"])
                case .subscribed: state.value.withLock { $0.subscribed += 1 }
                case .message: _ = try? client.publish(body, to: topic)
                case .connecting, .published, .unsubscribed, .disconnected: break
                }
            }
        }
    }

    /// Connects, and waits until all are subscribed.
    func ready() async throws {
        collector.start()
        // Only then: connections without socket pairs bear no other thread that opens files.
        try await poll("the floor's collector") { $0.subscribed == 1 }
        for (index, client) in answering.enumerated() {
            clients.schedule(after: .microseconds(Int64(index) * 500)) { client.start() }
        }
        try await poll("the floor's clients") { $0.subscribed == devices + 1 }
    }

    /// One message to all: seconds until the last reply.
    func round() async throws -> Double {
        let body = [UInt8](repeating: UInt8(ascii: "p"), count: 300)
        state.value.withLock { state in
            state.replies = 0
            state.wanted = devices
            state.lastReply = 0
        }
        let start = Clock.now()
        driver.execute { [collector] in _ = try? collector.publish(body, to: "floor/all") }
        try await poll("the floor's replies") { $0.lastReply > 0 }
        return Double(state.value.withLock { $0.lastReply } - start) / 1e9
    }

    private func poll(_ what: String, _ condition: (State) -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(120)
        while !state.value.withLock({ condition($0) }) {
            guard ContinuousClock.now < deadline else {
                let state = state.value.withLock { $0 }
                throw LoadError("\(what): \(state.subscribed) subscribed, \(state.replies) replies of \(devices)")
            }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    func end() async {
        await clients.shutdown()
        await driver.shutdown()
    }
}
