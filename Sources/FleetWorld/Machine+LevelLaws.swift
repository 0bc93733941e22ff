import DeviceAgent
import FleetProtocol

/// The laws of log levels: for how long, by which code, and what is told of it.
extension Machine {
    /// A level lasts no longer than it was wished to since its change first decided.
    func checkLevelTimes(_ core: DeviceCore, _ events: [DeviceEvent]) {
        for case .codeChecked(let check, true) in events {
            watch.wishes.type(Watch.LevelWishes.Key(app: check.app, address: check.address, change: check.change))
        }
        guard !wasPutBack, !world.isNumberUsedTwice else { return }
        for app in core.state.apps.values {
            checkPredecessor(app, core)
            guard app[.logLevel].attempt.outcome == .applied, let (key, document) = decidingLevel(of: app) else {
                continue
            }
            func isCertain() -> Bool { watch.bus.isStillCertain(app.id) && !mayHaveNobodys(core) }
            // Whose document is gone is no more than what another one says, until it is certain which does.
            if core.signedDocuments[key.address] == nil, !isCertain() { continue }
            let isSetLately = world.now < (clocks.wallSetAt ?? 0) + 3_000
            if let end = document.wish.notAfter, clock.wall > end.advanced(bySeconds: 3), !isSetLately,
                app.logLevel > .status || isCertain()
            {
                world.fail(.limits, "\(name)/\(app.id): its level was for until \(end), and it is \(clock.wall)")
            }
            guard
                let duration = document.wish.duration,
                let elapsed = watch.levelTimes.elapsed(
                    key, at: runningTime, lost: watch.lostTime, mayBeginAnew: world.controller.wasPutBack),
                elapsed >= duration * 1_000 + 2_000
            else { continue }
            // A change that something later had followed here has come back by a backup: its time begins anew.
            if world.controller.wasPutBack, watch.wishes.latest[key.address].map({ $0 > key.change }) ?? false {
                continue
            }
            // A stricter level than the default may stay until it is certain what comes next.
            if app.logLevel <= .status, !isCertain() { continue }
            world.fail(.limits, "\(name)/\(app.id): its level lasts for \(elapsed) ms, and was for \(duration) s")
        }
    }

    /// Whether a document elsewhere says this level, which may have come in this moment.
    private func saysNow(_ level: LogLevel, for app: AppID, besides deciding: Address, _ core: DeviceCore) -> Bool {
        core.signedDocuments.contains { address, wire in
            guard case .desired(_, app, .logLevel) = address, address != deciding,
                let document = try? DesiredDocument(wire: wire)
            else { return false }
            return Watch.LevelWishes.Document(document)?.wish.level == level
        }
    }

    /// What was said at an address goes on while its successor waits, and no longer than it would have.
    private func checkPredecessor(_ app: AppRecord, _ core: DeviceCore) {
        let record = app[.logLevel]
        guard [.awaitingCode, .pending, .rejected].contains(record.attempt.outcome), app.logLevel > .status,
            let source = record.source, core.signedDocuments[source] != nil,
            let applied = record.applied, applied != record.received,
            let document = watch.wishes.seen[source]?[applied], document.wish.level == app.logLevel,
            let duration = document.wish.duration, !world.controller.wasPutBack,
            !watch.wishes.says(app.logLevel, for: app.id, besides: source)
        else { return }
        let key = Watch.LevelWishes.Key(app: app.id, address: source, change: document.change)
        guard
            let elapsed = watch.levelTimes.elapsed(key, at: runningTime, lost: watch.lostTime, mayBeginAnew: false),
            elapsed >= duration * 1_000 + 2_000, !saysNow(app.logLevel, for: app.id, besides: source, core)
        else { return }
        world.fail(
            .limits,
            "\(name)/\(app.id): its level of \(applied) lasts for \(elapsed) ms, and was for \(duration) s, while that of"
                + " \(record.received) waits")
    }

