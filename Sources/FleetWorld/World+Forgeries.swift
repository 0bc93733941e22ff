import DeviceAgent
import FleetController
import FleetProtocol

/// What a hostile broker does.
extension World {
    func forge(_ forgery: Forgery, for machine: Machine) {
        let documents = broker.seen.filter { $0.topic.hasPrefix(Controller.documents) }
        let config = Address.desired(.all, appID(noise.below(schedule.apps)), .config)
        switch forgery {
        case .foreignKey:
            // Now and then at more addresses than a device tells of.
            let count = noise.chance(25) ? 2 * Status.maximumRefusals : 1
            let device = Layer.device(machine.id)
            let others = [Layer.all, device, .group(groupID(0))].flatMap { layer in
                Aspect.allCases.map { Address.desired(layer, appID(0), $0) }
            }
            for address in ([config] + others).prefix(count) {
                let wire = forged(at: address, fleet.uuid, untrustedKey(of: machine), Self.farAhead)
                machine.watch.unsigned.insert(wire)
                machine.shown(address.topic(in: SimulatedFleet.id), wire)
            }
        case .otherFleet:
            let wire = forged(at: config, fleet.otherUUID, fleet.signingKey, Self.farAhead)
            machine.watch.foreign.insert(wire)
            machine.shown(config.topic(in: SimulatedFleet.id), wire)
        case .altered:
            guard let original = documents.last(where: { $0.topic == config.topic(in: SimulatedFleet.id) }),
                let true_ = try? SignedDocument(wire: original.payload),
                let document = try? DesiredDocument(payload: true_.payload, in: SimulatedFleet.id)
            else { return }
            // Newer than what it is made from: nothing but the signature tells.
            let text = String(decoding: true_.payload, as: UTF8.self).replacing("\"server\"", with: "\"forged\"")
                .replacing(
                    "\"revision\":\(document.revision.number)", with: "\"revision\":\(document.revision.number + 1_000)"
                )
            guard var wire = try? JSONValue(json: original.payload, limit: SignedDocument.maximumSize) else { return }
            wire = Self.replacingPayload(of: wire, by: text)
            if noise.chance(30) {
                broker.overwrite(original.topic, wire.json)
            } else {
                machine.shown(original.topic, wire.json)
            }
        case .moved:
            guard !documents.isEmpty else { return }
            let from = documents[noise.below(documents.count)]
            var to = documents[noise.below(documents.count)].topic
            if noise.chance(70), case .desired(_, _, let aspect)? = Address(topic: from.topic, in: SimulatedFleet.id) {
                // Where it would fit.
                let layer = noise.chance(50) ? Layer.all : .device(machine.id)
                to = Address.desired(layer, appID(noise.below(schedule.apps)), aspect).topic(in: SimulatedFleet.id)
            }
            machine.shown(to, from.payload)
        case .replayed:
            // One that has been replaced since.
            var newest: [String: [UInt8]] = [:]
            for document in documents { newest[document.topic] = document.payload }
            let old = documents.filter { newest[$0.topic] != $0.payload }
            guard !old.isEmpty else { return }
            // Of what was deleted, what stood there last is like what the device knew of it.
            let deleted = old.filter { newest[$0.topic].map(Self.isTombstone) ?? false }
            let any = old[noise.below(old.count)]
            // Where the controller was put back, rather one of an epoch that has ended.
            let ended = controller.wasPutBack && noise.chance(50) ? old.filter { isOfEndedEpoch($0.payload) } : []
            let document = noise.chance(50) ? deleted.last ?? any : ended.randomElement(using: &noise) ?? any
            machine.shown(document.topic, document.payload)
        case .sameRevision:
            guard let mark = machine.core?.state.marks[config], mark.digest != nil else { return }
            let wire = forged(at: config, fleet.uuid, fleet.signingKey, mark.revision)
            machine.shown(config.topic(in: SimulatedFleet.id), wire)
        case .oldHello where noise.chance(25):
            // Another device's, or what was stored of that, as its own.
            let own = (noise.chance(70) ? Address.received(machine.id) : .hello(machine.id)).topic(
                in: SimulatedFleet.id)
            let all = own.dropLast(machine.id.text.count)
            let others = broker.seen.filter { $0.topic.hasPrefix(all) && $0.topic != own }.suffix(8)
            if let other = others.randomElement(using: &noise) { machine.shown(own, other.payload) }
        case .oldHello:
            let said = [[Address.hello(machine.id), .heartbeat], [.barrier(machine.user)], [.received(machine.id)]]
            let own = said[noise.chance(60) ? 0 : noise.below(said.count)]
                .map { $0.topic(in: SimulatedFleet.id) }
            let hellos = broker.seen.filter { own.contains($0.topic) }.suffix(8)
            guard let hello = noise.chance(50) ? hellos.last : hellos.first else { return }
            machine.shown(hello.topic, hello.payload)
        case .forgedHello: showForgedClock(at: .hello(machine.id), to: machine)
        case .forgedHeartbeat: showForgedClock(at: .heartbeat, to: machine)
        case .forgedTrust:
            // Or another one of the version that the device has, by somebody who has had the root key.
            let isSame = noise.chance(50)
            let trust = TrustDocument(
                fleet: fleet.uuid, fleetID: SimulatedFleet.id,
                version: isSame ? machine.core?.trust.version ?? 1 : 1_000,
                issuedAt: SimulatedFleet.begin, keys: [fleet.strangerKey.publicKey])
            let key = isSame ? fleet.rootKey : fleet.signingKey
            guard let document = try? SignedDocument(signing: trust.json, as: .trust, with: key) else {
                return
            }
            machine.shown(Address.trust.topic(in: SimulatedFleet.id), document.wire)
        case .withheld:
            machine.withhold(["/desired/", "/desired/", "/hello", "/heartbeat", "/barrier"][noise.below(5)])
        case .late:
            let parts = ["/hello", "/heartbeat", "/control/", "/trust"]
            machine.withhold(parts[noise.below(4)], for: noise.milliseconds(10_000...400_000))
        case .replayedReport where noise.chance(40): showNonsense(of: machine)
        case .replayedReport:
            areReportsReplayed = true
            replay(to: controller.readingConnection) { $0.contains("/reply/") }
        case .replayedRequest: replay(to: controller.readingConnection) { $0.contains("/request") }
        case .replayedResponse:
            replay(to: operators[noise.below(operators.count)].connection) { $0.contains("/response") }
        case .overwritten:
            guard !documents.isEmpty else { return }
            let topic = documents[noise.below(documents.count)].topic
            let earlier = documents.filter { $0.topic == topic }.map(\.payload)
            let said = earlier[noise.below(earlier.count)]
            let other = documents[noise.below(documents.count)].payload
            // The last but one is the same signed text in another envelope, the last belongs elsewhere.
            broker.overwrite(
                topic, [said, [], Array("{}".utf8), Array("{ ".utf8) + said.dropFirst(), other][noise.below(5)])
        case .supplanted:
            let wire = forged(at: config, fleet.uuid, fleet.strangerKey, Self.farAhead)
            for machine in machines { machine.watch.unsigned.insert(wire) }
            broker.overwrite(config.topic(in: SimulatedFleet.id), wire)
        case .emptied:
            let own = ["presence/\(machine.id)", "reply/\(machine.id)/"]
                .map { Address.prefix(of: SimulatedFleet.id) + $0 }
            let topics = broker.retained.keys.filter { topic in own.contains(where: topic.hasPrefix) }.sorted()
            if !topics.isEmpty { broker.overwrite(topics[noise.below(topics.count)], []) }
        }
    }

