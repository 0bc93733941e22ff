import DeviceAgent
import FleetController
import FleetHome
import FleetProtocol

/// A controller's store with a fleet in it that never was on a bus: made by the controller's own core, from messages as
/// devices send them.
struct StoreFill {
    let devices: Int
    let apps: Int
    private let identity: FleetIdentity
    private let path: String
    private let fleet: FleetID
    private let sample: Status

    init(rows: Int, apps: Int, home: FleetHome) throws {
        self.apps = apps
        devices = max(1, rows / apps)
        identity = try FleetIdentity(
            fleetID: home.context.fleet, fleet: home.context.uuid, signingKey: home.signingKey(),
            trustWire: home.trust().wire, rootKey: home.rootKey().publicKey)
        path = home.databasePath
        fleet = home.context.fleet
        sample = try WireSamples(apps: apps).status
    }

    /// Writes all rows: every app has a configuration, which every device has applied. The core goes on from there, with
    /// all devices connected.
    func fill() throws -> FilledStore {
        let filled = try FilledStore(self, path: path)
        let batch = max(1, 10_000 / apps)
        for start in stride(from: 0, to: devices, by: batch) {
            var messages: [ControllerCore.Message] = []
            for device in start..<min(start + batch, devices) {
                messages.append(presence(of: device))
                for app in 0..<apps { messages.append(status(of: device, app, revision: Int64(app + 1), sequence: 1)) }
            }
            try filled.take(messages)
        }
        return filled
    }

    private func presence(of device: Int) -> ControllerCore.Message {
        let name = LoadPlan.deviceID(device + 1)
        let presence = Presence(
            state: .online, incarnation: 1, boot: 1, connection: .random(), since: sample.at, agent: sample.agent,
            apps: [])
        return ControllerCore.Message(
            topic: Address.presence(.device(name)).topic(in: fleet), payload: presence.json, isRetained: false)
    }

    /// The status of a device that has applied this revision of the app's configuration.
    func status(of device: Int, _ app: Int, revision: Int64, sequence: Int64) -> ControllerCore.Message {
        var status = sample
        status.device = LoadPlan.deviceID(device + 1)
        status.app = LoadPlan.appID(app + 1)
        status.order = ReportOrder(incarnation: 1, boot: 1, sequence: sequence)
        status.policies[Policy.config.index] = PolicyReport(
            source: .desired(.all, status.app, .config), received: revision, applied: revision,
            attempt: PolicyReport.Attempt(revision: revision, outcome: .applied, at: sample.at))
        return ControllerCore.Message(
            topic: Address.reply(status.device, status.app, .status).topic(in: fleet), payload: status.wire,
            isRetained: false)
    }

    /// A core over a store, as after the read-back of an empty broker.
    final class FilledStore {
        private let fill: StoreFill
        private let store: FleetStore
        private var core: ControllerCore
        /// The revision of each app's configuration.
        private(set) var revision: Int64 = 0

        init(_ fill: StoreFill, path: String) throws {
            self.fill = fill
            store = try FleetStore(path: path)
            core = try ControllerCore(
                store: store, identity: fill.identity, isRestoring: false, startedAt: Self.now)
            for case .publish(let topic, let payload, _) in core.handle(.connected(.random()), at: Self.now, uptime: 0)
            {
                try take([ControllerCore.Message(topic: topic, payload: payload, isRetained: false)])
            }
            try change()
        }

        private static var now: Timestamp { Now.system.wall }

        /// Says anew what all apps are to have: each app's revision is the next.
        func change() throws {
            for app in 0..<fill.apps {
                let body = ApplyRequest(changes: [
                    ApplyRequest.Change(
                        app: LoadPlan.appID(app + 1), layer: .all, aspect: .config,
                        value: WireSamples.value(Int(Self.now.milliseconds)))
                ]).json
                let request = Request(
                    id: .random(), replyTo: Name(unchecked: "bench"), notAfter: Self.now.advanced(bySeconds: 60),
                    body: try JSONValue(json: body, limit: body.count))
                let topic = Address.request(.operator(Name(unchecked: "admin")), .apply).topic(in: fill.fleet)
                try take([ControllerCore.Message(topic: topic, payload: request.json, isRetained: false)])
            }
            revision = try store.latest().number
        }

        /// One batch: one transaction.
        func take(_ messages: [ControllerCore.Message]) throws {
            for case .stop(let reason) in core.handle(.messages(messages), at: Self.now, uptime: 0) {
                throw LoadError(reason)
            }
        }

        func close() throws { try store.close() }
    }
}
