import DeviceAgent
import FleetProtocol
import Mosquitto
import Synchronization

/// All devices of a load, on one event loop, whose thread is the actor's.
actor LoadLoop {
    private nonisolated let loop: EventLoop
    private let plan: LoadPlan
    private let meter: LoadMeter
    private var devices: [SimulatedDevice] = []
    private var started = 0
    private var startedAt: UInt64 = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ plan: LoadPlan) throws {
        self.plan = plan
        meter = LoadMeter(seed: UInt64(plan.first))
        loop = try EventLoop(name: "fleet-sim", omitsSocketPairs: plan.omitsSocketPairs)
    }

    var counters: LoadCounters { meter.counters }
    var progress: JSONValue { meter.counters.progress }

    /// Makes the devices; none connects yet.
    func add(_ configurations: [AgentConfiguration], boot: Int64) throws {
        let signatures = plan.verifiesEach ? SignatureCheck.ed25519 : SharedVerification().check
        let apps = plan.appIDs
        for configuration in configurations {
            let device = try SimulatedDevice(
                configuration, boot: boot, signatures: signatures, plan: plan.answers, meter: meter)
            let index = devices.count
            devices.append(device)
            device.client = try makeClient(configuration, index, boot)
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
            devices[started].client?.start()
            started += 1
        }
        guard started < devices.count else { return }
        let pause = Duration.milliseconds(plan.window == nil ? 5 : 1)
        loop.schedule(after: pause) { [self] in assumeIsolated { $0.connectMore() } }
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
        for device in devices {
            device.handle(.stopping)
            device.client?.close()
        }
    }

    private func makeClient(_ configuration: AgentConfiguration, _ index: Int, _ boot: Int64) throws -> LoopClient {
        let enrollment = configuration.enrollment
        var options = ClientOptions(
            host: configuration.host, port: configuration.port, clientID: enrollment.device.text)
        options.userName = configuration.userName
        options.password = Password(configuration.password)
        options.tls = configuration.tls.map {
            ClientOptions.TLS(authorityFile: $0.authority, certificateFile: $0.certificate, keyFile: $0.key)
        }
        options.bindAddress = FileLimit.sourceAddress(of: index, to: configuration.host)
        options.connectTimeout = .seconds(30)
        options.backoff = plan.backoff
        let connection = ConnectionName()
        let presence = Address.presence(.device(enrollment.device)).topic(in: enrollment.fleet)
        let incarnation = enrollment.incarnation
        options.makeWill = {
            let will = Presence(
                state: .offline, incarnation: incarnation, boot: boot + 1, connection: connection.renew(), since: .now,
                agent: LoadPlan.agentVersion, apps: [])
            return ClientOptions.Will(topic: presence, payload: will.json, retain: true)
        }
        return try loop.makeClient(options) { [self] _, event in
            assumeIsolated { $0.handle(event, of: index, connection) }
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

    private func handle(_ event: LoopClient.Event, of index: Int, _ connection: ConnectionName) {
        devices[index].handle(event) { connection.value }
        schedule(index)
    }

    private func handle(_ event: DeviceEvent, of index: Int) {
        devices[index].handle(event)
        schedule(index)
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