    /// What cannot be read, or cannot be, in a device's or an operator's name.
    private func showNonsense(of machine: Machine) {
        let own: [Address] = [
            .reply(machine.id, appID(0), .status), .reply(machine.id, appID(0), .event), .presence(.device(machine.id)),
            .request(operators[0].user, .apply),
        ]
        let address = own[noise.below(own.count)]
        let topic = address.topic(in: SimulatedFleet.id)
        guard let connection = controller.readingConnection else { return }
        let whole = broker.seen.last { $0.topic == topic }.map { String(decoding: $0.payload, as: UTF8.self) } ?? "{"
        let isHuge = noise.chance(50)
        let text =
            isHuge && address == own[0]
            ? whole.replacing("\"received\":", with: "\"received\":9007199254740990,\"was\":")
            : String(whole.prefix(whole.count / 2)) + "]"
        say("broker", "shows \(controller.name) nonsense at \(topic)")
        broker.show(topic, Array(text.utf8), isRetained: noise.chance(20), to: connection)
    }

    /// Those of earlier connections and runs, just when one of this connection's is awaited.
    func showMarkers(to machine: Machine) {
        guard broker.manners == .hostile, !isCalm, noise.chance(20) else { return }
        let topic = Address.barrier(machine.user).topic(in: SimulatedFleet.id)
        for marker in broker.seen where marker.topic == topic { machine.shown(topic, marker.payload) }
    }

