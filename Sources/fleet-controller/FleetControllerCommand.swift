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
        subcommands: [Run.self, Backup.self])
}

extension FleetControllerCommand {
    struct HomeOptions: ParsableArguments {
        @Option(help: ArgumentHelp("The fleet's folder; FLEETCTL_HOME if absent.", valueName: "dir"))
        var home: String?

        func open() throws -> FleetHome {
            guard let home = home ?? ProcessInfo.processInfo.environment["FLEETCTL_HOME"], !home.isEmpty else {
                throw ValidationError("name the fleet's folder with --home or FLEETCTL_HOME")
            }
            return try FleetHome(opening: home)
        }
    }

    struct Backup: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Copy the database as it is at one moment, also while the controller runs.",
            discussion: """
                Put back in the place of fleet.db, the copy is what `fleet-controller run --restored` goes on from.

                Example: fleet-controller backup --home /var/lib/fleetbus/demo --out /backup/fleet-2026-11-21.db
                """)

        @OptionGroup var home: HomeOptions
        @Option(help: ArgumentHelp("A new file.", valueName: "file"))
        var out: String

        func run() throws { try FleetStore.backUp(home.open().databasePath, to: out) }
    }

    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Run the controller of a fleet until it is told to end (SIGTERM or SIGINT).",
            discussion: """
                Examples: fleet-controller run --home /var/lib/fleetbus/demo
                          fleet-controller run --home /var/lib/fleetbus/demo --metrics 9464
                """)

        @OptionGroup var home: HomeOptions

        @Flag(help: "The database was put back from a backup: begin a new epoch, and sign every document again.")
        var restored = false

        @Option(
            help: ArgumentHelp(
                """
                A device that says to know of what was never changed here: that stops nothing this time. Then remove it, or \
                enroll it anew. For several say it again.
                """, valueName: "device"),
            transform: { try DeviceID(checking: $0) })
        var disregard: [DeviceID] = []

        @Option(
            help: ArgumentHelp(
                """
                Tell Prometheus of the fleet at http://127.0.0.1:PORT/metrics, to whoever shows the token that is in the \
                fleet's folder, in metrics.token. Another address of loopback: [::1]:9464.
                """, valueName: "port"),
            transform: { try MetricsAddress($0) })
        var metrics: MetricsAddress?

        @Option(
            help: ArgumentHelp(
                """
                Drop events and changes of log levels that were stored so long ago; those of destroyed keys stay. Without, \
                all stay.
                """, valueName: "days"),
            transform: { text in
                guard let days = Int64(text), (1...36_500).contains(days) else {
                    throw ValidationError("expected days from 1 to 36500")
                }
                return days
            })
        var keepEvents: Int64?

        @Option(help: "How much to log: trace, debug, info, notice, warning, error or critical.")
        var logLevel = Logger.Level.info

        func run() async throws {
            let home = try home.open()
            LoggingSystem.bootstrap(StreamLogHandler.standardError)
            var logger = Logger(label: "fleet-controller")
            logger.logLevel = logLevel
            let service = ControllerService(
                home: home, isRestoring: restored, disregarded: Set(disregard),
                eventLife: keepEvents.map { $0 * 86_400 }, metricsAddress: metrics, logger: logger)
            let group = ServiceGroup(
                services: [service], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
            try await group.run()
        }
    }
}

extension Logger.Level: @retroactive ExpressibleByArgument {}
