import AppConnect
import FleetProtocol

/// What an app does of its own accord, and what must be so of it.
extension AppProcess {
    func answerAgain() {
        let policies = Policy.allCases.filter(\.isAcknowledgedByApp)
        let policy = policies[world.noise.below(policies.count)]
        let state: PolicyState = [.applied, .error, .unsupported][world.noise.below(3)]
        if state == .unsupported { saidUnsupported.insert(policy) }
        // Once more the same, which is nothing new.
        for _ in 0..<2 { acknowledge(policy, state, "on second thoughts") }
    }

    /// As its manner is.
    func answer(_ policy: Policy) {
        let isError = manner == .wrong && world.noise.chance(30)
        acknowledge(policy, isError ? .error : .applied, isError ? "\(policy.rawValue) did not work" : nil)
    }

    func acknowledge(_ policy: Policy, _ state: PolicyState, _ message: String?) {
        let isAllowed = wasReady && watch.mayAnswer(policy) && (policy != .auth || state != .unsupported)
        run { session in
            let known = session.answers[policy]
            let effects = try? session.acknowledge(policy, state, message)
            if (effects != nil) != isAllowed {
                world.fail(.quiet, "\(name): its answer for \(policy.rawValue) was \(isAllowed ? "refused" : "taken")")
            }
            guard let effects else { return [] }
            watch.answered(policy, state, message)
            checkSaid(policy, after: known, in: session, effects)
            return effects
        }
    }

    func use() { run { $0.used() } }

    func attempt() {
        ask { session in
            let other = AppID(unchecked: "a\(world.noise.below(3))")
            let requests: [DataRequest] = [
                .copy, .print, .openIn(other), .openFrom(other), .openURL("u", other), .openURL("u", nil),
                .dragAndDrop(other),
            ]
            let request = requests[world.noise.below(requests.count)]
            let (isAllowed, effects) = try session.request(request)
            if isAllowed != mayDo(request, session.properties) {
                world.fail(.quiet, "\(name): \(request) is \(isAllowed ? "allowed" : "blocked"), and it may otherwise")
            }
            if !isAllowed {
                watch.blocked()
                checkBlocked(request, in: session)
            }
            return effects
        }
    }

    /// Written again, beside the library's own.
    private func mayDo(_ request: DataRequest, _ properties: AppProperties) -> Bool {
        if case .dragAndDrop(id) = request { return true }
        guard case .auth(.authorized, _) = properties[.auth] else { return false }
        let isAppListed =
            switch (request, properties[.openIn], properties[.openFrom]) {
            case (.openIn(let app), .openIn(.whitelist, let apps), _): apps.contains(app)
            case (.openURL(_, let app?), .openIn(.whitelist, let apps), _): apps.contains(app)
            case (.openFrom(let app), _, .openFrom(.whitelist, let apps)): apps.contains(app)
            default: false
            }
        return switch request {
        case .copy: properties[.pasteboard] == .pasteboard(.authorized)
        case .print: properties[.print] == .print(.authorized)
        case .openIn, .openURL: isAppListed || properties[.openIn] == .openIn(.authorized, whitelist: [])
        case .openFrom: isAppListed || properties[.openFrom] == .openFrom(.authorized, whitelist: [])
        case .dragAndDrop(let app):
            switch properties[.dragAndDrop] {
            case .dragAndDrop(.allApps, _): true
            case .dragAndDrop(.appConnectApps, let apps): apps.contains(app)
            default: false
            }
        }
    }

    // MARK: Copying and pasting

    /// Something that nobody has copied before.
    private var somethingNew: [UInt8] {
        copies += 1
        let content = PasteboardContent(text: "\(copies) of \(name) since \(world.now)")
        return (try? content.encoded()) ?? []
    }

    func copy() {
        guard session != nil else { return }
        let content = somethingNew
        ask { session in
            let properties = session.properties
            let isConfined = properties[.pasteboard] == .pasteboard(.secureCopy)
            let isAuthorized = if case .auth(.authorized, _) = properties[.auth] { true } else { false }
            let hasKeys = properties.availability == .available && session.keys != nil
            let (destination, effects): (AppSession.Destination, [AppSession.Effect])
            do {
                (destination, effects) = try session.destination(of: content, withPasteboard: false)
            } catch {
                if session.phase == .ready, !(isConfined && isAuthorized && !hasKeys) {
                    world.fail(.confined, "\(name): it may copy, and cannot")
                }
                throw error
            }
            switch destination {
            case .nowhere:
                if isAuthorized, properties[.pasteboard] != .pasteboard(.unauthorized) {
                    world.fail(.confined, "\(name): it may copy, and is blocked")
                }
                watch.blocked()
                checkBlocked(.copy, in: session)
                return effects
            case .device:
                world.fail(.confined, "\(name): it has no pasteboard, and copies to it")
                return effects
            case .agent(let item):
                if !isAuthorized || item.isSecured != isConfined || isConfined && !hasKeys
                    || properties[.pasteboard] == .pasteboard(.unauthorized) || isConfined && item.content == content
                {
                    world.fail(.confined, "\(name): it copies to where it may not")
                }
                if item.isSecured { machine.watch.pasteboard.encrypted(content, as: item) }
                let (id, more) = session.copy(item)
                if let id { copying[id] = item }
                return effects + more
            }
        }
    }