    private func isOfEndedEpoch(_ wire: [UInt8]) -> Bool {
        guard let document = try? DesiredDocument(wire: wire),
            let latest = try? controller.store.latest()
        else { return false }
        return document.revision.epoch < latest.epoch
    }

    private static func isTombstone(_ wire: [UInt8]) -> Bool {
        (try? DesiredDocument(wire: wire))?.isTombstone ?? false
    }

    /// Something true of earlier, as if it were said now, or had been left there.
    private func replay(to connection: Connection?, _ isMeant: (String) -> Bool) {
        let old = broker.seen.filter { isMeant($0.topic) }
        guard let connection, !old.isEmpty else { return }
        let message = old[noise.below(old.count)]
        say("broker", "shows \(connection.client.name) again \(message.topic)")
        broker.show(message.topic, message.payload, isRetained: noise.chance(20), to: connection)
    }

    private static func replacingPayload(of wire: JSONValue, by text: String) -> JSONValue {
        guard case .object(let members) = wire else { return wire }
        return .object(members.map { $0.name == "payload" ? .init("payload", .string(text)) : $0 })
    }

    /// Signed by nobody's key, of another fleet, of another kind, or signed as something else.
    private func showForgedClock(at address: Address, to machine: Machine) {
        guard let connection = machine.watch.bus.connection else { return }
        let manner = noise.below(4)
        let topic = address.topic(in: SimulatedFleet.id)
        let clock = ControllerClock(
            fleet: manner == 1 ? fleet.otherUUID : fleet.uuid, topic: topic, epoch: 1_000, revision: 1 << 40,
            at: controller.clock.advanced(bySeconds: 86_400))
        let isHello = address != .heartbeat
        let hello = Hello(clock: clock, device: machine.id, connection: connection, nonce: connection, received: nil)
        let payload = isHello ? hello.json : Heartbeat(clock: clock).json
        let kind: SignedDocument.Kind = isHello == (manner != 2) ? .hello : .heartbeat
        let signed = manner == 3 ? Array("{}".utf8) : payload
        guard
            let document = try? SignedDocument(
                signing: signed, as: kind, with: manner == 0 ? fleet.strangerKey : fleet.signingKey),
            let wire = try? JSONValue(json: document.wire, limit: SignedDocument.maximumSize)
        else { return }
        let forged = Self.replacingPayload(of: wire, by: String(decoding: payload, as: UTF8.self)).json
        machine.watch.forged.insert(forged)
        machine.shown(topic, forged)
    }

    /// A stranger's, or one that counted once and has been withdrawn since, as the device knows.
    private func untrustedKey(of machine: Machine) -> SigningKey {
        let isWithdrawn = machine.core.map { $0.trust.key(fleet.signingKey.publicKey.id) == nil } ?? false
        return isWithdrawn && noise.chance(50) ? fleet.signingKey : fleet.strangerKey
    }

    private static let farAhead = Revision(epoch: 1, number: 1 << 40)

    func forged(at address: Address, _ uuid: RandomID, _ key: SigningKey, _ revision: Revision) -> [UInt8] {
        let document = DesiredDocument(
            fleet: uuid, fleetID: SimulatedFleet.id, address: address, revision: revision, change: revision,
            issuedAt: SimulatedFleet.begin, content: .aspect(DesiredValue(.config(["forged": "1"]))))
        return (try? SignedDocument(signing: document.json, as: .desired, with: key).wire) ?? []
    }
}
