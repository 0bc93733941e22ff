import DeviceAgent
import FleetController
import FleetProtocol

/// The counts of one policy, and between what those of devices that are late, or away, must lie.
private struct Counted {
    var outcomes = OutcomeCounts()
    var overdue: ClosedRange<Int64> = 0...0
    var offline: ClosedRange<Int64> = 0...0
    /// Of those that are to be retired, how many are so far.
    var retirement: RetirementCounts?
    /// Those that have still to answer, and nobody waits for: they do not run, and their keys are gone.
    var spared: Int64 = 0
    /// Those that may be there, and are to be retired by others than are asked about.
    var others: Int64 = 0
}

/// How a status counts: held against what is wanted now.
struct Standing {
    private(set) var outcomes: [Outcome] = []
    private(set) var retirement: Retirement?

    init(_ status: Status, _ said: SaidLayers) {
        for policy in Policy.allCases {
            let (report, wanted) = (status[policy], said.deciding(policy, of: status.app))
            let hasReceived = report.source == wanted?.source && report.received == wanted?.revision ?? 0
            let isAbout = hasReceived && report.attempt.revision == report.received
            outcomes.append(isAbout ? report.attempt.outcome : .pending)
            guard policy == .auth, said.retire(status.app) else { continue }
            let hasFollowed = report.source == wanted?.source && wanted?.same.contains(report.received) == true
            retirement = hasFollowed && status.keys == .destroyed ? .confirmed : .outstanding
        }
    }
}

extension World {
    /// What operators read at any moment: what the newest reports say, held against what is wanted now.
    func checkCounts() {
        guard controller.isUp, violation == nil else { return }
        // Of a device that the home has, and nobody knows of but somebody with a copy, nothing is counted here.
        if machines.contains(where: { $0.isRemoved && controller.enrolments[$0.id] != nil }) { return }
        do {
            let real = try counted()
            for app in real.keys.sorted() {
                for row in try controller.store.summary(of: app, at: controller.clock) {
                    check(row, real[app]?.policies[row.policy] ?? Counted())
                    if row.policy == .auth { try checkDoubtful(row) }
                }
            }
            var any = SplitMix64(seed: schedule.seed ^ UInt64(bitPattern: now))
            let selectors = (0...(any.chance(70) ? 0 : any.below(3))).map { _ in selector(&any) }
            try checkProgress(of: selectors.map { asOf($0, &any) }, real)
            try controller.checkTimes()
            try controller.checkKept()
        } catch {
            fail(.total, "\(error)")
        }
    }

    /// Documents as they stood for somebody who has changed them last, or earlier.
    private func asOf(_ selector: DocumentSelector, _ any: inout SplitMix64) -> DocumentSelector {
        guard let aspect = selector.aspect,
            let newest = controller.desired.newest[.desired(selector.layer, selector.app, aspect)]
        else { return selector }
        let revision = any.chance(60) ? newest : newest - 1 - Int64(any.below(4))
        return DocumentSelector(app: selector.app, layer: selector.layer, aspect: aspect, revision: revision)
    }

    /// Who asks about a change that another one has followed is told so, and by whom that was; a new signature is none.
    private func checkSuperseded(_ told: [ProgressAnswer.Superseded], of selectors: [DocumentSelector]) {
        for selector in selectors {
            guard let aspect = selector.aspect, selector.revision != nil else { continue }
            let address = Address.desired(selector.layer, selector.app, aspect)
            // By what number something went with its group or its device, nobody was told.
            guard controller.desired.values[address] != nil, let newest = controller.desired.newest[address] else {
                continue
            }
            func isSame(_ app: AppID, _ layer: Layer, _ other: Aspect?) -> Bool {
                app == selector.app && layer == selector.layer && other == aspect
            }
            let said = told.filter { isSame($0.app, $0.layer, $0.aspect) }
            let by = controller.desired.changes[newest]?.user.text
            let older = selectors.count {
                isSame($0.app, $0.layer, $0.aspect) && $0.revision.map { $0 < newest } ?? false
            }
            if said.count != older || said.contains(where: { $0.isDeleted || $0.by != by ?? $0.by }) {
                fail(
                    .summary,
                    "progress of \(address.path) at \(selector.revision ?? 0) tells of \(said), and it was changed last at"
                        + " \(newest) by \(by ?? "nobody")")
            }
        }
    }

