import FleetProtocol

extension DeviceCore {
    /// What the documents say about an app's log level at one moment.
    private struct LevelDecision {
        /// Reported of the deciding document, also when another one's level is in force.
        var decision: Decision
        /// When the level in force ends.
        var until: Timestamp?
        /// Whether the level in force needed a code.
        var isByCode = false
        /// The first document that waits for its code, and the code.
        var awaiting: (address: Address, code: DebugCode)?
    }

    /// A log level lasts as long as its document says, waits for its code, and falls back to the next layer by itself.
    mutating func settleLogLevel(_ app: inout AppRecord, _ documents: [KeptDocument], mayLoosen: Bool, at now: Now) {
        let clocks = clocks(of: app, documents, at: now)
        let isEnding = clocks.contains { $1.isOver && app.levelClocks[$0]?.isOver == false }
        if clocks != app.levelClocks { app.levelClocks = clocks }
        let before = app.logLevel
        var next = levelDecision(app, documents, at: now)
        if isSettled(app, .logLevel, next.decision) { return }
        let current = app[.logLevel]
        let isSameDocument = next.decision.source == current.decidedBy && next.decision.revision == current.received
        if !mayLoosen, !isSameDocument, !next.decision.value.isTightening(of: current.value) {
            guard let end = endOfLevel(app, documents) else { return }
            next = end
        }
        enforce(next.decision, for: .logLevel, &app, at: now)
        guard app.logLevel != before else { return }
        keepLevelChange(
            of: app.id, from: before, to: app.logLevel, isEnding ? .expired : next.isByCode ? .codeEntered : .policy,
            until: next.until, at: now)
    }

    /// What is not certain yet keeps no level in force whose time is over: until then it is the default.
    private func endOfLevel(_ app: AppRecord, _ documents: [KeptDocument]) -> LevelDecision? {
        let current = app[.logLevel]
        guard current.attempt.outcome == .applied,
            let document = documents.first(where: { $0.source == current.decidedBy }),
            document.revision.number == current.received, app.levelClocks[document.address]?.isOver == true
        else { return nil }
        var decision = Decision(.default(of: .logLevel), by: document)
        decision.outcome = .expired
        return LevelDecision(decision: decision)
    }

    /// When each document's time began, and whether it is over; kept while its `change` is the same, also while the device
    /// is out of the group that it speaks to.
    private func clocks(
        of app: AppRecord, _ documents: [KeptDocument], at now: Now
    ) -> [Address: AppRecord.LevelClock] {
        guard !documents.isEmpty || !app.levelClocks.isEmpty else { return [:] }
        var clocks = app.levelClocks.filter { !tombstones.contains($0.key) }
        for document in documents {
            var clock =
                clocks[document.address].flatMap { $0.change == document.change ? $0 : nil }
                ?? AppRecord.LevelClock(change: document.change, start: state.running.total)
            if let wish = document.levelWish {
                let end = wish.duration.map { clock.start + $0 * 1_000 }
                if end.map({ state.running.total >= $0 }) ?? false || wish.notAfter.map({ now.wall > $0 }) ?? false {
                    clock.isOver = true
                }
            }
            clocks[document.address] = clock
        }
        return clocks
    }

    private func levelDecision(_ app: AppRecord, _ documents: [KeptDocument], at now: Now) -> LevelDecision {
        if app.isSelfRetired {
            let problem = documents.isEmpty ? nil : Self.selfRetired
            return LevelDecision(decision: Decision(.default(of: .logLevel), by: documents.first, problem: problem))
        }
        var result = LevelDecision(decision: Decision(.default(of: .logLevel), by: documents.first))
        for (index, document) in documents.enumerated() {
            guard let value = document.value, let clock = app.levelClocks[document.address] else { continue }
            guard let wish = document.levelWish else {
                if index == 0 { result.decision.problem = value.problems[.logLevel] ?? "not understood" }
                result.decision.value = .logLevel(app.logLevel)
                break
            }
            if clock.isOver {
                if index == 0 { result.decision.outcome = .expired }
                continue
            }
            if let code = wish.neededCode, !clock.isCodeAccepted {
                if index == 0 { result.decision.outcome = .awaitingCode }
                result.awaiting = result.awaiting ?? (document.address, code)
                // Meanwhile the level stays, unless nothing would end it any more.
                guard app.logLevel.isSensitive else {
                    result.decision.value = .logLevel(app.logLevel)
                    break
                }
                continue
            }
            result.decision.value = .logLevel(wish.level)
            result.isByCode = wish.neededCode != nil
            let left = wish.duration.map {
                Timestamp(milliseconds: now.wall.milliseconds + clock.start + $0 * 1_000 - state.running.total)
            }
            result.until = [left, wish.notAfter].compactMap { $0 }.min()
            break
        }
        return result
    }

    /// The running time at which the app's log level falls back, or is to be looked at because a wall clock time ends it.
    func levelDeadline(of app: AppRecord) -> Int64? {
        var deadline: Int64?
        guard !app.levelClocks.isEmpty else { return nil }
        for document in layers.wishes(for: app.id)[.logLevel] {
            guard let wish = document.levelWish, let clock = app.levelClocks[document.address], !clock.isOver else {
                continue
            }
            if let duration = wish.duration {
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

    /// A person has typed a code for an app: for the first document that waits for one.
    mutating func receivedCode(_ id: AppID, _ text: String, on link: LinkID, at now: Now) {
        guard let app = state.apps[id],
            let (address, code) = levelDecision(app, layers.wishes(for: id)[.logLevel], at: now).awaiting,
            let clock = app.levelClocks[address]
        else { return batch.effects.append(.send(link, .codeResult(false))) }
        let check = CodeCheck(app: id, address: address, change: clock.change, link: link)
        batch.effects.append(.checkCode(check, text: text, code))
    }

    mutating func codeChecked(_ check: CodeCheck, _ isRight: Bool, at now: Now) {
        // Another document may have come meanwhile, with a code of its own.
        guard var app = state.apps[check.app], let clock = app.levelClocks[check.address],
            clock.change == check.change
        else { return batch.effects.append(.send(check.link, .codeResult(false))) }
        batch.effects.append(.send(check.link, .codeResult(isRight)))
        if isRight {
            let before = app
            app.levelClocks[check.address]?.isCodeAccepted = true
            store(app, insteadOf: before)
            settle([check.app], at: now)
        } else {
            keepLevelChange(of: app.id, from: app.logLevel, to: app.logLevel, .codeRefused, until: nil, at: now)
        }
    }
}

extension KeptDocument {
    fileprivate var levelWish: LogLevelWish? {
        guard case .logLevel(let wish)? = value?.content else { return nil }
        return wish
    }
}

extension LogLevelWish {
    /// Only levels that may show sensitive data ask for a code.
    fileprivate var neededCode: DebugCode? { level.isSensitive ? code : nil }
}
