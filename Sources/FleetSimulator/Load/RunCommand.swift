import ArgumentParser
import FleetHome
import FleetProtocol
import Glibc

/// `fleet-sim run`: a fleet of simulated devices at the broker of a home.
struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Connects a fleet of simulated devices with apps to a fleet's broker.",
        discussion: """
            Run it on the host of the fleet's home, with broker and controller running. Each device is the real agent's
            core with its real client; its apps answer in the same process. A second run goes on as the same devices,
            and several processes share a fleet with --first. Ends at --duration, or with SIGINT.

            EXAMPLES
              fleet-sim run --home /var/lib/fleetbus/demo --devices 5000 --apps 3
              fleet-sim run --home ./home --devices 1000 --ack-delay 50ms-2s --error-rate 0.01 --duration 60s -o json
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
    @Option(help: "How long an app takes to answer: 50ms, or any time in 50ms-2s.")
    var ackDelay = "0s"
    @Option(help: "The part of answers that are errors, 0 to 1.")
    var errorRate = 0.0
    @Option(help: "The part of answers that are 'unsupported', 0 to 1.")
    var unsupportedRate = 0.0
    @Option(help: "The part of apps that never answer, 0 to 1.")
    var neverAck = 0.0
    @Option(help: "When to end, for example 60s; without it, at SIGINT.")
    var duration: String?
    @Flag(help: "Verify every signature for every device, as real ones do; else each distinct document once.")
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
        guard [errorRate, unsupportedRate, neverAck].allSatisfy((0...1).contains), errorRate + unsupportedRate <= 1
        else { throw ValidationError("rates are parts of one, and answers have one outcome each") }
        _ = try answerDelay()
        if let duration, Duration(text: duration) == nil { throw ValidationError("--duration: expected 60s, 5m …") }
    }

    private func answerDelay() throws -> ClosedRange<Duration> {
        let ends = ackDelay.split(separator: "-", omittingEmptySubsequences: false).map { Duration(text: $0) }
        guard (1...2).contains(ends.count), let low = ends[0], let high = ends[ends.count - 1], low <= high else {
            throw ValidationError("--ack-delay: expected a time such as 50ms, or a range such as 50ms-2s")
        }
        return low...high
    }

    private func plan() throws -> LoadPlan {
        var plan = LoadPlan()
        plan.devices = devices
        plan.first = first
        plan.apps = apps
        plan.groups = groups
        plan.connectRate = connectRate
        plan.verifiesEach = verifyEach
        plan.answers.delay = try answerDelay()
        plan.answers.errorRate = errorRate
        plan.answers.unsupportedRate = unsupportedRate
        plan.answers.neverRate = neverAck
        return plan
    }

    func run() async throws {
        let home = try FleetHome(opening: home)
        let plan = try plan()
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
        report(counters)
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

    private func report(_ counters: LoadCounters) {
        switch output {
        case .json: print(counters.value.jsonText)
        case .text:
            print(counters.line)
            print(
                "statuses \(counters.statuses)  duplicated \(counters.duplicated)  reordered \(counters.reordered)"
                    + (verifyEach ? "" : "  (each distinct document verified once in this process)"))
            if let error = counters.lastError { print("the last error: \(error)") }
        }
    }
}
