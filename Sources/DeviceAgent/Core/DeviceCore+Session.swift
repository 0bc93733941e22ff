import FleetProtocol

extension DeviceCore {
    static let maximumHeld = 256
    /// Greetings are answered this often at most, in milliseconds of running time.
    static let greetingInterval: Int64 = 5_000
    /// The trust document is asked for once more this often at most.
    static let trustInterval: Int64 = 30_000
    /// How long an answer to presence and markers is waited for at first, and at most, in milliseconds of running time.
    static let firstRetry: Int64 = 30_000
    static let longestRetry: Int64 = 600_000
    /// The controller greets each device every ten minutes or so: whom it does not greet for longer, it does not know of.
    static let longestSilence: Int64 = 900_000
    /// How long a marker or a subscription may go unanswered on one connection at first, and at most.
    static let firstPatience: Int64 = 300_000
    static let longestPatience: Int64 = 3_600_000

    /// Whether what the broker has shown of this app is all, and the controller's wish: not while the documents of new
    /// groups are on their way, nor while any that speaks to it is of an earlier epoch than the controller's, which may not
    /// know of it.
    func isCertain(of app: AppID) -> Bool {
        guard let session, session.isGreeted, session.fetched.contains(app), session.wantedGroups == nil else {
            return false
        }
        return session.showing == nil || !layers.haveDocument(for: app, before: session.epoch ?? 0)
    }

    mutating func connected(_ connection: RandomID, at now: Now) {
        endSession()
        session = Session(connection, since: now.wall, groups: state.groups, running: state.running.total)
        noteLeftGroups()
        subscribe(
            [
                .one(.trust), .one(.membership(device)), .one(.presence(.device(device))), .one(.heartbeat),
                .one(.hello(device)), .one(.received(device)), .one(.barrier(.device(device))),
            ] + state.groups.map { .one(.groupMeta($0)) }, for: .first)
    }

    /// What was to be said on a connection that is gone is not said on the next one, which begins with all of it.
    mutating func endSession() {
        session = nil
        batch.isPresenceDue = false
        batch.effects.removeAll(where: \.isForBroker)
    }

    mutating func subscribed(_ barrier: Int64) {
        guard let session, let asked = session.barriers[barrier] else { return }
        if asked.isFirst {
            self.session?.isPresent = true
            batch.isPresenceDue = true
        }
        // The subscription may have been waited for, ever more patiently; the marker is new.
        self.session?.expectMarker(running: state.running.total)
        publishMarker(barrier)
    }

    private mutating func publishMarker(_ barrier: Int64) {
        guard let session else { return }
        self.session?.barriers[barrier]?.isMarked = true
        let marker = BarrierMarker(connection: session.connection, counter: barrier)
        batch.effects.append(.publish(.barrier(.device(device)), marker.json, retain: false))
    }

    /// A broker may drop a message without a word: what nobody has answered is said again, ever more rarely. With nothing else
    /// to be answered by the broker itself, a marker shows whether it still sends anything here.
    mutating func retryUnanswered() {
        guard let session, state.running.total >= session.retryDueAt else { return }
        self.session?.waitLonger(running: state.running.total)
        if session.barriers.isEmpty {
            expect(.echo)
            publishMarker(nextBarrier)
        }
        for (barrier, asked) in session.barriers.sorted(by: { $0.key < $1.key }) where asked.isMarked {
            publishMarker(barrier)
        }
        if session.isPresent { batch.isPresenceDue = true }
    }

    /// When a connection is given up on which the broker leaves something unanswered. It may have dropped its answer, or so much
    /// that it waits for here for ever: on another connection it does neither.
    var givingUpAt: Int64? { session?.unansweredSince.map { $0 + patience } }

    /// A broker that has just too much to do is not given more by many who come again and again.
    mutating func giveUpUnanswered() {
        guard let due = givingUpAt, state.running.total >= due else { return }
        log(.warning, "the broker leaves what was asked unanswered: connects anew", "after \(patience / 1_000) s")
        patience = min(2 * patience, Self.longestPatience)
        session?.isGivenUp = true
        batch.effects.append(.reconnect)
    }