    /// As an app that asks no library would, or that has copied to a pasteboard of its own.
    func copyUnasked(isSecured: Bool) {
        guard session?.connection == .open else { return }
        let content = somethingNew
        let isElsewhere = copies.isMultiple(of: 4)
        // Of which its library knows nothing.
        send(.copy(id: 1 << 40 + Int64(copies), isElsewhere ? nil : PasteboardItem(content, isSecured: isSecured)))
    }

    func paste() {
        run { session in
            let isOpen = session.phase == .ready && session.connection == .open
            let (id, effects) = session.paste()
            if (id != nil) != isOpen, copying.count < 4 {
                world.fail(.confined, "\(name): to paste is \(isOpen ? "refused" : "allowed")")
            }
            if let id { copying[id] = .some(nil) }
            return effects
        }
    }

    /// The agent has heard of less than the app.
    private func refused(_ item: PasteboardItem) {
        ask { session in
            let properties = session.properties
            let hasKeys = properties.availability == .available && session.keys != nil
            let effects = try session.refusedCopy(isSecured: item.isSecured)
            if item.isSecured, !hasKeys { world.fail(.confined, "\(name): it has no keys, and is not told so") }
            watch.blocked()
            return effects
        }
    }

    /// What the agent says of copying and pasting.
    func answered(_ id: Int64, _ answer: AppSession.Answer) {
        let copied = copying.removeValue(forKey: id) ?? nil
        if case .done(false) = answer, let copied { refused(copied) }
        guard case .pasted(let item?) = answer, item.isSecured, let session else { return }
        let isOpen =
            session.phase == .ready && session.properties.availability == .available && session.keys != nil
        let expected = isOpen ? machine.watch.pasteboard.encrypted.last { $0.item == item }?.content : nil
        if (try? session.content(of: item)?.encoded()) != expected {
            world.fail(.confined, "\(name) reads something else than what was copied for authorized apps")
        }
    }

    func display() {
        run { session in
            let isOpen = session.phase == .ready && session.connection == .open
            let (id, effects) = session.display("Look.")
            if let id { displays.insert(id) }
            if (id != nil) != isOpen { world.fail(.quiet, "\(name): its text is \(isOpen ? "refused" : "taken")") }
            return effects
        }
    }

    func retire() {
        ask(isRetirement: true) { session in
            let wasRetired = session.properties.authReason == .selfRetired
            let effects = try session.retire()
            guard session.properties.authReason == .selfRetired, case .auth(.retired, _) = session.properties[.auth]
            else {
                world.fail(.latched, "\(name): it has retired itself, and reads \(session.properties[.auth])")
                return effects
            }
            if !wasRetired, session.keys != nil {
                world.fail(.erased, "\(name): it has retired itself, and its process has keys")
            }
            var expected = AppProperties.expectedInitial
            (expected[.auth], expected.authReason) = (session.properties[.auth], .selfRetired)
            if !wasRetired, session.properties != expected {
                world.fail(.latched, "\(name): it has retired itself, and reads \(session.properties)")
            }
            goesOnRetiring(isAsked: !effects.isEmpty)
            return effects
        }
    }

    /// The app has retired itself: now, or in a process before, of which no agent knows.
    func goesOnRetiring(isAsked: Bool = true) {
        isRetiring = isAttended && (isRetiring || isAsked)
        retirement.forget()
        forgetCalls()
    }

    /// Its agent knows no more of what it was called with.
    func forgetCalls() { (called, isCalledForLess) = ([:], true) }

    /// Nor of what has become of it.
    func forgetAll() {
        forgetCalls()
        retirement.forgetAll()
    }

    /// What the app was called with last is what it would read: it need not look.
    func checkCalled() {
        guard let properties = session?.properties else { return }
        for kind in DeliveryKind.told
        where kind.callback.map(callbacks.contains) ?? false && called[kind] == nil && !isCalledForLess {
            world.fail(.kept, "\(name) was never called for \(kind)")
        }
        for (kind, delivery) in called where !properties.isSame(delivery) {
            guard kind.callback.map(callbacks.contains) ?? true else { continue }
            world.fail(.kept, "\(name) was called last for \(delivery), and its properties say otherwise")
        }
    }

    /// What is asked for before ready is refused.
    private func ask(isRetirement: Bool = false, _ body: (inout AppSession) throws -> [AppSession.Effect]) {
        run { session in
            let isReady = session.phase == .ready
            let before = session
            guard let effects = try? body(&session) else { return [] }
            let problem = watch.asked(session, before: before, isRetirement: isRetirement, limit: world.requestLimit)
            if let problem { world.fail(.kept, "\(name): \(problem)") }
            if !isReady { world.fail(.quiet, "\(name): something was done for it before its ready") }
            return effects
        }
    }
}

extension DeliveryKind {
    /// What every installation is called for once at least.
    fileprivate static let told: [Self] =
        [.managed, .availability] + Policy.allCases.filter { $0 != .secureServices }.map(Self.policy)
}
