import DeviceAgent
import FleetProtocol

/// What the device's core was given, what it did, and what that changed. Costs nothing when nobody counts.
extension Machine {
    func visit(_ event: DeviceEvent) {
        guard let coverage = world.coverage else { return }
        if case .message = event { return }  // Counted where it arrives, before it moves the connection on.
        coverage.count("device event", name(of: event), watch.bus.phase.rawValue)
    }

    func visit(messageAt topic: String) {
        guard let coverage = world.coverage else { return }
        coverage.count("device message", Coverage.kind(of: topic), watch.bus.phase.rawValue)
    }

    func visit(_ effect: DeviceEffect) {
        guard let coverage = world.coverage else { return }
        coverage.count("device effect", name(of: effect), "")
        guard case .store(let changes) = effect else { return }
        for change in changes { coverage.count("device store", name(of: change), "") }
    }

    func visit(_ old: AppRecord, _ new: AppRecord) {
        guard let coverage = world.coverage else { return }
        for policy in Policy.allCases {
            let (was, now) = (old[policy].attempt.outcome, new[policy].attempt.outcome)
            guard was != now else { continue }
            let kind =
                policy == .logLevel
                ? "log levels" : policy.isAcknowledgedByApp ? "the app's policies" : "the agent's policies"
            coverage.count("outcome of \(kind)", was.rawValue, now.rawValue)
        }
        let (was, now) = ("\(old.authState) \(old.authReason)", "\(new.authState) \(new.authReason)")
        if was != now { coverage.count("authorization", was, now) }
        guard old.latch?.reason != new.latch?.reason else { return }
        if let latch = new.latch { coverage.count("retirement", "latched", "\(latch.reason)") }
        if let latch = old.latch { coverage.count("retirement", "released", "\(latch.reason)") }
    }

    private func name(of event: DeviceEvent) -> String {
        switch event {
        case .connected: "connected"
        case .disconnected: "disconnected"
        case .subscribed: "subscribed"
        case .message: "message"
        case .registered: "register"
        case .frame(_, let frame): name(of: frame)
        case .linkClosed: "linkClosed"
        case .registrationRefused: "registrationRefused"
        case .codeChecked: "codeChecked"
        case .passcodeChecked(_, .wrong): "passcode is wrong"
        case .passcodeChecked(_, .right): "passcode is right"
        case .passcodeChecked(_, .unknown): "passcode is not compared"
        case .displayed: "displayed"
        case .tick: "tick"
        case .stopping: "stopping"
        }
    }

    private func name(of frame: AppFrame) -> String {
        switch frame {
        case .register: "register"
        case .ready: "ready"
        case .delivered: "delivered"
        case .taken: "taken"
        case .acknowledge: "acknowledge"
        case .blocked: "blocked"
        case .retire: "retire"
        case .display: "display"
        case .stop: "stop"
        case .code: "code"
        case .used: "used"
        case .copy: "copy"
        case .paste: "paste"
        case .passcode(.enter): "enter passcode"
        case .passcode(.set): "set passcode"
        case .passcode(.lock): "lock"
        }
    }

    private func name(of effect: DeviceEffect) -> String {
        switch effect {
        case .destroyKeys: "destroyKeys"
        case .createKeys: "createKeys"
        case .store: "store"
        case .subscribe: "subscribe"
        case .unsubscribe: "unsubscribe"
        case .publish(let address, _, _): "publish \(Coverage.kind(of: address.topic(in: SimulatedFleet.id)))"
        case .report: "report"
        case .reconnect: "reconnect"
        case .send(_, let frame): "send \(name(of: frame))"
        case .sendKeys: "send keys"
        case .close: "close"
        case .display: "display"
        case .checkCode: "checkCode"
        case .checkPasscode: "checkPasscode"
        case .log: "log"
        }
    }

    private func name(of frame: AgentFrame) -> String {
        switch frame {
        case .welcome: "welcome"
        case .refused: "refused"
        case .ready: "ready"
        case .deliver: "deliver"
        case .displayed: "displayed"
        case .activity: "activity"
        case .codeResult: "codeResult"
        case .kept: "kept"
        case .keys: "no keys"
        case .autoLock: "autoLock"
        case .copied: "copied"
        case .pasted(_, let item): item == nil ? "pasted nothing" : "pasted"
        case .passcodeResult(let result): "passcode \(result.kind.rawValue)"
        }
    }

    private func name(of change: StoreChange) -> String {
        switch change {
        case .started: "started"
        case .trust: "trust"
        case .groups: "groups"
        case .clock: "clock"
        case .document(_, let wire): wire == nil ? "tombstone" : "document"
        case .mark: "mark"
        case .app: "app"
        case .passcode: "passcode"
        case .event: "event"
        case .dropEvents: "dropEvents"
        case .dropEvent: "dropEvent"
        }
    }
}
