public import ArgumentParser
import FleetController
import FleetHome
import FleetProtocol
import Foundation
public import Logging
import ServiceLifecycle
import UnixSignals

@main
struct FleetControllerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet-controller",
        abstract: "Keeps what the devices of a fleet are told, and what they say.", version: fleetbusVersion,
        subcommands: [Run.self])
}

extension FleetControllerCommand {
    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Run the controller of a fleet until it is told to end (SIGTERM or SIGINT).",
            discussion: "Example: fleet-controller run --home /var/lib/fleetbus/demo")

        @Option(help: ArgumentHelp("The fleet's folder; FLEETCTL_HOME if absent.", valueName: "dir"))
        var home: String?

        @Flag(help: "The database was put back from a backup: begin a new epoch, and sign every document again.")
        var restored = false

        @Option(help: "How much to log: trace, debug, info, notice, warning, error or critical.")
        var logLevel = Logger.Level.info

        func run() async throws {
            guard let home = home ?? ProcessInfo.processInfo.environment["FLEETCTL_HOME"], !home.isEmpty else {
                throw ValidationError("name the fleet's folder with --home or FLEETCTL_HOME")
            }
            LoggingSystem.bootstrap(StreamLogHandler.standardError)
            var logger = Logger(label: "fleet-controller")
            logger.logLevel = logLevel
            let service = ControllerService(home: try FleetHome(opening: home), isRestoring: restored, logger: logger)
            let group = ServiceGroup(
                services: [service], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
            try await group.run()
        }
    }
}

extension Logger.Level: @retroactive ExpressibleByArgument {}
