import DeviceAgent
import FleetProtocol
import FleetWorld
import Mosquitto
import Synchronization

/// All devices of a load, on one event loop, whose thread is the actor's.
actor LoadLoop {
    private nonisolated let loop: EventLoop
    private let plan: LoadPlan
    private let meter: LoadMeter
    private var devices: [SimulatedDevice] = []
    /// What each device's connections are called.
    private var names: [ConnectionName] = []
    /// The devices that have something to publish.
    private var publishing: [SimulatedDevice] = []
    private var isLeaving = false
    private var started = 0
    private var startedAt: UInt64 = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ plan: LoadPlan) throws {
        self.plan = plan
        meter = LoadMeter(plan.answers, seed: UInt64(plan.first))
        loop = try EventLoop(name: "fleet-sim", omitsSocketPairs: true)
    }

    var counters: LoadCounters { meter.counters }
    var progress: JSONValue { meter.counters.progress }

    /// Makes the devices; none connects yet.
    func add(_ configurations: [AgentConfiguration], boot: Int64) throws {
        let signatures = plan.verifiesEach ? SignatureCheck.ed25519 : SharedVerification().check
        let apps = plan.appIDs
        for configuration in configurations {
            let device = try SimulatedDevice(configuration, boot: boot, signatures: signatures, meter: meter)
            let index = devices.count
            let name = ConnectionName()
            devices.append(device)
            names.append(name)
            device.client = try makeClient(options(configuration, index, device.will, name), index)
            device.launch(apps)
        }
        meter.counters.devices = devices.count
    }

    /// Begins to connect all devices, at the plan's rate.
    func connect() {
        startedAt = Clock.now()
        connectMore()
    }

    private func connectMore() {
        while started < due {
            if !neverConnects() { devices[started].client?.start() }
            started += 1
        }
        guard started < devices.count else { return }
        let pause = Duration.milliseconds(plan.window == nil ? 5 : 1)
        loop.schedule(after: pause) { [self] in assumeIsolated { $0.connectMore() } }
    }

    /// Whether a device is one of those that are offline for good.
    private func neverConnects() -> Bool {
        let flapping = plan.flapping
        guard flapping.connected == nil, !flapping.offline.isZero else { return false }
        return Double.random(in: 0..<1, using: &meter.generator) < flapping.offline.draw(using: &meter.generator)
    }

    /// How many devices should have begun to connect by now.
    private var due: Int {
        guard let window = plan.window else {
            let elapsed = Double(Clock.now() - startedAt) / 1e9
            return min(devices.count, max(1, Int(elapsed * Double(plan.connectRate))))
        }
        // A broker's queue of connections that it has not accepted yet is short.
        return min(devices.count, meter.counters.readyDevices + window, meter.counters.connected + Self.handshakes)
    }

    private static let handshakes = 64

    /// Takes leave of the broker, and ends the thread.
    nonisolated func end() async {
        await leave()
        await loop.shutdown()
    }

    private func leave() {
        isLeaving = true
        for device in devices {
            device.handle(.stopping)
            device.publish()
            device.client?.close()
        }
    }

    private func options(
        _ configuration: AgentConfiguration, _ index: Int, _ will: DeviceWill, _ connection: ConnectionName
    ) -> ClientOptions {
        let enrollment = configuration.enrollment
        var options = ClientOptions(
            host: configuration.host, port: configuration.port, clientID: enrollment.device.text)
        options.userName = configuration.userName
        options.password = Password(configuration.password)
        options.tls = configuration.tls.map {
            ClientOptions.TLS(authorityFile: $0.authority, certificateFile: $0.certificate, keyFile: $0.key)
        }
        options.bindAddress = FileLimit.sourceAddress(of: plan.first - 1 + index, to: configuration.host)
        options.connectTimeout = .seconds(30)
        options.backoff = plan.backoff
        let presence = Address.presence(.device(enrollment.device)).topic(in: enrollment.fleet)
        options.makeWill = {
            ClientOptions.Will(
                topic: presence, payload: will.presence(on: connection.renew(), at: .now).json, retain: true)
        }
        return options
    }

    private func makeClient(_ options: ClientOptions, _ index: Int) throws -> LoopClient {
        try loop.makeClient(options) { [self] client, event in
            assumeIsolated { $0.handle(event, client, of: index) }
        }
    }

    /// The random name of a client's present connection, chosen with its will.
    private final class ConnectionName: Sendable {
        private let name = Mutex(RandomID.random())

        var value: RandomID { name.withLock { $0 } }

        func renew() -> RandomID {
            let fresh = RandomID.random()
            name.withLock { $0 = fresh }
            return fresh
        }
    }

    private func handle(_ event: LoopClient.Event, _ client: LoopClient, of index: Int) {
        let name = names[index]
        devices[index].handle(event) { name.value }
        served(index)
        if case .connected = event, let time = plan.flapping.connected?.draw(using: &meter.generator) {
            let time = Duration.nanoseconds(Int64(time * 1e9))
            loop.schedule(after: time) { [self] in assumeIsolated { $0.cut(client, after: time, of: index) } }
        }
    }

    // MARK: Devices that come and go

    /// Lets a device lose its connection, and come back after a while.
    private func cut(_ client: LoopClient, after time: Duration, of index: Int) {
        guard !isLeaving, client.isConnected else { return }
        meter.counters.cut += 1
        client.close(.abrupt)
        let absence = Flapping.absence(after: time, offline: plan.flapping.offline.draw(using: &meter.generator))
        loop.schedule(after: absence) { [self] in assumeIsolated { $0.bringBack(client.options, index) } }
    }

    private func bringBack(_ options: ClientOptions, _ index: Int) {
        guard !isLeaving else { return }
        do {
            devices[index].client = try makeClient(options, index)
            devices[index].client?.start()
        } catch {
            meter.fail("\(error)")
        }
    }

    private func handle(_ event: DeviceEvent, of index: Int) {
        devices[index].handle(event)
        served(index)
    }

    /// Sees to what the device is to do by itself later, and to what it has to say now.
    private func served(_ index: Int) {
        schedule(index)
        let device = devices[index]
        guard !device.isToPublish, device.canPublish else { return }
        device.isToPublish = true
        publishing.append(device)
        if publishing.count == 1 { loop.execute { [self] in assumeIsolated { $0.publish() } } }
    }

    /// What devices have to say, behind all that arrived together: see ``EventLoop``.
    private func publish() {
        for device in publishing { device.publish() }
        publishing.removeAll(keepingCapacity: true)
    }

    /// Sets the time for what apps say later, and for the core's next tick.
    private func schedule(_ index: Int) {
        let device = devices[index]
        for delayed in device.takeDelayed() {
            loop.schedule(after: delayed.delay) { [self] in
                assumeIsolated { load in
                    for frame in delayed.frames { load.handle(.frame(delayed.link, frame), of: index) }
                }
            }
        }
        guard let delay = device.takeWake() else { return }
        loop.schedule(after: delay) { [self] in
            assumeIsolated { load in load.handle(.tick, of: index) }
        }
    }
}
