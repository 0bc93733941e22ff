import AppConnect
import DeviceAgent
import FleetProtocol

/// The laws of what apps are told, and called with.
extension Machine {
    /// An app that was ready before is so again at once, whether there is contact or not.
    func checkRegistrations(_ events: [DeviceEvent], _ effects: [DeviceEffect]) {
        for case .registered(let link, let registration) in events {
            guard !wasPutBack, watch.conversations[registration.app]?.isKnown(registration) == true else { continue }
            let told = effects.compactMap { effect -> AgentFrame? in
                if case .send(link, let frame) = effect { frame } else { nil }
            }
            let isWelcome = told.contains { if case .welcome = $0 { true } else { false } }
            if isWelcome, !told.contains(where: { if case .ready = $0 { true } else { false } }), !isGone(link, events)
            {
                world.fail(.continues, "\(name)/\(registration.app): it was ready before, and waits for its ready")
            }
        }
    }

    /// The connection, or the agent, has ended in the same moment.
    private func isGone(_ link: LinkID, _ events: [DeviceEvent]) -> Bool {
        events.contains { event in
            switch event {
            case .linkClosed(link), .stopping: true
            default: false
            }
        }
    }

    /// Whatever becomes of it: the app may be gone.
    func checkConversation(_ frame: AgentFrame, on link: LinkID) {
        guard let app = watch.links[link.number] else { return }
        if case .ready = frame, watch.conversations[app]?.hadReady != true, !watch.bus.isCertain(app), !wasPutBack {
            world.fail(.barrier, "\(name)/\(app): its first ready came before barrier and hello")
        }
        guard let problem = watch.conversations[app, default: Conversation()].sends(frame), !wasPutBack
        else { return }
        world.fail(.quiet, "\(name)/\(app) is \(problem)")
    }

    /// Who calls itself an app that is there already learns nothing of it.
    func checkIntruder(_ frame: AgentFrame, on link: LinkID) {
        guard link.number < 0 else { return }
        if case .refused = frame { return }
        world.fail(.quiet, "\(name): a second process of an app that is connected is told \(frame)")
    }

    /// No app has keys that has still to hear of a retirement, or is to be wiped.
    func checkMayHaveKeys(_ app: AppID, on link: LinkID) {
        if core?.state.apps[app]?.isWipeDue == true {
            world.fail(.erased, "\(name)/\(app) gets keys, and is to be wiped")
        }
        // One that has retired itself meanwhile takes none before it has the agent's word of that.
        guard let process = links[link.number], process.session?.properties.authReason != .selfRetired else { return }
        if process.retirement.isUntold, !wasPutBack, oneSince == 1 {
            world.fail(.erased, "\(name)/\(app) gets keys, and has not heard of its retirement")
        }
    }

    /// An app that was not refused loses its connection to another one of its own only.
    func checkThrownOff(_ app: AppProcess, from link: Int64) {
        if watch.links[link] != nil, !brokenLinks.contains(link),
            !links.contains(where: { $0.key > link && $0.value === app })
        {
            world.fail(.continues, "\(app.name): its agent has closed its connection")
        }
    }

