import DeviceAgent
import FleetHome
import FleetProtocol
import FleetWorld
import Mosquitto
import Synchronization

/// An operator who changes single devices by the thousand, and sees every status that comes of it: requests to the
/// controller go out, its answers and the devices' statuses come in.
actor OperatorDriver {
    struct Result: Sendable {
        var seconds = 0.0
        var changes = 0
        var lost = 0
        var duplicated = 0
        var reordered = 0
        var refused = 0
        /// From when a change was due to its status on the bus.
        var latency = Histogram()
        /// From there to the controller's answer: the change is committed, signed and published.
        var answer = Histogram()
        /// From the document on the bus, as another reader sees it, to the status; without the few whose status was seen
        /// first.
        var bus = Histogram()
    }

    /// When each device's newest document was seen: by a thread of its own, since this one is busy when documents come.
    private final class Sightings: Sendable {
        private let times = Mutex<[DeviceID: UInt64]>([:])

        func note(_ device: DeviceID, at time: UInt64) { times.withLock { $0[device] = time } }
        func take(_ device: DeviceID) -> UInt64? { times.withLock { $0.removeValue(forKey: device) } }
    }

    private nonisolated let loop: EventLoop
    private nonisolated let readingLoop: EventLoop
    private let sightings = Sightings()
    private let home: FleetHome
    private let devices: Int
    private let user = User.operator(Name(unchecked: "admin"))
    /// Who may read what the controller publishes.
    private let reader = User.bridge(Name(unchecked: "bench"))
    private let replyTo = Name(unchecked: RandomID.random().text)
    private let app = LoadPlan.appID(1)
    private var client: LoopClient?
    private var documents: LoopClient?
    private var subscribed = 0
    /// When the changes that are under way were due.
    private var under: [Int: UInt64] = [:]
    private var asked: [RandomID: (device: Int, due: UInt64)] = [:]
    private var order: [Int: ReportOrder] = [:]
    private var received: [Int: Int64] = [:]
    private var result = Result()
    /// Of all runs, since each change is to be another one.
    private var sent = 0
    private var last: UInt64 = 0
    private var outstanding: Int?
    private var generator = SplitMix64(seed: 1)

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ home: FleetHome, devices: Int) throws {
        self.home = home
        self.devices = devices
        loop = try EventLoop(name: "operator")
        readingLoop = try EventLoop(name: "reader")
    }

    func connect() async throws {
        let fleet = home.context.fleet
        if try !home.users().contains(reader) { _ = try home.addUser(reader) }
        let topics = [Address.response(user, replyTo).topic(in: fleet), Address.prefix(of: fleet) + "reply/+/+/status"]
        client = try start(user, topics, on: loop) { [self] message in assumeIsolated { $0.took(message) } }
        let sightings = sightings
        documents = try start(reader, [Address.prefix(of: fleet) + "desired/device/+/+/config"], on: readingLoop) {
            let now = Clock.now()
            guard case .desired(.device(let device), _, _) = Address(topic: $0.topic, in: fleet) else { return }
            sightings.note(device, at: now)
        }
        let deadline = Clock.now() + 10_000_000_000
        while subscribed < 2 {
            guard Clock.now() < deadline else { throw LoadError("the operator could not connect") }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    private func start(
        _ user: User, _ topics: [String], on loop: EventLoop, _ took: @escaping @Sendable (Message) -> Void
    ) throws -> LoopClient {
        // One person may run several commands, a bridge is one client.
        let id = user == self.user ? "\(user.text)~bench\(replyTo.text.prefix(8))" : user.text
        var options = ClientOptions(host: home.context.host, port: home.context.port, clientID: id)
        options.userName = user.text
        options.password = Password(Array(try home.credentials(for: user).password.utf8))
        let client = try loop.makeClient(options) { [self] client, event in
            switch event {
            case .connected:
                _ = try? client.subscribe(to: topics, options: SubscribeOptions(retained: .skip))
            case .subscribed: Task { await hasSubscribed() }  // connect() waits for it
            case .message(let message): took(message)
            case .connecting, .published, .unsubscribed, .disconnected: break
            }
        }
        client.start()
        return client
    }

    private func hasSubscribed() { subscribed += 1 }

    // MARK: Runs

    private func begin() {
        result = Result()
        last = Clock.now()
    }

    /// The next change when fewer than `outstanding` are under way.
    func closedLoop(for duration: Duration, outstanding: Int) async throws -> Result {
        begin()
        let start = Clock.now()
        self.outstanding = min(outstanding, max(1, devices / 2))
        changeMore()
        try await Task.sleep(for: duration)
        self.outstanding = nil
        return await finish(since: start)
    }

    /// `rate` changes a second, whatever comes back.
    func paced(for duration: Duration, rate: Int) async throws -> Result {
        begin()
        let start = Clock.now()
        await Pacer(rate: rate, duration: duration).run { due in
            self.loop.execute { [self] in assumeIsolated { $0.change(due: due) } }
        }
        return await finish(since: start)
    }

    private func changeMore() {
        guard let outstanding else { return }
        while under.count < outstanding, client?.hasRoom ?? false { change(due: Clock.now()) }
    }

    /// Changes a device that has nothing under way. One that lost a status would be waited for in vain, so each device
    /// is asked again only after its answer.
    private func change(due: UInt64) {
        sent += 1
        var device = generator.below(devices)
        for _ in 0..<devices where under[device] != nil { device = (device + 1) % devices }
        guard under[device] == nil, let client else {
            result.refused += 1
            return
        }
        let id = RandomID.random()
        let body = ApplyRequest(changes: [
            ApplyRequest.Change(
                app: app, layer: .device(LoadPlan.deviceID(device + 1)), aspect: .config,
                value: WireSamples.value(sent))
        ]).json
        guard let value = try? JSONValue(json: body, limit: body.count) else { return }
        let now = Timestamp(milliseconds: Now.system.wall.milliseconds)
        let request = Request(id: id, replyTo: replyTo, notAfter: now.advanced(bySeconds: 60), body: value).json
        _ = sightings.take(LoadPlan.deviceID(device + 1))
        under[device] = due
        asked[id] = (device, due)
        let topic = Address.request(user, .apply).topic(in: home.context.fleet)
        if (try? client.publish(request, to: topic)) == nil {
            under[device] = nil
            asked[id] = nil
            result.refused += 1
        }
    }

    private func finish(since start: UInt64) async -> Result {
        while !under.isEmpty, Clock.now() - last < 5_000_000_000 { try? await Task.sleep(for: .milliseconds(1)) }
        result.lost = under.count
        under = [:]
        asked = [:]
        result.seconds = Double(last - start) / 1e9
        return result
    }

    // MARK: What comes in

    private func took(_ message: Message) {
        let now = Clock.now()
        switch Address(topic: message.topic, in: home.context.fleet) {
        case .response: answered(message.payload, at: now)
        case .reply(let device, let app, .status): reported(device, app, message.payload, at: now)
        default: break
        }
    }

    private func answered(_ payload: [UInt8], at now: UInt64) {
        guard let response = try? Response(json: payload, limit: Response.maximumSize),
            let (device, due) = asked.removeValue(forKey: response.id)
        else { return }
        guard case .success = response.result else {
            result.refused += 1
            under[device] = nil
            return changeMore()
        }
        result.answer.add(now &- due)
    }

    private func reported(_ name: DeviceID, _ app: AppID, _ payload: [UInt8], at now: UInt64) {
        guard let number = Int(name.text.dropFirst(4)), app == self.app,
            let status = try? Status(wire: payload, fleet: home.context.fleet, device: name, app: app)
        else { return }
        let device = number - 1
        if let before = order[device] {
            if status.order == before { result.duplicated += 1 }
            if status.order < before { result.reordered += 1 }
        }
        order[device] = max(order[device] ?? status.order, status.order)
        let config = status[.config]
        guard config.attempt.outcome != .pending, config.attempt.outcome != .delivered,
            config.received > received[device] ?? 0
        else { return }
        received[device] = config.received
        guard let due = under.removeValue(forKey: device) else { return }
        last = now
        result.changes += 1
        result.latency.add(now &- due)
        if let published = sightings.take(name), published < now { result.bus.add(now &- published) }
        changeMore()
    }

    nonisolated func end() async {
        await loop.shutdown()
        await readingLoop.shutdown()
    }
}
