import ArgumentParser
import FleetProtocol
import FleetWorld
import Foundation
import Glibc

/// `fleet-sim chaos`: the real processes, killed at random.
struct ChaosCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "chaos",
        abstract: "Runs a real fleet, lets everything go wrong, and checks its promises from outside.",
        discussion: """
            Broker, controller, agents, apps and operators are processes in a temporary folder, on free ports. They \
            are killed, stopped, cut off and slowed down, their disks are full (a limit of the size of files, \
            RLIMIT_FSIZE), the broker comes back with an old or an empty database, and the controller as after a \
            restore (--restored), while several fleetctl change everything. When the faults have ended, fleetctl, the \
            files and what the apps printed must agree. The seed decides what goes wrong and what is asked for, not how \
            the processes come through it. Exit code 1 when a promise was broken: then the story is told, and the folder \
            with all logs is kept.

            EXAMPLES
              fleet-sim chaos --minutes 2
              fleet-sim chaos --minutes 60 --devices 6 --apps 4 -o json
            """)

    @Option(help: "How long things go wrong, such as 2 or 0.5.")
    var minutes: Double
    @Option(help: "What decides the faults and changes. Without it a random one, which is printed.")
    var seed: UInt64?
    @Option(help: "How many devices.")
    var devices = 3
    @Option(help: "Apps on each device.")
    var apps = 3
    @Option(name: .shortAndLong, help: "text or json.")
    var output = RunCommand.Format.text

    func validate() throws {
        guard minutes > 0, minutes <= 10_000 else { throw ValidationError("--minutes must be above 0") }
        guard (1...100).contains(devices), (1...16).contains(apps) else {
            throw ValidationError("expected --devices 1 to 100, --apps 1 to 16")
        }
    }

    func run() async throws {
        let seed = seed ?? .random(in: 0..<(1 << 52))
        // Before anything starts: programs inherit that a full disk is an error of a write, and not the end.
        signal(SIGXFSZ, SIG_IGN)
        signal(SIGPIPE, SIG_IGN)
        let disks =
            ChaosFleet.canFillDisks
            ? "a full disk is a limit of the size of files (RLIMIT_FSIZE)"
            : "full disks are left out: this machine has no prlimit"
        Self.note("seed \(seed); \(disks)")
        let (minutes, devices, apps) = (minutes, devices, apps)
        let report = try await untilEndSignal {
            try await Self.run(minutes: minutes, seed: seed, devices: devices, apps: apps)
        }
        guard let report else { throw ExitCode(130) }
        show(report)
        if !report.failures.isEmpty { throw ExitCode(1) }
    }

    private static func run(minutes: Double, seed: UInt64, devices: Int, apps: Int) async throws -> ChaosReport {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fleet-chaos-\(getpid())").path
        let fleet = try ChaosFleet(folder: folder, devices: devices, apps: apps)
        let chaos = Chaos(minutes: minutes, seed: seed, fleet: fleet, say: note)
        do {
            try await chaos.run()
            let report = chaos.closing()
            await fleet.end(keepsFiles: report.logs != nil)
            return report
        } catch {
            await fleet.end(keepsFiles: !(error is CancellationError))
            throw error
        }
    }

    private func show(_ report: ChaosReport) {
        for failure in report.failures.prefix(10) { Self.note("broken: \(failure.law.rawValue): \(failure.what)") }
        if !report.story.isEmpty { Self.note("what happened last:\n" + report.story.joined(separator: "\n")) }
        if let logs = report.logs {
            Self.note("seed \(report.seed); the logs are in \(logs), the whole story in \(logs)/story.log")
        }
        print(output == .json ? report.value.jsonText : report.line)
    }

    private static func note(_ text: String) {
        var text = text + "\n"
        text.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}

extension Chaos {
    /// What it came to.
    func closing() -> ChaosReport {
        var report = report
        report.changes = changes.count
        report.failures = findings
        if !findings.isEmpty {
            report.story = story.end(about: Set(findings.compactMap(\.device)))
            report.logs = fleet.folder
        }
        return report
    }
}
