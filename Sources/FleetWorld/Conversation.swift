import AppConnect
import DeviceAgent
import FleetProtocol

/// What an agent has told an app, and what the app has said of it, as somebody at the link between them knows it.
struct Conversation {
    private var install: RandomID?
    private var implements: Set<Callback> = []
    /// This installation has had a ready, and said so.
    private(set) var hadReady = false
    /// The process that is there has; and whether one that has said who it is has had its ready before.
    private(set) var isReady = false
    private var isBack = false
    /// On this connection the process is in the ready callback of its launch, or behind it.
    private(set) var isReadySent = false
    /// What it was told last on this connection of its secure services; nil before that.
    private(set) var availability: SecureServicesAvailability?
    /// And the agent has stored that.
    private(set) var isReadyStored = false
    /// The newest delivery of each kind.
    private var newest: [DeliveryKind: (number: Int64, delivery: Delivery)] = [:]
    /// What the app has taken for good: it has answered it, or nobody asks for an answer. While this is what it has,
    /// it is not told again.
    private var settled: [DeliveryKind: Delivery] = [:]
    /// Of these, what it could not be called for: when it can, it is told again.
    private var unsupported: Set<Policy> = []
    /// The agent knows it, and has not stored it yet.
    private var unstored: [Delivery] = []

    init() {}

    /// With an agent that knows no more of it than its store does.
    init(_ known: AppRecord) {
        install = known.install
        (hadReady, isReadyStored) = (known.wasReady, known.wasReady)
    }

    mutating func stored() {
        for delivery in unstored { settled[delivery.kind] = delivery }
        unstored = []
        isReadyStored = hadReady
    }

    /// The agent is gone, with what it had not stored.
    mutating func forgetUnstored() {
        ended()
        unstored = []
        hadReady = isReadyStored
    }

    /// The connection is gone, as the agent knows, or the agent is.
    mutating func ended() { (isReadySent, availability) = (false, nil) }

    /// Whether this process may begin with what was in force: an earlier one of its installation did.
    func isKnown(_ registration: Registration) -> Bool {
        isReadyStored && install == registration.install && registration.resume == nil
    }

    /// It has other keys than before, which it is told of.
    mutating func renewed() {
        settled[.availability] = nil
        newest[.availability] = nil
    }

    /// The agent has stored that it sends something, and died before it did: what the app says of earlier ones does not
    /// count any more.
    mutating func mayHaveSent(_ frame: AgentFrame) {
        switch frame {
        case .ready:
            _ = sends(frame)
            ended()
        case .deliver(_, let delivery):
            settled[delivery.kind] = nil
            newest[delivery.kind] = nil
        default: break
        }
    }

    /// The agent sends something. Returns what is wrong with that.
    mutating func sends(_ frame: AgentFrame) -> String? {
        switch frame {
        case .welcome:
            isReady = isBack
            return nil
        case .ready(let properties):
            (isReadySent, availability) = (true, properties.availability)
            // With its ready an app is told everything else, and another reason of what it has.
            settled = settled.filter { properties.isSame($0.value) }
            if case .policy(.auth(let state, let message), _)? = settled[.policy(.auth)] {
                settled[.policy(.auth)] = .policy(.auth(state, message: message), reason: properties.authReason)
            }
            newest = [:]
            return nil
        case .deliver(let number, let delivery):
            let isAgain = settled.removeValue(forKey: delivery.kind).map { $0 == delivery } ?? false
            newest[delivery.kind] = (number, delivery)
            if case .availability(let value) = delivery { availability = value }
            return isAgain ? "told again what it has taken: \(delivery)" : nil
        default: return nil
        }
    }

    /// The agent has dealt with something that the app said.
    mutating func hears(_ frame: AppFrame) {
        switch frame {
        case .register(let registration):
            ended()
            if install != registration.install {
                settled = [:]
                unstored = []
                hadReady = false
                isReadyStored = false
            }
            install = registration.install
            let learnt = registration.implements.subtracting(implements)
            // Of what nobody answers for it is not known whether the app could be called.
            func isDue(_ kind: DeliveryKind) -> Bool {
                kind.callback.map(learnt.contains) ?? false && kind.acknowledged.map(unsupported.contains) ?? true
            }
            settled = settled.filter { !isDue($0.key) }
            unstored.removeAll { isDue($0.kind) }
            implements = registration.implements
            isBack = registration.resume != nil
            guard let resume = registration.resume else {
                newest = [:]
                return
            }
            hadReady = true
            for number in resume.delivered { returned(number) }
            for answer in resume.acknowledgements { answered(answer) }
        case .ready: (hadReady, isReady) = (true, true)
        case .delivered(let number): returned(number)
        case .acknowledge(let answer): answered(answer)
        case .retire:
            // It has the defaults now, whatever it was told.
            settled = settled.filter { AppProperties.expectedInitial.isSame($0.value) }
            newest = newest.filter { settled[$0.key] == $0.value.delivery }
            unstored = []
        default: break
        }
    }

    private mutating func returned(_ number: Int64) {
        guard let delivery = newest.values.first(where: { $0.number == number })?.delivery,
            delivery.kind.acknowledged == nil
        else { return }
        unstored.append(delivery)
    }

    /// Whether that is said of what the app was told last.
    func isOfNewest(_ answer: Acknowledgement) -> Bool { newest[.policy(answer.policy)]?.number == answer.delivery }

    /// Whether that is what the app was told last of its policy.
    func isNewest(_ value: PolicyValue, of policy: Policy) -> Bool {
        if case .policy(value, _)? = newest[.policy(policy)]?.delivery { true } else { false }
    }

    private mutating func answered(_ answer: Acknowledgement) {
        let kind = DeliveryKind.policy(answer.policy)
        guard let told = newest[kind], isOfNewest(answer) else { return }
        unstored.removeAll { $0.kind == kind }
        settled[kind] = nil
        if answer.state == .unsupported { unsupported.insert(answer.policy) } else { unsupported.remove(answer.policy) }
        // An error is told again with the next revision, and to the next process.
        if answer.state != .error { unstored.append(told.delivery) }
    }
}

extension AppProperties {
    /// Whether an app with these has what a delivery says.
    func isSame(_ delivery: Delivery) -> Bool {
        switch delivery {
        case .policy(let value, _): self[value.policy] == value
        case .managed(let value): managed == value
        case .availability(let value): availability == value
        }
    }
}