    /// When a level's time begins, how long the device has run is saved with it: a running time that goes back to before would
    /// make it last longer with each power cut.
    func checkBeginning(_ app: AppRecord, was old: AppRecord, in changes: [StoreChange]) {
        guard app.levelClocks != old.levelClocks, let core else { return }
        let isSaved = changes.contains { change in
            if case .clock(let running, _, _) = change { running.total >= core.state.running.total } else { false }
        }
        guard !isSaved else { return }
        for (address, clock) in app.levelClocks where old.levelClocks[address]?.change != clock.change {
            world.fail(
                .limits,
                "\(name)/\(app.id): the time of \(address.path) begins, and how long the device has run is not saved")
        }
    }

    /// The laws of a level that is stored.
    func checkLevel(_ app: AppRecord, _ changes: [StoreChange]) {
        let now = app[.logLevel]
        let old = watch.wishes.records.updateValue(now, forKey: app.id)
        guard !wasPutBack else { return }
        let told = changes.compactMap { change -> LogLevelChange? in
            guard case .event(let event) = change, case .logLevel(let change) = event.body, change.header.app == app.id,
                change.why != .codeRefused
            else { return nil }
            return change
        }
        if let last = told.last, last.new > last.old, app.logLevel.isExpectedToAsk, World.needsCode(app.id),
            !watch.wishes.isTyped(app.logLevel, for: app.id)
        {
            world.fail(.codes, "\(name)/\(app.id): it logs at \(app.logLevel) without the code of that change")
        }
        for change in told { checkByCode(change) }
        if now.attempt.outcome == .awaitingCode, now.applied == now.received, !world.controller.wasPutBack {
            world.fail(.codes, "\(name)/\(app.id): its level waits for its code, and is said to be applied")
        }
        guard let (key, document) = decidingLevel(of: app) else { return watch.levelTimes.end(of: app.id) }
        if now.attempt.outcome != .awaitingCode {
            if watch.wishes.typed.contains(key) { watch.wishes.taken.insert(key) }
        } else if watch.wishes.taken.contains(key), !world.controller.wasPutBack {
            world.fail(.codes, "\(name)/\(app.id): its code was typed, and it waits for it again")
        }
        if now.attempt.outcome == .applied, app.logLevel != document.wish.level, !world.controller.wasPutBack {
            world.fail(
                .summary,
                "\(name)/\(app.id): it logs at \(app.logLevel), and \(document.wish.level) is said to be applied")
        }
        if watch.wishes.documents[key.address] == nil {
            watch.levelTimes.end(of: app.id)
        } else {
            watch.levelTimes.begin(
                key, at: runningTime, lost: watch.lostTime, mayBeginAnew: world.controller.wasPutBack)
        }
        if watch.isAlone, let last = told.last, now.attempt.outcome == .applied, app.logLevel == document.wish.level {
            checkEnd(last, of: key, document.wish)
        }
        let isOver = now.attempt.outcome == .expired
        if isOver, document.wish.notAfter == nil, let duration = document.wish.duration,
            !world.controller.wasPutBack, !watch.wishes.over.contains(key),
            let most = watch.levelTimes.most(key, at: runningTime), most < duration * 1_000 - 100
        {
            world.fail(.limits, "\(name)/\(app.id): its level has lasted for \(most) ms, and was for \(duration) s")
        }
        if isOver { watch.wishes.over.insert(key) }
        if now.attempt.outcome == .applied, !world.controller.wasPutBack, watch.wishes.over.contains(key) {
            world.fail(.limits, "\(name)/\(app.id): a level that was over is in force again")
        }
        // Where more than one document came, another one may have said the same meanwhile.
        if isOver, watch.isAlone, old?.attempt.outcome == .applied, old?.source == now.source,
            old?.received == now.received, !told.isEmpty, !told.contains(where: { $0.why == .expired })
        {
            world.fail(.kept, "\(name)/\(app.id): a level has expired, and no change says so")
        }
    }

