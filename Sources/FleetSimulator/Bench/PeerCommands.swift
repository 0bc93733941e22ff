import ArgumentParser
import FleetHome
import FleetProtocol
import Glibc
import Mosquitto

/// The devices of a bench, in a process of their own; nobody calls it by hand.
struct BenchDevices: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "bench-devices", shouldDisplay: false)

    @Option var home: String
    @Option var devices: Int
    @Option var apps: Int
    @Option var window: Int?
    @Option var connectRate = 1_000
    /// The longest wait before the next connection, in milliseconds.
    @Option var backOff: Int?
    @Flag var verifyEach = false

    func run() async throws {
        var plan = LoadPlan()
        plan.devices = devices
        plan.apps = apps
        plan.window = window
        plan.connectRate = connectRate
        plan.verifiesEach = verifyEach
        plan.backoff = Backoff(upTo: backOff)
        let before = ProcessUsage.memory(of: getpid()).resident
        let fleet = try await LoadFleet(plan, home: FleetHome(opening: home))
        try await Peer.serve(.object(["residentBeforeKiB": .integer(Int64(before))])) { question in
            switch question {
            case "connect": await fleet.connect()
            case "counters": return await fleet.counters.value
            case "leave": await fleet.end()
            case "trim": ProcessUsage.trim()
            default: break
            }
            return await fleet.progress
        }
    }
}

/// The bare clients of a floor, in a process of their own; nobody calls it by hand.
struct BenchFloor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "bench-floor", shouldDisplay: false)

    @Option var kind: String
    @Option var port: UInt16
    @Option var devices: Int
    @Option var apps: Int
    @Option var window: Int
    @Option var backOff: Int?

    func run() async throws {
        guard let kind = FloorTraffic.Kind(rawValue: kind) else { throw ValidationError("no floor is called \(kind)") }
        let before = ProcessUsage.memory(of: getpid()).resident
        try FileLimit.ensure(connections: devices)
        let clients = try FloorClients(FloorTraffic(kind, apps: apps), window: window, backoff: Backoff(upTo: backOff))
        try await clients.add(devices, port: port)
        try await Peer.serve(.object(["residentBeforeKiB": .integer(Int64(before))])) { question in
            if question == "connect" { await clients.connect() }
            if question == "trim" { ProcessUsage.trim() }
            return await clients.progress
        }
    }
}

/// What a command that asks a controller does at the least: connects, subscribes, sends some bytes and has them back.
struct BenchEcho: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "bench-echo", shouldDisplay: false)

    @Option var port: UInt16
    @Option var bytes: Int

    func run() async throws {
        let loop = try EventLoop()
        let client = try MQTTClient(ClientOptions(host: "127.0.0.1", port: port, clientID: "echo"), on: loop)
        try await client.connect()
        _ = try await client.subscribe(to: ["echo"])
        async let answer = client.messages.first { _ in true }
        _ = try await client.publish([UInt8](repeating: 0, count: bytes), to: "echo")
        _ = await answer
        await client.close()
        await loop.shutdown()
    }
}

extension Backoff {
    /// Any wait up to so many milliseconds, each time.
    fileprivate init(upTo milliseconds: Int?) {
        self.init()
        guard let milliseconds else { return }
        (minimum, maximum) = (.milliseconds(milliseconds), .milliseconds(milliseconds))
    }
}
