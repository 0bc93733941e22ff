import ArgumentParser
import FleetProtocol

/// `fleet-sim bench`: what the bus does on this machine, next to what the machine can do.
struct BenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench", abstract: "Measures the bus on this machine, with a broker and controller of its own.",
        discussion: """
            Build it for release. Everything that is started lives in a temporary folder and ends with the bench. The
            figures are medians; those of a scenario are interleaved with its floor: the same traffic by bare clients,
            with 200-byte replies that are not retained, nothing parsed, verified or stored.
            """,
        subcommands: [BenchConverge.self, BenchDecode.self])
}

struct BenchOutput: ParsableArguments {
    @Option(name: .shortAndLong, help: "text or json.")
    var output = RunCommand.Format.text

    func show(_ report: BenchReport) {
        print(output == .json ? report.value.jsonText : report.line)
    }
}

struct BenchConverge: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "converge", abstract: "One change for the fleet: request to the last status in the summary.")

    @Option(help: "How many devices.")
    var devices = 1_000
    @Option(help: "Apps on each device; the change is one app's.")
    var apps = 1
    @Option(help: "Rounds, each with one of the floor.")
    var rounds = 7
    @Option(help: "Connections begun per second.")
    var connectRate = 1_000
    @Flag(help: "Verify every signature for every device; else each distinct document once in the simulator.")
    var verifyEach = false
    @OptionGroup var output: BenchOutput

    func validate() throws {
        guard (1...100_000).contains(devices), (1...64).contains(apps), (1...1_000).contains(rounds), connectRate > 0
        else { throw ValidationError("expected --devices 1 to 100000, --apps 1 to 64, --rounds 1 to 1000") }
    }

    func run() async throws {
        var plan = LoadPlan()
        plan.devices = devices
        plan.apps = apps
        plan.connectRate = connectRate
        plan.verifiesEach = verifyEach
        let bench = ConvergeBench(plan: plan, rounds: rounds)
        guard let report = try await untilEndSignal({ try await bench.run() }) else { throw ExitCode(130) }
        output.show(report)
        if report.lost + report.duplicated + report.reordered > 0 { throw ExitCode(1) }
    }
}

struct BenchDecode: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decode", abstract: "Nanoseconds per message of the codecs.")

    @Option(help: "Rounds, of which the median counts.")
    var rounds = 7
    @OptionGroup var output: BenchOutput

    func validate() throws {
        guard (1...1_000).contains(rounds) else { throw ValidationError("expected --rounds 1 to 1000") }
    }

    func run() throws { output.show(try DecodeBench(rounds: rounds).run()) }
}
