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
    /// When what it answered last had arrived at the device, until a status says so.
    private var answeredSince: UInt64?

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
            answeredSince = answeredSince ?? since
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

    /// Since when the answer was due that a status of this moment bears, if it bears a new one.
    mutating func takeAnswered() -> UInt64? {
        defer { answeredSince = nil }
        return answeredSince
    }
}
