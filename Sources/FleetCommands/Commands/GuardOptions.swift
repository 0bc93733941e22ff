import ArgumentParser
import FleetHome

/// Who tells Mosquitto who may do what: the guard, or its ACL file.
struct GuardOptions: ParsableArguments {
    @Option(
        name: .customLong("guard"),
        help: ArgumentHelp(
            "The plugin that guards the broker; libFleetBrokerPlugin.so beside fleetctl if absent.", valueName: "file"))
    var guardLibrary: String?
    @Flag(help: "Leave the rights to Mosquitto's ACL file, which knows no groups, client ids and signatures.")
    var withoutGuard = false

    func validate() throws {
        if guardLibrary != nil, withoutGuard { throw ValidationError("--guard and --without-guard exclude each other") }
    }

    /// nil for none.
    var library: String? {
        get throws {
            if withoutGuard { return nil }
            if let library = guardLibrary ?? FleetHome.ownGuardLibrary { return library }
            throw CommandError(
                .refused,
                "the broker's guard, libFleetBrokerPlugin.so, is not beside fleetctl: build it with"
                    + " `swift build --product FleetBrokerPlugin`, name it with --guard FILE, or leave the rights to"
                    + " Mosquitto's ACL file with --without-guard")
        }
    }
}
