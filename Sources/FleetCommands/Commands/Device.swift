import ArgumentParser
import FleetHome
import FleetProtocol
import Synchronization
import UnixSignals

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
              fleetctl get history --target device/till-0042    who did it
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
            // Also of those without a record here: it may be lost.
            try await checkKeys(of: devices.filter { try home.record(of: $0)?.isEnrolled ?? true })
        }
        // Once passwords begin to go, who interrupts is told how far it has come.
        let interruptions = await Controller.interruptions()
        let (incarnations, reload) = try home.removeDevices(devices)
        let (removed, failures) = await forget(devices, incarnations, reload, home, until: interruptions)
        if reload == .notRunning {
            Terminal.note(
                "warning: the broker was not told, since none runs on this home that this command could see: one that does"
                    + " needs a SIGHUP, or whoever is removed can go on with the password")
        }
        try Terminal.printToAnyone { try Terminal.print(removed.map { "\($0) is removed" }) }
        guard !failures.isEmpty else { return }
        let isRefused = failures.allSatisfy { $0.status == .refused }
        throw CommandError(
            failures.first { $0.status == .unreachable }?.status ?? (isRefused ? .refused : .notConverged),
            failures.map(\.description).joined(separator: "\n"))
    }

    /// How far the controller has come.
    private struct Forgetting {
        var removed: [DeviceID] = []
        var failures: [CommandError] = []
        var rest: ArraySlice<DeviceID>
    }

    /// Has the controller forget what they reported. Answers of which it has, and what is wrong with the others.
    private func forget(
        _ devices: [DeviceID], _ incarnations: [DeviceID: Int64], _ reload: BrokerReload, _ home: FleetHome,
        until interruptions: UnixSignalsSequence
    ) async -> (removed: [DeviceID], failures: [CommandError]) {
        // Ctrl-C leaves what is done until then.
        let state = Mutex(Forgetting(rest: devices[...]))
        do {
            try await Controller.untilInterrupted(by: interruptions) {
                try await fleet.reach { controller in
                    while let device = state.withLock({ $0.rest.first }) {
                        // Without a record here (an enrolment that failed, another home) the controller may know it all the
                        // same.
                        let request = DeviceRequest(
                            device: device, incarnation: incarnations[device], why: reason.why)
                        do {
                            Warnings.show(in: try await controller.ask(.deviceRemove, request))
                            state.withLock { $0.removed.append(device) }
                        } catch let error as CommandError where error.status == .refused {
                            let isKnown = incarnations[device] != nil
                            let failure =
                                isKnown ? unfinished(error, [device], incarnations, reload, home, .notConverged) : error
                            state.withLock { $0.failures.append(failure) }
                        }
                        state.withLock { $0.rest = $0.rest.dropFirst() }
                    }
                }
            }
        } catch {
            let status = (error as? CommandError)?.status ?? .unreachable
            let rest = state.withLock { $0.rest }
            let failure = unfinished(error, rest, incarnations, reload, home, status)
            state.withLock { $0.failures.append(failure) }
        }
        return state.withLock { ($0.removed, $0.failures) }
    }

    /// The controller has not forgotten some whose passwords are gone.
    private func unfinished(
        _ error: any Error, _ devices: some Collection<DeviceID>, _ known: [DeviceID: Int64], _ reload: BrokerReload,
        _ home: FleetHome, _ status: CommandError.Status
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
            let what = "what \(gone.count == 1 ? "it" : "they") reported is still shown: repeat this command later."
            lines.append(
                reload == .notRunning
                    ? "\(DeviceNames.few(gone)) can go on connecting until the broker is sent a SIGHUP, and \(what)"
                    : "\(DeviceNames.few(gone)) can connect no more, but \(what)")
        }
        return CommandError(status, lines.joined(separator: "\n"))
    }

    /// Nothing is done yet, and can be done otherwise.
    private func checkKeys(of devices: [DeviceID]) async throws {
        guard !devices.isEmpty else { return }
        let remedy = "--leaving-keys removes \(devices.count == 1 ? "it" : "them") all the same"
        let holding: [(device: DeviceID, apps: [AppID])]
        do {
            holding = try await fleet.reach { controller in
                var holding: [(DeviceID, [AppID])] = []
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
    func appsWithKeys(on device: DeviceID) async throws -> [AppID] {
        let present = try await list(.apps, ListRequest(device: device))
            .filter { $0["keys"]?.stringValue != Status.Keys.destroyed.rawValue }
            .compactMap { $0["app"] }
        let left = try await list(.devices, ListRequest(device: device)).flatMap { $0["leftKeys"]?.arrayValue ?? [] }
        // A name that is none is no reason to pass over keys.
        return try Set((present + left).map { try $0.decoded(AppID.self) }).sorted()
    }

    /// `the keys of 2 apps (com.example.mail, com.example.notes)`.
    static func keys(of apps: [AppID]) -> String {
        let names = apps.prefix(5).map(\.text).joined(separator: ", ") + (apps.count > 5 ? "…" : "")
        return "the keys of \(apps.count == 1 ? "an app" : "\(apps.count) apps") (\(names))"
    }
}
