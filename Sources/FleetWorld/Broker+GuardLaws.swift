import BrokerGuard
import DeviceAgent
import FleetProtocol

/// What a guard says no to.
extension Broker {
    /// Whoever has left a group is shown nothing of it any more, whatever it is still subscribed to. The guard has read what is
    /// retained of a device's groups before it was retained, or has forgotten all with the broker's process.
    func checkShown(_ topic: String, to client: any BusClient) {
        guard guardian != nil, topic.hasPrefix(Self.groups), case .device(let device) = client.user,
            let group = Address(topic: topic, in: SimulatedFleet.id)?.group
        else { return }
        let groups = groups(of: device)
        if !groups.contains(group) {
            world.fail(.rights, "the guard shows \(client.name) \(topic), and it is in \(groups)")
        }
    }

    private func groups(of device: DeviceID) -> [GroupID] {
        let topic = Address.membership(device).topic(in: SimulatedFleet.id)
        if let known = memberships[topic] { return known }
        let groups =
            retained[topic].flatMap { kept -> [GroupID]? in
                guard case .membership(let groups)? = Self.document(kept.payload)?.content else { return nil }
                return groups
            } ?? []
        memberships[topic] = groups
        return groups
    }

    /// Each of these is wrong in one thing. A copy of the guard is asked: nothing of it happens.
    func checkRefusals() {
        guard var asked = guardian else { return }
        for attempt in wrongReports + wrongDocuments + wrongRequests {
            let refusal = Guard.asking(
                attempt.user.text, attempt.topic, attempt.payload, isRetained: attempt.isRetained
            ) {
                asked.refusalToPublish($0, $1, now: world.now)
            }
            if refusal == nil {
                world.fail(.rights, "the guard lets \(attempt.user.text) say \(attempt.what) at \(attempt.topic)")
            }
        }
    }

    private struct Attempt {
        let what: String
        let user: User
        let topic: String
        let payload: [UInt8]
        let isRetained: Bool

        init(_ what: String, by user: User, at address: Address, _ payload: [UInt8], isRetained: Bool = true) {
            self.what = what
            self.user = user
            topic = address.topic(in: SimulatedFleet.id)
            self.payload = payload
            self.isRetained = isRetained
        }
    }

    /// What is made from something that a device has said of an app.
    private var wrongReports: [Attempt] {
        let said = world.machines.flatMap(\.apps).lazy.compactMap { [retained] app in
            retained[Address.reply(app.machine.id, app.id, .status).topic(in: SimulatedFleet.id)]
                .map { (app: app, status: $0.payload) }
        }.first
        guard let (app, status) = said else { return [] }
        let (id, own) = (app.machine.id, app.machine.user)
        let topic = Address.reply(id, app.id, .status)
        // It begins as the device's own.
        let other = DeviceID(unchecked: "\(id)0")
        func filled(_ size: Int) -> [UInt8] {
            Array(status.dropLast()) + Array(",\"more\":\"\(String(repeating: "x", count: size))\"}".utf8)
        }
        // Of the right size it would be one: the guard reads no further than whose it is.
        let event = filled(AppEvent.maximumSize)
        return [
            Attempt("a status as another", by: own, at: .reply(other, app.id, .status), status),
            Attempt("another's status", by: .device(other), at: .reply(other, app.id, .status), status),
            Attempt("another app's status", by: own, at: .reply(id, AppID(unchecked: "\(app.id)0"), .status), status),
            Attempt("a status once", by: own, at: topic, status, isRetained: false),
            Attempt("an event for ever", by: own, at: .reply(id, app.id, .event), status),
            Attempt("too large a status", by: own, at: topic, filled(Status.maximumSize)),
            Attempt("too large an event", by: own, at: .reply(id, app.id, .event), event, isRetained: false),
            Attempt("too large a change", by: own, at: .reply(id, app.id, .logLevel), event, isRetained: false),
            Attempt("nothing of an app any more", by: own, at: topic, []),
            Attempt("nothing of itself any more", by: own, at: .presence(.device(id)), []),
            Attempt("that another is there", by: own, at: .presence(.device(other)), Array("{}".utf8)),
            Attempt("what the controller says", by: own, at: .hello(id), Array("{}".utf8), isRetained: false),
            Attempt("a status in a device's name", by: .controller, at: topic, status),
            Attempt("a status in a device's name", by: world.operators[0].user, at: topic, status),
        ]
    }

