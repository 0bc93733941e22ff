import DeviceAgent
import FleetProtocol

/// An app on a simulated device, which speaks the link's frames by value: it runs all the time, takes every callback and
/// answers as the plan says.
struct SimulatedApp {
    let id: AppID
    let link: LinkID
    private let habit: AppAnswers.Habit
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

    init(_ id: AppID, _ link: LinkID, _ habit: AppAnswers.Habit) {
        self.id = id
        self.link = link
        self.habit = habit
    }

    var registration: Registration { Self.registration(of: id) }

    static func registration(of id: AppID) -> Registration {
        Registration(
            app: id, install: .random(), launch: .random(), sdk: "fleet-sim/1", implements: callbacks)
    }

    /// One set for all, so that it is kept once.
    private static let callbacks = Set(Callback.allCases)

    /// What the app says to a frame, at once or later.
    mutating func reply(
        to frame: AgentFrame, since: UInt64, using generator: inout some RandomNumberGenerator
    ) -> [AppFrame] {
        switch frame {
        case .ready:
            isReady = true
            return [.ready]
        case .deliver(let number, let delivery):
            guard case .policy(let value, _) = delivery, value.policy.isAcknowledgedByApp, !habit.isSilent else {
                return [.delivered(number)]
            }
            if case nil = answered?.changes += 1 { answered = Answered(since: since, changes: 1) }
            let state = PolicyState(habit.state(using: &generator))
            return [
                .delivered(number),
                .acknowledge(
                    Acknowledgement(
                        delivery: number, policy: value.policy, state: state,
                        message: state == .error ? "as it was told to" : nil)),
            ]
        case .welcome, .refused, .displayed, .activity, .codeResult, .kept, .keys, .autoLock, .passcodeResult, .copied,
            .pasted:
            return []
        }
    }

    /// What a status of this moment answers, if it answers anything new.
    mutating func takeAnswered() -> Answered? {
        defer { answered = nil }
        return answered
    }
}

extension PolicyState {
    fileprivate init(_ answer: AppAnswers.Answer) {
        self =
            switch answer {
            case .applied: .applied
            case .error: .error
            case .unsupported: .unsupported
            }
    }
}
