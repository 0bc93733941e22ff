import ArgumentParser
import FleetHome
import FleetProtocol

struct Broker: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes the broker's configuration anew.", subcommands: [BrokerConfigure.self])
}

struct BrokerConfigure: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "configure",
        abstract:
            "Writes the broker's configuration anew, for its next start: with another guard, or after an upgrade.",
        discussion: """
            Folders and files of the broker that are missing, as in a home that was put back, are made. What stood there before \
            is kept as mosquitto.conf.old. A broker that runs as another user gets a copy of the \
            guard, which an upgrade replaces only with this command.

            EXAMPLES
              fleetctl broker configure
              fleetctl broker configure --guard ./libFleetBrokerPlugin.so
              fleetctl broker configure --without-guard
            """)

    @OptionGroup var broker: GuardOptions
    @OptionGroup var home: HomeOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        var home = try home.open()
        let lost = try home.configureBroker(guardLibrary: try broker.library)
        let library = home.context.guardLibrary
        try output.show(
            Report(
                .object([
                    "brokerConfiguration": .string(home.brokerConfigurationPath),
                    "guard": library.map(JSONValue.string) ?? .null,
                ]),
                table: [
                    home.brokerConfigurationPath + " is written; "
                        + (library.map { "the broker will be guarded by \($0)" } ?? "the broker will have no guard")
                ]))
        if !lost.isEmpty {
            Terminal.note(
                "warning: the broker's passwords were lost, and those of devices are nowhere else: enroll again"
                    + " \(DeviceNames.few(lost)), each to its folder")
        }
        Terminal.note("note: start the broker again: it reads this only when it starts")
    }
}