    /// The laws of what an app is told.
    func checkSent(_ frame: AgentFrame, to app: AppProcess?, on link: LinkID) {
        guard let app, let record = core?.state.apps[app.id] else { return }
        world.say(name, "tells \(app.id): \(frame)")
        checkGiven(to: app, record, before: frame, on: link)
        switch frame {
        case .ready(let properties):
            if app.isReading(link) { watch.shown[app.id] = properties }
            if properties != record.properties {
                world.fail(.continues, "\(name)/\(app.id): its ready tells of something else than what is in force")
            }
            checkOwed(properties, record)
            checkKeys(of: record)
            for value in properties.values { checkUnforged(value, app.id) }
        case .deliver(_, .policy(let value, _)):
            if case .auth(.retired, _) = value, disk.keys[app.id] != nil, record.hasKeys == false {
                world.fail(.erased, "\(name)/\(app.id): told that it is retired while its keys are there")
            }
            checkUnforged(value, app.id)
            guard app.isReading(link) else { break }
            // What was decided before the agent has read that the app has retired itself comes to nothing there.
            if app.session?.properties.authReason != .selfRetired { checkOrder(value, record) }
            watch.shown[app.id]?[value.policy] = value
        case .deliver(_, .managed), .deliver(_, .availability(.available)):
            if app.isReading(link), record.authState != .authorized,
                case .auth(.authorized, _)? = watch.shown[app.id]?[.auth],
                app.session?.properties.authReason != .selfRetired
            {
                world.fail(.whole, "\(name)/\(app.id): \(frame) was told before a loss of authorization")
            }
        case .refused(.inUse, _) where app.session?.registration?.launch == record.launch:
            world.fail(.continues, "\(app.name) has come back, and is refused as if it were another")
        case .welcome(_, _, let kept?, _) where kept > 0:
            if let launch = app.session?.registration?.launch,
                !watch.requests.contains(Watch.Request(launch: launch, number: kept)), !wasPutBack
            {
                world.fail(.kept, "\(name)/\(app.id): welcomed with its request \(kept), which is not stored")
            }
        case .kept(let number):
            // Of a launch that another one has followed in the same moment, only the events are stored.
            let stored = disk.state.apps[app.id]
            if stored?.kept ?? 0 < number, stored == nil || stored?.launch == watch.launches[link.number] {
                world.fail(.stored, "\(name)/\(app.id): told that its request \(number) is stored, before it is")
            }
        default: break
        }
        if disk.state.apps[app.id] != record, case .deliver = frame {
            world.fail(.stored, "\(name)/\(app.id): told before its store")
        }
    }

    /// The keys of an app as it is given them: of one number there is one key.
    func keys(of app: AppID) -> AppKeys? {
        disk.keys[app].map { number in
            AppKeys(app: Self.key("\(number) of \(app)"), shared: Self.key("all"))
        }
    }

    private static func key(_ name: String) -> [UInt8] {
        Array((name + String(repeating: "-", count: AppKeys.size)).utf8.prefix(AppKeys.size))
    }

    /// An app has its keys before it is told that it may use them, and has none any more before it is told that it may not.
    private func checkGiven(to app: AppProcess, _ record: AppRecord, before frame: AgentFrame, on link: LinkID) {
        switch frame {
        case .keys(nil): watch.given[link.number] = .some(nil)
        case .ready, .deliver:
            let expected = record.availability == .available ? disk.keys[app.id] : nil
            guard watch.given[link.number] != .some(expected) else { return }
            world.fail(
                expected == nil ? .erased : .keys,
                "\(app.name): told \(frame), and its process has other keys than it may")
        default: break
        }
    }

    /// Who has still to hear of a retirement that is over begins with that one, and with its reason.
    private func checkOwed(_ properties: AppProperties, _ record: AppRecord) {
        guard let owed = record.owed else { return }
        let expected = PolicyValue.auth(.retired, message: owed.message)
        guard properties[.auth] != expected || properties.authReason != owed.reason else { return }
        world.fail(
            .continues,
            "\(name)/\(record.id): it is to hear that it was retired, \(owed.reason), and its ready says"
                + " \(properties[.auth]), \(properties.authReason)")
    }

    /// An app is authorized when it has all the rest, and nothing else comes before a loss.
    private func checkOrder(_ value: PolicyValue, _ record: AppRecord) {
        guard let shown = watch.shown[record.id], value.policy != .secureServices else { return }
        if case .auth(.authorized, _) = value {
            if let told = watch.conversations[record.id]?.availability, told != record.availability {
                world.fail(
                    .whole,
                    "\(name)/\(record.id): authorized while its secure services are told to be \(told), not"
                        + " \(record.availability)")
            }
            for policy in Policy.allCases where policy != .auth && policy != .secureServices {
                guard shown[policy] != record[policy].value else { continue }
                world.fail(
                    .whole,
                    "\(name)/\(record.id): authorized while \(policy.rawValue) is \(shown[policy]), not"
                        + " \(record[policy].value)")
            }
        } else if value.policy != .auth, record.authState != .authorized, case .auth(.authorized, _) = shown[.auth] {
            world.fail(.whole, "\(name)/\(record.id): \(value.policy.rawValue) was told before a loss of authorization")
        }
    }

