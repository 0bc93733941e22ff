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

    func refuse(_ app: AppID) { post(.registrationRefused(app, reason: "another user's process")) }

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
    }
}
