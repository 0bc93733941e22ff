import FleetHome
import FleetProtocol

/// What goes wrong, done to the processes and their ways.
extension Chaos {
    func perform(_ fault: ChaosPlan.Fault) throws {
        if case .fullDisk = fault, !ChaosFleet.canFillDisks { return }
        // A fleet of one has no guest.
        if case .remove = fault, fleet.guest == nil { return }
        report.faults[fault.kind, default: 0] += 1
        switch fault {
        case .kill(let target, let down):
            story.tell("kill -9 of \(target), to start again after \(down) ms", of: subject(of: target), at: now)
            fleet.part(target)?.kill(down: down, at: now)
        case .end(let target, let down):
            story.tell("SIGTERM to \(target), to start again after \(down) ms", of: subject(of: target), at: now)
            fleet.part(target)?.end(down: down, at: now)
        case .stop(let target, let time):
            story.tell("\(target) is stopped for \(time) ms", of: subject(of: target), at: now)
            fleet.part(target)?.stop(until: now + time, at: now)
        case .fullDisk(let target, let time):
            story.tell("the disk of \(target) is full for \(time) ms", of: subject(of: target), at: now)
            try fleet.part(target)?.fill(until: now + time, at: now)
        case .reset(let link):
            story.tell("\(link) is cut once", of: subject(of: link), at: now)
            fleet.links[link]?.reset()
        case .refuse(let link, let time): set(link, .refusing, "cut", time)
        case .slow(let link, let milliseconds, let time):
            set(link, .slow(milliseconds: milliseconds), "slow by \(milliseconds) ms", time)
        case .blackHole(let link, let time): set(link, .blackHole, "a black hole", time)
        case .oldDatabase(let age, let down, let alone):
            let isThere = fleet.putBackDatabase(age: age)
            story.tell(
                "kill -9 of broker, to start again after \(down) ms with "
                    + (isThere ? "a database from before" : "what it has: there is no copy yet"), at: now)
            if let alone {
                story.tell("kill -9 of controller, to start again after \(down + alone) ms", at: now)
                fleet.part(.controller)?.kill(down: down + alone, at: now)
            }
            fleet.part(.broker)?.kill(down: down, at: now)
        case .emptyDatabase(let down):
            fleet.loseDatabase()
            story.tell("kill -9 of broker, to start again after \(down) ms without a database", at: now)
            fleet.part(.broker)?.kill(down: down, at: now)
        case .restore(let down):
            fleet.restoreController()
            story.tell("kill -9 of controller, to start again after \(down) ms with --restored", at: now)
            fleet.part(.controller)?.kill(down: down, at: now)
        case .rotateKey(let withdraws, let down):
            // Until the controller starts again the fleet goes on as before.
            try fleet.home.rotateSigningKey(
                withdrawingOthers: try withdraws || fleet.home.trustedKeys().count == TrustDocument.maximumKeys - 1)
            story.tell(
                "a new signing key\(withdraws ? ", and no other" : ""); kill -9 of controller, to start again after \(down) ms",
                at: now)
            fleet.part(.controller)?.kill(down: down, at: now)
        case .retire(let target):
            guard case .app(let device, let app) = target, let part = fleet.part(target), part.isRunning else { return }
            story.tell("\(target) retires itself", of: subject(of: target), at: now)
            retired.insert([device, app])
            part.child?.send(line: "retire")
        case .enroll(let device): try enroll(device)
        case .remove(let device, let time): try remove(device, for: time)
        }
    }

    private func set(_ link: ChaosPlan.Link, _ mode: Proxy.Mode, _ what: String, _ time: Int64) {
        story.tell("\(link) is \(what) for \(time) ms", of: subject(of: link), at: now)
        fleet.links[link]?.set(mode)
        heals[link] = now + time
    }

    func heal() async throws {
        story.tell("the faults end", at: now)
        for part in fleet.parts { part.heal(at: now) }
        for link in heals.keys { heals[link] = now }
        while seats.contains(where: { $0.question != nil }) || !admissions.isEmpty {
            try await look()
            try admit()
            try finishQuestions()
        }
    }

    func subject(of target: ChaosPlan.Target) -> String? {
        switch target {
        case .broker, .controller: nil
        case .agent(let device), .app(let device, _): "d\(device)"
        }
    }

    func subject(of link: ChaosPlan.Link) -> String? {
        if case .agent(let device) = link { "d\(device)" } else { nil }
    }
}
