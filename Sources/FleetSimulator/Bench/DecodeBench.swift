import DeviceAgent
import FleetProtocol

/// Nanoseconds for each message that is coded often, and for a whole change at a device: its document, the delivery, the
/// app's answer, the status.
struct DecodeBench {
    let rounds: Int
    /// Messages in each round.
    private static let batch = 2_000

    func run() throws -> BenchReport {
        let samples = try Samples(changes: rounds * Self.batch)
        var result: [JSONValue.Member] = []
        var lines: [String] = []
        for (name, bytes, body) in samples.cases {
            var times: [Double] = []
            for _ in 0..<rounds {
                let start = Clock.now()
                for _ in 0..<Self.batch { try body() }
                times.append(Double(Clock.now() - start) / Double(Self.batch))
            }
            result.append(
                JSONValue.Member(
                    name,
                    .object([
                        "nanoseconds": .double(times.median.rounded(to: 0)), "bytes": .integer(Int64(bytes)),
                    ])))
            lines.append("decode  \(name)  \(Int(times.median)) ns  \(bytes) bytes")
        }
        return BenchReport(
            scenario: "decode",
            parameters: .object(["rounds": .integer(Int64(rounds)), "messages": .integer(Int64(Self.batch))]),
            result: .object(result), line: lines.joined(separator: "\n"))
    }

    /// Messages as they pass between a device with one app and its controller.
    private struct Samples {
        let cases: [(name: String, bytes: Int, body: () throws -> Void)]

        init(changes: Int) throws {
            let fleet = FleetID(unchecked: "bench")
            let (uuid, device, app) = (RandomID.random(), LoadPlan.deviceID(1), LoadPlan.appID(1))
            let (root, signing) = (try SigningKey(), try SigningKey())
            let now = Now.system
            let trust = TrustDocument(
                fleet: uuid, fleetID: fleet, version: 1, issuedAt: now.wall, keys: [signing.publicKey])
            var core = try DeviceCore(
                enrollment: Enrollment(
                    device: device, fleet: fleet, fleetUUID: uuid, incarnation: 1, rootKey: root.publicKey,
                    trust: try SignedDocument(signing: trust.json, as: .trust, with: root), epoch: 1, floors: [:]),
                agentVersion: "fleet-sim/0.1.0", state: DeviceState(), at: now)
            let registration = SimulatedApp(app, LinkID(1), answers: true).registration
            core.handle(.registered(LinkID(1), registration), at: now)
            guard let status = core.status(of: app, at: now) else { throw LoadError("the sample has no status") }
            let statusWire = status.wire
            let address = Address.desired(.all, app, .config)
            let document = DesiredDocument(
                fleet: uuid, fleetID: fleet, address: address, revision: Revision(epoch: 1, number: 42),
                change: Revision(epoch: 1, number: 42), issuedAt: now.wall,
                content: .aspect(
                    DesiredValue(.config(["round": "1", "note": String(repeating: "p", count: 200)]))))
            let signed = try SignedDocument(signing: document.json, as: .desired, with: signing)
            let wire = signed.wire
            let key = signing.publicKey
            let frame = AppFrame.acknowledge(
                Acknowledgement(delivery: 1_800_000_000_001, policy: .config, state: .applied))
            let (frameJSON, registrationJSON) = (frame.json, AppFrame.register(registration).json)
            let deliver = AgentFrame.deliver(
                number: 1_800_000_000_001, .policy(.config(["round": "1", "note": "p"]), reason: .none))
            let deliverJSON = deliver.json
            let (one, three) = (
                try CoreSample(apps: 1, changes: changes), try CoreSample(apps: 3, changes: changes)
            )
            cases = [
                ("core.change", wire.count, { one.change() }),
                ("core.change.of3apps", wire.count, { three.change() }),
                (
                    "status.read", statusWire.count,
                    { _ = try Status(wire: statusWire, fleet: fleet, device: device, app: app) }
                ),
                ("status.write", statusWire.count, { _ = status.wire }),
                ("signed.read", wire.count, { _ = try SignedDocument(wire: wire) }),
                ("signed.verify", wire.count, { _ = signed.isSigned(by: key) }),
                ("desired.read", signed.payload.count, { _ = try DesiredDocument(payload: signed.payload, in: fleet) }),
                ("desired.write", signed.payload.count, { _ = document.json }),
                ("appFrame.acknowledge.read", frameJSON.count, { _ = try AppFrame(json: frameJSON, limit: 65_536) }),
                ("appFrame.acknowledge.write", frameJSON.count, { _ = frame.json }),
                (
                    "appFrame.register.read", registrationJSON.count,
                    { _ = try AppFrame(json: registrationJSON, limit: 65_536) }
                ),
                (
                    "agentFrame.deliver.read", deliverJSON.count,
                    { _ = try AgentFrame(json: deliverJSON, limit: 65_536) }
                ),
                ("agentFrame.deliver.write", deliverJSON.count, { _ = deliver.json }),
            ]
        }
    }
}
