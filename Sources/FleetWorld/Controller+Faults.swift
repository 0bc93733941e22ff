import FleetController
import FleetProtocol

/// Deliberate faults around the controller's core.
extension Controller {
    func altered(_ message: ControllerCore.Message) -> ControllerCore.Message? {
        guard let fault = world.fault else { return message }
        let address = Address(topic: message.topic, in: SimulatedFleet.id)
        switch (fault, address) {
        case (.oldStatusesTaken, .reply(let device, let app, .status)?):
            guard message.isRetained, world.noise.chance(30),
                var status = try? Status(wire: message.payload, fleet: SimulatedFleet.id, device: device, app: app)
            else { return message }
            status.order.sequence += 1_000
            return ControllerCore.Message(topic: message.topic, payload: status.wire, isRetained: true)
        case (.retainedPresenceTaken, .presence(.device)?):
            return ControllerCore.Message(topic: message.topic, payload: message.payload, isRetained: false)
        case (.willsTaken, .presence(.device(let device))?):
            guard let said = try? Presence(json: message.payload, limit: Presence.maximumSize), said.state == .offline,
                let present = watch.present[device]
            else { return message }
            let will = Presence(
                state: .offline, incarnation: said.incarnation, boot: said.boot, connection: present.connection,
                since: said.since, agent: said.agent, apps: [])
            return ControllerCore.Message(topic: message.topic, payload: will.json, isRetained: message.isRetained)
        case (.basesNotCompared, .request(_, .apply)?):
            let text = String(decoding: message.payload, as: UTF8.self).replacing("\"basedOn\"", with: "\"formerly\"")
            return ControllerCore.Message(
                topic: message.topic, payload: Array(text.utf8), isRetained: message.isRetained)
        case (.lateRequestsDone, .request?):
            guard let request = try? Request(json: message.payload, limit: Request.maximumSize) else { return message }
            let later = Request(
                id: request.id, replyTo: request.replyTo, notAfter: request.notAfter.advanced(bySeconds: 1_000_000),
                body: request.body)
            return ControllerCore.Message(
                topic: message.topic, payload: later.json, isRetained: message.isRetained)
        case (.statusesNotTaken, .reply(_, _, .status)?): return world.noise.chance(20) ? nil : message
        case (.presenceNotTaken, .presence(.device)?): return world.noise.chance(20) ? nil : message
        case (.newerIgnored, _):
            if message.topic.contains("/desired/") {
                guard let document = try? DesiredDocument(wire: message.payload),
                    let latest = try? store.latest()
                else { return message }
                return document.revision > latest ? nil : message
            }
            if case .presence(.device)? = address,
                var presence = try? Presence(json: message.payload, limit: Presence.maximumSize)
            {
                presence.highest = nil
                return ControllerCore.Message(
                    topic: message.topic, payload: presence.json, isRetained: message.isRetained)
            }
            return message.topic.hasSuffix("/status") && isFromBackUp ? nil : message
        default: return message
        }
    }

    func altered(_ effects: [ControllerCore.Effect]) -> [ControllerCore.Effect] {
        let isRepair = repair(in: effects) != nil
        let putBack: [String] = effects.compactMap { effect in
            guard case .log(let line) = effect, line.message.hasPrefix("put back") else { return nil }
            return line.details["topic"].map { "\($0)" }
        }
        return effects.compactMap { effect in
            if case .reconnect = effect { return world.fault == .ownConnectionKept ? nil : effect }
            guard case .publish(let topic, let payload, let retain) = effect else { return effect }
            switch world.fault {
            case .rowsLeftOut: return .publish(topic: topic, payload: withoutLastRow(payload, topic), retain: retain)
            case .removedNotCleared: return payload.isEmpty && !topic.contains("/desired/") ? nil : effect
            case .replacedNotPutBack: return putBack.contains(topic) ? nil : effect
            case .noRepair: return isRepair && topic.contains("/desired/") ? nil : effect
            case .tombstonesNotPublished: return isTombstone(payload, topic) ? nil : effect
            case .membershipNotPublished: return topic.hasSuffix("/_device/membership") ? nil : effect
            case .metaNotPublished: return topic.hasSuffix("/_group/meta") ? nil : effect
            case .trustNotPublished: return topic.hasSuffix("/_fleet/trust") ? nil : effect
            case .ownMarkerNotRepeated: return topic.contains("/barrier/") && !isFirst(payload) ? nil : effect
            case .nobodyAskedAgain:
                guard topic.contains("/hello/"), let hello = try? Hello(wire: payload)
                else { return effect }
                return isFirst(Array(hello.connection.text.utf8)) ? effect : nil
            case .noncesNotAnswered:
                return .publish(topic: topic, payload: resaid(payload, topic) { $0.connection }, retain: retain)
            case .marksNotSaid: return topic.contains("/received/") ? nil : effect
            case .noHello: return topic.contains("/hello/") && world.noise.chance(20) ? nil : effect
            case .changesNotPublished: return topic.contains("/desired/") && world.noise.chance(10) ? nil : effect
            case .marksTooEarly:
                guard topic.contains("/received/"), let signed = try? SignedDocument(wire: payload),
                    let received = try? Received(json: signed.payload, limit: 10_000)
                else { return effect }
                var mark = received.mark
                mark.number += 2
                let changed = Received(fleet: received.fleet, topic: topic, mark: mark)
                guard
                    let wire = try? SignedDocument(
                        signing: changed.json, as: .received, with: world.fleet.signingKey
                    ).wire
                else { return effect }
                return .publish(topic: topic, payload: wire, retain: retain)
            default: return effect
            }
        }
    }

    private func withoutLastRow(_ payload: [UInt8], _ topic: String) -> [UInt8] {
        guard let response = try? Response(json: payload, limit: Response.maximumSize),
            let name = RequestName(response, at: topic), asked[name]?.verb.isChange == false,
            case .success(.object(let members), let next) = response.result, let list = members.first,
            let rows = list.value.arrayValue
        else { return payload }
        let body = JSONValue.object([.init(list.name, .array(rows.dropLast()))])
        return Response(id: response.id, result: .success(body, next: next)).json
    }

    /// Whether this was not said on this connection before.
    private func isFirst(_ what: [UInt8]) -> Bool { said.insert(what).inserted }

    private func isTombstone(_ payload: [UInt8], _ topic: String) -> Bool {
        guard topic.contains("/desired/"), let signed = try? SignedDocument(wire: payload), signed.kind == .desired
        else { return false }
        return (try? DesiredDocument(payload: signed.payload, in: SimulatedFleet.id))?.isTombstone ?? false
    }
}