    /// How far a change has come, as `progress` tells it: of all devices that its documents speak to, and of no others, and
    /// the first of those that have still to answer are named, who is there before who is away.
    private func checkProgress(of selectors: [DocumentSelector], _ all: [AppID: CountedApp]) throws {
        let answer = try controller.store.progress(of: selectors, at: controller.clock)
        checkSuperseded(answer.superseded, of: selectors)
        // Whoever waits for what a backup does not have is told by that.
        if !controller.isFromBackUp, controller.isPunctual, answer.epoch ?? 0 <= controller.undoneEpoch {
            fail(
                .answered,
                "progress is told in epoch \(answer.epoch ?? 0), and a backup was put back since changes were answered in"
                    + " \(controller.undoneEpoch)")
        }
        var counts: [Set<DeviceID>: [AppID: CountedApp]] = [:]
        var wanted: Set<Missing> = []
        var rest = answer.rows[...]
        for app in Set(selectors.map(\.app)).sorted() {
            for policy in Policy.allCases where policy.aspect != nil {
                let about = selectors.filter { $0.app == app && $0.aspect ?? policy.aspect == policy.aspect }
                guard !about.isEmpty else { continue }
                guard let row = rest.popFirst(), row.app == app, row.policy == policy else {
                    return fail(.summary, "progress tells of \(answer.rows), and was asked for \(selectors)")
                }
                let devices = Set(about.flatMap { members(of: $0.layer) })
                let isForAll = about.contains { $0.layer == .all }
                let isOfRetired = policy == .auth && all[app]?.policies[.auth]?.retirement != nil
                let real =
                    if isOfRetired {
                        try counted(of: isForAll ? nil : devices, asked: Set(about.map(\.layer)))
                    } else {
                        try isForAll ? all : counts[devices] ?? counted(of: devices)
                    }
                if !isForAll, !isOfRetired { counts[devices] = real }
                var expected = real[app]?.policies[policy] ?? Counted()
                let isRetiring = about.contains { controller.desired.isRetired(.desired($0.layer, app, .auth)) }
                if policy == .auth, isRetiring, expected.retirement == nil { expected.retirement = RetirementCounts() }
                check(row, expected)
                if policy == .auth { try checkDoubtful(row, in: answer, of: Set(about.map(\.layer))) }
                wanted.formUnion(real[app]?.waiting.filter { $0.policy == policy } ?? [])
            }
        }
        let named = answer.waiting.map { Missing(device: $0.device, app: $0.app, policy: $0.policy) }
        if !rest.isEmpty || !Set(named).isSubset(of: wanted) || Set(named).count != min(20, wanted.count) {
            fail(.summary, "progress waits for \(named), and really for \(wanted)")
        }
        let online = try controller.store.onlineDevices()
        if answer.waiting.contains(where: { $0.isOnline != online.contains($0.device) }) {
            fail(.summary, "progress names \(answer.waiting), and online are \(online)")
        }
        let isAwaySeen = answer.waiting.drop(while: \.isOnline).contains(where: \.isOnline)
        if selectors.count == 1, isAwaySeen { fail(.summary, "progress names who is away before who is there") }
    }

    private func members(of layer: Layer) -> Set<DeviceID> {
        switch layer {
        case .all: []
        case .group(let group): controller.desired.members(of: group)
        case .device(let device): [device]
        }
    }

    /// An app's policy that a device has still to answer to.
    private struct Missing: Hashable {
        let device: DeviceID
        let app: AppID
        let policy: Policy
    }

    private struct CountedApp {
        var policies: [Policy: Counted] = [:]
        var waiting: Set<Missing> = []
    }

