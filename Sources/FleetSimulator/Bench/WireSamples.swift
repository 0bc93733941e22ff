import DeviceAgent
import FleetProtocol

/// Messages as they pass between a device and its controller: what the codecs are measured with, and what the
/// equal-bytes floor takes its sizes from.
struct WireSamples {
    static let fleet = FleetID(unchecked: "bench")
    static let note = String(repeating: "p", count: 200)

    let root: SigningKey
    let key: SigningKey
    let device = LoadPlan.deviceID(1)
    let app = LoadPlan.appID(1)
    let registration: Registration
    /// With a configuration applied.
    let status: Status
    let document: DesiredDocument
    let signed: SignedDocument
    let trust: SignedDocument
    let hello: SignedDocument
    let presence: Presence
    let marker: BarrierMarker

    /// A configuration as the scenarios apply it: another for each `round`.
    static func value(_ round: Int) -> DesiredValue { DesiredValue(.config(["round": "\(round)", "note": note])) }

    init(apps: Int = 1) throws {
        let uuid = RandomID.random()
        root = try SigningKey()
        let signing = try SigningKey()
        let now = Now.system
        key = signing
        let fleet = Self.fleet
        trust = try SignedDocument(
            signing: TrustDocument(
                fleet: uuid, fleetID: fleet, version: 1, issuedAt: now.wall, keys: [signing.publicKey]
            ).json, as: .trust, with: root)
        var core = try DeviceCore(
            enrollment: Enrollment(
                device: device, fleet: fleet, fleetUUID: uuid, incarnation: 1, rootKey: root.publicKey, trust: trust,
                epoch: 1, floors: [:]),
            agentVersion: LoadPlan.agentVersion, state: DeviceState(), secret: .random(), at: now)
        registration = SimulatedApp.registration(of: app)
        core.handle(.registered(LinkID(1), registration), at: now)
        guard var status = core.status(of: app, at: now) else { throw LoadError("the sample has no status") }
        let address = Address.desired(.all, app, .config)
        status.order = ReportOrder(incarnation: 1, boot: now.wall.milliseconds, sequence: 42)
        status.policies[Policy.config.index] = PolicyReport(
            source: address, received: 42, applied: 42,
            attempt: PolicyReport.Attempt(revision: 42, outcome: .applied, at: now.wall))
        self.status = status
        let revision = Revision(epoch: 1, number: 42)
        document = DesiredDocument(
            fleet: uuid, fleetID: fleet, address: address, revision: revision, change: revision,
            issuedAt: now.wall, content: .aspect(Self.value(1)))
        signed = try SignedDocument(signing: document.json, as: .desired, with: signing)
        let connection = RandomID.random()
        let clock = ControllerClock(
            fleet: uuid, topic: Address.hello(device).topic(in: fleet), epoch: 1, revision: 42, at: now.wall)
        hello = try SignedDocument(
            signing: Hello(clock: clock, device: device, connection: connection, nonce: connection, received: nil).json,
            as: .hello, with: signing)
        let implemented = registration.implements.sorted().map(\.rawValue)
        let sdk = registration.sdk
        let presentApps = (1...apps).map {
            Presence.App(id: LoadPlan.appID($0), sdk: sdk, implements: implemented)
        }
        presence = Presence(
            state: .online, incarnation: 1, boot: now.wall.milliseconds, connection: connection, since: now.wall,
            agent: LoadPlan.agentVersion,
            apps: presentApps)
        marker = BarrierMarker(connection: connection, counter: 1)
    }
}
