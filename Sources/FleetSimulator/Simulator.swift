package import ArgumentParser
import FleetHome
import FleetProtocol

/// `fleet-sim`: simulated fleets, to size a deployment and to prove the protocol.
package struct Simulator: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "fleet-sim", abstract: "Simulates fleets: to size a deployment, and to prove the protocol.",
        version: fleetbusVersion,
        subcommands: [
            RunCommand.self, BenchCommand.self, PlotCommand.self, Explore.self, ChaosCommand.self,
            BenchDevices.self, BenchFloor.self,
            BenchEcho.self,
        ])

    package init() {}
}
