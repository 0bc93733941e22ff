import DeviceAgent
import FleetProtocol

/// The laws of what a person is told of the passcode, and of what wrong ones have locked.
extension Machine {
    /// The records of before are still those that are watched.
    ///
    /// - Parameter running: Of this moment; what has been used in it is not noted yet.
    func checkEntries(_ events: [DeviceEvent], _ effects: [DeviceEffect], _ core: DeviceCore, at running: Int64) {
        checkLeft(events, effects, core)
        checkSet(effects, core)
        checkUnused(events, effects, core, at: running)
    }

    /// How many more wrong entries there may be is said of the app that bears the fewest: what the next one does surprises
    /// nobody.
    private func checkLeft(_ events: [DeviceEvent], _ effects: [DeviceEffect], _ core: DeviceCore) {
        guard watch.isAlone, case .passcodeChecked(_, .wrong)? = events.first else { return }
        for case .send(_, .passcodeResult(let result)) in effects where result.kind == .wrong {
            let expected = core.state.apps.keys.compactMap { watch.records[$0]?.entriesBehindAWrongOne }.min()
            guard result.left != expected else { continue }
            func said(_ left: Int64?) -> String { left.map { "\($0) entries" } ?? "any number" }
            world.fail(
                .passcodes,
                "\(name): the person is told that \(said(result.left)) may follow a wrong one, and it is"
                    + " \(said(expected))")
        }
    }

    /// What is set for a passcode has all that apps ask of it in the moment in which it is typed.
    private func checkSet(_ effects: [DeviceEffect], _ core: DeviceCore) {
        guard watch.isAlone else { return }
        for case .checkPasscode(_, _, _, let new?) in effects {
            guard let app = core.state.apps.values.first(where: { $0.asksForPasscode && !$0.takes(new) }) else {
                continue
            }
            world.fail(.passcodes, "\(name): '\(new)' is taken for a new passcode, and \(app.id) asks for more")
        }
    }

    /// Use keeps open what is open: what nobody has used for its time is locked in the next moment in which the agent looks,
    /// also where the first that happens in it is that somebody uses an app.
    private func checkUnused(
        _ events: [DeviceEvent], _ effects: [DeviceEffect], _ core: DeviceCore, at running: Int64
    ) {
        // What else there is may open an app, or give it more time, between one event and the next.
        guard watch.passcode.entered != nil, events.allSatisfy(\.opensNothing) else { return }
        let isTick = events.contains { if case .tick = $0 { true } else { false } }
        let isUsed = events.contains { if case .frame(_, .used) = $0 { true } else { false } }
        // Of one whose connection counts no more the agent does not hear that it is used.
        guard isTick || isUsed && !effects.contains(where: { if case .close = $0 { true } else { false } }) else {
            return
        }
        for app in core.state.apps.values where app.asksForPasscode && app.availability == .available {
            guard let autoLock = app.secureServices.autoLock,
                watch.records[app.id]?[.secureServices].value == app[.secureServices].value,
                let time = watch.passcode.idleTime(of: app.id, at: running), time >= autoLock * 1_000
            else { continue }
            world.fail(
                .passcodes,
                "\(name)/\(app.id): nobody had used an app for \(time) ms, its time is \(autoLock) s, and use keeps it"
                    + " open")
        }
    }

    /// What wrong passcodes lock gives way to what was changed after all that the device knew of: it is locked as late as that.
    func checkNewLock(_ app: AppRecord, was old: AppRecord) {
        guard let lock = app.passcodeLock, old.passcodeLock == nil, !wasPutBack, lock < watch.highest else { return }
        world.fail(.passcodes, "\(name)/\(app.id): locked at \(lock), and knew of \(watch.highest)")
    }

    /// An app that has retired itself asks for no passcode, and that is nobody's word: what wrong ones have locked stays so
    /// until a document says something later.
    func checkLockStays(_ app: AppRecord, was old: AppRecord, in changes: [StoreChange]) {
        guard watch.isAlone, !wasPutBack, app.latch?.reason == .selfRetired, let lock = old.passcodeLock,
            app.passcodeLock == nil
        else { return }
        func isLater(_ wire: [UInt8], at address: Address) -> Bool {
            guard case .desired(_, app.id, .secureServices) = address, let document = try? DesiredDocument(wire: wire)
            else { return false }
            return document.change > lock
        }
        // What decided may be gone in the same moment.
        let isNew = changes.contains { change in
            if case .document(let address, let wire?) = change { isLater(wire, at: address) } else { false }
        }
        guard !isNew, !disk.state.documents.contains(where: { isLater($0.value, at: $0.key) }) else { return }
        world.fail(
            .passcodes,
            "\(name)/\(app.id): wrong passcodes have locked it at \(lock), and its own retirement has opened it")
    }
}

extension AppRecord {
    /// So many more wrong entries it bears when one has just been wrong; nil where that is not limited, or none counts.
    fileprivate var entriesBehindAWrongOne: Int64? {
        guard asksForPasscode, latch == nil, passcodeLock == nil, !isWipeDue,
            let most = secureServices.passcode?.maxAttempts
        else { return nil }
        return max(0, most - wrongPasscodes - 1)
    }
}

extension DeviceEvent {
    /// Whether it opens no app, and changes nothing of what is asked for, whatever else it does.
    fileprivate var opensNothing: Bool {
        switch self {
        case .tick, .linkClosed, .displayed, .disconnected: true
        case .frame(_, let frame):
            switch frame {
            case .ready, .delivered, .taken, .acknowledge, .blocked, .display, .copy, .paste, .used: true
            case .register, .retire, .stop, .code, .passcode: false
            }
        case .connected, .subscribed, .message, .registered, .registrationRefused, .codeChecked,
            .passcodeChecked, .stopping:
            false
        }
    }
}
