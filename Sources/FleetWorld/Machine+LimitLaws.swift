import DeviceAgent
import FleetProtocol

/// The laws of contact, of what is retired, and of what may be without certainty.
extension Machine {
    /// When it was in contact, and how long it has run, is on the disk: a device whose power is cut all the time would never
    /// come to an end of its limits.
    func checkSaved(_ core: DeviceCore, _ effects: [DeviceEffect], isNew: Bool) {
        let isSaving = effects.contains { effect in
            guard case .store(let changes) = effect else { return false }
            return changes.contains { if case .clock = $0 { true } else { false } }
        }
        let unsaved = core.state.running.total - disk.state.running.total
        guard !isSaving, isNew || unsaved > 65_000 else { return }
        let what = isNew ? "when it was in contact" : "\(unsaved) ms of its running time"
        world.fail(.limits, "\(name): \(what) is not saved")
    }

    /// What counts as contact is what is contact: a later word of the controller's, on a connection that it has greeted.
    func checkContact(_ core: DeviceCore, _ events: [DeviceEvent]) {
        let contact = core.state.contact
        let before = watch.noted
        let isNew = contact != before
        watch.noted = contact
        // What had come before the connection ended was looked at with its end.
        let isEnding = events.contains { event in
            switch event {
            case .connected, .disconnected: true
            default: false
            }
        }
        if isEnding { return }
        if isNew, !watch.isInContact { world.fail(.limits, "\(name) takes for contact what is none") }
        // Of what waits for the key that it is signed with, the newest of a topic is kept: a hostile broker shows another one.
        if world.schedule.broker == .hostile, events.contains(where: { isTrust($0) }) { return }
        guard let lag = watch.lag else { return }
        let counts = max(core.state.running.total - lag, before?.running ?? .min)
        guard let contact, contact.running == counts,
            !isNew || contact.wall.milliseconds == clock.wall.milliseconds - lag
        else {
            return world.fail(.limits, "\(name) is in contact, and has not noted it")
        }
        if isNew { checkAge(of: contact, core) }
        // Where a group may have been left and come to again, its documents are on their way. And a word that counts from before
        // the last contact ends no absence by a wall clock that was set since: the next nonce's answer does.
        guard !watch.bus.isRegrouped, core.state.running.total - lag >= before?.running ?? .min else { return }
        let blocked = core.state.apps.values.first { app in
            app.latch == nil && app.authReason == .outOfContact && watch.bus.isStillCertain(app.id)
                && (app.secureServices.offline?.blockAfter).map { $0 * 1_000 > lag } ?? true
        }
        if let blocked, !mayHaveNobodys(core) {
            world.fail(.limits, "\(name) is in contact, and \(blocked.id) is still blocked")
        }
    }

    /// What was kept back on its way counts from when it was signed, as the world knows, and never from later than a short
    /// time after that. What it has slept through on this connection, its clock does not tell it.
    private func checkAge(of contact: DeviceAgent.Contact, _ core: DeviceCore) {
        guard !world.controller.isOlder,
            let signedAt = watch.words.compactMap({ world.controller.signedAt[SignedTime(epoch: $0.epoch, at: $0.at)] })
                .max(),
            let age = clocks.ran(since: signedAt, at: world.now)
        else { return }
        let counted = core.state.running.total - contact.running
        if counted < age - Greeting.tolerance - Self.tolerance - clocks.sleptOnline {
            world.fail(
                .limits, "\(name) hears what was signed \(age / 1_000) s ago, and counts it as \(counted / 1_000) s old"
            )
        }
    }

    /// How late a limit may be noticed: running time is looked at when it is due, the wall clock with the next tick.
    private static let (tolerance, wallTolerance): (Int64, Int64) = (2_000, 62_000)

    /// - Parameter isTick: The device has looked at its clocks in this moment.
    func checkLimits(_ core: DeviceCore, _ contact: Watch.Contact, isTick: Bool) {
        let known = watch.apart(contact, at: runningTime).known
        let wall = clock.wall.milliseconds - contact.wall.milliseconds
        for app in core.state.apps.values {
            // A limit that comes when it has passed already is looked at with the next tick; contact may come before.
            guard app.latch == nil, let offline = app.secureServices.offline,
                world.now >= (watch.limitsSince[app.id] ?? 0) + Self.wallTolerance
            else { continue }
            if let limit = offline.wipeAfter, known >= limit * 1_000 + Self.tolerance {
                world.fail(.limits, "\(name)/\(app.id): not wiped after \(known / 1_000) s without contact")
            }
            guard let limit = offline.blockAfter, app.authState == .authorized else { continue }
            let isLateByWall =
                isTick && wall >= limit * 1_000
                || wall >= limit * 1_000 + Self.wallTolerance
                    && world.now >= (clocks.wallSetAt ?? 0) + Self.wallTolerance
            if known >= limit * 1_000 + Self.tolerance || isLateByWall {
                world.fail(
                    .limits, "\(name)/\(app.id): not blocked after \(max(known, wall) / 1_000) s without contact")
            }
        }
    }

