import ArgumentParser
import FleetHome
import FleetProtocol
import Foundation
import Glibc

/// `fleet-sim run`: a fleet of simulated devices at the broker of a home.
struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Connects a fleet of simulated devices with apps to a fleet's broker.",
        discussion: """
            Run it on the host of the fleet's home, with broker and controller running. Each device is the real \
            agent's core with its real client; its apps answer in the same process. A second run goes on as the same \
            devices, and several processes share a fleet with --first. Ends at --duration, or with SIGINT.

            What varies is given as a number or a distribution: A, A..B (all alike), exp:MEAN, normal:MEAN,DEVIATION. \
            Parts are drawn once for each app, times each time.

            EXAMPLES
              fleet-sim run --home /var/lib/fleetbus/demo --devices 5000 --apps 3
              fleet-sim run --home ./home --devices 20000 --first 20001    beside the first
              fleet-sim run --home ./home --devices 1000 --flap exp:2m --offline-rate 0.1
              fleet-sim run --home ./home --ack-delay exp:200ms --duration 60s -o json
            """)

    @Option(help: "The fleet's folder, as `fleetctl init` made it.")
    var home: String
    @Option(help: "How many devices.")
    var devices = 100
    @Option(help: "Apps on each device: sim.app1, sim.app2 and so on.")
    var apps = 1
    @Option(help: "Groups that the devices are spread over: sim-g1, sim-g2 and so on.")
    var groups = 0
    @Option(help: "The number of the first device.")
    var first = 1
    @Option(help: "Connections begun per second.")
    var connectRate = 1_000
    @Option(help: "How long an app takes to answer: 50ms, 5ms..50ms, exp:20ms or normal:20ms,5ms.")
    var ackDelay = "0"
    @Option(help: "The part of an app's answers that are errors: 0.01, 0..0.1, exp:0.02 or normal:0.05,0.01.")
    var errorRate = "0"
    @Option(help: "The part of an app's answers that are 'unsupported'.")
    var unsupported = "0"
    @Option(help: "The part of apps that never answer.")
    var neverAck = "0"
    @Option(help: "The part of the time that a device is offline; without --flap, of devices that never connect.")
    var offlineRate = "0"
    @Option(help: "How long a device stays connected before its connection is cut: 60s, 10s..5m, exp:2m …")
    var flap: String?
    @Option(help: "When to end, for example 60s; without it, at SIGINT.")
    var duration: String?
    @Flag(help: "Verify and read every document for every device, as real ones do; else each distinct one once.")
    var verifyEach = false
    @Option(name: .shortAndLong, help: "text or json.")
    var output = Format.text

    enum Format: String, ExpressibleByArgument, CaseIterable { case text, json }

    func validate() throws {
        guard (1...1_000_000).contains(devices), (1...64).contains(apps), (0...64).contains(groups) else {
            throw ValidationError("expected --devices 1 to 1000000, --apps 1 to 64, --groups 0 to 64")
        }
        guard (1...9_000_000).contains(first), connectRate > 0 else {
            throw ValidationError("--first and --connect-rate must be at least 1")
        }
        _ = try plan()
        if let duration, Duration(text: duration) == nil { throw ValidationError("--duration: expected 60s, 5m …") }
    }

    private func plan() throws -> LoadPlan {
        var plan = LoadPlan()
        plan.devices = devices
        plan.first = first
        plan.apps = apps
        plan.groups = groups
        plan.connectRate = connectRate
        plan.verifiesEach = verifyEach
        plan.answers.delay = try Self.distribution("ack-delay", ackDelay, .time)
        plan.answers.errors = try Self.distribution("error-rate", errorRate, .part)
        plan.answers.unsupported = try Self.distribution("unsupported", unsupported, .part)
        plan.answers.silence = try Self.distribution("never-ack", neverAck, .part)
        plan.flapping.offline = try Self.distribution("offline-rate", offlineRate, .part)
        plan.flapping.connected = try flap.map { try Self.distribution("flap", $0, .time) }
        if plan.flapping.connected?.isZero ?? false {
            throw ValidationError("--flap: a device that is cut at once is never connected")
        }
        return plan
    }

    private static func distribution(_ option: String, _ text: String, _ kind: Distribution.Kind) throws -> Distribution
    {
        guard let distribution = Distribution(text, of: kind) else {
            throw ValidationError("--\(option): expected \(kind.expected)")
        }
        return distribution
    }

    func run() async throws {
        let home = try FleetHome(opening: home)
        let plan = try plan()
        try check(plan, home)
        let start = ContinuousClock.now
        let fleet = try await LoadFleet(plan, home: home)
        let limit = duration.flatMap { Duration(text: $0) }
        do {
            _ = try await untilEndSignal {
                try await LoadGroups(plan).set(in: home)
                await fleet.connect()
                try await Self.watch(fleet, for: limit)
            }
        } catch {
            await fleet.end()
            throw error
        }
        let counters = await fleet.counters
        await fleet.end()
        report(counters, after: ContinuousClock.now - start)
    }

    /// Says what is needed before anything is enrolled or connected, and stops when it is not there.
    private func check(_ plan: LoadPlan, _ home: FleetHome) throws {
        Self.note(FileLimit.needs(of: plan.devices, from: plan.first, to: home.context.host) + "\n")
        try FileLimit.ensure(connections: plan.devices)
        let pid = try? String(contentsOfFile: home.path + "/broker/data/mosquitto.pid", encoding: .utf8)
        if let pid = pid.flatMap({ pid_t($0.split(separator: "\n").first ?? "") }) {
            try FileLimit.check(broker: pid, for: plan.devices)
        }
    }

    /// Shows the counters each second, until `limit` has passed.
    private static func watch(_ fleet: LoadFleet, for limit: Duration?) async throws {
        let start = ContinuousClock.now
        let isTerminal = isatty(STDERR_FILENO) == 1
        while limit.map({ ContinuousClock.now - start < $0 }) ?? true {
            let rest = limit.map { $0 - (ContinuousClock.now - start) } ?? .seconds(1)
            try await Task.sleep(for: min(.seconds(1), rest))
            let line = await fleet.counters.line
            note(isTerminal ? "\r\u{1B}[K" + line : line + "\n")
        }
        if isTerminal { note("\n") }
    }

    private static func note(_ text: String) {
        var text = text
        text.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    private func report(_ counters: LoadCounters, after time: Duration) {
        let seconds = time.inSeconds.rounded(to: 2)
        switch output {
        case .json:
            let summary: [JSONValue.Member] = [
                .init("seconds", .double(seconds)), .init("verifiesEach", .bool(verifyEach)),
            ]
            print(JSONValue.object((counters.value.memberValues ?? []) + summary).jsonText)
        case .text:
            print(counters.line)
            print(
                "\(seconds) s  statuses \(counters.statuses)  cut \(counters.cut)  duplicated \(counters.duplicated)  reordered \(counters.reordered)"
                    + (verifyEach ? "" : "  (each distinct document verified and read once in this process)"))
            if let error = counters.lastError { print("the last error: \(error)") }
        }
    }
}
