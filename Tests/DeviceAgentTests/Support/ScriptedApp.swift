import DeviceAgent
import FleetProtocol

/// An app's process as a well-behaved library runs it: one callback at a time, in the order of the frames. Knows what the
/// app has in hand, and what it would say to a restarted agent.
struct ScriptedApp {
    let app: AppID
    let install: RandomID
    let launch = RandomID.random()
    var link: LinkID
    var isReady = false
    /// What the app reads in its properties.
    var values: [PolicyValue] = []
    var managed = ManagedPolicy.unknown
    var availability = SecureServicesAvailability.unavailable
    var waiting: [AgentFrame] = []
    /// The delivery whose callback runs.
    var running: Int64?
    private var delivered: [String: Int64] = [:]
    private var newest: [Policy: Int64] = [:]
    private var answers: [Policy: Acknowledgement] = [:]

    init(_ app: AppID, install: RandomID, link: LinkID) {
        self.app = app
        self.install = install
        self.link = link
    }

    var resume: Registration.Resume? {
        guard isReady else { return nil }
        return Registration.Resume(
            delivered: delivered.values.filter { $0 != running }.sorted(), begun: running.map { [$0] } ?? [],
            acknowledgements: answers.values.sorted { $0.policy < $1.policy })
    }

    /// Ends the callback that runs, or begins the next. Returns whether there was anything to do, and what is to be said.
    mutating func step() -> (isBusy: Bool, frame: AppFrame?) {
        if let number = running {
            running = nil
            return (true, .delivered(number))
        }
        while !waiting.isEmpty {
            switch waiting.removeFirst() {
            case .ready(let properties):
                isReady = true
                values = properties.values
                managed = properties.managed
                availability = properties.availability
                return (true, .ready)
            case .deliver(let number, let delivery):
                running = number
                switch delivery {
                case .policy(let value, _):
                    values[value.policy.index] = value
                    newest[value.policy] = number
                    delivered[value.policy.rawValue] = number
                    answers[value.policy] = nil
                case .managed(let value):
                    managed = value
                    delivered["managed"] = number
                case .availability(let value):
                    availability = value
                    delivered["availability"] = number
                }
                return (true, nil)
            case .welcome, .refused, .displayed, .activity, .codeResult, .kept, .keys, .autoLock, .passcodeResult,
                .copied,
                .pasted:
                break
            }
        }
        return (false, nil)
    }

    /// The app answers the newest callback of `policy`.
    mutating func acknowledge(_ policy: Policy, _ state: PolicyState) -> AppFrame? {
        guard policy.isAcknowledgedByApp, let number = newest[policy], state != .unsupported || policy != .auth else {
            return nil
        }
        let answer = Acknowledgement(delivery: number, policy: policy, state: state)
        answers[policy] = answer
        return .acknowledge(answer)
    }

    /// Its connection has closed: what had not begun is dropped.
    mutating func lostConnection() { waiting = [] }
}
