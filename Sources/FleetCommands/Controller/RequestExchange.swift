import FleetProtocol

/// One request until it is answered: what came in, what is to be done. No I/O, no clock of its own; times are counted
/// from any fixed moment.
///
/// The same bytes are sent until an answer with the request's id comes or `limit` has passed: the controller acts once
/// per id, so a repetition is harmless.
struct RequestExchange {
    enum Event {
        /// The connection stands, and the answer's topic is subscribed.
        case connected
        case disconnected(why: String)
        /// The broker's reason code for what was last sent.
        case acknowledged(UInt8)
        /// It cannot be sent at all.
        case unsendable(why: String)
        case received([UInt8])
        case clock
    }

    enum Effect: Hashable {
        case send
        case wake(at: Duration)
        case finish(Outcome)
    }

    enum Outcome: Hashable {
        case answered(Response.Result)
        /// The broker has no subscriber for requests. An earlier sending may have reached one.
        case nobodyThere(mayBeDone: Bool)
        /// The controller listens, and has not answered.
        case noAnswer
        case refused(reason: UInt8)
        case unsendable(why: String)
        case connectionLost(why: String)
    }

    private enum State {
        case disconnected(why: String)
        /// On its way to the broker.
        case sending
        /// The broker has no subscriber; the next attempt comes at the time.
        case alone(again: Duration)
        case waiting(again: Duration)
        case finished
    }

    /// How long a controller may be away, for example while it starts again.
    static let patience = Duration.seconds(3)
    private static let whileAlone = Duration.milliseconds(250)
    private static let whileWaiting = Duration.seconds(2)

    /// MQTT's reason code for a message that nobody has subscribed to.
    private static let noSubscriber: UInt8 = 16

    let id: RandomID
    private let limit: Duration
    private var state = State.disconnected(why: "no connection yet")
    private var aloneSince: Duration?
    private var mayHaveArrived = false

    /// - Parameter limit: When to give up.
    init(id: RandomID, limit: Duration) {
        self.id = id
        self.limit = limit
    }

    mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        if case .finished = state { return [] }
        switch event {
        case .connected:
            state = .sending
            return [.send, .wake(at: limit)]
        case .disconnected(let why):
            if case .sending = state { mayHaveArrived = true }
            state = .disconnected(why: why)
            aloneSince = nil
            return [.wake(at: limit)]
        case .acknowledged(let reason): return acknowledged(reason, now)
        case .unsendable(let why): return finish(.unsendable(why: why))
        case .received(let bytes):
            guard let response = try? Response(json: bytes, limit: Response.maximumSize), response.id == id else {
                return []
            }
            return finish(.answered(response.result))
        case .clock: return clock(now)
        }
    }

    private mutating func acknowledged(_ reason: UInt8, _ now: Duration) -> [Effect] {
        guard case .sending = state else { return [] }
        switch reason {
        case Self.noSubscriber:
            let since = aloneSince ?? now
            aloneSince = since
            if now - since >= Self.patience { return finish(.nobodyThere(mayBeDone: mayHaveArrived)) }
            state = .alone(again: now + Self.whileAlone)
            return [.wake(at: min(now + Self.whileAlone, limit))]
        case 0..<0x80:
            aloneSince = nil
            mayHaveArrived = true
            state = .waiting(again: now + Self.whileWaiting)
            return [.wake(at: min(now + Self.whileWaiting, limit))]
        default: return finish(.refused(reason: reason))
        }
    }

    private mutating func clock(_ now: Duration) -> [Effect] {
        if now >= limit {
            return switch state {
            case .disconnected(let why): finish(.connectionLost(why: why))
            case .alone: finish(.nobodyThere(mayBeDone: mayHaveArrived))
            case .sending, .waiting: finish(.noAnswer)
            case .finished: []
            }
        }
        switch state {
        case .alone(let again), .waiting(let again):
            guard now >= again else { return [.wake(at: min(again, limit))] }
            state = .sending
            return [.send, .wake(at: limit)]
        case .disconnected, .sending: return [.wake(at: limit)]
        case .finished: return []
        }
    }

    private mutating func finish(_ outcome: Outcome) -> [Effect] {
        state = .finished
        return [.finish(outcome)]
    }
}
