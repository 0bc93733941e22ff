import FleetProtocol

extension DeviceCore {
    /// What the documents say about an app's log level at one moment.
    private struct LevelDecision {
        /// Reported of the deciding document, also when another one's level is in force.
        var decision: Decision
        /// When the level in force ends.
        var until: Timestamp?
        /// Whether the level in force needed a code, and one is typed now. Whoever types a code has it from somebody who has
        /// confirmed the level.
        var isTyped = false
        /// The first document that waits for its code, and the code.
        var awaiting: (address: Address, code: CodeHash)?
    }

    /// A log level lasts as long as its document says, waits for its code, and falls back to the next layer by itself.
    mutating func settleLogLevel(_ app: inout AppRecord, _ documents: [KeptDocument], mayLoosen: Bool, at now: Now) {
        let clocks = clocks(of: app, documents, mayLoosen: mayLoosen, at: now)
        var isEnding = documents.contains { document in
            guard !app.isSelfRetired, let old = app.levelClocks[document.address], let new = clocks[document.address]
            else { return false }
            return new.isOver && !old.isOver || new.change == old.change && new.said == nil && old.said != nil
        }
        let isOver = isOver(app, documents, clocks, at: now)
        if clocks != app.levelClocks {
            app.levelClocks = clocks
            // A running time that went back to before a level's start would make the level last longer.
            batch.isClockDue = true
        }
        let before = app.logLevel
        var next = levelDecision(app, documents, at: now)
        if isSettled(app, .logLevel, next.decision) { return }
        let current = app[.logLevel]
        // Of what the deciding document says a time may end; what stands below it may be gone without anybody's confirmation.
        let isSameDocument = next.decision.source == current.decidedBy && next.decision.revision == current.received
        let isKnown = isSameDocument && (isEnding || next.decision.value == current.value)
        if !mayLoosen, !isKnown {
            if isOver {
                next = LevelDecision(decision: Decision(expired: current))
                isEnding = true
            } else if !next.isTyped, !next.decision.value.isTightening(of: current.value) {
                return
            }
        }
        enforce(next.decision, for: .logLevel, &app, at: now)
        guard app.logLevel != before else { return }
        keepLevelChange(
            of: app.id, from: before, to: app.logLevel, next.isTyped ? .codeEntered : isEnding ? .expired : .policy,
            until: next.until, at: now)
    }

    /// Whether the time of the level in force has ended. What is not certain yet does not take its place: until then it is the
    /// default.
    private func isOver(
        _ app: AppRecord, _ documents: [KeptDocument], _ clocks: [Address: AppRecord.LevelClock], at now: Now
    ) -> Bool {
        let current = app[.logLevel]
        guard current.attempt.outcome == .applied,
            let document = documents.first(where: { $0.source == current.decidedBy })
        else { return false }
        if document.revision.number == current.received { return clocks[document.address]?.isOver == true }
        // A newer one at its address waits, and says until now what was said there before.
        return app.levelClocks[document.address]?.said?.isOver(state.running.total, now.wall) == true
    }

