import FleetProtocol

/// What happens in a fleet, made of what passes on its bus: statuses become the acknowledgements that are new in them.
struct LiveFeed {
    let fleet: FleetID
    /// The last status of each app, to tell what is new; forgotten as a whole when it grows too large.
    private var known: [String: Status] = [:]
    /// The events and changes of log levels that were shown: agents send them again until somebody has stored them.
    private var told: Set<Told> = []
    /// The connection as which each device, or the controller, is there: it says so again now and then, which is no news, and
    /// the will of another one says nothing of it.
    private var connections: [String: String] = [:]
    private static let maximumKnown = 20_000

    private struct Told: Hashable {
        let device: DeviceID
        let incarnation: Int64
        let boot: Int64
        let number: Int64
    }

    /// A first status holds old acknowledgements too: only those of its own moment are news.
    private static let moment: Int64 = 2_000

    init(fleet: FleetID) { self.fleet = fleet }

    /// What a message says, in the order of its policies; nothing for what is no news or no reply.
    mutating func handle(topic: String, payload: [UInt8], at now: Timestamp) -> [LiveEntry] {
        switch Address(topic: topic, in: fleet) {
        case .presence(let present): return presence(present, payload, now)
        case .reply(let device, let app, let reply):
            do {
                return switch reply {
                case .status: news(try .init(wire: payload, fleet: fleet, device: device, app: app), now)
                case .logLevel: logLevel(try LogLevelChange(wire: payload, device: device, app: app), now)
                case .event: event(try AppEvent(wire: payload, device: device, app: app), now)
                }
            } catch {
                return payload.isEmpty ? [] : [unreadable(device, app, "\(reply.rawValue): \(error)", now)]
            }
        default: return []
        }
    }

    private mutating func news(_ status: Status, _ now: Timestamp) -> [LiveEntry] {
        let key = "\(status.device)/\(status.app)"
        let before = known[key]
        if let before, status.order <= before.order { return [] }
        if known.count >= Self.maximumKnown { known = [:] }
        known[key] = status
        var entries: [LiveEntry] = []
        for policy in Policy.allCases where policy != .secureFileIO || before != nil {
            let report = status[policy]
            let isNew =
                before.map { $0[policy] != report }
                ?? (report.source != nil && report.attempt.at.milliseconds >= status.at.milliseconds - Self.moment)
            if isNew { entries.append(entry(policy, report, status, now)) }
        }
        let refused = Set(before?.refusals ?? [])
        for refusal in status.refusals where !refused.contains(refusal) {
            guard before != nil || refusal.at.milliseconds >= status.at.milliseconds - Self.moment else { continue }
            entries.append(
                LiveEntry(
                    at: now, device: status.device.text, app: status.app.text, kind: .refusal,
                    text: "refused \(refusal.topic): \(refusal.reason)",
                    members: [.init("topic", .string(refusal.topic)), .init("reason", .string(refusal.reason))]))
        }
        return entries
    }

    private func entry(
        _ policy: Policy, _ report: PolicyReport, _ status: Status, _ now: Timestamp
    ) -> LiveEntry {
        let attempt = report.attempt
        let source = report.source.map { Self.layer(of: $0) } ?? "default"
        let message = attempt.message.map { ": \($0)" } ?? ""
        let revision = attempt.revision == 0 ? "" : " \(attempt.revision)"
        return LiveEntry(
            at: now, device: status.device.text, app: status.app.text, kind: .acknowledgement,
            text: "\(policy.rawValue)\(revision) \(attempt.outcome.rawValue) (\(source))\(message)",
            members: [
                .init("policy", .string(policy.rawValue)), .init("source", .string(source)),
                .init("received", .integer(report.received)), .init("revision", .integer(attempt.revision)),
                .init("outcome", .string(attempt.outcome.rawValue)),
            ] + (attempt.message.map { [.init("message", .string($0))] } ?? [])
                + [.init("reportedAt", .string(attempt.at.description))])
    }

    private static func layer(of source: Address) -> String {
        guard case .desired(let layer, _, _) = source else { return source.path }
        return layer.description
    }

    private mutating func isFirst(_ header: EventHeader) -> Bool {
        if told.count >= Self.maximumKnown { told = [] }
        return told.insert(
            Told(
                device: header.device, incarnation: header.incarnation, boot: header.boot, number: header.number)
        ).inserted
    }

    private mutating func logLevel(_ change: LogLevelChange, _ now: Timestamp) -> [LiveEntry] {
        guard isFirst(change.header) else { return [] }
        let until = change.until.map { " until \($0)" } ?? ""
        return [
            LiveEntry(
                at: now, device: change.header.device.text, app: change.header.app.text, kind: .logLevel,
                text: "log level \(change.old) → \(change.new) (\(change.why.rawValue))\(until)",
                members: change.value.memberValues?.filter { Self.isOwn($0.name) } ?? [])
        ]
    }

    private mutating func event(_ event: AppEvent, _ now: Timestamp) -> [LiveEntry] {
        guard isFirst(event.header) else { return [] }
        let parts = [event.kind.rawValue, event.action?.rawValue, event.target, event.message].compactMap { $0 }
        return [
            LiveEntry(
                at: now, device: event.header.device.text, app: event.header.app.text, kind: .event,
                text: parts.joined(separator: " "),
                members: event.value.memberValues?.filter { Self.isOwn($0.name) } ?? [])
        ]
    }

    private static func isOwn(_ member: String) -> Bool { !["v", "device", "app", "oldest"].contains(member) }

    private mutating func presence(_ present: Address.Present, _ payload: [UInt8], _ now: Timestamp) -> [LiveEntry] {
        let name =
            switch present {
            case .controller: "@controller"
            case .device(let device): device.text
            }
        if payload.isEmpty { return [] }
        do {
            let value = try JSONValue(json: payload, limit: Presence.maximumSize)
            let state = Text.printable(value["state"]?.stringValue ?? "unreadable presence", limit: 20)
            let connection = value["connection"]?.stringValue
            let known = connections[name]
            if known != nil, (known == connection) == (state == "online") { return [] }
            if connections.count >= Self.maximumKnown { connections = [:] }
            connections[name] = state == "online" ? connection : nil
            let agent = value["agent"]?.stringValue.map { " (\(Text.printable($0, limit: 40)))" } ?? ""
            return [
                LiveEntry(
                    at: now, device: name, app: nil, kind: .presence, text: state == "online" ? state + agent : state,
                    members: [.init("state", .string(state))])
            ]
        } catch {
            return [
                LiveEntry(
                    at: now, device: name, app: nil, kind: .unreadable, text: "unreadable presence: \(error)",
                    members: [])
            ]
        }
    }

    private func unreadable(_ device: DeviceID, _ app: AppID, _ what: String, _ now: Timestamp) -> LiveEntry {
        LiveEntry(
            at: now, device: device.text, app: app.text, kind: .unreadable, text: "unreadable \(what)", members: [])
    }
}
