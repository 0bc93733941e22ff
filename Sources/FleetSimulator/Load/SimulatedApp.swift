import DeviceAgent
import FleetProtocol

/// An app on a simulated device, which speaks the link's frames by value: it runs all the time, takes every callback and
/// answers as the plan says.
struct SimulatedApp {
    let id: AppID
    let link: LinkID
    /// Whether it ever answers.
    let answers: Bool
    private(set) var isReady = false
    /// Whether the broker has a status of it from the present connection.
    var isReported = false
    /// What it has answered, until a status says so.
    private var answered: Answered?

    struct Answered {
        /// When the first of the changes had arrived at the device.
        let since: UInt64
        var changes: Int
    }

    init(_ id: AppID, _ link: LinkID, answers: Bool) {
        self.id = id
        self.link = link
        self.answers = answers
    }

    var registration: Registration {
        Registration(
            app: id, install: .random(), launch: .random(), sdk: "fleet-sim/1", implements: Set(Callback.allCases))
    }

    /// What the app says to a frame, at once or later.
    mutating func reply(to frame: AgentFrame, _ state: PolicyState, since: UInt64) -> [AppFrame] {
        switch frame {
        case .ready:
            isReady = true
            return [.ready]
        case .deliver(let number, let delivery):
            guard case .policy(let value, _) = delivery, value.policy.isAcknowledgedByApp, answers else {
                return [.delivered(number)]
            }
            if case nil = answered?.changes += 1 { answered = Answered(since: since, changes: 1) }
            return [
                .delivered(number),
                .acknowledge(
                    Acknowledgement(
                        delivery: number, policy: value.policy, state: state,
                        message: state == .error ? "as it was told to" : nil)),
            ]
        case .welcome, .refused, .displayed, .activity, .codeResult: return []
        }
    }

    /// What a status of this moment answers, if it answers anything new.
    mutating func takeAnswered() -> Answered? {
        defer { answered = nil }
        return answered
    }
}
