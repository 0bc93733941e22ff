import ArgumentParser
import FleetHome
import FleetProtocol

struct Device: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Removes devices.", subcommands: [DeviceRemove.self])
}

struct DeviceRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Takes a device's password away and forgets what it reported.",
        discussion: "Run it on the broker's host. It can be repeated if the controller was not there.")

    @Argument(help: "The device.", transform: { try DeviceID(checking: $0) })
    var id: DeviceID
    @OptionGroup var fleet: FleetOptions

    func run() async throws {
        let home = try fleet.home.open()
        let record = try home.record(of: id)
        let reload = try record != nil ? home.removeDevice(id) : home.reloadBroker()
        // Without a record here (an enrolment that failed, another home) the controller may know it all the same.
        let request = DeviceRequest(device: id, incarnation: record?.incarnation)
        do {
            _ = try await fleet.reach { try await $0.ask(.deviceRemove, request) }
        } catch let error as CommandError where error.status == .unreachable {
            throw CommandError(
                .unreachable,
                "\(error)\n\(id) can connect no more, but what it reported is still shown: repeat this command later.")
        }
        // The controller has answered, so a broker does run: where this command cannot see it.
        if reload == .notRunning {
            Terminal.note(
                "warning: the broker was not told, since it runs where this command cannot see it: send it a SIGHUP, or"
                    + " \(id) can go on with its password")
        }
        try Terminal.print(["\(id) is removed"])
    }
}