    mutating func receivedBarrier(_ payload: [UInt8], at now: Now) {
        guard let marker = try? BarrierMarker(json: payload, limit: 1_024), marker.connection == session?.connection,
            let asked = session?.barriers.removeValue(forKey: marker.counter)
        else { return }  // Of an earlier connection, answered already, or no marker of ours.
        if session?.barriers.isEmpty == true { patience = Self.firstPatience }
        session?.answered(running: state.running.total)
        switch asked.purpose {
        case .first:
            session?.isPastFirst = true
            retryHeld(at: now)
            showEarlierEpochs()
            fetch(Set(state.apps.keys), groups: groupsToFollow, at: now)
        case .documents(let apps, let groups):
            retryHeld(at: now)
            fetched(apps, groups: groups, behind: marker.counter, at: now)
        case .again:
            retryHeld(at: now)
            if session?.wanted?.barrier == marker.counter { forgetUnwanted() }
            // The controller compares what is left with what there should be.
            if let showing = session?.showing, showing.barrier == marker.counter,
                !layers.addresses(before: showing.epoch).isEmpty
            {
                answerGreeting()
            }
            followMembership(at: now)
            settle(state.apps.keys, at: now)
        case .echo: break
        }
    }

    /// Subscribes to the trust document once more, now and then: the message that names a new key may have been dropped.
    mutating func fetchTrust() {
        guard let session, session.isPastFirst,
            session.trustAskedAt.map({ state.running.total - $0 >= Self.trustInterval }) ?? true
        else { return }
        self.session?.trustAskedAt = state.running.total
        subscribe([.one(.trust)], for: .again)
    }

    /// Subscribes to what the layers say about `apps`, and about all apps for groups that are new, or were left meanwhile.
    mutating func fetch(_ apps: Set<AppID>, groups: [GroupID]? = nil, at now: Now) {
        let newGroups = (groups ?? []).filter { group in
            !state.groups.contains(group) || session?.leftGroups.contains(group) == true
        }
        if let groups {
            session?.wantedGroups = groups
            session?.groupBarrier = nil
            session?.groups.formUnion(groups)
        }
        // What groups that are left say is not listened to any more.
        let wanted = session?.wantedGroups ?? state.groups
        var filters: [TopicFilter] = newGroups.map { .one(.groupMeta($0)) }
        for app in state.apps.keys.sorted() {
            if apps.contains(app) {
                filters += layerFilters(of: app, wanted)
            } else {
                filters += newGroups.map { .aspects(.group($0), app) }
            }
        }
        guard !filters.isEmpty else { return fetched(apps, groups: groups, behind: nil, at: now) }
        subscribe(filters, for: .documents(apps, groups: groups))
        if groups != nil { session?.groupBarrier = nextBarrier }
    }

    private func layerFilters(of app: AppID, _ groups: [GroupID]) -> [TopicFilter] {
        [.aspects(.all, app)] + groups.map { .aspects(.group($0), app) } + [.aspects(.device(device), app)]
    }

    /// Subscribes to all documents once more, so that the broker shows what it had dropped. Returns the marker behind which it
    /// has; nil before the first one, behind which all comes anyhow.
    private mutating func showAgain() -> Int64? {
        guard let session, session.isPastFirst else { return nil }
        let groups = session.groups.sorted()
        subscribe(
            [.one(.trust), .one(.membership(device))] + groups.map { .one(.groupMeta($0)) }
                + session.fetched.flatMap { layerFilters(of: $0, groups) }, for: .again)
        return nextBarrier
    }

    /// Has all documents shown once more, since a hello says that some were lost; it may name those that there should be.
    mutating func fetchAgain(by hello: Hello) {
        // A broker that shows one hello again and again is asked once.
        if let wanted = session?.wanted, session?.barriers[wanted.barrier] != nil, wanted.documents == hello.documents {
            return
        }
        let barrier = showAgain()
        guard let session, let barrier, let documents = hello.documents else { return }
        self.session?.wanted = Session.Wanted(
            barrier: barrier, documents: documents,
            latest: Revision(epoch: hello.clock.epoch, number: hello.clock.revision), apps: Set(session.fetched),
            groups: session.groups)
    }

    private mutating func fetched(_ apps: Set<AppID>, groups: [GroupID]?, behind barrier: Int64?, at now: Now) {
        session?.fetched.insert(contentsOf: apps)
        if session?.reportsDueAt == nil, session?.areReportsLive == false {
            let due = state.running.total + jitter
            session?.reportsDueAt = due
        }
        if let groups, groups == session?.wantedGroups, barrier == session?.groupBarrier { change(to: groups) }
        if session?.wantedGroups == nil { forgetOtherGroups() }
        showEarlierEpochs()
        settle(state.apps.keys, at: now)
    }

