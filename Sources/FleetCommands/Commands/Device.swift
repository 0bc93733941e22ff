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
        abstract: "Takes devices' passwords away and forgets what they reported.",
        discussion: """
            Run it on the broker's host. It can be repeated if the controller was not there. A device that is removed is told nothing \
            any more: one that has keys of apps is removed only when their retirement has destroyed them, or with \
            --leaving-keys.

            EXAMPLES
              fleetctl apply -f retire.yaml --wait=1d && fleetctl device remove till-0042
              fleetctl device remove --from ids.txt
              fleetctl device remove till-0042 --leaving-keys --why "stolen, ticket 4711"
              fleetctl get history --target device/till-0042           # who did it, and what it said last
            """)

    @OptionGroup var names: DeviceNames
    @Flag(help: "Also where keys of apps are there: nobody can have them destroyed any more.")
    var leavingKeys = false
    @OptionGroup var reason: ReasonOptions
    @OptionGroup var fleet: FleetOptions

    func run() async throws {
        let home = try fleet.home.open()
        // What the controller would refuse is refused before the password is taken away.
        let user = fleet.user(of: home)
        guard case .operator = user else {
            throw CommandError(.refused, "\(user.text) is no operator: only operators remove devices")
        }
        _ = try home.credentials(for: user)
        let devices = try names.devices()
        if !leavingKeys, home.hasDatabase {
            try await checkKeys(of: devices.filter { try home.incarnation(of: $0) != nil })
        }
        let (incarnations, reload) = try home.removeDevices(devices)
        let (removed, failures) = await forget(devices, incarnations, home)
        // Where the controller has answered, a broker does run: where this command cannot see it.
        if reload == .notRunning, !removed.isEmpty {
            Terminal.note(
                "warning: the broker was not told, since it runs where this command cannot see it: send it a SIGHUP, or"
                    + " \(DeviceNames.few(removed)) can go on with the password")
        }
        try Terminal.printToAnyone { try Terminal.print(removed.map { "\($0) is removed" }) }
        guard !failures.isEmpty else { return }
        let isRefused = removed.isEmpty && failures.allSatisfy { $0.status == .refused }
        throw CommandError(
            failures.first { $0.status == .unreachable }?.status ?? (isRefused ? .refused : .notConverged),
            failures.map(\.description).joined(separator: "\n"))
    }

    /// Has the controller forget what they reported. Answers of which it has, and what is wrong with the others.
    private func forget(
        _ devices: [DeviceID], _ incarnations: [DeviceID: Int64], _ home: FleetHome
    ) async -> (removed: [DeviceID], failures: [CommandError]) {
        var removed: [DeviceID] = []
        var failures: [CommandError] = []
        var rest = devices[...]
        do {
            try await fleet.reach { controller in
                while let device = rest.first {
                    // Without a record here (an enrolment that failed, another home) the controller may know it all the same.
                    let request = DeviceRequest(
                        device: device, incarnation: incarnations[device], why: reason.why)
                    do {
                        Warnings.show(in: try await controller.ask(.deviceRemove, request))
                        removed.append(device)
                    } catch let error as CommandError where error.status == .refused {
                        let isKnown = incarnations[device] != nil
                        failures.append(
                            isKnown ? unfinished(error, [device], incarnations, home, .notConverged) : error)
                    }
                    rest.removeFirst()
                }
            }
        } catch {
            let status = (error as? CommandError)?.status ?? .unreachable
            failures.append(unfinished(error, rest, incarnations, home, status))
        }
        return (removed, failures)
    }

    /// The controller has not forgotten some whose passwords are gone.
    private func unfinished(
        _ error: any Error, _ devices: some Collection<DeviceID>, _ known: [DeviceID: Int64], _ home: FleetHome,
        _ status: CommandError.Status
    ) -> CommandError {
        let back = devices.filter { (try? home.incarnation(of: $0)) != nil }
        let unknown = devices.filter { known[$0] == nil }
        let gone = devices.filter { known[$0] != nil && !back.contains($0) }
        var lines = ["\(error)"]
        if !unknown.isEmpty {
            lines.append(
                "\(DeviceNames.few(unknown)) was never enrolled from this folder (is it called so?), and had no password here."
            )
        }
        if !back.isEmpty {
            lines.append("\(DeviceNames.few(back)) was enrolled again meanwhile: repeat this command if it is to go.")
        }
        if !gone.isEmpty {
            lines.append(
                "\(DeviceNames.few(gone)) can connect no more, but what \(gone.count == 1 ? "it" : "they") reported is still"
                    + " shown: repeat this command later.")
        }
        return CommandError(status, lines.joined(separator: "\n"))
    }

    /// Nothing is done yet, and can be done otherwise.
    private func checkKeys(of devices: [DeviceID]) async throws {
        guard !devices.isEmpty else { return }
        let remedy = "--leaving-keys removes \(devices.count == 1 ? "it" : "them") all the same"
        let holding: [(device: DeviceID, apps: [String])]
        do {
            holding = try await fleet.reach { controller in
                var holding: [(DeviceID, [String])] = []
                for device in devices {
                    let apps = try await controller.appsWithKeys(on: device)
                    if !apps.isEmpty { holding.append((device, apps)) }
                }
                return holding
            }
        } catch let error as CommandError where error.status == .unreachable {
            throw CommandError(
                .unreachable,
                "\(error)\nSo nobody knows whether \(DeviceNames.few(devices)) has keys of apps; nothing was done. \(remedy)."
            )
        }
        guard !holding.isEmpty else { return }
        let known = holding.prefix(20).map { "\($0.device) has \(Controller.keys(of: $0.apps))" }
        let more = holding.count > 20 ? ["and so have \(holding.count - 20) more"] : []
        throw CommandError(
            .refused,
            (known + more).joined(separator: "\n")
                + ", and would be told nothing any more; nothing was done.\n"
                + "Retire what is for \(holding.count == 1 ? "it" : "them") first (`fleetctl apply --wait`), so that it is known"
                + " to be gone; \(remedy).")
    }
}

extension Controller {
    /// The apps whose keys a device has, as far as it has said, or may have on an earlier disk or a copy.
    func appsWithKeys(on device: DeviceID) async throws -> [String] {
        let present = try await list(.apps, ListRequest(device: device))
            .filter { $0["keys"]?.stringValue != Status.Keys.destroyed.rawValue }
            .compactMap { $0["app"]?.stringValue }
        let left = try await list(.devices, ListRequest(device: device))
            .flatMap { $0["leftKeys"]?.arrayValue ?? [] }.compactMap(\.stringValue)
        return Set(present + left).sorted()
    }

    /// `the keys of 2 apps (com.example.mail, com.example.notes)`.
    static func keys(of apps: [String]) -> String {
        let names = apps.prefix(5).joined(separator: ", ") + (apps.count > 5 ? "…" : "")
        return "the keys of \(apps.count == 1 ? "an app" : "\(apps.count) apps") (\(names))"
    }
}
