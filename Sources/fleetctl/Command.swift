import FleetCommands

@main
struct Command {
    static func main() async { await Fleetctl.launch() }
}
