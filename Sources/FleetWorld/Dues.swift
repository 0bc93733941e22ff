import DeviceAgent
import FleetProtocol

/// What an agent has still to say on its connection, and since when, by its running time. That others would find out in the
/// end that it was not said makes it no better.
struct Dues {
    /// When it last said events that are not confirmed.
    private var eventsSaidAt: Int64?
    /// Since when somebody says for it that it is away, or has cleared what it said.
    private var presenceSince: Int64?
    /// It has said a status on this connection: the first ones take their time, and tell of all that was before.
    private var hasReported = false
    /// Since when it has refused a document, and said no status.
    private var refusedSince: Int64?
    /// A marker that has not come back, said when nothing else was waited for, and when.
    private var marker: (number: Int64, at: Int64)?
    /// All that have not come back.
    private var open: Set<Int64> = []
    /// What was subscribed to: a marker of nothing only shows that the broker is there.
    private var asked: Set<Int64> = []
    /// Subscriptions behind which the broker has still to show what it has.
    private var unshown: Set<Int64> = []
    /// Where something came that no known key has signed, and nobody was told of that.
    private var unsigned: Set<String> = []
    /// The newest nonce and when it was said first, how soon behind it another one may be said, and when that is due.
    private var nonce: (name: RandomID, at: Int64)?
    private var nonceInterval = Dues.nonceIntervals.lowerBound
    private var nonceDue: Int64?
    private var isGreeted = false
    private var isConnected = false
    private var isPastFirst = false

    /// How late either may be, in milliseconds: an agent is looked at when it has had its tick.
    private static let tolerance: Int64 = 1_000
    private static let eventRetry: Int64 = 30_000
    /// Half a minute; twice as long when its subscription has been waited for in vain that long, and a quarter more.
    private static let markerRetry: Int64 = 75_000
    /// Statuses are said soon.
    private static let report: Int64 = 30_000
    /// Greetings are answered every five seconds at most.
    private static let answer: Int64 = 5_000
    /// While words come late, nonces are said ever more rarely, and as soon as at first when one has come in time.
    private static let nonceIntervals: ClosedRange<Int64> = 30_000...600_000
    /// Not all devices say them at one moment.
    private static let nonceSpread: Int64 = 5_000

    /// What the core has looked at, and what follows. Returns what is late.
    ///
    /// - Parameter isUnsigned: Whether the device listens to an address, and no key that it knows has signed what came there.
    mutating func handled(
        _ events: [DeviceEvent], _ effects: [DeviceEffect], of core: DeviceCore, on connection: RandomID?,
        hearing words: Int, late lag: Int64?, isUnsigned: (Address, [UInt8]) -> Bool
    ) -> String? {
        let now = core.state.running.total
        for event in events { note(event, of: core.device, on: connection, at: now, isUnsigned) }
        // What had come on the connection before is of that one.
        let isBeginning = events.contains { if case .connected = $0 { true } else { false } }
        if words > 0, isConnected, !isBeginning { heard(words, late: lag ?? 0, at: now) }
        for case .subscribe(_, let barrier) in effects {
            asked.insert(barrier)
            unshown.insert(barrier)
        }
        for case .log(let entry) in effects where !unsigned.isEmpty {
            unsigned = unsigned.filter { entry.detail?.hasPrefix("\($0): ") != true }
        }
        if hasReported, effects.contains(where: \.isRefusal) { refusedSince = refusedSince ?? now }
        if effects.contains(where: { if case .report = $0 { true } else { false } }) {
            (hasReported, refusedSince) = (isConnected, nil)
        }
        for case .publish(let address, let payload, _) in effects where isConnected { said(address, payload, at: now) }
        // Where it has looked at its dues, or when it will.
        let isTick = events.contains { if case .tick = $0 { true } else { false } }
        let next = core.nextTick
        for due in dues(of: core) {
            if isTick, now > due.at + Self.tolerance { return "\(due.what) \(now - due.since) ms ago" }
            if next > max(now, due.at) + Self.tolerance {
                return "\(due.what) \(now - due.since) ms ago, and it waits for \(next - now) ms more"
            }
        }
        return nil
    }

