import ArgumentParser
import FleetHome
import FleetProtocol
import Foundation

struct Enroll: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Makes something known to the fleet.", subcommands: [EnrollDevice.self])
}

struct EnrollDevice: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "device",
        abstract: "Gives devices a password, and a folder that an agent can be started on.",
        discussion: """
            One device goes to DIR itself, several to DIR/ID. An enrolled device is enrolled anew: it gets the next \
            incarnation and another password. Run it on the broker's host. The folder holds a password: keep it \
            private on its way to the device.

            EXAMPLES
              fleetctl enroll device till-1 --out ./till-1
              fleetctl enroll device --from ids.txt --out ./devices
            """)

    @OptionGroup var names: DeviceNames
    @Option(help: ArgumentHelp("Where the agent's files go.", valueName: "dir"))
    var out: String
    @Flag(help: "Do not ask the controller: the device could be shown older documents at its first contact.")
    var withoutFloors = false
    @OptionGroup var fleet: FleetOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let home = try fleet.home.open()
        let devices = try names.devices()
        let isSingle = devices.count == 1 && names.from == nil
        func folder(of device: DeviceID) -> String { isSingle ? out : out + "/" + device.text }
        // The controller remembers whom it was asked about: it is asked when nothing else can fail.
        let prepared = devices.map { FleetHome.Enrolment(device: $0, folder: folder(of: $0)) }
        try home.prepare(prepared)
        let known = try devices.filter { try home.incarnation(of: $0) != nil }
        let (floors, holding): ([DeviceID: Floors], [DeviceID: [AppID]])
        do {
            (floors, holding) = try await Controller.untilInterrupted(saying: Self.interrupted(devices)) {
                try await askController(home, devices)
            }
        } catch {
            home.takeBack(prepared)
            throw error
        }
        let enrolments = devices.map { device in
            FleetHome.Enrolment(device: device, folder: folder(of: device), floors: floors[device])
        }
        let reload = try home.enroll(enrolments, floors: Floors(trust: try home.trust()))
        if reload == .notRunning {
            // Where the controller has answered a broker does run: where this command cannot see it.
            Terminal.note(
                floors.isEmpty
                    ? "note: no broker runs on this home that this command could see; one that does needs a SIGHUP, or it"
                        + " goes on without the new passwords"
                    : "warning: the broker was not told, since it runs where this command cannot see it: send it a"
                        + " SIGHUP, or it goes on without the new passwords")
        }
        if !known.isEmpty {
            let names = DeviceNames.few(known)
            let many = known.count == 1 ? names : "\(known.count) devices (\(names))"
            Terminal.note("note: enrolled before, and the earlier passwords count no more: \(many)")
        }
        for (device, apps) in holding.sorted(by: { $0.key < $1.key }) {
            Terminal.note(
                "warning: \(device) had \(Controller.keys(of: apps)). Should it come back without them, on another disk, these are"
                    + " counted no more (`fleetctl get devices` names them then): what must be known to be gone is retired"
                    + " before (`fleetctl apply --wait`)")
        }
        try output.show(try Self.report(enrolments, home))
    }

    /// The controller may have heard of them already.
    private static func interrupted(_ devices: [DeviceID]) -> String {
        ": no device was enrolled; should `fleetctl get devices` show \(DeviceNames.few(devices)), `fleetctl device remove` ends that"
    }

    /// What each device must not be shown again, and which apps have keys on those that are enrolled anew; nothing when there
    /// has been no controller yet.
    private func askController(
        _ home: FleetHome, _ devices: [DeviceID]
    ) async throws -> (floors: [DeviceID: Floors], holding: [DeviceID: [AppID]]) {
        guard home.hasDatabase, !withoutFloors else { return ([:], [:]) }
        do {
            return try await fleet.reach { controller in
                var floors: [DeviceID: Floors] = [:]
                var holding: [DeviceID: [AppID]] = [:]
                for device in devices {
                    let last = try home.record(of: device)?.incarnation
                    if last != nil {
                        let apps = try await controller.appsWithKeys(on: device)
                        holding[device] = apps.isEmpty ? nil : apps
                    }
                    floors[device] = try await controller.floors(of: device, as: (last ?? 0) + 1)
                }
                return (floors, holding)
            }
        } catch let error as CommandError
            where error.refusal == .tooLarge || error.status == .unreachable && error.refusal == nil
        {
            // An answer names every document that a device may be shown, and cannot be asked for in parts.
            throw CommandError(
                error.status,
                "\(error)\nA new device must learn from the controller which documents are the newest; "
                    + "--without-floors enrols without.")
        }
    }

    static func report(_ enrolments: [FleetHome.Enrolment], _ home: FleetHome) throws -> Report {
        var table = Table([.init("DEVICE"), .init("INCARNATION", isNumber: true), .init("CONFIGURATION")])
        var values: [JSONValue] = []
        for enrolment in enrolments {
            let incarnation = try home.incarnation(of: enrolment.device) ?? 0
            let file = enrolment.folder + "/agent.json"
            table.add([enrolment.device.text, "\(incarnation)", file])
            values.append(
                .object([
                    "device": .string(enrolment.device.text), "incarnation": .integer(incarnation),
                    "configuration": .string(file),
                ]))
        }
        return Report(.array(values), table: table.lines)
    }
}

extension Controller {
    func floors(of device: DeviceID, as incarnation: Int64) async throws -> Floors {
        let request = DeviceRequest(device: device, incarnation: incarnation)
        return try await ask(.enroll, request, within: .seconds(8)).decoded()
    }
}
