public import ArgumentParser
import DeviceAgent
public import Logging
import ServiceLifecycle
import UnixSignals

@main
struct FleetAgent: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet-agent",
        abstract: "Keeps the policy of every app on one device, and tells the apps and the fleet.",
        subcommands: [Run.self, Code.self])
}

extension FleetAgent {
    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Run the agent of this device until it is told to end (SIGTERM or SIGINT).",
            discussion: "Example: fleet-agent run --config /etc/fleetbus/agent.json")

        @Option(help: "The device's agent.json, as `fleetctl enroll device` made it.")
        var config: String

        @Option(help: "How much to log: trace, debug, info, notice, warning, error or critical.")
        var logLevel = Logger.Level.info

        func run() async throws {
            LoggingSystem.bootstrap(StreamLogHandler.standardError)
            var logger = Logger(label: "fleet-agent")
            logger.logLevel = logLevel
            let service = try AgentService(AgentConfiguration.read(config), logger: logger)
            let group = ServiceGroup(
                services: [service], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
            try await group.run()
        }
    }

    struct Code: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Enter the debug code that allows an app to log in detail.",
            discussion: "The code is read from standard input, without showing it on a terminal.")

        @Option(help: "The device's agent.json.")
        var config: String

        @Option(help: "The app whose log level waits for the code.")
        var app: String

        func run() async throws {
            let isRight = try DebugCodePrompt(configuration: AgentConfiguration.read(config)).ask(for: app)
            print(isRight ? "The code is right." : "The code is wrong, or no log level of \(app) waits for one.")
            if !isRight { throw ExitCode.failure }
        }
    }
}

extension Logger.Level: @retroactive ExpressibleByArgument {}
