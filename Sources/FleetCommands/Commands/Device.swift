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
            Run it on the broker's host. It can be repeated if the controller was not there. A device that is removed is told nothing \
            any more: one that has keys of apps is removed only when their retirement has destroyed them, or with \
            --leaving-keys.

            EXAMPLES
              fleetctl apply -f retire.yaml --wait=1d && fleetctl device remove till-0042
              fleetctl device remove till-0042 --leaving-keys          # it is broken, or stolen
            """)

    @Argument(help: "The device.", transform: { try DeviceID(checking: $0) })
    var id: DeviceID
    @Flag(help: "Also where keys of apps are there: nobody can have them destroyed any more.")
    var leavingKeys = false
    @OptionGroup var fleet: FleetOptions

    func run() async throws {
        let home = try fleet.home.open()
        // What the controller would refuse is refused before the password is taken away.
        let user = fleet.user(of: home)
        guard case .operator = user else {
            throw CommandError(.refused, "\(user.text) is no operator: only operators remove devices")
        }
        _ = try home.credentials(for: user)
        if !leavingKeys, home.hasDatabase, try home.incarnation(of: id) != nil { try await checkKeys() }
        let (incarnation, reload) = try home.removeDevice(id)
        // Without a record here (an enrolment that failed, another home) the controller may know it all the same.
        let request = DeviceRequest(device: id, incarnation: incarnation)
        do {
            Warnings.show(in: try await fleet.reach { try await $0.ask(.deviceRemove, request) })
        } catch let error as CommandError where incarnation != nil || error.status == .unreachable {
            let isBack = try home.incarnation(of: id) != nil
            throw CommandError(
                error.status == .refused ? .notConverged : error.status,
                "\(error)\n"
                    + (isBack
                        ? "\(id) was enrolled again meanwhile: repeat this command if it is to go."
                        : "\(id) can connect no more, but what it reported is still shown: repeat this command later."))
        }
        // The controller has answered, so a broker does run: where this command cannot see it.
        if reload == .notRunning {
            Terminal.note(
                "warning: the broker was not told, since it runs where this command cannot see it: send it a SIGHUP, or"
                    + " \(id) can go on with its password")
        }
        try Terminal.print(["\(id) is removed"])
    }

    /// Nothing is done yet, and can be done otherwise.
    private func checkKeys() async throws {
        let remedy = "--leaving-keys removes it all the same"
        let apps: [String]
        do {
            apps = try await fleet.reach { try await $0.appsWithKeys(on: id) }
        } catch let error as CommandError where error.status == .unreachable {
            throw CommandError(
                .unreachable, "\(error)\nSo nobody knows whether \(id) has keys of apps; nothing was done. \(remedy).")
        }
        guard !apps.isEmpty else { return }
        throw CommandError(
            .refused,
            "\(id) has \(Controller.keys(of: apps)), and would be told nothing any more; nothing was done.\n"
                + "Retire what is for it first (`fleetctl apply --wait`), so that it is known to be gone; \(remedy).")
    }
}

extension Controller {
    /// The apps whose keys a device has, as far as it has said.
    func appsWithKeys(on device: DeviceID) async throws -> [String] {
        try await list(.apps, ListRequest(device: device))
            .filter { $0["keys"]?.stringValue != Status.Keys.destroyed.rawValue }
            .compactMap { $0["app"]?.stringValue }.sorted()
    }

    /// `the keys of 2 apps (com.example.mail, com.example.notes)`.
    static func keys(of apps: [String]) -> String {
        let names = apps.prefix(5).joined(separator: ", ") + (apps.count > 5 ? "…" : "")
        return "the keys of \(apps.count == 1 ? "an app" : "\(apps.count) apps") (\(names))"
    }
}
