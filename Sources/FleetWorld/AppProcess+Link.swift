import AppConnect
import DeviceAgent
import FleetProtocol

/// The connection to its device's agent: frames take their time, in order, and it breaks.
extension AppProcess {
    func connect() {
        guard session != nil, link == nil else { return }
        guard let number = machine.openLink(self) else {
            let launch = launch
            return world.after(world.isCalm ? 50 : world.noise.milliseconds(20...2_000)) { [unowned self] in
                if self.launch == launch { connect() }
            }
        }
        link = number
        run { $0.connected(isRetirementOwed: isMarked && world.fault != .retirementNotMarked) }
        if !world.isCalm, world.noise.chance(5) { attempt() }
    }

    /// What is written there reaches it: it has not left that connection, to come back on another one.
    func isReading(_ link: LinkID) -> Bool { self.link == link.number }

    func closeLink() {
        if let link { machine.linkClosed(link) }
        link = nil
    }

    /// It breaks by itself, and the agent hears of that when the app has come back.
    func breakLink() {
        guard session?.connection == .open, let old = link else { return }
        world.say(name, "loses its connection to the agent")
        machine.brokenLinks.insert(old)
        link = nil
        lost(AppConnectError(.unreachable, "the connection broke"))
        connect()
        world.after(world.noise.milliseconds(5...3_000)) { [unowned machine] in machine.linkClosed(old) }
    }

    /// Without its agent nobody locks, or takes away, what it has: it goes on with its keys where it has had its ready, and
    /// does not lock by itself.
    private func lost(_ error: AppConnectError) {
        run { $0.lost(error) }
        if session?.keys != nil, !wasReady || locksItself {
            world.fail(.passcodes, "\(name): its agent is gone, and it keeps its keys")
        }
        locksItself = false
    }

    /// The agent is gone, or has closed the connection.
    func lostLink(_ number: LinkNumber) {
        guard link == number else { return }
        let launch = launch
        world.after(world.delay()) { [unowned self] in
            guard self.launch == launch, link == number else { return }
            link = nil
            lost(AppConnectError(.unreachable, "the agent has gone"))
            // What is blocked while nobody listens is told later.
            if !world.isCalm, world.noise.chance(10) { attempt() }
            connect()
        }
    }

    func receive(_ frame: AgentFrame, on number: LinkNumber) {
        // Keys are written with what follows them.
        let isAtOnce = if case .keys = frame { true } else { world.isCalm }
        lastDown = max(lastDown, world.now + (isAtOnce ? 0 : world.noise.milliseconds(0...3)))
        world.after(lastDown - world.now) { [unowned self] in
            guard link == number else { return }
            var frame = frame
            if world.fault == .requestsNotRepeated, case .welcome(let agent, let device, _, let hasPasteboard) = frame {
                frame = .welcome(agent: agent, device: device, kept: .max, hasPasteboard: hasPasteboard)
            }
            frame = asText(frame)
            if case .deliver(let number, let delivery) = frame { newestTold[delivery.kind] = number }
            if case .autoLock(let after, let isOwn) = frame { locksItself = isOwn && after != nil }
            let wasMarked = isMarked
            run { $0.received(frame) }
            switch frame {
            case .kept(let number), .welcome(_, _, let number?, _): checkMark(through: number, was: wasMarked)
            default: break
            }
        }
    }

    func send(_ frame: AppFrame) {
        guard let link else { return }
        var frame = frame
        if world.fault == .answersNotResumed, case .register(var registration) = frame {
            registration.resume?.acknowledgements = []
            frame = .register(registration)
        }
        frame = asText(frame)
        if case .register = frame { world.say(name, "registers") } else { world.say(name, "says \(frame)") }
        lastUp = max(lastUp, world.now + (world.isCalm ? 0 : world.noise.milliseconds(0...3)))
        world.after(lastUp - world.now) { [unowned machine] in machine.receive(frame, on: link) }
    }

    /// In some worlds frames are lines of text, as on a real link.
    private func asText<Frame: JSONCodable & Equatable>(_ frame: Frame) -> Frame {
        guard world.schedule.seed % 8 == 3 else { return frame }
        do {
            return try Frame(json: frame.json, limit: Link.maximumLine)
        } catch {
            world.fail(.total, "\(name): \(frame.jsonText) cannot be read: \(error)")
            return frame
        }
    }
}
