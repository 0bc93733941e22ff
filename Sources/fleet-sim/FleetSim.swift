import ArgumentParser
import FleetSimulator

@main
enum FleetSim {
    static func main() async { await Simulator.main() }
}