    /// What the reports say of devices, held against what is wanted of them; of retirements, by the `asked` layers.
    private func counted(of devices: Set<DeviceID>? = nil, asked: Set<Layer>? = nil) throws -> [AppID: CountedApp] {
        let wishes = try controller.store.wishes()
        var layers: [DeviceID: SaidLayers] = [:]
        var real: [AppID: CountedApp] = [:]
        for status in try controller.store.statuses(in: SimulatedFleet.id)
        where devices?.contains(status.device) ?? true {
            let said = layers[status.device] ?? SaidLayers(wishes, of: status.device)
            layers[status.device] = said
            let standing = Standing(status, said)
            for policy in Policy.allCases {
                let outcome = standing.outcomes[policy.index]
                let retirement = policy == .auth ? standing.retirement : nil
                var counted = real[status.app]?.policies[policy] ?? Counted()
                defer { real[status.app, default: CountedApp()].policies[policy] = counted }
                counted.outcomes.expect(outcome)
                if let retirement {
                    if asked.map({ said.retire(status.app, by: $0) }) ?? true {
                        counted.expect(retirement)
                    } else if retirement == .outstanding, !controller.watch.gone.contains(status.device) {
                        counted.others += 1
                    }
                }
                let isWaiting = [.pending, .delivered, .awaitingCode].contains(outcome)
                let isSpared = isWaiting && retirement == .confirmed && !status.isRunning
                if isSpared { counted.spared += 1 }
                if retirement == .outstanding || isWaiting && !isSpared {
                    real[status.app, default: CountedApp()].waiting.insert(
                        .init(device: status.device, app: status.app, policy: policy))
                }
                guard isWaiting else { continue }
                let since = said.deciding(policy, of: status.app)?.issuedAt
                try counted.waits(for: status, policy, since: since, in: self)
            }
        }
        return real
    }

    /// What operators read is what the devices have, counted: keys are called destroyed where they are. Who has been there
    /// for long, and does not answer, is late.
    func checkSummary(_ store: FleetStore) throws {
        let wishes = try store.wishes()
        for number in 0..<schedule.apps {
            let app = AppID(unchecked: "a\(number)")
            for row in try store.summary(of: app, at: controller.clock) {
                var real = Counted()
                for machine in machines where !machine.isRemoved {
                    guard let record = machine.core?.state.apps[app] else { continue }
                    real.outcomes.expect(record[row.policy].attempt.outcome)
                    if row.policy == .auth, SaidLayers(wishes, of: machine.id).retire(app) {
                        real.expect(machine.disk.keys[app] == nil ? .confirmed : .outstanding)
                        real.spared += 1  // At most: it may run, or have answered.
                    }
                }
                let waiting = real.outcomes.delivered + real.outcomes.pending
                let isLongAgo = schedule.broker == .lossy && controller.isPunctual && !isSettled
                real.overdue = (isLongAgo ? waiting : 0)...waiting
                check(row, real)
            }
        }
    }

    private func check(_ row: StatusRow, _ real: Counted) {
        var told = row.counts
        told.overdue = 0
        let name = "\(row.app) \(row.policy.rawValue)"
        if told != real.outcomes { fail(.summary, "\(name): \(told), and really \(real.outcomes)") }
        if !real.overdue.contains(row.counts.overdue) {
            fail(.ends, "\(name): \(row.counts.overdue) are shown as overdue, and really \(real.overdue) are")
        }
        if !real.offline.contains(row.offline) {
            fail(.summary, "\(name): \(row.offline) wait for who is offline, and really \(real.offline) do")
        }
        var retirement = row.retirement
        retirement?.doubtful = 0
        // Of those who are counted no more, or were copied.
        if real.retirement == nil, retirement != row.retirement, retirement == RetirementCounts() { retirement = nil }
        if retirement != real.retirement {
            let (told, real) = (retirement.map { "\($0)" }, real.retirement.map { "\($0)" })
            fail(
                .erased, "\(name): told of the keys is \(told ?? "nothing"), and really \(real ?? "nobody") is retired")
        }
        // Among those who are away may be some that nobody waits for, and some that are waited for all the same.
        let outstanding = real.retirement?.outstanding ?? 0
        let open = told.pending + told.delivered - row.offline
        let due = max(outstanding, open - real.spared)...max(outstanding, open + outstanding + real.others)
        if !due.contains(row.due) {
            fail(.summary, "\(name): \(row.due) are waited for, and really \(due) are")
        }
    }
}

extension Counted {
    mutating func expect(_ retirement: Retirement) {
        self.retirement = self.retirement ?? RetirementCounts()
        switch retirement {
        case .confirmed: self.retirement?.confirmed += 1
        case .outstanding: self.retirement?.outstanding += 1
        }
    }

