import FleetProtocol
import Mosquitto

/// The clients of a floor: each answers every request at once; nothing is parsed, verified or stored.
actor FloorClients {
    private final class Client {
        let index: Int
        var client: LoopClient?
        let replies: [String]
        var isConnected = false
        /// Markers that have come back, and whether the hello is here.
        var markers = 0
        var isGreeted = false
        var hasAnswered = false
        /// Replies of the beginning that the broker has not answered.
        var unanswered = 0
        var isSettled = false

        init(_ index: Int, _ replies: [String]) {
            self.index = index
            self.replies = replies
        }
    }

    private nonisolated let loop: EventLoop
    private let traffic: FloorTraffic
    private let window: Int
    private let backoff: Backoff
    private var clients: [Client] = []
    private var started = 0
    private var connected = 0
    private var settled = 0
    private var replies = 0
    private var failures = 0
    private var reply: [UInt8]
    /// Behind it stands what tells the topics of the fleet apart.
    private let prefixLength: Int

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ traffic: FloorTraffic, window: Int, backoff: Backoff) throws {
        self.traffic = traffic
        self.window = window
        self.backoff = backoff
        reply = [UInt8](repeating: UInt8(ascii: "x"), count: traffic.replySize)
        prefixLength = traffic.prefix.utf8.count
        loop = try EventLoop(name: "floor", omitsSocketPairs: true)
    }

    func add(_ count: Int, port: UInt16) throws {
        for index in 0..<count {
            let apps = traffic.kind == .bare ? 1 : traffic.apps
            let one = Client(index, (1...apps).map { traffic.reply(of: index, app: $0) })
            clients.append(one)
            var options = ClientOptions(host: "127.0.0.1", port: port, clientID: traffic.name(of: index))
            options.bindAddress = FileLimit.sourceAddress(of: index, to: options.host)
            options.connectTimeout = .seconds(60)
            options.backoff = backoff
            let size = traffic.kind == .bare ? 8 : traffic.presenceSize
            options.will = ClientOptions.Will(
                topic: traffic.presence(of: index), payload: [UInt8](repeating: UInt8(ascii: "w"), count: size),
                retain: traffic.kind == .equalBytes)
            one.client = try loop.makeClient(options) { [self] client, event in
                assumeIsolated { $0.handle(event, client, of: index) }
            }
        }
    }

    var progress: JSONValue {
        .object([
            "devices": .integer(Int64(clients.count)), "connected": .integer(Int64(connected)),
            "reported": .integer(Int64(settled)), "acknowledged": .integer(Int64(replies)),
            "errors": .integer(Int64(failures)),
        ])
    }

    func connect() {
        while started < min(clients.count, settled + window, connected + 64) {
            clients[started].client?.start()
            started += 1
        }
        guard started < clients.count else { return }
        loop.schedule(after: .milliseconds(1)) { [self] in assumeIsolated { $0.connect() } }
    }

    private func handle(_ event: LoopClient.Event, _ client: LoopClient, of index: Int) {
        switch event {
        case .message(let message): received(message, client, clients[index])
        case .published(_, let code):
            if code.isError { failures += 1 }
            let one = clients[index]
            guard !one.isSettled, one.unanswered > 0 else { return }
            one.unanswered -= 1
            if one.unanswered == 0 { settle(one) }
        case .connected:
            connected += 1
            clients[index].isConnected = true
            _ = try? client.subscribe(to: traffic.filters(of: index)[0])
        case .subscribed(_, let codes):
            if codes.contains(where: \.isError) { failures += 1 }
            subscribed(client, clients[index])
        case .disconnected(let error, _):
            if error != nil { failures += 1 }
            lose(clients[index])
        case .connecting, .unsubscribed: break
        }
    }

    private func received(_ message: Message, _ client: LoopClient, _ one: Client) {
        // Requests are told from the rest by one letter: policy/… or desired/…
        guard traffic.kind == .bare || message.topic.utf8.dropFirst(prefixLength).first == UInt8(ascii: "d") else {
            return greeted(message, client, one)
        }
        guard !message.retained, message.payload.count >= FloorTraffic.headSize else { return }
        reply.replaceSubrange(0..<FloorTraffic.headSize, with: message.payload[..<FloorTraffic.headSize])
        guard (try? client.publish(reply, to: one.replies[0], retain: traffic.kind == .equalBytes)) != nil else {
            failures += 1
            return
        }
        replies += 1
    }

    private func lose(_ one: Client) {
        if one.isConnected { connected -= 1 }
        if one.isSettled { settled -= 1 }
        one.isConnected = false
        one.isSettled = false
        one.isGreeted = false
        one.hasAnswered = false
        one.markers = 0
        one.unanswered = 0
    }

    // MARK: The beginning of a connection

    private func subscribed(_ client: LoopClient, _ one: Client) {
        guard traffic.kind == .equalBytes else { return settle(one) }
        if one.markers == 0 {
            let presence = [UInt8](repeating: UInt8(ascii: "o"), count: traffic.presenceSize)
            _ = try? client.publish(presence, to: traffic.presence(of: one.index), retain: true)
            one.unanswered += 2  // One is taken back when all that is awaited has come.
        }
        let marker = [UInt8](repeating: UInt8(ascii: "m"), count: traffic.markerSize)
        _ = try? client.publish(marker, to: traffic.barrier(of: one.index))
        one.unanswered += 1
    }

    private func greeted(_ message: Message, _ client: LoopClient, _ one: Client) {
        let name = message.topic.utf8.dropFirst(prefixLength)
        if name.starts(with: "control/barrier/".utf8) {
            one.markers += 1
            if one.markers == 1 {
                _ = try? client.subscribe(to: traffic.filters(of: one.index)[1])
            }
        } else if name.starts(with: "control/hello/".utf8) {
            one.isGreeted = true
        } else {
            return
        }
        guard one.markers == 2, one.isGreeted, !one.hasAnswered else { return }
        one.hasAnswered = true
        for topic in one.replies {
            _ = try? client.publish(reply, to: topic, retain: true)
            one.unanswered += 1
        }
        one.unanswered -= 1
    }

    private func settle(_ one: Client) {
        guard !one.isSettled else { return }
        one.isSettled = true
        settled += 1
    }

    nonisolated func end() async { await loop.shutdown() }
}
