import DeviceAgent
import FleetController
import FleetProtocol

/// Deliberate faults around the device's core.
extension Machine {
    func altered(_ effects: [DeviceEffect]) -> [DeviceEffect] {
        switch world.fault {
        case .saysBeforeStoring:
            return effects.filter { !isStore($0) } + effects.filter(isStore)
        case .keysDestroyedLast:
            return effects.filter { !isDestruction($0) } + effects.filter(isDestruction)
        case .keysNotDestroyed: return effects.filter { !isDestruction($0) }
        case .keysDestroyedEarly: return unauthorized(effects).map(DeviceEffect.destroyKeys) + effects
        case .gainsFirst: return effects.filter { !isTold($0) } + effects.filter(isGain) + effects.filter(isOtherTold)
        case .lossesLast: return effects.filter { !isTold($0) } + effects.filter(isOtherTold) + effects.filter(isGain)
        default: return effects.compactMap(altered)
        }
    }

    func isStore(_ effect: DeviceEffect) -> Bool { if case .store = effect { true } else { false } }
    private func isDestruction(_ effect: DeviceEffect) -> Bool { if case .destroyKeys = effect { true } else { false } }

    private func isTold(_ effect: DeviceEffect) -> Bool {
        if case .send(_, .deliver(_, .policy)) = effect { true } else { false }
    }
    /// What is told of authorization, whatever it is.
    private func isGain(_ effect: DeviceEffect) -> Bool {
        if case .send(_, .deliver(_, .policy(.auth, _))) = effect { true } else { false }
    }
    private func isOtherTold(_ effect: DeviceEffect) -> Bool { isTold(effect) && !isGain(effect) }

    private func unauthorized(_ effects: [DeviceEffect]) -> [AppID] {
        var apps: [AppID] = []
        for case .store(let changes) in effects {
            for case .app(let app) in changes where app.authState == .unauthorized && app.managed == .managed {
                apps.append(app.id)
            }
        }
        return apps
    }

    /// What the agent's process does not hear of.
    func isDropped(_ event: DeviceEvent) -> Bool {
        switch (world.fault, event) {
        case (.passcodesNotAnswered, .passcodeChecked): true
        case (.ticksDropped, .tick), (.readyDropped, .frame(_, .ready)), (.retireIgnored, .frame(_, .retire)): true
        case (.acknowledgementsDropped, .frame(_, .acknowledge)), (.returnsDropped, .frame(_, .delivered)):
            world.noise.chance(20)
        default: false
        }
    }

    func isDocument(_ event: DeviceEvent) -> Bool {
        if case .message(let topic, _) = event { topic.hasPrefix(Controller.documents) } else { false }
    }

    /// An event that is sent again as one of another boot.
    func countedTwice(_ payload: [UInt8], _ address: Address) -> [UInt8] {
        guard case .reply(_, let app, .event) = address,
            var event = try? AppEvent(wire: payload, device: id, app: app),
            !watch.events.sent.insert(EventWatch.key(KeptEvent(body: .event(event)))).inserted
        else { return payload }
        event.header.boot += 1
        return event.json
    }

    private func altered(_ effect: DeviceEffect) -> DeviceEffect? {
        switch effect {
        case .store(let changes):
            watch.unstored = changes.filter { altered($0) == nil }
            return .store(changes.compactMap(altered))
        case .report(var status) where world.fault == .sequenceNotRaised:
            status.order.sequence = 1
            return .report(status)
        case .send(let link, .pasted(let id, nil)) where world.fault == .pasteboardNotConfined:
            return .send(link, .pasted(id: id, watch.pasteboard.newest))
        case .send(_, .copied), .send(_, .pasted):
            return world.fault == .copiesNotAnswered ? nil : effect
        case .reconnect where world.fault == .connectionKept: return nil
        case .report where world.fault == .statusesLost:
            return world.noise.chance(20) ? nil : effect
        case .publish(.presence, let said, _) where world.fault == .presenceNotRepeated:
            guard (try? Presence(json: said, limit: Presence.maximumSize))?.state == .online else { return effect }
            defer { watch.isPresenceSaid = true }
            return watch.isPresenceSaid ? nil : effect
        case .publish(.presence(let user), let said, let retain)
        where [.reportedNotSaid, .documentsNotSaid, .noncesNotSaid, .disksNotNamed].contains(world.fault):
            guard var presence = try? Presence(json: said, limit: Presence.maximumSize) else { return effect }
            if world.fault == .documentsNotSaid { presence.documents = nil }
            if world.fault == .noncesNotSaid { presence.nonce = nil }
            if world.fault == .disksNotNamed { (presence.disk, presence.previousBoot) = (nil, nil) }
            if world.fault == .reportedNotSaid {
                for app in presence.apps.indices { presence.apps[app].reported = nil }
            }
            return .publish(.presence(user), presence.json, retain: retain)
        case .publish(.presence(let user), let said, let retain) where world.fault == .appsNotNamed:
            guard var presence = try? Presence(json: said, limit: Presence.maximumSize) else { return effect }
            presence.apps = []
            return .publish(.presence(user), presence.json, retain: retain)
        case .publish(.barrier, let marker, _) where world.fault == .markersNotRepeated:
            return watch.markers.insert(marker).inserted ? effect : nil
        case .publish(let address, let payload, _) where world.fault == .eventsNotSentAgain:
            guard case .reply(_, _, let reply) = address, reply != .status else { return effect }
            guard let header = try? AppEvent(wire: payload, device: id, app: AppID(unchecked: "a0")).header else {
                return effect
            }
            let key = FleetStore.StoredEvent(
                device: id, incarnation: header.incarnation, boot: header.boot, number: header.number)
            return watch.events.sent.insert(key).inserted ? effect : nil
        case .sendKeys where world.fault == .keysNotGiven: return world.noise.chance(15) ? nil : effect
        case .send(_, .keys(nil)) where world.fault == .keysNotTaken: return nil
        case .sendKeys(let link, let app) where world.fault == .keysNotRenewed:
            return watch.firstGiven[link.number].map { $0 == disk.keys[app] } ?? true ? effect : nil
        case .send(_, .deliver) where world.fault == .deliveriesLost: return world.noise.chance(15) ? nil : effect
        default: return effect
        }
    }