    /// What is made from the documents that stand here.
    private var wrongDocuments: [Attempt] {
        let fleet = world.fleet
        let trust = retained[Self.keys].flatMap { kept in
            try? TrustDocument(json: SignedDocument(wire: kept.payload).payload, limit: SignedDocument.maximumSize)
        }
        // One that was withdrawn, where the root key has got so far.
        let keys = [fleet.signingKey, fleet.nextKey]
        let key = keys.first { trust?.key($0.publicKey.id) == nil } ?? fleet.strangerKey
        let counting = keys.first { trust?.key($0.publicKey.id) != nil } ?? fleet.signingKey
        let place = Address.desired(.all, world.appID(0), .config)
        let untrusted = world.forged(at: place, fleet.uuid, key, Revision(epoch: 1, number: 1))
        // Two fleets may have one key: somebody has copied a home.
        let foreign = world.forged(at: place, fleet.otherUUID, counting, Revision(epoch: 1, number: 1))
        var attempts = [
            Attempt("what no key that counts has signed", by: .controller, at: place, untrusted),
            Attempt("another fleet's document", by: .controller, at: place, foreign),
            Attempt("that no keys count any more", by: .controller, at: .trust, []),
        ]
        if let trust, trust.version > 1 {
            attempts.append(Attempt("which keys counted once", by: .controller, at: .trust, fleet.trust.wire))
        }
        for machine in world.machines where machine.isConnected {
            let address = Address.membership(machine.id)
            let topic = address.topic(in: SimulatedFleet.id)
            guard let known = retained[topic].flatMap({ Self.document($0.payload) }) else { continue }
            let earlier = (world.controller.documentsSaid[topic] ?? []).compactMap { wire in
                Self.document(wire).map { (wire: wire, revision: $0.revision) }
            }
            guard let first = earlier.min(by: { $0.revision < $1.revision }), first.revision < known.revision else {
                continue
            }
            attempts.append(Attempt("in which groups a device was", by: .controller, at: address, first.wire))
        }
        let documents = retained.filter { $0.key.hasPrefix(Controller.documents) && $0.key != Self.keys }
        guard let (topic, document) = documents.min(by: { $0.key < $1.key }),
            let address = Address(topic: topic, in: SimulatedFleet.id)
        else { return attempts }
        let other = Address.desired(.device(DeviceID(unchecked: "other")), world.appID(0), .auth)
        return attempts + [
            Attempt("what was signed for elsewhere", by: .controller, at: other, document.payload),
            Attempt("a document once", by: .controller, at: address, document.payload, isRetained: false),
            Attempt("a document", by: world.machines[0].user, at: address, document.payload),
            Attempt("a document", by: world.operators[0].user, at: address, document.payload),
        ]
    }

    private var wrongRequests: [Attempt] {
        let (own, viewer) = (world.operators[0].user, world.viewer.user)
        let body = Array("{}".utf8)
        return [
            Attempt("what another asks", by: viewer, at: .request(own, .apply), body, isRetained: false),
            Attempt("a request for ever", by: own, at: .request(own, .apply), body),
            Attempt(
                "what it is answered", by: own, at: .response(own, Name(unchecked: "here")), body, isRetained: false),
        ]
    }

    private static func document(_ wire: [UInt8]) -> DesiredDocument? {
        try? DesiredDocument(wire: wire)
    }
}
