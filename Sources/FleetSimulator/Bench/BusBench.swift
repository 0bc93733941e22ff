import FleetCommands
import FleetHome
import FleetProtocol

/// A connected fleet and its two floors, for scenarios that measure traffic.
struct BusBench {
    let host: BenchHost
    let settings: BenchSettings
    let devices: Peer
    let floors: [Floor]
    /// Seconds that the fleet needed to connect.
    let connecting: Double

    static func with<Value>(_ settings: BenchSettings, _ body: (BusBench) async throws -> Value) async throws -> Value {
        try await BenchHost.with { host in
            let devices = try await startDevices(host, settings).peer
            let start = Clock.now()
            try await connect(devices, settings)
            let connecting = Double(Clock.now() - start) / 1e9
            var floors: [Floor] = []
            for kind in FloorTraffic.Kind.allCases {
                let floor = try await Floor.start(
                    kind, devices: settings.devices, apps: settings.apps, window: 64, in: host)
                try await floor.connect()
                floors.append(floor)
            }
            try await host.settle()
            return try await body(
                BusBench(host: host, settings: settings, devices: devices, floors: floors, connecting: connecting))
        }
    }

    /// Starts the process of the devices, which enrols them; they do not connect yet.
    static func startDevices(_ host: BenchHost, _ settings: BenchSettings, backOff: Int? = nil) async throws
        -> (peer: Peer, first: JSONValue)
    {
        try await host.peer(
            [
                "bench-devices", "--home", host.home.path, "--devices", "\(settings.devices)", "--apps",
                "\(settings.apps)",
            ]
                + (backOff.map { ["--connect-rate", "\(settings.connectRate)", "--back-off", "\($0)"] }
                    ?? ["--window", "\(settings.window)"]) + (settings.verifiesEach ? ["--verify-each"] : []))
    }

    static func connect(_ devices: Peer, _ settings: BenchSettings) async throws {
        _ = try await devices.ask("connect")
        try await devices.wait(for: "every device's report", within: .seconds(300)) {
            $0.count("reported") == settings.devices
        }
    }

    var processes: [(String, Int32)] {
        get throws {
            [("broker", try host.broker.pid), ("simulator", devices.pid), ("controller", try host.controller.pid)]
        }
    }

    func withController<Value>(_ body: (FleetCommands.Controller) async throws -> Value) async throws -> Value {
        try await FleetCommands.Controller.reach(host.home, as: .operator(Name(unchecked: "admin")), body)
    }

    /// Says what the whole fleet is to have.
    static func change(_ number: Int, _ controller: FleetCommands.Controller) async throws {
        let change = ApplyRequest.Change(
            app: LoadPlan.appID(1), layer: .all, aspect: .config, value: WireSamples.value(number))
        _ = try await controller.ask(.apply, ApplyRequest(changes: [change]))
    }

    /// How many devices' statuses the controller's summary counts as applied.
    static func applied(_ controller: FleetCommands.Controller) async throws -> Int {
        let rows = try await controller.ask(.status, ListRequest(app: LoadPlan.appID(1)))["rows"]?.arrayValue ?? []
        let row = rows.first { $0["policy"]?.stringValue == Policy.config.rawValue }
        return Int(row?["counts"]?["applied"]?.integerValue ?? 0)
    }

    // MARK: Notes

    /// Errors of the devices, which no scenario here should have.
    static func errors(_ counters: JSONValue) -> [String] {
        guard counters.count("errors") > 0 else { return [] }
        return [
            "\(counters.count("errors")) errors at the devices, the last: \(counters["lastError"]?.stringValue ?? "")"
        ]
    }

    static func note(_ ours: UsageMeter, _ floor: UsageMeter?, per count: Int, floorCount: Int) -> [String] {
        func text(_ meter: UsageMeter, _ name: String, _ count: Int) -> String {
            let usage = meter.usage(of: name)
            let count = Double(max(1, count))
            return "\((usage.processor * 1e6 / count).rounded(to: 1)) µs"
                + " \((Double(usage.reads) / count).rounded(to: 2)) r"
                + " \((Double(usage.writes) / count).rounded(to: 2)) w"
        }
        return ["simulator", "broker", "controller"].map { name in
            let beside = name == "controller" ? nil : floor.map { text($0, name, floorCount) }
            return "\(name): \(text(ours, name, count)) per acknowledgement"
                + (beside.map { "; bare floor: \($0)" } ?? "")
        }
    }
}