    /// A level is told to be by a code in the moment in which one is typed that a document asks for, and not when it comes back
    /// later. Of several things in one moment the document may have gone again.
    private func checkByCode(_ change: LogLevelChange) {
        let app = change.header.app
        let isTyped = watch.codesTyped.contains(app)
        if change.why == .codeEntered {
            let isAsked = isTyped && change.new.isExpectedToAsk && World.needsCode(app)
            guard !isAsked || watch.isAlone && !watch.wishes.isTyped(change.new, for: app) else { return }
            world.fail(.codes, "\(name)/\(app): \(change.new) is told to be by a code, and none was typed for that")
        } else if isTyped, watch.isAlone, change.new > change.old {
            world.fail(.codes, "\(name)/\(app): a code was typed, and \(change.new) is told to be by \(change.why)")
        }
    }

    /// A level that was for a time gives way without anybody, to what was there before or the default; and who types a code
    /// has it from somebody who has confirmed the level.
    func isOwnLevel(_ now: PolicyRecord, was: PolicyRecord, of app: AppID) -> Bool {
        guard case .logLevel(let level) = now.value else { return false }
        if level <= .status || watch.codesTyped.contains(app) { return true }
        // What was said there before goes on while its successor waits, and ends as it would have.
        if [.awaitingCode, .pending].contains(now.attempt.outcome), was.source == now.source,
            was.received == now.received
        {
            return watch.wishes.mayExpire(before: now.received, at: now.source)
        }
        guard now.attempt.outcome == .expired else { return false }
        // Where that is so for longer, one below it has ended, or nothing has.
        let isNew = was.attempt.outcome != .expired || was.source != now.source || was.received != now.received
        return isNew || watch.wishes.mayExpire(for: app, besides: now.source)
    }

    /// A level is said to end when its document lets it, counted from when that came.
    private func checkEnd(_ change: LogLevelChange, of key: Watch.LevelWishes.Key, _ wish: LogLevelWish) {
        guard !world.controller.wasPutBack,
            let least = watch.levelTimes.elapsed(key, at: runningTime, lost: watch.lostTime, mayBeginAnew: false),
            let most = watch.levelTimes.most(key, at: runningTime)
        else { return }
        func end(after elapsed: Int64) -> Timestamp? {
            let ends = [
                wish.duration.map { Timestamp(milliseconds: change.header.at.milliseconds + $0 * 1_000 - elapsed) },
                wish.notAfter,
            ]
            return ends.compactMap(\.self).min()
        }
        let (first, last) = (end(after: most + 1_000), end(after: least - 1_000))
        let isRight =
            if let first, let last, let until = change.until { first <= until && until <= last } else {
                first == nil && change.until == nil
            }
        if !isRight {
            let told = change.until?.description ?? "for good"
            world.fail(.limits, "\(name)/\(key.app): its level is said to be until \(told), and was \(wish)")
        }
    }

    /// A level that nobody understands leaves the present one as it is, when it comes, but for one whose time may be over. How
    /// long that has been there is not known of a disk that was put back; and with the last document of a controller's earlier
    /// epoch more becomes certain than what has come.
    func checkUnreadableLevel(_ app: AppRecord, was old: AppRecord, in changes: [StoreChange]) {
        let (before, now) = (old[.logLevel], app[.logLevel])
        guard before.attempt.outcome == .applied, now.attempt.outcome == .rejected, app.logLevel != old.logLevel,
            app.latch?.reason != .selfRetired, let source = now.source, isLasting(old), !wasPutBack,
            !world.controller.wasPutBack,
            changes.contains(where: { if case .document(source, .some) = $0 { true } else { false } })
        else { return }
        world.fail(
            .barrier,
            "\(name)/\(app.id): the level of \(now.received) cannot be read, and it went from \(old.logLevel) to"
                + " \(app.logLevel)")
    }

