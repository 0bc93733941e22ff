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
        discussion: """
            Run it on the broker's host. It can be repeated if the controller was not there. A device that is removed is told nothing
            any more: retire its apps first where it matters that their keys are gone.

            EXAMPLE
              fleetctl device remove till-0042
            """)

    @Argument(help: "The device.", transform: { try DeviceID(checking: $0) })
    var id: DeviceID
    @OptionGroup var fleet: FleetOptions

    func run() async throws {
        let home = try fleet.home.open()
        // What the controller would refuse is refused before the password is taken away.
        let user = fleet.user(of: home)
        guard case .operator = user else {
            throw CommandError(.refused, "\(user.text) is no operator: only operators remove devices")
        }
        _ = try home.credentials(for: user)
        let (incarnation, reload) = try home.removeDevice(id)
        // Without a record here (an enrolment that failed, another home) the controller may know it all the same.
        let request = DeviceRequest(device: id, incarnation: incarnation)
        do {
            Warnings.show(in: try await fleet.reach { try await $0.ask(.deviceRemove, request) })
        } catch let error as CommandError where incarnation != nil || error.status == .unreachable {
            throw CommandError(
                error.status == .refused ? .notConverged : error.status,
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