    /// A retirement gives way to a later one, and ends by what was changed after it.
    func checkLatch(_ app: AppRecord, was old: AppRecord) {
        if let latch = app.latch, latch != old.latch, latch.reason == .policy, !wasPutBack,
            watch.retirements[app.id]?.contains(latch.message) == false
        {
            world.fail(.latched, "\(name)/\(app.id): retired by policy with the message '\(latch.message)'")
        }
        guard let before = old.latch, app.latch != before, app.latch?.reason != .selfRetired else { return }
        let later = (watch.authorizations[app.id] ?? [:]).filter { $0.key > before.change }
        // Released by a document, it may retire the app of its own account in the same moment.
        let isReleased = later.values.contains { $0 != .retired }
        let retired = isReleased ? watch.authorizations[app.id] ?? [:] : later
        let isByDocument =
            app.latch.map { $0.reason == .policy ? retired[$0.change] == .retired : isReleased } ?? isReleased
        guard !isByDocument else { return }
        let now = app.latch.map { "by \($0.change)" } ?? "not"
        world.fail(.latched, "\(name)/\(app.id): retired by \(before.change), now \(now)")
    }

    /// What a device latches by itself gives way to what was changed after all that it knew of: it is latched as late as that.
    func checkOwnLatch(_ app: AppRecord, was old: AppRecord) {
        guard let latch = app.latch, old.latch?.reason != latch.reason, latch.reason != .policy, !wasPutBack,
            latch.change < watch.highest
        else { return }
        world.fail(.latched, "\(name)/\(app.id): latched at \(latch.change), and knew of \(watch.highest)")
    }

    /// Written again, beside the product's own: what needs no certainty.
    static func isStricter(_ new: PolicyValue, than old: PolicyValue) -> Bool {
        func isWithin(_ new: (isAll: Bool, apps: [AppID]), _ old: (isAll: Bool, apps: [AppID])) -> Bool {
            old.isAll || !new.isAll && Set(new.apps).isSubset(of: old.apps)
        }
        func isLater(_ new: Int64?, _ old: Int64?) -> Bool { (new ?? .max) > (old ?? .max) }
        return switch (old, new) {
        case (.openIn(let old, let oldApps), .openIn(let new, let newApps)):
            isWithin(
                (new == .authorized, new == .whitelist ? newApps : []),
                (old == .authorized, old == .whitelist ? oldApps : []))
        case (.openFrom(let old, let oldApps), .openFrom(let new, let newApps)):
            isWithin(
                (new == .authorized, new == .whitelist ? newApps : []),
                (old == .authorized, old == .whitelist ? oldApps : []))
        case (.pasteboard(let old), .pasteboard(let new)):
            old == .authorized || new == .unauthorized || old == new
        case (.secureServices(let old), .secureServices(let new)):
            // What is not locked is opened by something else than before.
            new.isLocked && !isLater(new.offline?.blockAfter, old.offline?.blockAfter)
                && !isLater(new.offline?.wipeAfter, old.offline?.wipeAfter)
        case (.auth(let old, _), .auth(let new, _)):
            old == new || old == .authorized || new == .retired
        case (.print(let old), .print(let new)): old == .authorized || new == .unauthorized
        case (.dragAndDrop(let old, let oldApps), .dragAndDrop(let new, let newApps)):
            isWithin((new == .allApps, newApps), (old == .allApps, oldApps))
        case (.logLevel(let old), .logLevel(let new)): new <= old
        default: false
        }
    }

    /// Of the retirements in force the latest is latched, or one after it: nothing that is older ends it. What a restored
    /// controller has signed again may be an earlier change than the one it has forgotten.
    func checkIsLatched(_ app: AppRecord) {
        guard !world.controller.wasPutBack, !wasPutBack, app.authState == .retired, app.authReason == .policy,
            app[.auth].problem == nil, let core
        else { return }
        for (address, wire) in core.signedDocuments {
            guard case .desired(let layer, app.id, .auth) = address, let change = watch.changes[address],
                watch.authorizations[app.id]?[change] == .retired,
                app.latch.map({ $0.change < change }) ?? true
            else { continue }
            if case .group(let group) = layer, !core.state.groups.contains(group) { continue }
            // What takes its place in this moment is not stored yet.
            let document = try? DesiredDocument(wire: wire)
            if document?.change != change { continue }
            let latch = app.latch.map { "latched by \($0.change)" } ?? "not latched"
            world.fail(.latched, "\(name)/\(app.id): retired by \(address.path), changed at \(change), and \(latch)")
        }
    }

    /// What is out of contact by its own account has been so for long enough.
    func checkOutOfContact(_ app: AppRecord, was old: AppRecord) {
        guard app.authReason == .outOfContact, old.authReason != .outOfContact, !wasPutBack,
            !watch.limitsReplaced.contains(app.id)
        else { return }
        // What one that was two has heard is not known, and a clock that was set since counts from then.
        if watch.contact == nil, oneSince > 1 { return }
        guard let contact = watch.contact ?? watch.contactNow(at: runningTime, clock.wall) else {
            return world.fail(.limits, "\(name)/\(app.id): out of contact, and there has been none")
        }
        let most = watch.apart(contact, at: runningTime).most
        let wall = clock.wall.milliseconds - contact.wall.milliseconds
        // A limit that has come in this moment counts at once.
        let limits = [old.secureServices.offline, app.secureServices.offline].compactMap { $0 }
        if app.latch?.reason == .outOfContact, old.latch == nil {
            guard let limit = limits.compactMap(\.wipeAfter).min(), most >= limit * 1_000 - 100 else {
                return world.fail(.limits, "\(name)/\(app.id): wiped after \(most / 1_000) s without contact")
            }
        } else if app.latch == nil {
            guard let limit = limits.compactMap(\.blockAfter).min(), max(most, wall) >= limit * 1_000 - 100 else {
                return world.fail(
                    .limits, "\(name)/\(app.id): blocked after \(max(most, wall) / 1_000) s without contact")
            }
        }
    }
}
