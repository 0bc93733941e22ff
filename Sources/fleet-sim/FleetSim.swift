import ArgumentParser
import FleetCommands
import FleetSimulator

@main
enum FleetSim {
    static func main() async {
        do {
            try Simulator.checkNames(in: Array(CommandLine.arguments.dropFirst()))
        } catch {
            Simulator.exit(withError: error)
        }
        await Simulator.main()
    }
}
