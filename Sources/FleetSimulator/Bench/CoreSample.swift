import DeviceAgent
import FleetProtocol
import FleetWorld

/// One device's core in the middle of its work: connected, greeted, with apps that answer at once. Each change is a
/// document for one app, its delivery, the app's answer and the status. Signatures are not checked: their time is known.
final class CoreSample {
    private var core: DeviceCore
    private let now: Now
    private let topic: String
    private let wires: [[UInt8]]
    private var apps: [SimulatedApp]
    private var next = 0
    private var generator = SplitMix64(seed: 1)
    private(set) var statuses = 0

    /// - Parameter changes: How many changes are made ready; ``change()`` can be called so often.
    init(apps count: Int, changes: Int) throws {
        let fleet = FleetID(unchecked: "bench")
        let (uuid, device) = (RandomID.random(), LoadPlan.deviceID(1))
        let (root, signing) = (try SigningKey(), try SigningKey())
        let now = Now.system
        let trust = TrustDocument(
            fleet: uuid, fleetID: fleet, version: 1, issuedAt: now.wall, keys: [signing.publicKey])
        core = try DeviceCore(
            enrollment: Enrollment(
                device: device, fleet: fleet, fleetUUID: uuid, incarnation: 1, rootKey: root.publicKey,
                trust: try SignedDocument(signing: trust.json, as: .trust, with: root), epoch: 1, floors: [:]),
            agentVersion: "fleet-sim/0.1.0", state: DeviceState(), secret: .random(),
            signatures: SignatureCheck { _, _ in true }, at: now)
        self.now = now
        let address = Address.desired(.all, LoadPlan.appID(1), .config)
        topic = address.topic(in: fleet)
        let note = String(repeating: "p", count: 200)
        wires = try (1...max(changes, 1)).map { number in
            let revision = Revision(epoch: 1, number: Int64(number))
            let document = DesiredDocument(
                fleet: uuid, fleetID: fleet, address: address, revision: revision, change: revision,
                issuedAt: now.wall, content: .aspect(DesiredValue(.config(["round": "\(number)", "note": note]))))
            return try SignedDocument(signing: document.json, as: .desired, with: signing).wire
        }
        apps = (1...count).map { SimulatedApp(LoadPlan.appID($0), LinkID(Int64($0)), .prompt) }
        for app in apps { core.handle(.registered(app.link, app.registration), at: now) }
        let connection = RandomID.random()
        core.handle(.connected(connection: connection), at: now)
        let hello = Hello(
            clock: ControllerClock(
                fleet: uuid, topic: Address.hello(device).topic(in: fleet), epoch: 1, revision: 1, at: now.wall),
            device: device, connection: connection, nonce: connection, received: nil)
        let greeting = try SignedDocument(signing: hello.json, as: .hello, with: signing).wire
        settle(in: fleet)
        core.handle(.message(topic: Address.hello(device).topic(in: fleet), payload: greeting), at: now)
        settle(in: fleet)
        var later = now
        later.uptime += 1_000
        core.handle(.tick, at: later)
        settle(in: fleet)
        guard apps.allSatisfy(\.isReady), statuses >= count else { throw LoadError("the sample is not connected") }
    }

    func change() {
        core.handle(.message(topic: topic, payload: wires[next]), at: now)
        next += 1
        settle(in: core.enrollment.fleet)
    }

    /// Plays the apps, and the broker's part of a subscription.
    private func settle(in fleet: FleetID) {
        while true {
            let replies = core.takeEffects(at: now, isOver: false).flatMap { answers(to: $0, in: fleet) }
            guard !replies.isEmpty else { break }
            for reply in replies { core.handle(reply, at: now) }
        }
        for case .report(let status) in core.takeEffects(at: now) {
            statuses += 1
            _ = status.wire
        }
    }

    private func answers(to effect: DeviceEffect, in fleet: FleetID) -> [DeviceEvent] {
        switch effect {
        case .subscribe(_, let barrier): [.subscribed(barrier: barrier)]
        case .publish(.barrier(let user), let marker, _):
            [.message(topic: Address.barrier(user).topic(in: fleet), payload: marker)]
        case .send(let link, let frame):
            apps[Int(link.number) - 1].reply(to: frame, since: 0, using: &generator).map { .frame(link, $0) }
        case .destroyKeys, .createKeys, .store, .sendKeys, .unsubscribe, .publish, .report, .reconnect, .close,
            .display, .checkCode, .checkPasscode, .log:
            []
        }
    }
}