    /// Where something came that no known key has signed, and nobody is told, though the broker has shown all that was asked for:
    /// a trust document that names the key would have been among that.
    var untold: String? { isConnected && unshown.isEmpty ? unsigned.min() : nil }

    private func dues(of core: DeviceCore) -> [(at: Int64, since: Int64, what: String)] {
        var dues: [(at: Int64, since: Int64, what: String)] = []
        if let eventsSaidAt, let event = core.state.events.first {
            dues.append((eventsSaidAt + Self.eventRetry, eventsSaidAt, "event \(event.header.number) was said last"))
        }
        if let marker {
            dues.append((marker.at + Self.markerRetry, marker.at, "its marker \(marker.number), still open, was said"))
        }
        if let refusedSince, !core.state.apps.isEmpty {
            dues.append((refusedSince + Self.report, refusedSince, "what it has not said in a status it refused"))
        }
        if let presenceSince {
            dues.append((presenceSince + Self.answer, presenceSince, "others spoke of its presence, and it has not,"))
        }
        if let nonceDue { dues.append((nonceDue + Self.nonceSpread, nonceDue, "words came late, and a nonce was due")) }
        return dues
    }

    private mutating func note(
        _ event: DeviceEvent, of device: DeviceID, on connection: RandomID?, at now: Int64,
        _ isUnsigned: (Address, [UInt8]) -> Bool
    ) {
        switch event {
        case .connected:
            self = Dues()
            isConnected = true
        case .disconnected, .stopping: self = Dues()
        case .message(let topic, let payload):
            let address = Address(topic: topic, in: SimulatedFleet.id)
            switch address {
            case .desired:
                // Of what is held for keys that may become known the newest of each topic is.
                unsigned.remove(topic)
                if isConnected, let address, isUnsigned(address, payload) { unsigned.insert(topic) }
            case .barrier:
                let marker = try? BarrierMarker(json: payload, limit: 1_024)
                guard let marker, marker.connection == connection else { return }
                isPastFirst = true
                if self.marker?.number == marker.counter { self.marker = nil }
                open.remove(marker.counter)
                unshown.remove(marker.counter)
            case .hello: isGreeted = true
            case .presence(.device(device)):
                guard isPastFirst, presenceSince == nil else { return }
                let said = try? Presence(json: payload, limit: Presence.maximumSize)
                if payload.isEmpty || said?.state == .offline { presenceSince = now }
            default: break
            }
        default: break
        }
    }

    /// What the core has heard of the controller. Of several in one moment some may be in time, and nobody sees in which order.
    private mutating func heard(_ words: Int, late lag: Int64, at now: Int64) {
        if words > 1 {
            (nonceDue, nonceInterval) = (nil, Self.nonceIntervals.upperBound)
        } else if lag <= 0 {
            (nonceDue, nonceInterval) = (nil, Self.nonceIntervals.lowerBound)
        } else if nonceDue == nil {
            nonceDue = max(now, nonce.map { $0.at + nonceInterval } ?? now)
        }
    }

    private mutating func said(_ nonce: RandomID, at now: Int64) {
        guard nonce != self.nonce?.name else { return }
        if self.nonce != nil { nonceInterval = min(2 * nonceInterval, Self.nonceIntervals.upperBound) }
        (self.nonce, nonceDue) = ((nonce, now), nil)
    }

    private mutating func said(_ address: Address, _ payload: [UInt8], at now: Int64) {
        switch address {
        case .barrier:
            guard let said = try? BarrierMarker(json: payload, limit: 1_024), asked.contains(said.counter) else {
                return
            }
            // Said again, it is waited for as long as the device likes.
            marker = open.isEmpty && isGreeted ? (said.counter, now) : nil
            open.insert(said.counter)
        case .presence:
            presenceSince = nil
            let nonce = (try? Presence(json: payload, limit: Presence.maximumSize))?.nonce
            if let nonce { said(nonce, at: now) }
        case .reply(_, _, .event), .reply(_, _, .logLevel): eventsSaidAt = now
        default: break
        }
    }
}

extension DeviceEffect {
    fileprivate var isRefusal: Bool {
        if case .log(let entry) = self { entry.message == "refused a document" } else { false }
    }
}
