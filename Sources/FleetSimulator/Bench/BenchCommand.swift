import ArgumentParser
import FleetProtocol
import Foundation
import Glibc

/// `fleet-sim bench`: what the bus does on this machine, next to what the machine can do.
struct BenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench", abstract: "Measures the bus on this machine, with a broker and controller of its own.",
        discussion: """
            Build it for release, on a machine that does nothing else. Everything that is started lives in a temporary \
            folder and ends with the bench. Figures are medians, interleaved with two floors, the same traffic by \
            clients that parse, verify and store nothing: bare (replies of 200 bytes, not retained) and equal bytes \
            (as many filters as ours, messages of our size and topics of our length, retained where ours are). RATIO \
            is ours by the bare floor's figure, RATIO = by equal bytes'. LOST, DOUBLE and DISORDER must be 0. Beside \
            them stand, for each acknowledgement and process, processor time and calls of the read (r) and write (w) \
            families, as /proc/PID/io counts them: recv, send and epoll_wait are not among them. JSON also has \
            instructions in user mode, or null where the processor's counters cannot be used, as in most virtual \
            machines.

            SCENARIOS
              connect    devices that connect, subscribe, are greeted and report, a second
              converge   one change for the fleet, until the last status is committed
              sustained  change upon change for the fleet: acknowledgements per second
              device     changes of single devices, as many as go
              paced      the same at --rate per second, for their latency
              storm      kill -9 of the broker, and a start: until all have converged
              status     a whole `fleetctl status` at --rows device-apps
              apply      a whole `fleetctl apply` for all at --rows devices
              collector  statuses per second into a store of --rows, next to raw writes
              decode     nanoseconds per message of the codecs
              all        all of these, also behind one that fails
              smoke      all of them, small: fails on loss, doubles, disorder, system calls

            EXAMPLES
              fleet-sim bench converge --devices 10000
              fleet-sim bench all -o json > bench.json
            """)

    @Argument(help: "Which scenario; see above.")
    var scenario: BenchSettings.Scenario
    @Option(help: "How many devices.")
    var devices: Int?
    @Option(help: "Apps on each device; a change is one app's.")
    var apps: Int?
    @Option(help: "Rounds, each with one of each floor.")
    var rounds: Int?
    @Option(help: "How long each run of traffic takes.")
    var seconds: Int?
    @Option(help: "paced: changes per second.")
    var rate: Int?
    @Option(help: "device: changes under way at once.")
    var outstanding: Int?
    @Option(help: "Devices that connect at once.")
    var window: Int?
    @Option(help: "storm: connections per second that the back-off lets through.")
    var connectRate: Int?
    @Option(help: "status, apply, collector: device-apps in the store.")
    var rows: Int?
    @Flag(help: "Verify and read every document for every device; else each distinct one once in the simulator.")
    var verifyEach = false
    @Option(help: "converge: a program with the reference floor's commands sim and drive, to be measured beside.")
    var reference: String?
    @Option(name: .shortAndLong, help: "text or json: one object a line.")
    var output = RunCommand.Format.text

    func validate() throws {
        let numbers = [
            ("devices", devices, 100_000), ("apps", apps, 64), ("rounds", rounds, 1_000), ("seconds", seconds, 3_600),
            ("rate", rate, 100_000), ("outstanding", outstanding, 10_000), ("window", window, 10_000),
            ("connect-rate", connectRate, 100_000), ("rows", rows, 10_000_000),
        ]
        for case (let name, let number?, let limit) in numbers where !(1...limit).contains(number) {
            throw ValidationError("--\(name): expected 1 to \(limit)")
        }
    }

    private func settings(_ scenario: BenchSettings.Scenario) -> BenchSettings {
        var settings = BenchSettings.defaults(of: scenario)
        settings.devices = devices ?? settings.devices
        settings.apps = apps ?? settings.apps
        settings.rounds = rounds ?? settings.rounds
        settings.duration = seconds.map { .seconds($0) } ?? settings.duration
        settings.rate = rate ?? settings.rate
        settings.outstanding = outstanding ?? settings.outstanding
        settings.window = window ?? settings.window
        settings.connectRate = connectRate ?? settings.connectRate
        settings.rows = rows ?? settings.rows
        settings.verifiesEach = verifyEach
        settings.reference = reference
        return settings
    }

    func run() async throws {
        let scenarios: [(BenchSettings.Scenario, BenchSettings)] =
            switch scenario {
            case .all:
                BenchSettings.Scenario.allCases.filter { $0 != .all && $0 != .smoke }.map { ($0, settings($0)) }
            case .smoke: BenchSmoke.scenarios
            default: [(scenario, settings(scenario))]
            }
        if output == .text { show(BenchReport.header) }
        let isSmoke = scenario == .smoke
        let isWrong = try await untilEndSignal { () async throws -> Bool in
            var isWrong = false
            for (scenario, settings) in scenarios {
                do {
                    for var report in try await Self.run(scenario, settings) {
                        if isSmoke { report.broken = BenchSmoke.broken(report) }
                        show(output == .json ? report.value.jsonText : report.line)
                        isWrong = isWrong || report.isWrong
                    }
                } catch {
                    guard scenarios.count > 1, !Task.isCancelled else { throw error }
                    FileHandle.standardError.write(Data("error: \(scenario.rawValue): \(error)\n".utf8))
                    isWrong = true
                }
            }
            return isWrong
        }
        guard let isWrong else { throw ExitCode(130) }
        if isWrong { throw ExitCode(1) }
    }

    private static func run(_ scenario: BenchSettings.Scenario, _ settings: BenchSettings) async throws -> [BenchReport]
    {
        switch scenario {
        case .connect: [try await ConnectBench(settings: settings).run()]
        case .converge: [try await ConvergeBench(settings: settings).run()]
        case .sustained: [try await SustainedBench(settings: settings).run()]
        case .device: [try await DeviceBench(settings: settings, isPaced: false).run()]
        case .paced: [try await DeviceBench(settings: settings, isPaced: true).run()]
        case .storm: [try await StormBench(settings: settings).run()]
        case .status: [try await StoreBench(settings: settings, isApply: false).run()]
        case .apply: [try await StoreBench(settings: settings, isApply: true).run()]
        case .collector: [try CollectorBench(settings: settings).run()]
        case .decode: [try DecodeBench(rounds: settings.rounds, messages: settings.messages).run()]
        case .all, .smoke: []
        }
    }

    /// At once: what is running may take long.
    private func show(_ text: String) {
        print(text)
        fflush(nil)
    }
}

extension BenchSettings.Scenario: ExpressibleByArgument {}