    /// A device-app has still to answer, to what was said `since` then.
    fileprivate mutating func waits(
        for status: Status, _ policy: Policy, since: Timestamp?, in world: World
    ) throws {
        let (controller, device) = (world.controller, status.device)
        let classed = controller.layers.since(status, at: controller.clock)
        // What it has not read yet, or has lost with its connection, may say who is there.
        guard controller.isIdle else {
            overdue = overdue.lowerBound...overdue.upperBound + 1
            offline = offline.lowerBound...offline.upperBound + 1
            return
        }
        // By a clock that was wrong, it may lie ahead.
        func isLongAgo(_ time: Timestamp) -> Bool { abs(time.milliseconds - controller.clock.milliseconds) >= 300_000 }
        var mayBeLate = since.map(isLongAgo) ?? true
        var mustBeLate = false
        if controller.isPunctual {
            // A retirement that is taken back, at whatever layer, is news as well. Of a layer that says nothing any more, it is
            // to those whose layer it was.
            if mayBeLate, policy == .auth || since == nil {
                let said = try controller.issued(to: device, status.app, policy) { wish in
                    if case .desired(.all, _, _) = wish.address { true } else { wish.value != nil }
                }
                mayBeLate = said.max().map(isLongAgo) ?? true
            }
            // An operator may have been answered at the second time only.
            mayBeLate = mayBeLate && classed.told.map { isLongAgo($0.advanced(bySeconds: -120)) } ?? true
            if let arrived = controller.watch.arrived[device] {
                mayBeLate = mayBeLate && arrived + 300_000 <= world.now
            }
            // Who has had the app for less cannot have had the time.
            if let came = classed.came { mayBeLate = mayBeLate && came + 300_000 <= world.now }
        }
        // A report of an earlier incarnation, shown again, makes it uncertain who is there; of one that was enrolled again since,
        // it is not the device that is.
        if !world.areReportsReplayed, let present = controller.watch.present[device],
            let enrolled = controller.enrolments[device], present.incarnation >= enrolled,
            let came = controller.watch.presentSince[device]
        {
            // It is counted from when the controller has read that. What lies ahead by a clock that was set back excuses nobody,
            // but for as long as that was.
            let setAt = controller.clockSetAt + controller.clockSetBack
            // What is said on layers that do not decide is news of an authorization alone.
            let decides = policy == .auth ? nil : since
            let issued = try decides.map { [$0] } ?? controller.issued(to: device, status.app, policy)
            mustBeLate =
                try max(came, controller.wentOnAt, setAt) + 301_000 <= world.now
                && classed.seen.allSatisfy(isLongAgo)
                && (controller.isPunctual || controller.store.device(device)?.since.map(isLongAgo) ?? true)
                && issued.allSatisfy(isLongAgo)
        }
        if mayBeLate, controller.watch.heard.contains(device) {
            overdue = overdue.lowerBound + (mustBeLate ? 1 : 0)...overdue.upperBound + 1
        }
        // That of a copy, or of an earlier start, may count for nothing.
        let isAnnounced = try controller.watch.announced[device].map { said in
            try controller.store.device(device).map {
                ($0.incarnation, $0.boot) <= (said.incarnation, said.boot)
            } ?? false
        }
        if isAnnounced != true { offline = offline.lowerBound...offline.upperBound + 1 }
        if controller.watch.gone.contains(device) { offline = offline.lowerBound + 1...offline.upperBound }
    }
}

extension Controller {
    /// When something about a policy was said, or taken back, on a layer that may speak to a device.
    fileprivate func issued(
        to device: DeviceID, _ app: AppID, _ policy: Policy, where isMeant: (FleetStore.Wish) -> Bool = { _ in true }
    ) throws -> [Timestamp] {
        guard let aspect = policy.aspect else { return [] }
        let layers: [Layer] = try [.all, .device(device)] + store.groups(of: device).map { .group($0) }
        let addresses = Set(layers.map { Address.desired($0, app, aspect) })
        return try store.wishes().filter { addresses.contains($0.address) && isMeant($0) }
            .compactMap { try DesiredDocument(wire: $0.wire) }
            .map(\.issuedAt)
    }
}
