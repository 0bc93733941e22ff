import FleetController
import FleetProtocol

/// What names one of the controller's words.
struct SignedTime: Hashable {
    let epoch: Int64
    let at: Timestamp
}

/// The laws of what the controller says in the fleet's name.
extension Controller {
    /// The times that are signed rise, across restarts and whatever is done to the clock: devices take a lower one for a
    /// replay. Nobody is greeted who was taken out.
    ///
    /// - Parameter from: How far the store had come before this moment, as the home says.
    func checkSigned(_ topic: String, _ payload: [UInt8], from: StorePosition?) {
        guard let address = Address(topic: topic, in: SimulatedFleet.id),
            let clock = clock(in: payload, at: address)
        else { return }
        checkRevision(of: clock, from: from)
        if topic == Self.heartbeats,
            let device = questions.late(of: enrolments, isHeld: repair.isUnderWay, at: world.now)
        {
            world.fail(.ends, "\(device) is not asked again for what was cleared")
        }
        if case .hello(let device) = address,
            let machine = world.machines.first(where: { $0.id == device }), machine.isRemoved,
            !machine.isRemovalUnfinished, machine.enrolment == nil, !isLetIn(device)
        {
            world.fail(.gone, "the controller greets \(device), which was taken out")
        }
        // Hellos of one moment bear one time: each device hears of it once.
        let isLater =
            [signedFor[.heartbeat], signedFor[address]].compactMap(\.self).allSatisfy { (clock.epoch, clock.at) > $0 }
        if let signed, (clock.epoch, clock.at) < signed || !isLater {
            world.fail(.limits, "the controller signs \(clock.at) in epoch \(clock.epoch), which is not later")
        }
        signedFor[address] = (clock.epoch, clock.at)
        // By them devices tell what was kept back: they go on as time does, also when the clock is set back.
        if signedSince?.run != runs { signedSince = (runs, clock.at.milliseconds, world.now) }
        if let since = signedSince {
            let ahead = clock.at.milliseconds - since.at - (world.now - since.now)
            if ahead < 0 || isPunctual && ahead > Self.aheadAtMost {
                world.fail(.limits, "the controller signs \(clock.at), which is \(ahead) ms ahead of its first time")
            }
        }
        signed = (clock.epoch, clock.at)
        signedAt[SignedTime(epoch: clock.epoch, at: clock.at)] = world.now
    }

    private func clock(in payload: [UInt8], at address: Address) -> ControllerClock? {
        switch address {
        case .heartbeat, .hello:
            guard let signed = try? SignedDocument(wire: payload) else { return nil }
            if case .heartbeat = address {
                return try? Heartbeat(json: signed.payload, limit: SignedDocument.maximumSize).clock
            }
            guard let hello = try? Hello(json: signed.payload, limit: SignedDocument.maximumSize) else { return nil }
            questions.asked(hello)
            checkDocuments(hello)
            return hello.clock
        default: return nil
        }
    }

    /// A hello as a controller says it that answers another nonce, or none; anything else as it is.
    func resaid(_ payload: [UInt8], _ topic: String, answering nonce: (Hello) -> RandomID?) -> [UInt8] {
        guard case .hello? = Address(topic: topic, in: SimulatedFleet.id),
            let said = try? Hello(wire: payload)
        else { return payload }
        let hello = Hello(
            clock: said.clock, device: said.device, connection: said.connection, nonce: nonce(said),
            received: said.received, lost: said.lost, documents: said.documents)
        return (try? world.fleet.identities[renewals].sign(hello, as: .hello)) ?? payload
    }

    /// Whoever is wiped later forgives nothing that is older than the newest change, of which this tells.
    private func checkRevision(of clock: ControllerClock, from: StorePosition?) {
        let said = Revision(epoch: clock.epoch, number: clock.revision)
        guard let latest = try? store.latest(), said > latest || from.map({ said < $0.latest }) ?? false else { return }
        world.fail(.order, "the controller tells of revision \(said), and is at \(latest)")
    }

    /// A device that has others is told which documents it is to have.
    private func checkDocuments(_ hello: Hello) {
        guard hello.lost.contains(.documents), let said = watch.announced[hello.device],
            said.connection == hello.connection, let wishes = try? store.wishes()
        else { return }
        let apps = Set(said.apps.map(\.id))
        let groups = desired.groups.filter { $0.value.members.contains(hello.device) }
        let wanted = wishes.filter { wish in
            guard wish.value != nil else { return false }
            switch wish.address {
            case .membership(hello.device): return true
            case .groupMeta(let group): return groups[group] != nil
            case .desired(.group(let group), let app, _): return groups[group] != nil && apps.contains(app)
            case .desired(.device(let device), let app, _): return device == hello.device && apps.contains(app)
            case .desired(.all, let app, _): return apps.contains(app)
            default: return false
            }
        }
        let digest = Digest(of: Dictionary(wanted.map { ($0.address, $0.revision) }) { $1 })
        if hello.documents != digest {
            world.fail(
                .convergence, "\(hello.device) is told of other documents than the \(wanted.count) that it is to have")
        }
    }

    /// Before anybody hears of a change, the home knows how far the store has come: an older one is noticed then.
    func checkNoted(before effects: [ControllerCore.Effect]) {
        for effect in effects {
            switch effect {
            case .note: return
            case .publish(let topic, _, _) where topic.hasPrefix(Self.documents):
                guard let latest = try? store.latest(), noted.map({ $0.latest < latest }) ?? true else { return }
                return world.fail(.restored, "it publishes of \(latest) before that is noted in the home")
            default: break
            }
        }
    }

    /// Words of one moment differ by a millisecond each, and what that adds is given back.
    private static let aheadAtMost: Int64 = 20
    static let documents = Address.prefix(of: SimulatedFleet.id) + "desired/"
}
