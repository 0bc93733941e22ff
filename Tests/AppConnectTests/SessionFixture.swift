import FleetProtocol
import TestSupport

@testable import AppConnect

/// A session as tests drive it, with a delegate that implements `callbacks`.
struct Session {
    var session = AppSession()
    var callbacks: Set<Callback>? = Set(Callback.allCases)
    var effects: [AppSession.Effect] = []

    static let app = AppID(unchecked: "com.example.mail")
    static let device = DeviceID(unchecked: "till-0042")
    static let lost = AppConnectError(.unreachable, "the agent closed the connection")

    static func registration(_ callbacks: Set<Callback> = Set(Callback.allCases)) -> Registration {
        Registration(app: app, install: .random(), launch: .random(), sdk: "test/1", implements: callbacks)
    }

    /// Sent since the last look.
    mutating func sent() -> [AppFrame] {
        defer { effects = [] }
        return effects.compactMap { if case .send(let frame) = $0 { frame } else { nil } }
    }

    /// Dropped since the last look.
    var dropped: AppConnectError? {
        effects.lazy.compactMap { if case .disconnect(let problem) = $0 { problem } else { nil } }.first
    }

    /// With an agent that has stored so much of what this launch asked for; nil is one that does not count.
    mutating func connect(welcome: Bool = true, kept: Int64? = 0, hasPasteboard: Bool = true) {
        effects += session.connected()
        if welcome { self.welcome(kept: kept, hasPasteboard: hasPasteboard) }
    }

    mutating func welcome(kept: Int64? = 0, hasPasteboard: Bool = true) {
        receive(.welcome(agent: "fleet-agent/1", device: Self.device, kept: kept, hasPasteboard: hasPasteboard))
    }

    mutating func lose() { effects += session.lost(Self.lost) }
    mutating func receive(_ frame: AgentFrame) { effects += session.received(frame) }

    mutating func deliver(_ number: Int64, _ value: PolicyValue, reason: AuthReason = .none) {
        receive(.deliver(number: number, .policy(value, reason: reason)))
    }

    /// Begins the next call that is not about the connection, without returning from it.
    mutating func begin() -> AppSession.Call? {
        while true {
            let (call, effects) = session.next(for: callbacks)
            self.effects += effects
            guard case .connectionChanged = call, let call else { return call }
            finish(call)
        }
    }

    mutating func mustBegin() throws -> AppSession.Call {
        guard let call = begin() else { throw TestFailure("nothing is due") }
        return call
    }

    mutating func finish(_ call: AppSession.Call) { effects += session.returned(call) }

    /// Runs all that is due, and says what was called.
    @discardableResult
    mutating func run() -> [AppSession.Call] {
        var calls: [AppSession.Call] = []
        while let call = begin() {
            calls.append(call)
            finish(call)
        }
        return calls
    }

    mutating func acknowledge(_ policy: Policy, _ state: PolicyState, _ message: String? = nil) throws {
        effects += try session.acknowledge(policy, state, message)
    }

    /// A session of an app that has had its ready, with nothing left to look at.
    static func ready(
        _ properties: AppProperties = .initial, callbacks: Set<Callback> = Set(Callback.allCases)
    ) throws -> Session {
        var session = Session()
        session.callbacks = callbacks
        try session.session.start(as: registration(callbacks))
        session.connect()
        session.receive(.ready(properties))
        session.run()
        session.effects = []
        return session
    }

    /// A session of an app that is authorized, and has its keys.
    static func authorized(with keys: AppKeys, _ change: (inout AppProperties) -> Void = { _ in }) throws -> Session {
        var properties = AppProperties.initial
        properties.availability = .available
        properties[.auth] = .auth(.authorized, message: "")
        change(&properties)
        var session = Session()
        try session.session.start(as: registration())
        session.connect()
        session.receive(.keys(keys))
        session.receive(.ready(properties))
        session.run()
        session.effects = []
        return session
    }
}

/// A call of a policy's callback.
func changed(_ number: Int64, _ value: PolicyValue, reason: AuthReason = .none) -> AppSession.Call {
    .changed(number: number, .policy(value, reason: reason))
}

extension AppSession {
    /// What the app reads.
    func reads(_ policy: Policy) throws -> PolicyValue { try property("\(policy)") { $0[policy] } }
}
