import FleetProtocol

/// Nanoseconds for each message that is coded often, and for a whole change at a device: its document, the delivery, the
/// app's answer, the status.
struct DecodeBench {
    let rounds: Int
    /// In each round.
    let messages: Int

    func run() throws -> BenchReport {
        let samples = try Samples(changes: rounds * messages)
        var result: [JSONValue.Member] = []
        var lines: [String] = []
        for (name, bytes, body) in samples.cases {
            var times: [Double] = []
            for _ in 0..<rounds {
                let start = Clock.now()
                for _ in 0..<messages { try body() }
                times.append(Double(Clock.now() - start) / Double(messages))
            }
            result.append(
                JSONValue.Member(
                    name,
                    .object([
                        "nanoseconds": .double(times.median.rounded(to: 0)), "bytes": .integer(Int64(bytes)),
                    ])))
            lines.append("\(name): \(Int(times.median)) ns, \(bytes) bytes")
        }
        return BenchReport(
            scenario: "decode",
            parameters: .object(["rounds": .integer(Int64(rounds)), "messages": .integer(Int64(messages))]),
            result: .object(result), notes: lines)
    }

    /// Messages as they pass between a device with one app and its controller.
    private struct Samples {
        let cases: [(name: String, bytes: Int, body: () throws -> Void)]

        init(changes: Int) throws {
            let samples = try WireSamples()
            let (fleet, device, app) = (WireSamples.fleet, samples.device, samples.app)
            let (status, document, signed) = (samples.status, samples.document, samples.signed)
            let (statusWire, wire, key) = (status.wire, signed.wire, samples.key.publicKey)
            let frame = AppFrame.acknowledge(
                Acknowledgement(delivery: 1_800_000_000_001, policy: .config, state: .applied))
            let (frameJSON, registrationJSON) = (frame.json, AppFrame.register(samples.registration).json)
            let deliver = AgentFrame.deliver(
                number: 1_800_000_000_001, .policy(.config(["round": "1", "note": "p"]), reason: .none))
            let deliverJSON = deliver.json
            let (one, three) = (
                try CoreSample(apps: 1, changes: changes), try CoreSample(apps: 3, changes: changes)
            )
            let guarded = try GuardSample(samples)
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
                ("guard.read.all", wire.count, guarded.readForEveryone),
                ("guard.read.group", wire.count, guarded.readForGroup),
                ("guard.publish.desired", wire.count, guarded.publishDocument),
                ("guard.publish.status", statusWire.count, guarded.publishStatus),
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