    /// A controller that was restored signs all it knows again before it greets anybody. What is of an earlier epoch by
    /// then is no wish of its any more, or its new word was dropped on its way here: the broker shows all once more. It may
    /// withhold that as well, so what is left stays in force until ``forgetUnwanted()``.
    mutating func showEarlierEpochs() {
        guard let session, session.isPastFirst, let epoch = session.epoch else { return }
        let earlier = layers.addresses(before: epoch).filter { address in
            if case .desired(_, let app, _) = address { session.fetched.contains(app) } else { true }
        }
        // What was fetched since was not among what was shown.
        let isAsked = earlier.allSatisfy { address in
            guard let showing = session.showing, showing.epoch == epoch else { return false }
            guard case .desired(_, let app, _) = address else { return true }
            return showing.apps.contains(app)
        }
        guard !isAsked, let barrier = showAgain() else { return }
        self.session?.showing = Session.Showing(barrier: barrier, epoch: epoch, apps: Set(session.fetched))
    }

    /// What was deleted while this device was away for so long that the tombstone is forgotten, too, nobody can withdraw any
    /// more; nor what a restored controller does not know of. The broker alone cannot make anything forgotten: it must have
    /// shown just what the controller has signed for, and that knew of all that this device knows of, so that no hello which
    /// was kept back takes away what came since.
    private mutating func forgetUnwanted() {
        guard let wanted = session?.wanted else { return }
        session?.wanted = nil
        guard state.highest <= wanted.latest else { return }
        let kept = layers.revisions(of: wanted.apps).filter { address, _ in
            address.group.map { wanted.groups.contains($0) && isWanted($0) } ?? true
        }
        // A broker may still have what is of an earlier epoch.
        var left = kept.filter { wanted.shown.contains($0.key) && $0.value.epoch == wanted.latest.epoch }
        // With the membership all goes that groups say, whether that is shown or not.
        if left[.membership(device)] == nil { left = left.filter { $0.key.group == nil } }
        guard Digest(of: left) == wanted.documents else { return }
        for address in kept.keys.filter({ left[$0] == nil }).sorted(by: { $0.path < $1.path }) {
            set(nil, at: address)
            log(.notice, "forgot a document that the controller does not have any more", address.path)
        }
    }

    /// Brings the groups in line with the membership document: before the first barrier all is fetched together, later only
    /// what is new.
    mutating func followMembership(at now: Now) {
        if session?.isPastFirst == true, let groups = groupsToFollow { fetch([], groups: groups, at: now) }
    }

    /// The groups that the membership document names, if others count or are fetched, or some that count were left meanwhile.
    private var groupsToFollow: [GroupID]? {
        let groups = layers.membership
        let isFollowed =
            session?.wantedGroups.map { $0 == groups }
            ?? (groups == state.groups && session?.leftGroups.isEmpty != false)
        return isFollowed ? nil : groups
    }

    /// What groups say that the membership document does not name, now or for a while, is not listened to. While a broker had
    /// one that could not be read here, its guard may have shown nothing of any.
    mutating func noteLeftGroups() {
        let staying = session?.isMembershipUnread == true ? [] : layers.membership
        session?.leftGroups.formUnion(Set(state.groups).subtracting(staying))
        session?.isMembershipUnread = false
    }

    /// From now on these groups count.
    private mutating func change(to groups: [GroupID]) {
        let left = session?.groups.subtracting(groups) ?? []
        session?.wantedGroups = nil
        session?.leftGroups = []
        session?.groups = Set(groups)
        state.groups = groups
        batch.changes.append(.groups(groups))
        layers.count(groups)
        guard !left.isEmpty else { return }
        batch.effects.append(
            .unsubscribe(
                left.sorted().flatMap { group in
                    [.one(.groupMeta(group))] + state.apps.keys.sorted().map { .aspects(.group(group), $0) }
                }))
    }

    /// What groups say that do not count, or never came to, is forgotten; its marks stay.
    private mutating func forgetOtherGroups() {
        for address in layers.addresses(ofOtherGroupsThan: Set(state.groups)) { set(nil, at: address) }
    }

    private mutating func subscribe(_ filters: [TopicFilter], for purpose: Session.Barrier.Purpose) {
        expect(purpose)
        batch.effects.append(.subscribe(filters, barrier: nextBarrier))
    }

    private mutating func expect(_ purpose: Session.Barrier.Purpose) {
        nextBarrier += 1
        let (number, now) = (nextBarrier, state.running.total)
        if case .echo = purpose {} else { session?.expectMarker(running: now) }
        session?.barriers[number] = Session.Barrier(purpose: purpose, askedAt: now)
    }

    /// Up to a quarter of a second: a fleet that comes back together does not report at one moment.
    var jitter: Int64 { session?.draw ?? 0 }
}