    private func altered(_ change: StoreChange) -> StoreChange? {
        switch (world.fault, change) {
        case (.marksNotStored, .mark), (.appsNotStored, .app), (.eventsNotStored, .event): return nil
        case (.latchNotStored, .app(var app)):
            app.latch = nil
            return .app(app)
        case (.requestsNotStored, .app(var app)):
            app.kept = 0
            return .app(app)
        case (.levelClocksNotStored, .app(var app)):
            app.levelClocks = [:]
            return .app(app)
        case (.documentsNotStored, .document(_, .some)), (.groupsNotStored, .groups), (.clockNotStored, .clock),
            (.trustNotStored, .trust), (.dropsNotStored, .dropEvents), (.dropsNotStored, .dropEvent):
            return nil
        case (.passcodesNotCounted, .passcode(var passcode)):
            passcode.wrong = 0
            return .passcode(passcode)
        case (.bootNotStored, .started(let boot, let disk, let owner)):
            return .started(boot: max(1, boot - 1), disk: disk, owner)
        default: return change
        }
    }

    func altered(_ payload: [UInt8], at address: Address?) -> [UInt8]? {
        switch (address, world.fault) {
        case (.desired?, _), (.groupMeta?, _), (.membership?, _): break
        case (.trust?, .trustIgnored), (.received?, .marksIgnored), (.heartbeat?, .heartbeatsIgnored),
            (.presence(.device)?, .ownPresenceIgnored):
            return nil
        case (.hello?, .lostIgnored):
            guard let hello = try? Hello(wire: payload)
            else { return payload }
            return hello.lost.isEmpty ? payload : ownHello(hello.clock.at)
        case (.hello?, .longDeletedKept):
            guard let hello = try? Hello(wire: payload)
            else { return payload }
            return hello.documents == nil ? payload : ownHello(hello.clock.at, lost: hello.lost)
        case (.hello?, .helloOfAnyConnection):
            guard let hello = try? Hello(wire: payload)
            else { return payload }
            return hello.connection == watch.bus.connection ? payload : ownHello(hello.clock.at)
        case (.hello(let device)?, .agesIgnored):
            return world.controller.resaid(payload, Address.hello(device).topic(in: SimulatedFleet.id)) { _ in nil }
        default: return payload
        }
        guard let address, let signed = try? SignedDocument(wire: payload), signed.kind == .desired,
            let document = try? DesiredDocument(payload: signed.payload, in: SimulatedFleet.id)
        else { return payload }
        switch (world.fault, address) {
        case (.tombstonesIgnored, _): return document.isTombstone ? nil : payload
        case (.membershipIgnored, .membership): return nil
        case (.groupMetaIgnored, .groupMeta): return nil
        case (.topicsNotCompared, _):
            return document.address == address ? payload : signedAgain(document, at: address, document.revision)
        case (.fleetsNotCompared, _):
            return document.fleet == world.fleet.uuid ? payload : signedAgain(document, at: address, document.revision)
        case (.revisionsNotCompared, _):
            guard let mark = core?.state.marks[address], document.revision < mark.revision else { return payload }
            return signedAgain(
                document, at: address, Revision(epoch: mark.revision.epoch, number: mark.revision.number + 1))
        default: return payload
        }
    }

    /// What a core that does not compare would take for true.
    private func signedAgain(_ document: DesiredDocument, at address: Address, _ revision: Revision) -> [UInt8]? {
        let changed = DesiredDocument(
            fleet: world.fleet.uuid, fleetID: SimulatedFleet.id, address: address, revision: revision,
            change: document.change, issuedAt: document.issuedAt, content: document.content)
        return try? SignedDocument(signing: changed.json, as: .desired, with: world.fleet.signingKey).wire
    }
}
