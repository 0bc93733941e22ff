package import FleetProtocol

/// One request until it is answered: what came in, what is to be done. No I/O, no clock of its own; times are counted
/// from any fixed moment.
///
/// The same bytes are sent until an answer with the request's id comes or `limit` has passed: the controller acts once
/// per id, so a repetition is harmless.
package struct RequestExchange {
    package enum Event {
        /// The connection stands, and the answer's topic is subscribed.
        case connected
        case disconnected(why: String)
        /// The broker's reason code for what was sent, also of an earlier connection. Here and below `of` is the request that
        /// was sent: what becomes of another one, which is answered already, may be told only now, and says nothing.
        case acknowledged(UInt8, of: RandomID)
        /// How far what was sent has come is not known.
        case unacknowledged(why: String, of: RandomID)
        /// It cannot be sent at all.
        case unsendable(why: String, of: RandomID)
        case received([UInt8])
        case clock
    }

    package enum Effect: Hashable {
        case send
        /// What was asked for before may be forgotten.
        case wake(at: Duration)
        case finish(Outcome)
    }

    package enum Outcome: Hashable {
        case answered(Response.Result)
        /// - Parameter mayBeDone: The controller may have had it. Where that is false it never does.
        case unanswered(Cause, mayBeDone: Bool)
    }

    package enum Cause: Hashable {
        /// The broker has no subscriber for requests.
        case nobodyThere
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
        /// - Parameter trouble: Why the broker has not acknowledged it.
        case waiting(again: Duration, trouble: String?)
        case finished
    }

    /// How long a controller may be away, for example while it starts again.
    static let patience = Duration.seconds(3)
    private static let whileAlone = Duration.milliseconds(250)
    private static let whileWaiting = Duration.seconds(2)

    /// MQTT's reason code for a message that nobody has subscribed to.
    private static let noSubscriber: UInt8 = 16

    package let id: RandomID
    private let limit: Duration
    private var state = State.disconnected(why: "no connection yet")
    private var aloneSince: Duration?
    private var mayHaveArrived = false

    /// - Parameter limit: When to give up.
    package init(id: RandomID, limit: Duration) {
        self.id = id
        self.limit = limit
    }

    package mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        if case .finished = state { return [] }
        switch event {
        case .connected:
            leaveBehind()
            state = .sending
            return [.send, .wake(at: limit)]
        case .disconnected(let why):
            leaveBehind()
            state = .disconnected(why: why)
            aloneSince = nil
            return [.wake(at: limit)]
        case .acknowledged(let reason, let sent):
            guard sent == id else { return [] }
            return acknowledged(reason, now)
        case .unacknowledged(let why, let sent):
            guard sent == id else { return [] }
            mayHaveArrived = true
            guard case .sending = state else { return [] }
            return sendAgainLater(now, trouble: why)
        case .unsendable(let why, let sent):
            guard sent == id else { return [] }
            return unanswered(.unsendable(why: why))
        case .received(let bytes):
            guard let response = try? Response(json: bytes, limit: Response.maximumSize), response.id == id else {
                return []
            }
            return finish(.answered(response.result))
        case .clock: return clock(now)
        }
    }

    /// Nobody tells any more how far what is under way has come.
    private mutating func leaveBehind() {
        if case .sending = state { mayHaveArrived = true }
    }

    private mutating func acknowledged(_ reason: UInt8, _ now: Duration) -> [Effect] {
        let isWithSomebody = reason < 0x80 && reason != Self.noSubscriber
        if isWithSomebody { mayHaveArrived = true }
        guard case .sending = state else { return [] }
        if isWithSomebody {
            aloneSince = nil
            return sendAgainLater(now)
        }
        // This one has come nowhere.
        guard reason == Self.noSubscriber else { return unanswered(.refused(reason: reason)) }
        let since = aloneSince ?? now
        aloneSince = since
        if now - since >= Self.patience { return unanswered(.nobodyThere) }
        state = .alone(again: now + Self.whileAlone)
        return [.wake(at: min(now + Self.whileAlone, limit))]
    }

    private mutating func sendAgainLater(_ now: Duration, trouble: String? = nil) -> [Effect] {
        state = .waiting(again: now + Self.whileWaiting, trouble: trouble)
        return [.wake(at: min(now + Self.whileWaiting, limit))]
    }

    private mutating func clock(_ now: Duration) -> [Effect] {
        if now >= limit {
            leaveBehind()
            return switch state {
            case .disconnected(let why), .waiting(_, let why?): unanswered(.connectionLost(why: why))
            case .alone: unanswered(.nobodyThere)
            case .sending, .waiting: unanswered(.noAnswer)
            case .finished: []
            }
        }
        switch state {
        case .alone(let again), .waiting(let again, _):
            guard now >= again else { return [.wake(at: min(again, limit))] }
            state = .sending
            return [.send, .wake(at: limit)]
        case .disconnected, .sending: return [.wake(at: limit)]
        case .finished: return []
        }
    }

    private mutating func unanswered(_ cause: Cause) -> [Effect] {
        finish(.unanswered(cause, mayBeDone: mayHaveArrived))
    }

    private mutating func finish(_ outcome: Outcome) -> [Effect] {
        state = .finished
        return [.finish(outcome)]
    }
}