    /// Whether the time of the level that is applied is certainly not over.
    private func isLasting(_ app: AppRecord) -> Bool {
        guard app[.logLevel].source != nil else { return true }
        guard let (key, document) = decidingLevel(of: app) else { return false }
        if let end = document.wish.notAfter, clock.wall > end { return false }
        guard let duration = document.wish.duration else { return true }
        return watch.levelTimes.most(key, at: runningTime).map { $0 < duration * 1_000 - 100 } ?? false
    }

    private func decidingLevel(of app: AppRecord) -> (Watch.LevelWishes.Key, Watch.LevelWishes.Document)? {
        let record = app[.logLevel]
        guard let source = record.source, let document = watch.wishes.seen[source]?[record.received] else {
            return nil
        }
        return (Watch.LevelWishes.Key(app: app.id, address: source, change: document.change), document)
    }
}

extension Watch {
    /// The documents about log levels that stand, and what has become of them.
    struct LevelWishes {
        struct Document {
            let change: Revision
            let revision: Int64
            let wish: LogLevelWish

            /// Nil for one about something else.
            init?(_ document: DesiredDocument) {
                guard case .aspect(let value) = document.content, case .logLevel(let wish) = value.content else {
                    return nil
                }
                change = document.change
                revision = document.revision.number
                self.wish = wish
            }
        }

        struct Key: Hashable {
            let app: AppID
            let address: Address
            let change: Revision
        }

        private(set) var documents: [Address: Document] = [:]
        /// All that ever came, by revision: one may be in force while the next one waits.
        private(set) var seen: [Address: [Int64: Document]] = [:]
        /// The latest change of each address, also one that nobody can read.
        private(set) var latest: [Address: Revision] = [:]
        var records: [AppID: PolicyRecord] = [:]
        /// Those whose time is over, and those whose code was typed.
        var over: Set<Key> = []
        private(set) var typed: Set<Key> = []
        /// Of these, what no transaction has taken yet.
        private var unstored: Set<Key> = []
        /// Of these, the ones that were taken for good.
        var taken: Set<Key> = []

        mutating func type(_ key: Key) {
            if typed.insert(key).inserted { unstored.insert(key) }
        }

        mutating func stored() { unstored = [] }

        /// The transaction has failed.
        mutating func forgetUnstored() {
            typed.subtract(unstored)
            unstored = []
        }

        mutating func note(_ document: DesiredDocument?, at address: Address) {
            documents[address] = document.flatMap(Document.init)
            if let document { latest[address] = max(latest[address] ?? .zero, document.change) }
            if let kept = documents[address] { seen[address, default: [:]][kept.revision] = kept }
        }

        /// Whether a document that ever came elsewhere says this level for an app: it may go on there in the same way.
        func says(_ level: LogLevel, for app: AppID, besides deciding: Address) -> Bool {
            seen.contains { address, documents in
                guard case .desired(_, app, .logLevel) = address, address != deciding else { return false }
                return documents.values.contains { $0.wish.level == level }
            }
        }

        /// Whether any level that came for an app is for a time.
        func mayExpire(for app: AppID, besides deciding: Address? = nil) -> Bool {
            seen.contains { address, documents in
                guard case .desired(_, app, .logLevel) = address, address != deciding else { return false }
                return documents.values.contains { $0.wish.duration != nil || $0.wish.notAfter != nil }
            }
        }

        /// Whether any level that came at an address before that revision is for a time.
        func mayExpire(before revision: Int64, at address: Address?) -> Bool {
            address.flatMap { seen[$0] }?.values.contains { document in
                document.revision < revision && (document.wish.duration != nil || document.wish.notAfter != nil)
            } ?? false
        }

        func isTyped(_ level: LogLevel, for app: AppID) -> Bool {
            typed.contains { key in
                guard key.app == app, let document = documents[key.address] else { return false }
                return document.change == key.change && document.wish.level == level
            }
        }
    }
}
