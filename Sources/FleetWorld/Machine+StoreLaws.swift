import DeviceAgent
import FleetController
import FleetProtocol

/// The laws of what stands in a device's store.
extension Machine {
    /// A transaction stands: what it has newer will not be forgotten.
    ///
    /// - Parameter passcode: What was stored before.
    func stored(_ changes: [StoreChange], was passcode: PasscodeRecord) {
        var passcode = passcode
        world.restingMinute?.stored(by: id)
        var wiped: [AppID: String] = [:]
        for case .event(let event) in changes {
            if case .event(let told) = event.body, told.kind == .wiped { wiped[told.header.app] = told.message ?? "" }
        }
        for change in changes {
            switch change {
            case .app(let app):
                checkErased(app)
                checkForward(app)
                checkLevel(app, changes)
                apps.first { $0.id == app.id }?.stored(app, wiped: wiped[app.id])
            case .document(let address, let wire?):
                if case .desired = address, !watch.hasCome(wire, at: address) {
                    world.fail(.unforged, "\(name) keeps at \(address.path) what never came there")
                }
                checkAge(wire, at: address)
                checkAccepted(wire, at: address)
            case .document(let address, nil):
                if !changes.contains(where: { if case .document(address, _?) = $0 { true } else { false } }) {
                    checkForgotten(address)
                }
                watch.wishes.note(nil, at: address)
                watch.levelTimes.end(at: address)
            case .passcode(let new):
                checkForgotten(new, was: passcode)
                passcode = new
            case .mark(let address, let mark): checkForward(mark.revision, at: address)
            default: break
            }
        }
        checkWrong()
        for case .event(let event) in changes {
            // One that was two may have a level of a document that has been replaced since.
            guard case .logLevel(let change) = event.body, change.why == .expired, !wasPutBack, oneSince == 1,
                !watch.wishes.mayExpire(for: change.header.app)
            else { continue }
            world.fail(.kept, "\(name)/\(change.header.app): its level is told to have expired, and none is for a time")
        }
        if let problem = watch.stored(changes, at: runningTime), !wasPutBack {
            world.fail(.kept, "\(name): \(problem)")
        }
    }

    /// Whatever its revision says: what was changed earlier does not come after what was changed later. A restored
    /// controller signs what its backup has again, and that may be earlier.
    private func checkAge(_ wire: [UInt8], at address: Address) {
        guard !world.controller.wasPutBack, let document = try? DesiredDocument(wire: wire)
        else { return }
        if let newest = watch.changes[address], document.change < newest {
            world.fail(
                .forward, "\(name): \(address.path) went from what was changed at \(newest) to \(document.change)")
        }
        watch.changes[address] = max(watch.changes[address] ?? .zero, document.change)
    }

    /// What an app follows does not go back to a revision of before.
    private func checkForward(_ app: AppRecord) {
        // Put back twice by a clock that was set back, a controller may give out numbers again, in a later epoch.
        guard world.controller.isPunctual || world.controller.putBacks < 2 else { return }
        for policy in Policy.allCases {
            let now = app[policy]
            guard let source = now.source, policy.aspect == sourceAspect(source) else { continue }
            let followed = Watch.Followed(source: source, policy: policy)
            if let newest = watch.newest[followed], now.received < newest {
                world.fail(.forward, "\(name)/\(app.id): \(source.path) went from \(newest) back to \(now.received)")
            }
            watch.newest[followed] = max(watch.newest[followed] ?? 0, now.received)
        }
    }

    /// What was accepted at an address is never followed by something older, tombstones and what was forgotten since included.
    private func checkForward(_ revision: Revision, at address: Address) {
        guard !wasPutBack, world.controller.isPunctual || world.controller.putBacks < 2 else { return }
        if let known = watch.accepted[address], revision < known {
            world.fail(.forward, "\(name): \(address.path) went from \(known) to \(revision)")
        }
        if let floor = enrollment.floors[address], revision < floor {
            world.fail(.forward, "\(name): \(address.path) is at \(revision), and it was enrolled with \(floor)")
        }
        watch.accepted[address] = max(watch.accepted[address] ?? .zero, revision)
    }

    private func checkAccepted(_ wire: [UInt8], at address: Address) {
        guard let document = try? DesiredDocument(wire: wire)
        else { return }
        let revision = document.revision
        watch.heard(revision)
        watch.wishes.note(document, at: address)
        watch.lists[address, default: [:]][revision.number] = document.listsOfAuthorizedApps
        watch.levelTimes.receive(document.change, at: address, running: runningTime)
        checkForward(revision, at: address)
        if revision < enrollment.floors[address] ?? .zero || revision.epoch < enrollment.epoch, !wasPutBack {
            world.fail(.forward, "\(name): \(address.path) is at \(revision), which is from before its enrolment")
        }
        if revision.epoch < watch.epoch, !wasPutBack {
            world.fail(.forward, "\(name): \(address.path) is at \(revision), and epoch \(watch.epoch) was here")
        }
        watch.epoch = max(watch.epoch, revision.epoch)
    }

    private func sourceAspect(_ address: Address) -> Aspect? {
        if case .desired(_, _, let aspect) = address { aspect } else { nil }
    }

    /// Nothing says that keys are gone, or there, before they are.
    private func checkErased(_ app: AppRecord) {
        if app.hasKeys == (app.authState == .retired) {
            world.fail(
                .erased, "\(name)/\(app.id): it is \(app.authState), and its keys are \(app.hasKeys ? "there" : "gone")"
            )
        }
        if app.hasKeys != (disk.keys[app.id] != nil) {
            world.fail(
                .erased, "\(name)/\(app.id): its keys are stored as \(app.hasKeys ? "there" : "gone") before that is so"
            )
        }
    }

    /// What the controller still wants of a device is not forgotten, whatever a broker shows or keeps back.
    private func checkForgotten(_ address: Address) {
        guard !wasPutBack, let core, let mark = core.state.marks[address] else { return }
        switch address {
        case .desired(.group(let group), _, _), .groupMeta(let group):
            guard core.membership.contains(group), core.state.groups.contains(group) else { return }
        default: break
        }
        let controller = world.controller
        guard let wish = (try? controller.store.wishes())?.first(where: { $0.address == address }), wish.value != nil
        else { return }
        if !controller.wasPutBack, wish.revision == mark.revision {
            world.fail(.convergence, "\(name) forgets \(address.path) of \(mark.revision), which is wanted")
        }
        // Signed again in a new epoch, it stays as it was in the earlier one until that has come.
        guard wish.change.epoch < wish.revision.epoch, mark.revision.epoch < wish.revision.epoch,
            wish.revision.epoch == core.state.highest.epoch
        else { return }
        world.fail(.convergence, "\(name) forgets \(address.path), which \(wish.revision) was to tell it again")
    }

    /// What was stored of these incarnations is gone with the device. Where the home was put back before that was done, it goes
    /// with all that it had said until then.
    func forgive(through incarnation: Int64) { watch.events.forgive(through: max(incarnation, enrolledAtPutBack)) }

    /// The controller has lost what it had stored of these; nobody has them any more.
    func forgive(_ lost: some Sequence<FleetStore.StoredEvent>) {
        for event in lost where event.device == id { watch.events.promised[event] = nil }
    }
}
