import ArgumentParser
import FleetProtocol
import FleetWorld
import Foundation

extension Schedule.Theme: ExpressibleByArgument {}

/// `fleet-sim explore`: schedules of random seeds, each a whole fleet in which everything goes wrong that can.
struct Explore: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explore",
        abstract: "Runs random schedules of failures against the protocol, and checks its promises.",
        discussion: """
            Every schedule is decided by its seed: the schedules of --seed S are those of S, S+1, S+2 and so on. With \
            --seed alone the one schedule is run and its story told, the same each time. A broken promise is printed \
            with its seed, made as short as it can be, and told as a story. Exit code 1 when one was broken.
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable { case text, json }

    @Option(help: "How many schedules to run; without it, the one of --seed, with its story.")
    var schedules: Int?

    @Option(help: "The first seed. Without it a random one, which is printed.")
    var seed: UInt64?

    @Option(
        help: """
            Run schedules of one theme alone, which are rare among the others: \
            \(Schedule.Theme.allCases.map(\.rawValue).joined(separator: ", ")).
            """)
    var theme: Schedule.Theme?

    @Option(help: "Stop after this many seconds, however many schedules have run.")
    var atMost: Int?

    @Option(help: "Threads.")
    var threads = 2

    @Option(
        help:
            "Leave this mistake in the world, to see that it is found: \(Fault.allCases.map(\.rawValue).joined(separator: ", "))."
    )
    var fault: String?

    @Flag(help: "Print the shortest schedule that breaks the same promise, and its story.")
    var shrink = false

    @Flag(help: "Print how often each transition of the parts was visited, and which never was.")
    var coverage = false

    @Flag(
        help: """
            Exit with code 1 when a transition that should be reachable was not visited (rare ones count from 100,000 \
            schedules on); shows --coverage's counts.
            """)
    var requireCoverage = false

    @Option(name: .shortAndLong, help: "text or json.")
    var output = Format.text

    func validate() throws {
        if let schedules, schedules < 1 { throw ValidationError("--schedules must be at least 1") }
        if let atMost, atMost < 1 { throw ValidationError("--at-most must be at least 1 second") }
        if threads < 1 { throw ValidationError("--threads must be at least 1") }
        if let fault, Fault(rawValue: fault) == nil { throw ValidationError("there is no fault '\(fault)'") }
        if schedules == nil, seed == nil { throw ValidationError("say --schedules N, or --seed S to replay one") }
    }

    func run() throws {
        FixedHashes.begin()
        let explorer = try Explorer(fault: fault.flatMap(Fault.init))
        if let seed, schedules == nil { return try replay(seed, explorer) }
        let first = seed ?? .random(in: 0..<(1 << 52))
        let clock = ContinuousClock()
        let start = clock.now
        if output == .text { print("seed \(first)") }
        let visited = coverage || requireCoverage ? Coverage() : nil
        let (failed, ran) = try explorer.explore(
            seed: first, theme: theme, count: schedules ?? 1, threads: threads, within: .seconds(atMost ?? 86_400),
            coverage: visited
        ) { ran, failure in
            if ran.isMultiple(of: 10_000) { note("\(ran) schedules") }
            guard let failure, output == .text else { return }
            print("seed \(failure.seed) breaks: \(failure.violation)")
            fflush(nil)
        }
        let elapsed = clock.now - start
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        let perSecond = Int64(Double(ran) / max(seconds, 0.000_1))
        switch output {
        case .text:
            for line in visited?.lines ?? [] { print(line) }
            if let failure = failed.first {
                tell(try explorer.shrink(Schedule(seed: failure.seed, theme: theme), failure.violation))
            }
            for failure in failed.prefix(10) { print("seed \(failure.seed) breaks: \(failure.violation)") }
            print("\(ran) schedules from seed \(first), \(failed.count) failures, \(perSecond) a second")
        case .json:
            let broken = failed.map { failure in
                JSONValue.object([
                    "seed": .integer(Int64(failure.seed)), "law": .string(failure.violation.law.rawValue),
                    "what": .string(failure.violation.what),
                ])
            }
            var members: [JSONValue.Member] = [
                .init("schedules", .integer(Int64(ran))), .init("failures", .integer(Int64(failed.count))),
                .init("perSecond", .integer(perSecond)), .init("seed", .integer(Int64(first))),
                .init("failed", .array(broken)),
            ]
            if let visited { members.append(.init("coverage", visited.jsonValue)) }
            print(JSONValue.object(members).jsonText)
        }
        if !failed.isEmpty || requireCoverage && visited?.missed(by: ran).isEmpty == false { throw ExitCode(1) }
    }

    private func replay(_ seed: UInt64, _ explorer: Explorer) throws {
        let schedule = Schedule(seed: seed, theme: theme)
        let (violation, story) = try explorer.run(schedule)
        if let violation, shrink {
            tell(try explorer.shrink(schedule, violation))
        } else {
            for line in story { print(line) }
        }
        guard let violation else { return print("seed \(seed) keeps every promise") }
        print("seed \(seed) breaks: \(violation)")
        throw ExitCode(1)
    }

    /// For whoever waits; not part of the result.
    private func note(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

    private func tell(_ finding: Explorer.Finding) {
        print(
            "The shortest schedule found (seed \(finding.schedule.seed), \(finding.schedule.devices) devices, \(finding.schedule.apps) apps, \(finding.schedule.broker.rawValue) broker):"
        )
        for step in finding.schedule.steps { print("  Step(\(step.at), .\(step.action))") }
        print("Its story:")
        for line in finding.story { print(line) }
    }
}
