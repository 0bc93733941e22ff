import FleetProtocol

extension DeviceCore {
    /// A log level lasts as long as its document says, waits for its code, and falls back to the next layer by itself.
    mutating func settleLogLevel(_ app: inout AppRecord, _ isCertain: Bool, at now: Now) {
        let documents = candidates(app.id, .logLevel)
        app.levelClocks = clocks(of: app, documents)
        let before = app.logLevel
        let (decision, until) = levelDecision(app, documents, at: now)
        let current = app[.logLevel]
        let isKnown = isCertain || decision.source == current.source && decision.revision == current.received
        guard isKnown || decision.value.isTightening(of: current.value) else { return }
        app[.logLevel].decide(
            decision.value, by: decision.source, revision: decision.revision, problem: decision.problem)
        if let problem = decision.problem {
            app[.logLevel].report(.rejected, problem, at: now.wall)
        } else {
            app[.logLevel].report(decision.outcome, decision.message, at: now.wall)
        }
        guard app.logLevel != before else { return }
        let isCodeEntered = documents.contains { document in
            guard case .aspect(let value) = document.content, case .logLevel(let wish) = value.content else {
                return false
            }
            return document.address == decision.source && needsCode(wish)
        }
        let why: LogLevelChange.Why =
            decision.outcome == .expired ? .expired : isCodeEntered ? .codeEntered : .policy
        keepLevelChange(of: app.id, from: before, to: app.logLevel, why, until: until, at: now)
    }

    /// When each document's time began; kept while its `change` is the same.
    private func clocks(
        of app: AppRecord, _ documents: [DesiredDocument]
    ) -> [Address: AppRecord.LevelClock] {
        var clocks: [Address: AppRecord.LevelClock] = [:]
        for document in documents {
            if let known = app.levelClocks[document.address], known.change == document.change {
                clocks[document.address] = known
            } else {
                clocks[document.address] = AppRecord.LevelClock(change: document.change, start: state.running.total)
            }
        }
        return clocks
    }

    private func levelDecision(
        _ app: AppRecord, _ documents: [DesiredDocument], at now: Now
    ) -> (Decision, until: Timestamp?) {
        if app.latch?.reason == .selfRetired {
            let problem = documents.isEmpty ? nil : "the app has retired itself"
            return (Decision(.default(of: .logLevel), by: documents.first, problem: problem), nil)
        }
        var level = LogLevel.status
        var until: Timestamp?
        var outcome = Outcome.applied
        var problem: String?
        for document in documents {
            guard case .aspect(let value) = document.content, let clock = app.levelClocks[document.address] else {
                continue
            }
            guard case .logLevel(let wish) = value.content else {
                problem = value.problems[.logLevel] ?? "not understood"
                level = app.logLevel
                break
            }
            let end = wish.duration.map { clock.start + $0 * 1_000 }
            if end.map({ state.running.total >= $0 }) ?? false || wish.notAfter.map({ now.wall > $0 }) ?? false {
                outcome = .expired
                continue
            }
            if needsCode(wish), !clock.isCodeAccepted {
                if outcome == .applied { outcome = .awaitingCode }
                level = app.logLevel
                break
            }
            level = wish.level
            let left = end.map { Timestamp(milliseconds: now.wall.milliseconds + $0 - state.running.total) }
            until = [left, wish.notAfter].compactMap { $0 }.min()
            break
        }
        var decision = Decision(.logLevel(level), by: documents.first, problem: problem)
        decision.outcome = outcome
        return (decision, until)
    }

    /// Only levels that may show sensitive data ask for a code.
    private func needsCode(_ wish: LogLevelWish) -> Bool { wish.code != nil && wish.level.isSensitive }

    /// The running time at which the app's log level falls back, or is to be looked at because a wall clock time ends it.
    func levelDeadline(of app: AppRecord) -> Int64? {
        var deadline: Int64?
        for document in candidates(app.id, .logLevel) {
            guard case .aspect(let value) = document.content, case .logLevel(let wish) = value.content else { continue }
            if let duration = wish.duration, let clock = app.levelClocks[document.address] {
                let end = clock.start + duration * 1_000
                if end > state.running.total { deadline = min(deadline ?? end, end) }
            }
            // Somebody may set the wall clock: look once in a while.
            if wish.notAfter != nil {
                let next = state.running.total + 1_000
                deadline = min(deadline ?? next, next)
            }
        }
        return deadline
    }

    // MARK: The code

    /// A person has typed a code for an app: for the deciding document that waits for one.
    mutating func receivedCode(_ id: AppID, _ text: String, on link: LinkID) {
        for document in candidates(id, .logLevel) {
            guard case .aspect(let value) = document.content, case .logLevel(let wish) = value.content,
                let code = wish.code, needsCode(wish),
                state.apps[id]?.levelClocks[document.address]?.isCodeAccepted == false
            else { continue }
            return batch.effects.append(.checkCode(id, document.address, link, text: text, code))
        }
        batch.effects.append(.send(link, .codeResult(false)))
    }

    mutating func codeChecked(_ id: AppID, _ address: Address, _ link: LinkID, _ isRight: Bool, at now: Now) {
        batch.effects.append(.send(link, .codeResult(isRight)))
        guard var app = state.apps[id] else { return }
        if isRight {
            let before = app
            app.levelClocks[address]?.isCodeAccepted = true
            store(app, insteadOf: before)
            settle(id, at: now)
        } else {
            keepLevelChange(of: id, from: app.logLevel, to: app.logLevel, .codeRefused, until: nil, at: now)
        }
    }
}