    /// When each document's time began, and what it says; kept while its `change` is the same, also while the device is out of
    /// the group that it speaks to.
    private func clocks(
        of app: AppRecord, _ documents: [KeptDocument], mayLoosen: Bool, at now: Now
    ) -> [Address: AppRecord.LevelClock] {
        guard !documents.isEmpty || !app.levelClocks.isEmpty else { return [:] }
        var clocks = app.levelClocks.filter { !tombstones.contains($0.key) }
        // Nothing speaks to an app that has retired itself; what is released from that waits for certainty.
        let speaking = app.isSelfRetired ? [] : Set(documents.map(\.address))
        for address in clocks.keys where !speaking.contains(address) { clocks[address]?.said = nil }
        for (index, document) in documents.enumerated() {
            let old = clocks[document.address]
            var clock = old ?? AppRecord.LevelClock(change: document.change, start: state.running.total)
            if clock.change != document.change {
                // What was said here goes on, no longer than it would have, until the change can be followed.
                clock = AppRecord.LevelClock(change: document.change, start: state.running.total, said: clock.said)
            }
            if let wish = document.levelWish {
                let own = AppRecord.LevelClock.Said(wish, from: clock.start)
                if own.isOver(state.running.total, now.wall) { clock.isOver = true }
                if clock.isOver || app.isSelfRetired {
                    clock.said = nil
                } else if wish.neededCode == nil || clock.isCodeAccepted {
                    // What does not decide would take over later, as it is, from what is stricter still.
                    let isStricter = index == 0 && own.level < app.logLevel || own.isWithin(clock.said)
                    let isTyped = clock.isCodeAccepted && batch.typedApps.contains(app.id)
                    if mayLoosen || isTyped || isStricter { clock.said = own }
                } else if clock.said?.level.isSensitive == true {
                    clock.said = nil
                }
            }
            if clock.said?.isOver(state.running.total, now.wall) == true { clock.said = nil }
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
            let wish = document.levelWish
            let code = clock.isOver || clock.isCodeAccepted ? nil : wish?.neededCode
            if index == 0 {
                if let wish {
                    if clock.isOver {
                        result.decision.outcome = .expired
                    } else if code != nil {
                        result.decision.outcome = .awaitingCode
                    } else if clock.said != AppRecord.LevelClock.Said(wish, from: clock.start) {
                        // It waits for certainty.
                        result.decision.outcome = .pending
                    }
                } else {
                    result.decision.problem = value.problems[.logLevel] ?? "not understood"
                }
            }
            if let code { result.awaiting = result.awaiting ?? (document.address, code) }
            guard let said = clock.said else { continue }
            result.decision.value = .logLevel(said.level)
            result.isTyped =
                clock.isCodeAccepted && wish?.neededCode != nil && batch.typedApps.contains(app.id)
            let left = said.end.map {
                Timestamp(milliseconds: now.wall.milliseconds + $0 - state.running.total)
            }
            result.until = [left, said.notAfter].compactMap { $0 }.min()
            break
        }
        return result
    }

    /// The running time at which the app's log level falls back, or is to be looked at because a wall clock time ends it.
    func levelDeadline(of app: AppRecord) -> Int64? {
        var deadline: Int64?
        guard !app.levelClocks.isEmpty else { return nil }
        for document in layers.wishes(for: app.id)[.logLevel] {
            guard let clock = app.levelClocks[document.address], !clock.isOver else { continue }
            let own = document.levelWish.map { AppRecord.LevelClock.Said($0, from: clock.start) }
            for said in [own, clock.said].compactMap({ $0 }) {
                // Somebody may set the wall clock: look once in a while.
                let look = said.notAfter.map { _ in state.running.total + 1_000 }
                let end = said.end.flatMap { $0 > state.running.total ? $0 : nil }
                deadline = [deadline, look, end].compactMap { $0 }.min()
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
        guard let app = state.apps[check.app], let clock = app.levelClocks[check.address],
            clock.change == check.change
        else { return batch.effects.append(.send(check.link, .codeResult(false))) }
        batch.effects.append(.send(check.link, .codeResult(isRight)))
        if isRight {
            state.apps[check.app]?.levelClocks[check.address]?.isCodeAccepted = true
            batch.typedApps.insert(check.app)
            changed(check.app)
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
    fileprivate var neededCode: CodeHash? { level.isSensitive ? code : nil }
}

extension AppRecord.LevelClock.Said {
    fileprivate init(_ wish: LogLevelWish, from start: Int64) {
        self.init(level: wish.level, end: wish.duration.map { start + $0 * 1_000 }, notAfter: wish.notAfter)
    }

    /// No more detailed, and no longer.
    fileprivate func isWithin(_ other: Self?) -> Bool {
        guard let other else { return level <= .status }
        return level <= other.level && (end ?? .max) <= (other.end ?? .max)
            && (notAfter?.milliseconds ?? .max) <= (other.notAfter?.milliseconds ?? .max)
    }

    fileprivate func isOver(_ running: Int64, _ wall: Timestamp) -> Bool {
        end.map { running >= $0 } ?? false || notAfter.map { wall > $0 } ?? false
    }
}
