import AppConnect
import DeviceAgent
import FleetProtocol

/// The agent's end of the link to its apps.
extension Machine {
    func openLink(_ app: AppProcess) -> Int64? {
        guard core != nil else { return nil }
        lastLink += 1
        links[lastLink] = app
        watch.links[lastLink] = app.id
        watch.launches[lastLink] = app.session?.registration?.launch
        if app.session?.phase == .starting { watch.given[lastLink] = .some(nil) }
        return lastLink
    }

    func linkClosed(_ number: Int64) {
        guard links.removeValue(forKey: number) != nil else { return }
        world.after(world.delay()) { [unowned self] in post(.linkClosed(LinkID(number))) }
    }

    static let rightCode = "right"

    /// A person types a code, on a connection of its own.
    func enterCode(for app: AppID, isRight: Bool) {
        guard core != nil else { return }
        lastLink += 1
        codeLinks.insert(lastLink)
        if isRight { watch.codes.insert(app) }
        post(.frame(LinkID(lastLink), .code(app, isRight ? Self.rightCode : "wrong")))
    }

    /// Where a level waits for a code, somebody asks for it, and may hear it wrong.
    func wakeCaller() {
        guard person.entersCodes, !person.isCalling, !world.isCalm, let core,
            core.state.apps.values.contains(where: { $0[.logLevel].attempt.outcome == .awaitingCode })
        else { return }
        person.isCalling = true
        world.after(500 + Int64(person.codes.below(20_000))) { [unowned self] in
            person.isCalling = false
            guard !world.isCalm, !isStalled, let core = self.core,
                let app = core.state.apps.values.first(where: { $0[.logLevel].attempt.outcome == .awaitingCode })
            else { return }
            enterCode(for: app.id, isRight: person.codes.chance(60))
        }
    }

    /// One text is shown after the other.
    func takeScreen() {
        displays += 1
        if displays == 1 { tellActivity(false) }
    }

    func giveScreenBack() {
        displays -= 1
        if displays == 0 { tellActivity(true) }
    }

    private func tellActivity(_ isActive: Bool) {
        for (number, app) in links.sorted(by: { $0.key < $1.key }) {
            app.receive(.activity(isActive: isActive), on: number)
        }
    }

    /// Somebody's process tries to be the app, and goes on trying as often as that.
    func refuse(_ app: AppID, again tries: Int) {
        post(.registrationRefused(app, reason: "another user's process"))
        guard tries > 0, !world.isCalm else { return }
        world.after(25_000) { [unowned self] in refuse(app, again: tries - 1) }
    }

    /// A process that may be the app, by its user, says that it is, while another one is, and goes on before it has heard
    /// what comes of it. It may know as much as a copy of the app's own process.
    func intrude(as app: AppProcess) {
        guard core != nil, var registration = app.session?.registration else { return }
        if world.fault != .launchesNotCompared { registration.launch = .random(using: &world.noise) }
        if world.noise.chance(50) { registration.install = .random(using: &world.noise) }
        registration.resume = nil
        registration.implements = []
        lastLink += 1
        let link = LinkID(-lastLink)
        intruders.insert(link.number)
        world.say(name, "another process says that it is \(app.id)")
        post(.registered(link, registration))
        let frames: [AppFrame] = [
            .ready, .retire(number: 1_000), .blocked(.print, target: nil, number: 1_001),
            .acknowledge(Acknowledgement(delivery: 1, policy: .config, state: .error, message: "an intruder's")),
        ]
        if world.noise.chance(50) { post(.frame(link, frames[world.noise.below(frames.count)])) }
    }

    /// The app itself has gone before the other has come: that might be the app then, and goes as well.
    func givesUp(_ event: DeviceEvent) -> Bool {
        guard isOfIntruder(event), case .registered(let link, let registration) = event,
            core?.status(of: registration.app, at: clock)?.isRunning != true
        else { return false }
        later {
            $0.intruders.remove(link.number)
            $0.post(.linkClosed(link))
        }
        return true
    }

    func isOfIntruder(_ event: DeviceEvent) -> Bool {
        switch event {
        case .registered(let link, _), .frame(let link, _): link.number < 0
        default: false
        }
    }

    func receive(_ frame: AppFrame, on number: Int64) {
        guard let app = links[number] else { return }
        watch.noted(frame, of: app)
        if case .register(var registration) = frame {
            if world.fault == .installationsConfused { registration.install = .random(using: &world.noise) }
            post(.registered(LinkID(number), registration))
        } else {
            post(.frame(LinkID(number), frame))
        }
    }

    func closeLinks() {
        for (number, app) in links.sorted(by: { $0.key < $1.key }) { app.lostLink(number) }
        links = [:]
        codeLinks = []
        person.hangUp()
        intruders = []
    }
}