    /// The laws of what an app's delegate is called with: ready once and first, then what the properties say already.
    func check(_ call: AppSession.Call, of app: AppProcess) {
        guard let properties = app.session?.properties else { return }
        for value in properties.values { checkUnforged(value, app.id) }
        switch call {
        case .ready where app.wasReady: world.fail(.quiet, "\(app.name): its ready came twice")
        case .activity(let isActive) where app.watch.isScreenTaken != isActive:
            world.fail(
                .quiet, "\(app.name): told that its screen is \(isActive ? "given back" : "taken"), which it is already"
            )
        case .ready, .connectionChanged: break
        case .changed, .attempted, .activity:
            if !app.wasReady { world.fail(.quiet, "\(app.name): \(call) came before its ready") }
        }
        if case .changed(_, let delivery) = call, app.isRetiring, !AppProperties.expectedInitial.isSame(delivery) {
            if case .policy(.auth, .selfRetired) = delivery { return }
            world.fail(.quiet, "\(app.name): it has retired itself, and is called for \(delivery)")
        }
        if case .changed(_, let delivery) = call, !properties.isSame(delivery) {
            world.fail(.quiet, "\(app.name): it is called for \(delivery), and its properties say otherwise")
        }
    }

    /// Where an app may give to all that are authorized, and take from them, nobody else is among them, at no moment.
    func checkWhitelists(_ core: DeviceCore) {
        let authorized = Set(core.state.apps.values.filter { $0.authState == .authorized }.map(\.id))
        for app in core.state.apps.values {
            for policy in [Policy.openIn, .openFrom, .dragAndDrop] {
                let list: [AppID]
                switch app[policy].value {
                case .openIn(.whitelist, let apps), .openFrom(.whitelist, let apps),
                    .dragAndDrop(.appConnectApps, let apps):
                    list = apps
                default: continue
                }
                guard !authorized.isSuperset(of: list),
                    policy == .dragAndDrop || app[policy].namesAuthorized || saysAuthorizedApps(app, policy, core)
                else { continue }
                world.fail(
                    .whole, "\(name)/\(app.id): \(policy.rawValue) names \(list), and authorized are \(authorized)")
            }
        }
    }

    /// Whether the document that an app follows names the authorized apps, whatever they are: also one that is gone, or that
    /// has been replaced, for as long as that is not certain.
    private func saysAuthorizedApps(_ app: AppRecord, _ policy: Policy, _ core: DeviceCore) -> Bool {
        guard let source = app[policy].source else { return false }
        let revision = app[policy].received
        // Put back, a controller may give out numbers again.
        let isKnown = watch.lists[source]?[revision]?.contains(policy) ?? false
        if isKnown, !world.controller.wasPutBack { return true }
        guard let signed = core.signedDocuments[source].flatMap({ try? SignedDocument(wire: $0) }),
            let document = try? DesiredDocument(payload: signed.payload, in: SimulatedFleet.id),
            document.revision.number == revision
        else { return false }
        return document.listsOfAuthorizedApps.contains(policy)
    }

    private func checkUnforged(_ value: PolicyValue, _ app: AppID) {
        let isForged =
            switch value {
            case .config(let values): values["forged"] != nil
            case .auth(_, let message): message == "forged"
            default: false
            }
        if case .auth(let state, "") = value, state != .authorized {
            world.fail(.total, "\(name)/\(app) is \(state), and nobody says why")
        }
        if isForged { world.fail(.unforged, "\(name)/\(app) has \(value)") }
    }
}

extension DesiredDocument {
    /// The policies for which it names all authorized apps.
    var listsOfAuthorizedApps: Set<Policy> {
        guard case .aspect(let value) = content, case .dlp(let dlp) = value.content else { return [] }
        var policies: Set<Policy> = []
        if dlp.openIn == .appConnectApps { policies.insert(.openIn) }
        if dlp.openFrom == .appConnectApps { policies.insert(.openFrom) }
        return policies
    }
}
