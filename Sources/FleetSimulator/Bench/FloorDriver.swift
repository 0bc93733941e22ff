import FleetProtocol
import FleetWorld
import Mosquitto

/// Publisher and collector of a floor, on a thread of their own beside the process of its clients.
actor FloorDriver {
    /// What a while of traffic gave.
    struct Result: Sendable {
        var seconds = 0.0
        var replies = 0
        var lost = 0
        /// From when a request was due to its reply at the collector.
        var latency = Histogram()
    }

    private nonisolated let loop: EventLoop
    private let traffic: FloorTraffic
    private let devices: Int
    private var publisher: LoopClient?
    private var collector: LoopClient?
    private var connected = 0
    private var subscribed = 0
    private var sequence: UInt64 = 0
    private var sent = 0
    private var result = Result()
    private var lastReply: UInt64 = 0
    private var generator = SplitMix64(seed: 1)
    /// Where hellos are due: a storm brings more presences than may be answered at once.
    private var ungreeted: ArraySlice<String> = []
    /// Replies to be outstanding, and where to the next request goes; nil without a closed loop.
    private var closed: (outstanding: Int, toAll: Bool)?
    private var request: [UInt8]

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ traffic: FloorTraffic, devices: Int) throws {
        self.traffic = traffic
        self.devices = devices
        request = [UInt8](repeating: UInt8(ascii: "p"), count: traffic.requestSize)
        loop = try EventLoop(name: "floor-driver")
    }

    func connect(port: UInt16) async throws {
        publisher = try loop.makeClient(ClientOptions(host: "127.0.0.1", port: port, clientID: "driver-publisher")) {
            [self] client, event in
            assumeIsolated { $0.publish(event, client) }
        }
        collector = try loop.makeClient(ClientOptions(host: "127.0.0.1", port: port, clientID: "driver-collector")) {
            [self] client, event in
            assumeIsolated { $0.collect(event, client) }
        }
        publisher?.start()
        collector?.start()
        try await poll("the floor's driver", for: .seconds(10)) { connected == 1 && subscribed == 1 }
    }

    private func publish(_ event: LoopClient.Event, _ client: LoopClient) {
        switch event {
        case .connected:
            connected += 1
            retain(by: client)
            greet()
        case .published: greet()
        case .connecting, .subscribed, .message, .unsubscribed, .disconnected: break
        }
    }

    /// What a controller keeps on the bus for all.
    private func retain(by client: LoopClient) {
        guard traffic.kind == .equalBytes else { return }
        let body = [UInt8](repeating: UInt8(ascii: "t"), count: traffic.trustSize)
        _ = try? client.publish(body, to: Address.trust.topic(in: WireSamples.fleet), retain: true)
    }

    private func collect(_ event: LoopClient.Event, _ client: LoopClient) {
        switch event {
        case .connected: _ = try? client.subscribe(to: traffic.collected)
        case .subscribed: subscribed += 1
        case .message(let message): received(message)
        case .connecting, .published, .unsubscribed, .disconnected: break
        }
    }

    private func received(_ message: Message) {
        if traffic.kind == .equalBytes,
            message.topic.utf8.dropFirst(traffic.prefix.utf8.count).first == UInt8(ascii: "p")
        {
            return greet(message)
        }
        let (since, sequence) = message.payload.withUnsafeBytes {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        guard sequence >= firstOfRun, sequence <= self.sequence else { return }
        let now = Clock.now()
        lastReply = now
        result.replies += 1
        result.latency.add(now &- since)
        publishMore()
    }

    /// Answers a presence, as a controller does.
    private func greet(_ message: Message) {
        guard message.payload.first == UInt8(ascii: "o") else { return }  // A will.
        let name = message.topic.utf8.dropFirst(traffic.prefix.utf8.count + "presence/".utf8.count)
        ungreeted.append(traffic.prefix + "control/hello/" + String(decoding: Array(name), as: UTF8.self))
        greet()
    }

    private func greet() {
        guard !ungreeted.isEmpty else { return }
        let body = [UInt8](repeating: UInt8(ascii: "h"), count: traffic.helloSize)
        while let publisher, publisher.hasRoom, let topic = ungreeted.popFirst() {
            _ = try? publisher.publish(body, to: topic)
        }
    }

    // MARK: Runs

    private var firstOfRun: UInt64 = 0

    private func begin() {
        result = Result()
        sent = 0
        firstOfRun = sequence + 1
        lastReply = Clock.now()
    }

    /// One message to all.
    func round() async throws -> Result {
        begin()
        let start = Clock.now()
        publish(to: nil, due: start)
        await drain(devices)
        result.seconds = Double(lastReply - start) / 1e9
        return result
    }

    /// The next message when fewer than `outstanding` replies are to come: to all or to one device after the other.
    func closedLoop(for duration: Duration, outstanding: Int, toAll: Bool) async throws -> Result {
        begin()
        let start = Clock.now()
        closed = (outstanding, toAll)
        publishMore()
        try await Task.sleep(for: duration)
        closed = nil
        await drain(sent * (toAll ? devices : 1))
        result.seconds = Double(lastReply - start) / 1e9
        return result
    }

    /// `rate` requests a second to single devices, whatever comes back.
    func paced(for duration: Duration, rate: Int) async throws -> Result {
        begin()
        let start = Clock.now()
        await Pacer(rate: rate, duration: duration).run { due in
            self.loop.execute { [self] in
                assumeIsolated { driver in
                    driver.publish(to: driver.generator.below(driver.devices), due: due)
                }
            }
        }
        await drain(sent)
        result.seconds = Double(lastReply - start) / 1e9
        return result
    }

    private func publishMore() {
        guard let closed else { return }
        let each = closed.toAll ? devices : 1
        while sent * each - result.replies < closed.outstanding, publisher?.hasRoom ?? false {
            publish(to: closed.toAll ? nil : generator.below(devices), due: Clock.now())
        }
    }

    private func publish(to device: Int?, due: UInt64) {
        sequence += 1
        let number = sequence
        request.withUnsafeMutableBytes { bytes in
            bytes.storeBytes(of: due, as: UInt64.self)
            bytes.storeBytes(of: number, toByteOffset: 8, as: UInt64.self)
        }
        let topic = device.map(traffic.request(to:)) ?? traffic.requestToAll
        // Ours are retained: that one message costs the broker next to nothing.
        _ = try? publisher?.publish(request, to: topic, retain: traffic.kind == .equalBytes)
        sent += 1
    }

    /// Waits until `expected` replies have come, or none for two seconds.
    private func drain(_ expected: Int) async {
        while result.replies < expected, Clock.now() - lastReply < 2_000_000_000 {
            try? await Task.sleep(for: .milliseconds(1))
        }
        result.lost = expected - result.replies
    }

    private func poll(_ what: String, for patience: Duration, _ condition: () -> Bool) async throws {
        let deadline = ContinuousClock.now + patience
        while !condition() {
            guard ContinuousClock.now < deadline else { throw LoadError("\(what): not within \(patience)") }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    nonisolated func end() async { await loop.shutdown() }
}
